"""``python -m bench.company company_10x1000x3``: dumps slices of the simulated company, and prints what each took."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from bench.company.formula import Slice
from bench.company.measure import Dumped, dump_apart
from bench.company.servers import side


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench.company", description=__doc__)
    parser.add_argument("slices", nargs="+", type=_slice, metavar="SLICE", help="company_<tables>x<partitions>x<files>")
    args = parser.parse_args()
    table = Table("", "s", "CPU s", "CPU ms a partition", "memory MB", "metastore calls", "HDFS calls", "dump B a partition")
    with side("bench.company.serve") as source:
        for of in args.slices:
            table.add_row(of.name, *_figures(dump_apart(source, of)))
    Console().print(table)


def _figures(made: Dumped) -> list[str]:
    taken, each = made.used, max(1, made.partitions)
    hdfs = taken.calls_of("NameNode") + taken.calls_of("WebHDFS")
    return [
        f"{taken.seconds:.1f}",
        f"{taken.cpu:.1f}",
        f"{1000 * taken.cpu / each:.2f}",
        f"{taken.memory / 2**20:.0f}",
        f"{taken.calls_of('metastore'):,}",
        f"{hdfs:,}",
        f"{made.size / each:.0f}",
    ]


def _slice(name: str) -> Slice:
    found = Slice.of(name)
    if found is None:
        raise argparse.ArgumentTypeError(f"{name} is no slice such as company_10x1000x3")
    return found


if __name__ == "__main__":
    main()
