"""``lag``: how far the replicas are behind, once or again and again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli.arguments import LONGEST
from hive_replication.cli.output import Output, drawn
from hive_replication.cli.result_fields import NO_DATABASES
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.logs import printable, printable_lines
from hive_replication.units import Figure, count_figure, duration_figure, size_figure

if TYPE_CHECKING:
    from hive_replication import Lag
    from hive_replication.lag import LagReader

Tables = Annotated[bool, typer.Option("--tables", help="Also the tables that are behind or held.", show_default=False)]
Watch = Annotated[
    float | None,
    typer.Option("--watch", metavar="SECONDS", min=1, max=LONGEST, help="Show it again and again, until interrupted."),
]

_DATABASES = ("database", "on target", "behind", "events waiting", "bytes waiting", "applied", "source", "remarks")
_TABLES = ("database", "table", "behind", "events waiting", "bytes waiting", "applied", "source", "remarks")


def lag(context: typer.Context, tables: Tables = False, watch: Watch = None, config: Config = None, json: Json = False) -> None:
    """Shows how far the replicas are behind.

    For each database of the policy: seconds since the commit of the oldest event that is not applied, how many events and bytes
    wait, the last applied event, the source's newest event, and the held tables. Exit code 1 if a side does not answer; then
    it shows what the other one says.
    """
    from hive_replication import lags
    from hive_replication.errors import ReplicationError
    from hive_replication.lag import LagReader

    chosen = settings(context, config, json)
    if watch is None:
        found = lags(chosen.policy())
        _show(chosen.output, found, tables=tables)
        if not found:
            chosen.output.remark(NO_DATABASES)
        raise typer.Exit(1 if any(one.problem for one in found) else 0)
    connection = chosen.connect(brief=True)  # what hangs is to be seen, not the figures of before
    reader = LagReader(connection.source, connection.target)
    if sys.stdout.isatty() and not chosen.json:
        _live(reader, watch, tables=tables)
    else:
        while True:
            try:
                _show(chosen.output, reader.read(), tables=tables)
            except ReplicationError as error:  # the next time it may answer
                chosen.output.failure(str(error))
            sys.stdout.flush()
            time.sleep(watch)


def _show(output: Output, found: Sequence[Lag], *, tables: bool) -> None:
    output.table(_columns(tables=tables), _rows(found, tables=tables), [_data(one, tables=tables) for one in found])


def _live(reader: LagReader, every: float, *, tables: bool) -> None:
    """One table that changes in place; it continues while a server does not answer."""
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    from hive_replication.errors import ReplicationError

    found: Sequence[Lag] = ()
    with Live(auto_refresh=False) as live:
        while True:
            try:
                found = reader.read()
            except ReplicationError as error:
                live.console.print(Text(printable_lines(str(error))))
            table = drawn(_columns(tables=tables), _rows(found, tables=tables))
            live.update(Group(table, Text(f"{time.strftime('%H:%M:%S')}, every {every:g} s; Ctrl-C ends")), refresh=True)
            time.sleep(every)


def _columns(*, tables: bool) -> Sequence[str]:
    return _TABLES if tables else _DATABASES


def _rows(found: Sequence[Lag], *, tables: bool) -> Iterator[Sequence[object]]:
    for one in found:
        applied = one.applied
        if applied is None:
            applied = "unknown" if one.problem else "not bootstrapped"
        current = "unknown" if one.current is None else one.current
        held = [f"{len(one.held)} held"] if one.held and tables else (printable(": ".join(each)) for each in one.held)
        left = printable(f"not replicated any more: {', '.join(one.left)}") if one.left else ""
        remarks = "\n".join(filter(None, (one.problem, one.gap, one.stopped, one.changed, *held, left)))
        name = "all" if tables else one.target_database
        yield (one.database, name, *_figures(one.seconds_behind, one.waiting, one.bytes_waiting), applied, current, remarks)
        for table in one.tables if tables else ():
            figures = _figures(table.seconds_behind, table.waiting, table.bytes_waiting)
            yield (one.database, table.table, *figures, table.applied, current, table.held)


def _figures(seconds: float | None, events: int | None, waiting: int | None) -> tuple[Figure, Figure, Figure]:
    return duration_figure(seconds), count_figure(events), size_figure(waiting)


def _data(one: Lag, *, tables: bool) -> dict[str, object]:
    data: dict[str, object] = {**asdict(one), "held": dict(one.held)}
    if not tables:
        del data["tables"]
    return data
