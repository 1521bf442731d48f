"""``report``: the whole report of a load."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hive_replication.cli import result_fields
from hive_replication.cli.arguments import database_name
from hive_replication.cli.completion import databases
from hive_replication.cli.output import Output, json_text
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.units import size_figure, when

if TYPE_CHECKING:
    from hive_replication import Report, ReportRow

Window = Annotated[str, typer.Argument(metavar="WINDOW", help="e.g. 170-1400, bootstrap-170 or repair-1400", show_default=False)]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="DB",
        help="Name on the source.",
        autocompletion=databases,
        callback=database_name,
        show_default=False,
    ),
]

_COLUMNS = ("about", "table", "partition", "event", "outcome", "file", "from", "size", "checksum", "by")
_SHOWN = 200  # rows on a terminal


def report(context: typer.Context, window: Window, database: Database = None, config: Config = None, json: Json = False) -> None:
    """Shows the whole report of a window's loads, as it is kept below the dump root.

    Every table that changed, every file with the proof that it is equal, what was held or skipped and why. On a terminal the
    first rows; in a pipe, and with --json, all of them.
    """
    from hive_replication import reports

    chosen = settings(context, config, json)
    found = reports(chosen.connect_target(database, every=database is None), window, database)
    if chosen.json:
        _print_json(found)
        return
    for one in found:
        _show(chosen.output, one)


def _show(output: Output, one: Report) -> None:
    record = one.record
    output.remark(
        f"{record.action} {record.window} of {record.database}: {record.outcome}, {when(record.time)} by {record.by}; "
        f"{result_fields.history_line(record)}"
    )
    if not record.report:
        return
    output.remark(f"Parquet: {record.report}")
    rows = map(_cells, one.rows())
    if not output.terminal:
        output.table(_COLUMNS, rows, None)
        return
    output.table(_COLUMNS, islice(rows, _SHOWN), None)
    if left := sum(1 for _ in rows):
        output.remark(f"{left:,} more rows: in a pipe, with --json, or in the Parquet file")


def _cells(row: ReportRow) -> tuple[object, ...]:
    size = None if row.size is None else size_figure(row.size)
    proof = f"{row.checksum_algorithm} {row.checksum}" if row.checksum else None
    return (row.section, row.table, row.partition, row.evid, row.outcome, row.target, row.origin, size, proof, row.executor)


def _print_json(found: Iterable[Report]) -> None:
    """One document, by way of a file: a report may be larger than memory, and damaged at its end."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as whole:
        write = whole.write
        write("[")
        for number, one in enumerate(found):
            head = json_text(result_fields.history_data(one.record))
            write((", " if number else "") + head[:-1] + ', "rows": [')
            for position, row in enumerate(_rows(one)):
                write((", " if position else "") + json_text(row))
            write("]}")
        write("]\n")
        whole.seek(0)
        shutil.copyfileobj(whole, sys.stdout)


def _rows(one: Report) -> Iterator[dict[str, Any]]:
    for row in one.rows() if one.record.report else ():
        yield {name: value for name, value in asdict(row).items() if value is not None}
