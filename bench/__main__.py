"""``python -m bench``: runs workloads by real Hive and by this project in turn, and prints both times and their ratios."""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from rich.console import Console

from bench import report
from bench.acid import Transactions, require_same_rows
from bench.peers import Hive, Hive4, Ours, Peer
from bench.report import Result
from bench.source import SourceDatabase
from bench.workloads import Added, Bootstrap, Bytes, Mixed, Workload
from hive_replication.connect import Connection, connect
from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy

_TOLD = Console(stderr=True)


@contextmanager
def cluster() -> Generator[Cluster]:
    """The servers named in HIVE_REPL_TEST_CLUSTER, or some for this run only."""
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    with tempfile.TemporaryDirectory() as folder:
        servers = Cluster(Path(kept or folder))
        servers.up()
        try:
            yield servers
        finally:
            if not kept:
                servers.down()


@dataclass(frozen=True)
class Setting:
    """Who replicates where.

    Args:
        connection: to both sides.
        warehouse: URI of the source's warehouse directory.
        peers: this project and Hive.
        check: raises where one of some replicas is not the source database.
    """

    connection: Connection
    warehouse: str
    peers: tuple[Peer, Peer]
    check: Callable[[str, Sequence[str]], None]


@contextmanager
def setting(servers: Cluster, hive: int) -> Generator[Setting]:
    """Real Hive of a major version beside this project."""
    names = ("source", "target") if hive == 3 else ("source4", "target4")
    servers.up(names)
    reads, writes = map(servers.side, names)
    rules, root = policy(servers, {"unused": "unused"}, *names), f"{writes.hdfs}bench/repl{hive}"
    connection = connect(rules)
    with HiveDriver(reads, root) as source, HiveDriver(writes, root) as target:
        if hive == 3:
            yield Setting(connection, reads.warehouse, (Ours(rules), Hive(source, target)), partial(_check, connection))
        else:
            same = partial(require_same_rows, source, target)
            yield Setting(connection, reads.warehouse, (Ours(rules), Hive4(source, target)), same)


def measure(where: Setting, name: str, workload: Workload, repeat: int) -> Result:
    """Runs one workload by both, in turn; each makes replicas of its own of the same source database."""
    peers = where.peers
    database = SourceDatabase(where.connection, f"bench{secrets.token_hex(3)}")
    database.create(where.warehouse)
    _TOLD.log(f"{name}: filling {database.name}")
    workload.fill(database)
    replicas = {peer.name: [f"{database.name}_{who}{n}" for n in range(repeat)] for who, peer in zip("oh", peers, strict=True)}

    def in_turn() -> Mapping[str, list[report.Timing]]:
        timings: dict[str, list[report.Timing]] = {peer.name: [] for peer in peers}
        for number in range(repeat):
            for peer in peers if number % 2 == 0 else reversed(peers):
                timings[peer.name].append(peer.replicate(database.name, replicas[peer.name][number]))
                _TOLD.log(f"{name}: {peer.name} {timings[peer.name][-1]}")
        return timings

    timings = in_turn()
    if workload.change(database):
        timings = in_turn()
    where.check(database.name, [one for made in replicas.values() for one in made])
    return Result(name, workload.title, timings)


def _check(connection: Connection, source: str, replicas: Sequence[str]) -> None:
    """They have all of it: as many tables, partitions and files."""

    def count(side, name: str) -> list[tuple[str, int, int]]:
        metastore, tables = side.metastore, sorted(side.metastore.table_names(name))
        found: list[tuple[str, int, int]] = []
        for table in metastore.tables(name, tables):
            places = [part.sd.location for part in metastore.partitions(name, table.tableName)] if table.partitionKeys else []
            files = sum(len(side.storage.files(place)) for place in places or [table.sd.location])
            found.append((table.tableName, len(places), files))
        return sorted(found)

    wanted = count(connection.source, source)
    for replica in replicas:
        if (found := count(connection.target, replica)) != wanted:
            raise RuntimeError(f"{replica} is not a replica of {source}: {found} instead of {wanted}")


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "workloads", nargs="*", default=["W1", "W2", "W3", "ACID"], help="W1, W2, W3, W4, ACID (default: all but W4)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes, e.g. 0.1")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()

    def scaled(number: int) -> int:
        return max(1, round(number * args.scale))

    known: dict[str, Workload] = {
        "W1": Bootstrap(tables=scaled(20)),
        "W2": Added(events=scaled(300)),
        "W3": Mixed(events=scaled(1_000)),
        "W4": Bytes(total=max(64 << 20, scaled(4 << 30))),
        "ACID": Transactions(transactions=scaled(300)),
    }
    unknown = sorted(set(args.workloads) - set(known))
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}: one of {', '.join(known)}")
    with cluster() as servers:
        results: list[Result] = []
        for hive, names in groupby(args.workloads, key=lambda name: 4 if name == "ACID" else 3):
            with setting(servers, hive) as where:
                results += [measure(where, name, known[name], args.repeat) for name in names]
    report.show(results)
    print(f"written to {report.write(results, args.results)}")


if __name__ == "__main__":
    main()
