"""``REPL DUMP | LOAD | STATUS``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli import completion, result_fields
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, Settings, settings
from hive_replication.cli.words import statement
from hive_replication.errors import BadRequest, ReplicationError, Unreachable

if TYPE_CHECKING:
    from hive_replication import DumpResult
    from hive_replication.statements import ReplDump, ReplLoad, ReplStatus

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="STATEMENT", help="Its words, or one quoted argument.", autocompletion=completion.words, show_default=False
    ),
]


def repl(context: typer.Context, words: Words = None, config: Config = None, json: Json = False) -> None:
    """Runs a REPL DUMP, REPL LOAD or REPL STATUS.

    DUMP <db>[.<table>] [FROM <evid> [TO <evid>] [BATCH <n>]]: writes a dump, prints its directory and last event id. '*' in
    place of a name: a dump of each database of the policy.

    DUMP <db>.'<regex>'[.'<regex>'] [REPLACE <db>...] [FROM ...]: of the tables that the first regular expression matches, not the
    second, in place of those of the policy.

    LOAD [<db>[.<table>]] FROM <dir> [TO <evid>]: applies a dump, or its events up to <evid>, to the target; prints nothing.

    STATUS <db>[.<table>]: prints the last event id of a target, or nothing where it is no replica; a name that nobody knows is an
    error.
    """
    from hive_replication.statements import ReplDump, ReplLoad, parse

    parsed = parse(f"REPL {statement(words or [])}")
    chosen = settings(context, config, json)
    if isinstance(parsed, ReplDump):
        _dump(chosen, parsed)
    elif isinstance(parsed, ReplLoad):
        _load(chosen, parsed)
    else:
        _status(chosen, parsed)


def _dump(chosen: Settings, parsed: ReplDump) -> None:
    from hive_replication import dump
    from hive_replication.statements import EVERY

    connection = chosen.connect()
    named = parsed.tables.of(parsed.database) if parsed.tables else parsed.name
    names = sorted(connection.source.policy.databases) if parsed.database == EVERY else [named]
    if not names:
        raise BadRequest(result_fields.NO_DATABASES)
    results: list[DumpResult] = []
    failed: dict[str, ReplicationError | OSError] = {}

    def rows() -> Iterator[tuple[str, int]]:
        """The row of each dump as soon as it ends; one that fails keeps from no other, unless a server does not answer."""
        for number, name in enumerate(names):
            try:
                made = dump(
                    connection,
                    name,
                    from_evid=parsed.from_evid,
                    to_evid=parsed.to_evid,
                    batch=parsed.batch,
                    replaces=parsed.replaces.of(parsed.database) if parsed.replaces else None,
                    progress=progress,
                )
            except (ReplicationError, OSError) as error:
                if parsed.database != EVERY:
                    raise
                if isinstance(error, Unreachable):  # each of the others would wait for it as long
                    failed.update(dict.fromkeys(names[number:], error))
                    return
                failed[name] = error
                continue
            results.append(made)
            yield made.directory, made.last_evid
            sys.stdout.flush()

    with shown() as progress:
        if chosen.json:
            list(rows())
        else:
            chosen.output.table(("dir-name", "last-evid"), rows(), None)
    headers = [result.header for result in results]
    chosen.output.remark(
        *(f"left out: {one.scope.database}.{name}: {why}" for one in headers for name, why in one.left_out.items())
    )
    chosen.output.remark(*(f"{name}: {error}" for name, error in failed.items()))
    data = [result_fields.dump_data(result) for result in results]
    every = {"dumps": data, **({"failed": {name: str(error) for name, error in failed.items()}} if failed else {})}
    chosen.output.data(every if parsed.database == EVERY else data[0])
    if failed:
        raise typer.Exit(max(getattr(error, "exit_code", ReplicationError.exit_code) for error in failed.values()))


def _load(chosen: Settings, parsed: ReplLoad) -> None:
    from hive_replication import load

    with shown() as progress:
        report = load(chosen.connect(), parsed.directory, parsed.name, to_evid=parsed.to_evid, progress=progress)
    if chosen.json:  # else the files of a large load would be read for nothing
        chosen.output.data(result_fields.load_data(report))
    chosen.output.remark(*result_fields.load_lines(report))
    raise typer.Exit(report.exit_code)


def _status(chosen: Settings, parsed: ReplStatus) -> None:
    from hive_replication import status

    connection = chosen.connect_target()
    found = status(connection, parsed.name)
    if not found.exists and (parsed.table or parsed.database not in connection.target.policy.databases.values()):
        if parsed.table and status(connection, parsed.database).exists:
            raise BadRequest(f"the target has no table {parsed.name}")
        raise BadRequest(f"the target has no database {parsed.database!r}, and the policy names none")
    last = found.last_evid
    held = [result_fields.held_data(one) for one in found.held]
    rows = [] if last is None else [(last,)]
    if rows or chosen.json:
        data = {"last_evid": last, "last-evid": last, "held": held, "left": dict(found.left)}
        chosen.output.table(("last-evid",), rows, data)
    cells = list(map(result_fields.held_cells, found.held))
    chosen.output.notice("Held tables", result_fields.HELD_COLUMNS, cells, map(result_fields.held_line, found.held))
    left = [f"not replicated any more: {table} since event {evid}" for table, evid in sorted(found.left.items())]
    chosen.output.notice("Tables that the policy no longer includes", ("table", "since event"), sorted(found.left.items()), left)
