"""REPL DUMP as a library call."""

from __future__ import annotations

from hive_replication.dump.bootstrap import dump_objects
from hive_replication.dump.incremental import dump_events
from hive_replication.dump.records import DumpResult, Known, Scope
from hive_replication.dump.source import Source
from hive_replication.dump.store import DumpStore
from hive_replication.progress import Progress, Silent
from hive_replication.statements import ReplDump


def repl_dump(
    source: Source,
    statement: ReplDump,
    store: DumpStore,
    *,
    partitions: tuple[str, ...] | None = None,
    known: Known | None = None,
    progress: Progress | None = None,
) -> DumpResult:
    """Runs ``REPL DUMP``: a bootstrap without FROM, else the events after it. Returns when the dump is complete.

    Args:
        source: the source side.
        statement: what to dump.
        store: format and place of the dump.
        partitions: only these partitions of the statement's table (repair); needs a bootstrap of a table.
        known: of a bootstrap of a database, tables to leave out (recovery).
        progress: who is told about the progress.

    Raises:
        BadRequest: unknown database, table or partition, or event ids beyond the log.
        Refused: the database cannot be marked with ``repl.source.for``.
        MissingEvents: the window is no longer whole in the source's log.
    """
    told = progress or Silent()
    scope = Scope(statement.database, statement.table, partitions)
    if statement.from_evid is None:
        source.database(statement.database)
    writer = store.create(scope)
    try:
        if statement.from_evid is None:
            return dump_objects(source, scope, writer, told, known)
        return dump_events(source, scope, statement.from_evid, statement.to_evid, statement.batch, writer, told)
    except BaseException:
        writer.abandon()
        raise
