"""``python -m tests.crash``: kills processes at every point of their work once, then at random pairs of points.

Exit code 1 if anything is lost, doubled or half-visible.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from hive_replication.connect import Connection, connect
from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy
from tests.crash.campaign import Campaign, Replica, double, single
from tests.crash.chains import Chain, tell_of_chain
from tests.crash.failovers import FailedOver, no_tale
from tests.crash.policy_changes import tell_of_policies
from tests.crash.second_bootstrap import (
    SecondBootstrap,
    tell_of_second_bootstrap,
    tell_of_second_bootstrap_of_transactions,
)
from tests.crash.story import Story, tell, tell_of_drop
from tests.crash.tally import Tally
from tests.crash.transactional_names import tell_of_transactional_names
from tests.crash.transactions import tell_of_transactions

Tell = Callable[[Connection, HiveDriver, str], Story]
STORIES: dict[str, Tell] = {
    "tables": tell,
    "drops": tell_of_drop,
    "policy": tell_of_policies,
    "transactions": tell_of_transactions,
    "transactional-names": tell_of_transactional_names,
    "chain": tell_of_chain,
    "chain-transactions": tell_of_transactions,
    "second-bootstrap": tell_of_second_bootstrap,
    "second-bootstrap-transactions": tell_of_second_bootstrap_of_transactions,
    "failover": no_tale,
}
#: Stories that run on metastores 4.2.
_HIVE4 = ("transactions", "transactional-names", "chain-transactions", "second-bootstrap-transactions")
#: Replicas of stories that are not loaded dump by dump.
_MAKES: dict[str, type[Replica]] = {
    "chain": Chain,
    "chain-transactions": Chain,
    "second-bootstrap": SecondBootstrap,
    "second-bootstrap-transactions": SecondBootstrap,
    "failover": FailedOver,
}


@contextmanager
def servers() -> Generator[tuple[Connection, Connection, HiveDriver]]:
    """The servers of Hive 3 and 4 that HIVE_REPL_TEST_CLUSTER names, or new ones for this run, and real Hive on the source."""
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(kept or folder))
        cluster.up()
        try:
            with HiveDriver(cluster.side("source"), quick=True) as hive:
                cluster.up(["source4", "target4"])
                names = {"unused": "unused"}
                yield connect(policy(cluster, names)), connect(policy(cluster, names, "source4", "target4")), hive
        finally:
            if not kept:
                cluster.down()


def main() -> int:
    """Runs the campaign and prints its results."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("stories", nargs="*", default=[*STORIES], metavar="STORY", help=f"of {', '.join(STORIES)} (default: all)")
    parser.add_argument("--doubles", type=int, default=10, help="replicas with pairs of random strikes")
    parser.add_argument("--limit", type=int, help="replicas with single strikes, chosen at random (default: all)")
    parser.add_argument("--parallel", type=int, default=3)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    args = parser.parse_args()
    if unknown := set(args.stories) - set(STORIES):
        parser.error(f"unknown {', '.join(sorted(unknown))}: of {', '.join(STORIES)}")
    random, began, tally = Random(args.seed), time.monotonic(), Tally()
    print(f"seed {args.seed}", flush=True)
    with servers() as (connection, connection4, hive), tempfile.TemporaryDirectory() as folder:
        packing = connect(connection.source.policy.model_copy(update={"packed_above": 0}))
        where = {name: connection4 if name in _HIVE4 else connection for name in STORIES} | {"drops": packing}
        for name in args.stories:
            makes = _MAKES.get(name, Replica)
            campaign = Campaign(where[name], Path(folder), lambda line: print(line, flush=True), tally, makes)
            with tally.going_on(f"the story {name}"):
                story = STORIES[name](where[name], hive, f"crash{secrets.token_hex(4)}")
                points = campaign.points(story)
                print(f"{name}: {[len(found) for found in points]} points after {time.monotonic() - began:.0f} s", flush=True)
                for found in points:
                    random.shuffle(found)
                plans = single(points)[: args.limit]
                campaign.strike(story, [*plans, *double(points, random, args.doubles)], args.parallel)
                if makes is Replica:
                    with tally.going_on(f"dumps of {name}"):
                        campaign.strike_dumps(story, random, args.limit, args.parallel)
                    if story.repairs:
                        campaign.strike_repairs(story, random, args.limit, args.parallel)
    for problem in tally.problems:
        print(problem)
    print(f"seed {args.seed}: {time.monotonic() - began:.0f} s")
    print(tally)
    return 1 if tally.problems else 0


if __name__ == "__main__":
    sys.exit(main())
