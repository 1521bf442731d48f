"""REPL LOAD as a library call, and the plan of one."""

from __future__ import annotations

import time

from hive_replication.copy.tasks import Copier
from hive_replication.dump.store import DumpReader, DumpStore
from hive_replication.errors import BadRequest
from hive_replication.load.anew import with_tables_anew
from hive_replication.load.lookahead import LogLookahead, Lookahead, NoLookahead
from hive_replication.load.objects import load_objects
from hive_replication.load.plan import LoadPlan
from hive_replication.load.rates import remember
from hive_replication.load.recovery import end_other_recovery
from hive_replication.load.report import LoadReport
from hive_replication.load.session import Session
from hive_replication.load.target import Target
from hive_replication.load.up_to import require_not_passed, up_to
from hive_replication.load.window import load_window
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.progress import Progress, Silent
from hive_replication.statements import ReplLoad


def repl_load(
    target: Target,
    statement: ReplLoad,
    store: DumpStore,
    copier: Copier,
    *,
    repair: bool = False,
    only: str | None = None,
    made_anew: bool = False,
    source: Metastore | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Runs ``REPL LOAD``: applies what the target does not have yet; repeating it changes nothing.

    One load at a time per target database; lanes that fail are in the report's ``held``, the others go on.

    Args:
        target: the target side.
        statement: the dump's directory, the names it is loaded under, and the last event to apply.
        store: the dump's format.
        copier: copies files.
        repair: of a dump of objects, compare and replace also what stands at its event id already.
        only: of a dump of events, bring only the lane of this target table up to the dump's end.
        made_anew: of ``only``, whether a repair made it anew: what still stands for transactions that wrote to it ends.
        source: the source's metastore, asked only where files are gone or objects missing: a later event may supersede them.
        progress: who is told about the progress.

    Raises:
        BadRequest: the dump is absent, incomplete or of another kind than the statement, or the target is not ready for it.
        Refused: another load runs, the target is no replica of this source, or a path leads outside the roots.
        Unreachable: a metastore or storage does not answer; running it again goes on where it stopped.
    """
    began = time.monotonic()
    reader = up_to(store.open(statement.directory), statement.to_evid)
    database, table = _names(statement, reader)
    with MetastoreLock(target.metastore, database) as lock:
        args = target, reader, database, table, copier, lock.check, progress or Silent(), _lookahead(source, reader)
        session = Session(*args, anew=frozenset({only} if only and made_anew else ()))
        if statement.to_evid is not None and session.exists:
            require_not_passed(target.storage, session.location(), session.state, statement.to_evid)
        _run(session, repair=repair, only=only)
        if only is None and reader.header.kind == "incremental":
            session = with_tables_anew(session, store)
        report = session.report(began)
        if session.exists:
            remember(target.storage, session.location(), report)
        return report


def plan_load(
    target: Target, statement: ReplLoad, store: DumpStore, *, repair: bool = False, source: Metastore | None = None
) -> LoadPlan:
    """What :func:`repl_load` would do now; changes nothing. Takes its arguments, and raises what it raises."""
    reader = up_to(store.open(statement.directory), statement.to_evid)
    database, table = _names(statement, reader)
    session = Session(target, reader, database, table, None, lambda: None, Silent(), _lookahead(source, reader))
    _run(session, repair=repair, only=None)
    header = reader.header
    return LoadPlan(
        reader.directory,
        database,
        header.from_evid,
        header.to_evid,
        tuple(session.planned),
        tuple(session.skipped),
        kind=header.kind,
        creates=header.kind == "bootstrap" and target.metastore.database(database) is None,
    )


def _lookahead(source: Metastore | None, reader: DumpReader) -> Lookahead:
    header = reader.header
    return NoLookahead() if source is None else LogLookahead(source, header.scope.database, header.from_evid)


def _run(session: Session, *, repair: bool, only: str | None) -> None:
    end_other_recovery(session)
    if session.reader.header.kind == "bootstrap":
        load_objects(session, repair=repair)
    else:
        load_window(session, only)


def _names(statement: ReplLoad, reader: DumpReader) -> tuple[str, str | None]:
    """Target database and table of a load."""
    scope = reader.header.scope
    if statement.table is not None and scope.table is None:
        raise BadRequest(
            f"{reader.directory} is a dump of the database {scope.database!r}: name a database, not a table, to load it under"
        )
    return statement.database or scope.database, statement.table or scope.table
