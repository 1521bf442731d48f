"""Slices by their names: measured between new servers, and shown."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from contextlib import ExitStack

from rich.console import Console
from rich.table import Table

from bench.company.formula import Slice
from bench.company.measure import Stage, apart, beside_limits, replicate
from bench.company.servers import side


def measured(of: Slice, events: int = 0, *, load: bool = True, limits: bool = False) -> list[Stage]:
    """Dumps and loads a slice in a process of its own, between new servers; see :mod:`bench.company.measure`."""
    with ExitStack() as servers:
        source = servers.enter_context(side("source"))
        target = servers.enter_context(side("target", of.files)) if load or limits else None
        return apart(beside_limits, source, target, of) if limits else apart(replicate, source, target, of, events)


def show(stages: Iterable[Stage]) -> None:
    """Prints a line for each stage; ``each`` is a partition or an event."""
    columns = ("s", "CPU, s", "CPU each, ms", "memory, MB", "metastore calls", "HDFS calls each", "dump each, B", "times limit")
    table = Table("", *columns, box=None)
    for one in stages:
        taken, ratio = one.used, one.ratio
        table.add_row(
            one.name,
            f"{taken.seconds:.1f}",
            f"{taken.cpu:.1f}",
            f"{1000 * taken.cpu / one.units:.2f}",
            f"{taken.memory / 2**20:.0f}",
            f"{taken.calls_of('metastore'):,}",
            f"{taken.calls_of('NameNode', 'DataNode', 'WebHDFS') / one.units:.1f}",
            f"{one.size / one.units:.0f}" if one.size else "",
            f"{ratio:.2f}" if ratio else "",
        )
    Console(width=150).print(table)


def a_slice(name: str) -> Slice:
    """The slice of a name.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    found = Slice.of(name)
    if found is None:
        raise argparse.ArgumentTypeError(f"{name} is no slice such as company_10x1000x3")
    return found
