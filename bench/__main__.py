"""``python -m bench``: runs workloads by real Hive and by this project in turn, and prints both times and their ratios."""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench import report
from bench.peers import Hive, Ours, Peer
from bench.report import Result
from bench.source import SourceDatabase
from bench.workloads import Added, Bootstrap, Bytes, Mixed, Workload
from hive_replication.connect import connect
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


def measure(servers: Cluster, peers: tuple[Peer, Peer], name: str, workload: Workload, repeat: int) -> Result:
    """Runs one workload by both, in turn; each makes replicas of its own of the same source database."""
    connection = connect(policy(servers, {"unused": "unused"}))
    database = SourceDatabase(connection, f"bench{secrets.token_hex(3)}")
    database.create(servers.side("source").warehouse)
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
    for replica in (one for made in replicas.values() for one in made):
        _check(connection, database.name, replica)
    return Result(name, workload.title, timings)


def _check(connection, source: str, replica: str) -> None:
    """Both did all of it: as many tables, partitions and files."""

    def count(side, name: str) -> list[tuple[str, int, int]]:
        metastore, tables = side.metastore, sorted(side.metastore.table_names(name))
        found: list[tuple[str, int, int]] = []
        for table in metastore.tables(name, tables):
            places = [part.sd.location for part in metastore.partitions(name, table.tableName)] if table.partitionKeys else []
            files = sum(len(side.storage.files(place)) for place in places or [table.sd.location])
            found.append((table.tableName, len(places), files))
        return sorted(found)

    wanted, found = count(connection.source, source), count(connection.target, replica)
    if wanted != found:
        raise RuntimeError(f"{replica} is not a replica of {source}: {found} instead of {wanted}")


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("workloads", nargs="*", default=["W1", "W2", "W3"], help="W1, W2, W3, W4 (default: W1 W2 W3)")
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
    }
    unknown = sorted(set(args.workloads) - set(known))
    if unknown:
        parser.error(f"unknown workload {', '.join(unknown)}: one of {', '.join(known)}")
    with cluster() as servers:
        root = f"{servers.side('target').hdfs}bench/repl"
        with HiveDriver(servers.side("source"), root) as source, HiveDriver(servers.side("target"), root) as target:
            peers = Ours(policy(servers, {"unused": "unused"})), Hive(source, target)
            results = [measure(servers, peers, name, known[name], args.repeat) for name in args.workloads]
    report.show(results)
    print(f"written to {report.write(results, args.results)}")


if __name__ == "__main__":
    main()
