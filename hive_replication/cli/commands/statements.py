"""``REPL DUMP | LOAD | STATUS``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli import completion, describe
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, Settings, settings
from hive_replication.cli.words import statement

if TYPE_CHECKING:
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

    LOAD [<db>[.<table>]] FROM <dir> [TO <evid>]: applies a dump, or its events up to <evid>, to the target; prints nothing.

    STATUS <db>[.<table>]: prints the last event id of a target, or nothing where no replication is known.
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
    from hive_replication.dump.command import databases_of, repl_dumps
    from hive_replication.recover import require_history
    from hive_replication.statements import EVERY

    connection = chosen.connect()
    for name in databases_of(connection.source, parsed) if parsed.from_evid is not None else ():
        require_history(connection.source, connection.target, name, parsed.from_evid or 0)
    with shown() as progress:
        results = list(repl_dumps(connection.source, parsed, connection.store, progress=progress))
    for result in results:
        for table, reason in result.header.skipped.items():
            chosen.output.remark(f"left out: {result.header.scope.database}.{table}: {reason}")
    data = [describe.dump_data(result) for result in results]
    rows = [(result.directory, result.last_evid) for result in results]
    chosen.output.table(("dir-name", "last-evid"), rows, {"dumps": data} if parsed.database == EVERY else data[0])


def _load(chosen: Settings, parsed: ReplLoad) -> None:
    from hive_replication.load.command import repl_load

    connection = chosen.connect()
    with shown() as progress:
        report = repl_load(
            connection.target,
            parsed,
            connection.store,
            connection.copier,
            source=connection.source.metastore,
            progress=progress,
        )
    if chosen.json:
        chosen.output.table((), (), describe.load_data(report))
    chosen.output.remark(*describe.load_lines(report))
    raise typer.Exit(report.exit_code)


def _status(chosen: Settings, parsed: ReplStatus) -> None:
    from hive_replication.load.status import held_tables, repl_status

    metastore = chosen.connect().target.metastore
    last = repl_status(metastore, parsed.database, parsed.table)
    held = held_tables(metastore, parsed.database, parsed.table)
    rows = [] if last is None else [(last,)]
    if rows or chosen.json:
        chosen.output.table(("last-evid",), rows, {"last-evid": last, "held": [describe.held_data(one) for one in held]})
    cells = [tuple(describe.held_data(one).values()) for one in held]
    chosen.output.notice("Held tables", describe.HELD_COLUMNS, cells, map(describe.held_line, held))
