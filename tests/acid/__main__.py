"""``python -m tests.acid``: transactions by real Hive, replicated window by window, row ids included.

Exit code 1 if any row differs, a reader sees a part of a transaction, or anything is held.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

from resources.embedded.cluster import Cluster
from tests.acid.servers import servers
from tests.acid.workload import Workload


def main() -> int:
    """Prints what was done and found."""
    parser = argparse.ArgumentParser(prog="python -m tests.acid", description=__doc__)
    parser.add_argument("--transactions", type=int, default=200)
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    args = parser.parse_args()
    kept, began = os.environ.get("HIVE_REPL_TEST_CLUSTER"), time.monotonic()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(kept or folder))
        try:
            with servers(cluster) as running:
                work = Workload(running, args.seed, lambda line: print(line, flush=True))
                wrong = work.run(args.transactions, args.windows)
                print(f"{work.figures}: {'NOT EQUAL' if wrong else 'source and target equal'}, {time.monotonic() - began:.0f} s")
        finally:
            if not kept:
                cluster.down()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
