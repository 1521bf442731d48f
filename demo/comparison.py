"""The comparison at the end of the demo: whether each table is equal, and whether the replica needs the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table as Grid

from demo.following import Load
from demo.screen import Screen
from demo.spark import Rows
from demo.tables import DATABASE
from hive_replication.connect import Connection
from hive_replication.lag import Lag
from hive_replication.verify import TableComparison, compare_database


@dataclass(frozen=True)
class Outcome:
    """All that is compared.

    Args:
        tables: metadata, partitions and files of both sides.
        source, target: rows of each side by table.
        lag: how far the replica was behind.
        loads: what Dagster says of all loads.
        foreign: places on the target that name the source.
    """

    tables: Sequence[TableComparison]
    source: Mapping[str, Rows]
    target: Mapping[str, Rows]
    lag: Lag
    loads: Sequence[Load]
    foreign: Sequence[str]

    def problems(self) -> Iterator[str]:
        """What is not as it should be, a sentence each."""
        for table in self.tables:
            yield from (f"{table.table}: {difference}" for difference in table.differences)
            if table.files_proven != table.files_source:
                yield f"{table.table}: {table.files_source - table.files_proven} files are not proven"
        for name in sorted(self.source.keys() | self.target.keys()):
            if self.source.get(name) != self.target.get(name):
                yield f"{name}: rows differ: {self.source.get(name)} and {self.target.get(name)}"
        if self.lag.waiting or self.lag.held:
            yield f"{self.lag.waiting} events wait, held: {dict(self.lag.held)}"
        yield from self.foreign
        yield from self._load_problems()

    def _load_problems(self) -> Iterator[str]:
        bootstrap, windows = files(self.loads, bootstrap=True), files(self.loads, bootstrap=False)
        if not bootstrap["files by spark"] or bootstrap["files by threads"]:
            yield f"the bootstrap was to be copied by Spark executors: {dict(bootstrap)}"
        if not windows["files by threads"]:
            yield f"the windows were to be copied by driver threads: {dict(windows)}"
        if not windows["files from cmroot"]:
            yield "no file came from cmroot"


def files(loads: Iterable[Load], *, bootstrap: bool) -> Counter[str]:
    """Numbers of files of all bootstraps, or of all other windows."""
    return sum((load.counts for load in loads if load.bootstrap == bootstrap), Counter[str]())


def compared(connection: Connection, screen: Screen) -> list[TableComparison]:
    """Compares both sides as they are now."""
    return list(compare_database(connection.source, connection.target, DATABASE, progress=screen))


def foreign_places(connection: Connection) -> list[str]:
    """Tables and partitions of the target that name a place of the source anywhere in their description."""
    policy, metastore = connection.source.policy, connection.target.metastore
    database = policy.target_of(DATABASE)
    addresses = [policy.source.metastore, *(root.uri.rstrip("/") for root in policy.source.roots)]
    found: list[str] = []
    for table in metastore.tables(database, metastore.table_names(database)):
        parts = metastore.partitions(database, table.tableName) if table.partitionKeys else ()
        for thing in (table, *parts):
            found += [f"{table.tableName} on the target names {address}" for address in addresses if address in repr(thing)]
    return sorted(set(found))


def show(outcome: Outcome, screen: Screen) -> None:
    """Prints the comparison."""
    grid = Grid("table", title=f"{DATABASE}: source | target", title_justify="left")
    for column in ("partitions", "rows", "files", "proven", "row hash", "seconds behind"):
        grid.add_column(column, justify="right")
    for table in outcome.tables:
        grid.add_row(*_row(table, outcome))
    screen.console.print(grid)
    for kind, bootstrap in (("bootstrap", True), ("windows", False)):
        counts = files(outcome.loads, bootstrap=bootstrap)
        summary = ", ".join(f"{count} {name.removeprefix('files ')}" for name, count in sorted(counts.items()) if count)
        screen.say(f"Files copied by the {kind}: {summary or 'none'}")


def _row(table: TableComparison, outcome: Outcome) -> tuple[str, ...]:
    source, target = outcome.source.get(table.table), outcome.target.get(table.table)
    equal = source is not None and source == target
    behind = outcome.lag.seconds_behind
    return (
        table.table,
        f"{table.partitions_source} | {table.partitions_target}",
        f"{source.count if source else '-'} | {target.count if target else '-'}",
        f"{table.files_source} | {table.files_target}",
        str(table.files_proven),
        "[green]equal[/]" if equal and not table.differences else "[red]differs[/]",
        "-" if behind is None else f"{behind:.0f}",
    )
