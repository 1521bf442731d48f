"""REPL DUMP as a library call."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from functools import partial

from hive_replication.dump.bootstrap.dump_objects import dump_objects
from hive_replication.dump.format.interface import DumpStore, DumpWriter
from hive_replication.dump.format.record_types import DumpResult, Known, MadeWith, Scope
from hive_replication.dump.incremental.dump_events import dump_events
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest, MissingEvents, Refused
from hive_replication.logs import about, reason
from hive_replication.progress import Progress, Silent
from hive_replication.statements import ReplDump

_LOG = logging.getLogger(__name__)


def repl_dump(
    source: Source,
    statement: ReplDump,
    store: DumpStore,
    *,
    partitions: tuple[str, ...] | None = None,
    known: Known | None = None,
    made_with: MadeWith | None = None,
    progress: Progress | None = None,
) -> DumpResult:
    """Runs ``REPL DUMP``: a bootstrap without FROM, else the events after it. Returns when the dump is complete.

    An interrupted dump of an equal request is resumed in its directory.

    Args:
        source: the source side.
        statement: what to dump.
        store: format and place of the dump.
        partitions: only these partitions of the statement's table (repair); needs a bootstrap of a table.
        known: of a bootstrap of a database, tables to leave out (recovery).
        made_with: of events, what their replica was made with: tables that the policy takes in since are dumped whole.
        progress: shows the progress.

    Raises:
        BadRequest: unknown database, table or partition, or event ids beyond the log.
        Refused: the database cannot be marked with ``repl.source.for``.
        MissingEvents: the window is no longer whole in the source's log.
    """
    shown, source = progress or Silent(), source.of_tables(statement.tables)
    scope = Scope(statement.database, statement.table, partitions)
    if statement.from_evid is None:
        source.database(statement.database)
    request = _request(source, statement, scope, made_with)
    writer = store.create(scope, request, resumable=False) if known else _begin(source, scope, store, request)
    try:
        if statement.from_evid is None:
            return dump_objects(source, scope, writer, shown, known)
        dump_table = partial(_dump_table, store, statement.database)
        from_evid, to_evid = statement.from_evid, statement.to_evid
        return dump_events(source, scope, from_evid, to_evid, statement.batch, writer, shown, dump_table, made_with)
    except (BadRequest, Refused, MissingEvents):
        writer.abandon()
        raise
    except BaseException as error:
        _LOG.info("the dump is interrupted; an equal request resumes it: %s", reason(error), extra=about(statement.database))
        writer.suspend()
        raise


def _dump_table(store: DumpStore, database: str, source: Source, table: str) -> DumpResult:
    """Dumps a table that the window rebuilds."""
    return repl_dump(source, ReplDump(database, table), store)


def _request(source: Source, statement: ReplDump, scope: Scope, made_with: MadeWith | None) -> str:
    """All that a dump depends on, as text. Retention goes by the policy's name in it (``dump.format.resume``)."""
    policy = source.policy.model_dump(mode="json", include={"name", "tables", "exclude", "metadata_only", "acid"})
    more = [[made_with.scope, made_with.coming]] if made_with and (made_with.scope or made_with.coming) else []
    # In a second line what dumps of earlier versions did not ask for: they read all places.
    asked = {name: value for name, value in asdict(statement).items() if name not in ("tables", "replaces")}  # in policy and more
    request = json.dumps([source.identity, asked, scope.partitions, policy, *more])
    request += "\n" + json.dumps(source.policy.source.paths)
    if texts := source.policy.filters(statement.database).texts:
        request += "\n" + json.dumps(texts)
    if source.policy.replicates_materialized_views:
        request += "\n" + json.dumps({"materialized_views": source.policy.materialized_views})
    return request


def _begin(source: Source, scope: Scope, store: DumpStore, request: str) -> DumpWriter:
    """A new dump, or the interrupted one of the same statement and policy, if the source's log still has what it stands on."""
    writer = store.create(scope, request)
    if writer.done is None or source.reach(writer.done.evid)[1] == writer.done.message_hash != "":
        return writer
    writer.abandon()
    return store.create(scope, request)
