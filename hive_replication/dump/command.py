"""REPL DUMP as a library call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial

from hive_replication.dump.bootstrap import dump_objects
from hive_replication.dump.incremental import dump_events
from hive_replication.dump.records import DumpResult, Known, Scope
from hive_replication.dump.source import Source
from hive_replication.dump.store import DumpStore, DumpWriter
from hive_replication.errors import BadRequest, MissingEvents, Refused
from hive_replication.progress import Progress, Silent
from hive_replication.statements import EVERY, ReplDump


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

    An equal request that was interrupted is gone on with, in its directory.

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
    writer = store.create(scope) if known else _begin(source, statement, scope, store)
    try:
        if statement.from_evid is None:
            return dump_objects(source, scope, writer, told, known)
        dump_table = partial(_dump_table, store, statement.database)
        return dump_events(source, scope, statement.from_evid, statement.to_evid, statement.batch, writer, told, dump_table)
    except (BadRequest, Refused, MissingEvents):
        writer.abandon()
        raise
    except BaseException:
        writer.suspend()
        raise


def repl_dumps(
    source: Source, statement: ReplDump, store: DumpStore, *, progress: Progress | None = None
) -> Iterator[DumpResult]:
    """Runs ``REPL DUMP`` of a database, or with ``*`` one of each database of the policy in turn; raises as :func:`repl_dump`."""
    names = databases_of(source, statement)
    return (repl_dump(source, replace(statement, database=name), store, progress=progress) for name in names)


def databases_of(source: Source, statement: ReplDump) -> list[str]:
    """The databases of a ``REPL DUMP``: all of the policy for ``*``."""
    return sorted(source.policy.databases) if statement.database == EVERY else [statement.database]


def _dump_table(store: DumpStore, database: str, source: Source, table: str) -> DumpResult:
    """A table of a window that has to be made anew."""
    return repl_dump(source, ReplDump(database, table), store)


def _begin(source: Source, statement: ReplDump, scope: Scope, store: DumpStore) -> DumpWriter:
    """A new dump, or the interrupted one of the same statement and policy, if the source's log still has what it stands on."""
    policy = source.policy.model_dump(mode="json", include={"name", "tables", "exclude", "metadata_only", "acid"})
    request = json.dumps([source.identity, asdict(statement), scope.partitions, policy])
    writer = store.create(scope, request)
    if writer.done is None or source.reach(writer.done.evid)[1] == writer.done.message_hash != "":
        return writer
    writer.abandon()
    return store.create(scope, request)
