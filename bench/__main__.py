"""``python -m bench``: runs workloads, most of them by real Hive and by this project in turn, and prints times and ratios."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console

from bench import idle, report
from bench.acid import Transactions
from bench.copies import Copies
from bench.growth import Growth
from bench.peers import Ours
from bench.report import Measurement
from bench.servers import cluster, new_database, setting
from bench.tiny_window import TinyWindow
from bench.turns import measure
from bench.workloads import Added, Bootstrap, Bytes, Mixed, Workload
from hive_replication.connect import connect
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy

_AGAINST_HIVE = ("W1", "W2", "W3", "ACID")
_ALONE = ("W4", "W5", "W6", "W7")
_WARM_UP = 0.1  # part of the workload
_TOLD = Console(stderr=True)


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = [*_AGAINST_HIVE, *_ALONE]
    parser.add_argument("workloads", nargs="*", default=names, metavar="WORKLOAD", help=f"of {', '.join(names)} (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the full sizes, e.g. 0.1")
    parser.add_argument("--repeat", type=int, default=1, help="how often each does it (medians are shown)")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder for JSON and plots")
    args = parser.parse_args()
    if unknown := sorted(set(args.workloads) - set(names)):
        parser.error(f"unknown workload {', '.join(unknown)}: one of {', '.join(names)}")
    found: list[Measurement] = []
    with cluster() as servers:
        try:
            found.extend(
                _against_hive(servers, [name for name in args.workloads if name in _AGAINST_HIVE], args.scale, args.repeat)
            )
            found.extend(_alone(servers, name, args.scale, args.repeat) for name in args.workloads if name in _ALONE)
        finally:  # what was measured is shown, whatever ends the rest
            report.show(found)
    print(f"written to {', '.join(map(str, report.write(found, args.results)))}")


def _against_hive(servers: Cluster, names: Sequence[str], scale: float, repeat: int) -> Iterator[Measurement]:
    for hive, same in groupby(names, key=lambda name: 4 if name == "ACID" else 3):
        with setting(servers, hive) as where:
            for name in same:
                if scale > _WARM_UP:
                    _TOLD.log(f"{name}: warming up, so that who comes first does not find cold servers")
                    measure(where, name, *_workload(name, _WARM_UP * scale))
                yield measure(where, name, *_workload(name, scale), repeat=repeat)


def _workload(name: str, scale: float) -> tuple[Workload, float]:
    """A workload, and how many times longer Hive should take."""
    match name:
        case "W1":
            return Bootstrap(tables=_scaled(20, scale)), 10
        case "W2":
            return Added(events=_scaled(300, scale)), 15
        case "W3":
            return Mixed(events=_scaled(1_000, scale)), 20
        case _:
            return Transactions(transactions=_scaled(300, scale)), 10


def _alone(servers: Cluster, name: str, scale: float, repeat: int) -> Measurement:
    """Workloads with other peers than Hive, or none."""
    rules, warehouse = policy(servers, {"unused": "unused"}), servers.side("source").warehouse
    connection = connect(rules)
    source = new_database(connection, warehouse)
    _TOLD.log(f"{name}: {source.name}")
    match name:
        case "W4":
            few, many = 64 << 20, _scaled(4 << 30, scale)
            if many > few:  # the first to be measured would find cold servers
                Copies(servers, connection, new_database(connection, warehouse), Ours(rules), 1).measure(Bytes(few))
            return Copies(servers, connection, source, Ours(rules), repeat).measure(Bytes(max(few, many)))
        case "W5":
            return Growth(rules, _scaled(100_000, scale)).measure(source, new_database(connection, warehouse))
        case "W6":
            return TinyWindow(rules, source).measure()
        case _:
            return idle.measure(rules, source, _scaled(10_000, scale))


def _scaled(number: int, scale: float) -> int:
    return max(1, round(number * scale))


if __name__ == "__main__":
    main()
