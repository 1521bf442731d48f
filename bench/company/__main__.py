"""``python -m bench.company company_10x1000x3``: dumps and loads slices of the company, and prints what that took."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from rich.console import Console
from rich.table import Table

from bench.company.formula import Slice
from bench.company.measure import Used, apart, replicate
from bench.company.servers import side


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench.company", description=__doc__)
    parser.add_argument("slices", nargs="+", type=a_slice, metavar="SLICE", help="company_<tables>x<partitions>x<files>")
    parser.add_argument("--no-load", action="store_true", help="only dump")
    args = parser.parse_args()
    table = Table("", "s", "CPU, s", "CPU each, ms", "memory, MB", "metastore calls", "HDFS calls each", "dump each, B", box=None)
    for of in args.slices:
        with ExitStack() as servers:
            source = servers.enter_context(side("source"))
            target = None if args.no_load else servers.enter_context(side("target", of.files))
            made = apart(replicate, source, target, of)
            table.add_row(f"DUMP {of.name}", *_figures(made.dump, of), f"{made.size / of.objects:.0f}")
            if made.load:
                table.add_row(f"LOAD {of.name}", *_figures(made.load, of))
    Console(width=150).print(table)


def _figures(taken: Used, of: Slice) -> list[str]:
    return [
        f"{taken.seconds:.1f}",
        f"{taken.cpu:.1f}",
        f"{1000 * taken.cpu / of.objects:.2f}",
        f"{taken.memory / 2**20:.0f}",
        f"{taken.calls_of('metastore'):,}",
        f"{taken.calls_of('NameNode', 'DataNode', 'WebHDFS') / of.objects:.1f}",
    ]


def a_slice(name: str) -> Slice:
    """The slice of a name.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    found = Slice.of(name)
    if found is None:
        raise argparse.ArgumentTypeError(f"{name} is no slice such as company_10x1000x3")
    return found


if __name__ == "__main__":
    main()
