"""REPL LOAD as a library call, and the plan of one."""

from __future__ import annotations

import logging
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hive_replication.copy.tasks import Copier
from hive_replication.copy.while_held import WhileHeld
from hive_replication.dump.format.interface import DumpReader, DumpStore
from hive_replication.errors import BadRequest, LockLost, ReplicationError, Unreachable
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.copy_rate import remember
from hive_replication.load.dump_prefix import prefix_of, require_not_passed
from hive_replication.load.interrupted_objects import as_repair, given_up, interrupted
from hive_replication.load.journal.journal_writer import Repairs
from hive_replication.load.layout.directories import new_token
from hive_replication.load.load_boundary import LoadBoundary, load_boundary
from hive_replication.load.loaded_privileges import with_privileges
from hive_replication.load.log_lookahead import LogLookahead
from hive_replication.load.newly_included_tables import with_joined_tables
from hive_replication.load.parts_of_window import held_after, parts_of_window
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.load_plan import LoadPlan
from hive_replication.load.plan.superseded import Lookahead, NoLookahead
from hive_replication.load.rebuilt_tables import with_rebuilt_tables
from hive_replication.load.records import Record, RecordStore, window_name
from hive_replication.load.records.record import Action
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.ownership import refuse_undone_since
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.report import Held, LoadReport, Skipped
from hive_replication.load.report_log import log_report
from hive_replication.load.session import Session
from hive_replication.load.source_history import end_other_recovery, require_not_passed_by, without_mark
from hive_replication.load.unlogged_aborts import end_unlogged
from hive_replication.load.untrusted_dump import opened
from hive_replication.load.window import load_window
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.process import actor
from hive_replication.progress import Progress, Silent
from hive_replication.statements import ReplLoad

_LOG = logging.getLogger(__name__)


def repl_load(
    target: Target,
    statement: ReplLoad,
    store: DumpStore,
    copier: Copier,
    *,
    repair: bool = False,
    only: str | None = None,
    source: Metastore | None = None,
    stood: ReplicaState | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Runs ``REPL LOAD``: applies what the target does not have yet; repeating it changes nothing.

    One load at a time per target database; lanes that fail are in the report's ``held``, the others go on. The whole report is
    kept below the dump root (``load.records``).

    Args:
        target: the target side.
        statement: the dump's directory, the names it is loaded under, and the last event to apply.
        store: the dump's format.
        copier: copies files.
        repair: of a dump of objects, compare and replace also what stands at its event id already.
        only: of a dump of events, bring only the lane of this target table up to the dump's end.
        source: the source's metastore, asked where files are gone or objects missing, since a later event may supersede them, and
            where a repair's dump of a whole database is from before what was applied, since the source may have been restored.
        stood: of a repair, where the target stood when it was asked for.
        progress: who is told about the progress.

    Raises:
        BadRequest: the dump is absent, incomplete or of another kind than the statement, or the target is not ready for it.
        Refused: another load runs, the target is no replica of this source, it was undone since its repair was asked for, or a
            path leads outside the roots.
        Outdated: the table of the dump stands later by now, or its database does and the dump is to be loaded as a repair.
        Unreachable: a metastore or storage does not answer; running it again goes on where it stopped.
    """
    with _unchanged():
        reader = prefix_of(opened(store, statement.directory), statement.to_evid)
        database, table = _names(statement, reader)
        records = RecordStore.of(target.policy, store, database)
        records.prepare()
        work = _Load(target, statement, store, copier, reader, records, database, table, progress or Silent())
        lock = MetastoreLock(target.metastore, database)
        lock.acquire()
    try:
        with _unchanged():
            if stood is not None:
                refuse_undone_since(replica_state(target.metastore.database(database)), stood, database, only or table)
        work.after_interrupted(lock, source, repair=repair)
        return work.recorded(lock, repair=repair, only=only, source=source)
    finally:
        lock.release()


@contextmanager
def _unchanged() -> Generator[None]:
    """Errors say that the load has changed nothing."""
    try:
        yield
    except ReplicationError as error:
        error.unchanged = True
        raise


@dataclass
class _Load:
    """A load with what it is of."""

    target: Target
    statement: ReplLoad
    store: DumpStore
    copier: Copier
    reader: DumpReader
    records: RecordStore
    database: str
    table: str | None
    progress: Progress
    session: Session | None = None
    earlier: str = ""
    changed: bool = False  # by a load that was done before it
    held: tuple[Held, ...] = ()  # by that load

    @property
    def journal(self) -> str:
        """Token of its newest journal; "" while it has changed nothing."""
        return (self.session.journal_token if self.session else "") or self.earlier

    @property
    def changing(self) -> bool:
        """Whether it may have changed an object."""
        return self.changed or (self.session is not None and self.session.tally.changing)

    def after_interrupted(self, lock: MetastoreLock, source: Metastore | None, *, repair: bool = False) -> None:
        """Does a load of objects first that was killed, if there is one."""
        with _unchanged():
            replica = TargetDatabase(self.target, self.database, lock.check, dry=False)
            if self.statement.to_evid is not None and replica.there:
                require_not_passed(self.target.storage, replica.location, replica.state, self.statement.to_evid)
            dump = interrupted(replica, self.store, self.reader, repair=repair)
        if dump is None:
            return
        _LOG.info("the load of %s was interrupted, and is done first", dump.directory, extra=about(self.database))
        first = replace(self, statement=ReplLoad(dump.directory, self.database), reader=dump, table=dump.header.scope.table)
        try:
            self.held = first.recorded(lock, repair=as_repair(replica, dump), only=None, source=source).held
        except (LockLost, Unreachable):
            raise
        except ReplicationError as error:
            if first.session is not None:
                first.session.require_ours()  # what is the matter with the database is not the matter with its table
            given_up(TargetDatabase(self.target, self.database, lock.check, dry=False), dump, error)
        self.changed = first.changing
        replica = TargetDatabase(self.target, self.database, lock.check, dry=False)
        replica.write_state(without_mark(replica.state, dump.directory))

    def recorded(self, lock: MetastoreLock, *, repair: bool, only: str | None, source: Metastore | None) -> LoadReport:
        """Carries it out, and keeps a record of what came of it."""
        record = _record(self.reader, self.database, self.table, repair=repair, only=only)
        try:
            report = self._run(lock, repair=repair, only=only, source=source)
        except ReplicationError as error:
            error.unchanged = not self.changing
            if self.journal:  # else it has changed nothing
                self.records.keep(replace(record, time=time.time(), outcome="failed", text=str(error), journal=self.journal))
            raise
        kept = self.records.keep(replace(record.of(report), time=time.time(), journal=self.journal), report)
        return replace(report, kept=kept.report, window=kept.window)

    def _run(self, lock: MetastoreLock, *, repair: bool, only: str | None, source: Metastore | None) -> LoadReport:
        began, target, reader = time.monotonic(), self.target, self.reader
        replica = TargetDatabase(target, self.database, lock.check, dry=False)
        boundary = _boundary(target, source, reader)
        copier = WhileHeld(self.copier, lock.check)
        repairs = _repairs(replica, reader, self.table, repair=repair)
        session = Session(replica, reader, self.table, copier, self.progress, repairs=repairs, boundary=boundary)
        held = list(self.held)
        for part in parts_of_window(session) if only is None else [session]:
            # Its own lookahead: the source's log has gone on while the parts before it were loaded.
            part = replace(part, lookahead=_lookahead(target, source, part.reader))
            self.earlier, self.session = self.journal, part
            held = held_after(self._carried_out(part, source, repair=repair, only=only), held)
        session = replace(session, held=held)
        if only is None:
            end_unlogged(session, source)
        with_privileges(session, source, lock.check)
        report = session.report(began)
        log_report(report)
        if session.exists:
            remember(target.storage, replica.location, report)
        return report

    def _carried_out(self, session: Session, source: Metastore | None, *, repair: bool, only: str | None) -> Session:
        """The load, or a part of it, as far as it came."""
        events = _run(session, source, repair=repair, only=only)
        if only is None and session.reader.header.kind == "incremental":
            session = with_rebuilt_tables(session, events, self.store)
        if only is None and self.table is None:
            session = with_joined_tables(session, self.store, events)
        return session


def _repairs(replica: TargetDatabase, reader: DumpReader, table: str | None, *, repair: bool) -> Repairs:
    """What a load repairs of its target table, or of the whole database."""
    header = reader.header
    if header.kind != "bootstrap" or not (repair or header.recovery):
        return ""
    state = replica.state
    stands = state.applied if table is None else state.position(table)
    held = bool(state.held) if table is None else table in state.held
    return "behind" if header.recovery or held or not covers(stands, header.to_evid) else "level"


def _record(reader: DumpReader, database: str, table: str | None, *, repair: bool, only: str | None) -> Record:
    """What is recorded of a load, before it is known how it ended."""
    header, action = reader.header, _action(reader, table, repair=repair, only=only)
    return Record(
        id=new_token(),
        action=action,
        database=database,
        by=actor(),
        time=0.0,
        window=window_name(action, header.from_evid, header.to_evid),
        tables=tuple(filter(None, (table or only,))),
        directory=reader.directory,
    )


def _action(reader: DumpReader, table: str | None, *, repair: bool, only: str | None) -> Action:
    if reader.header.kind == "incremental":
        return "window" if only is None else "catch-up"
    if reader.header.recovery:
        return "recovery"
    if repair:
        return "repair"
    return "bootstrap" if table is None else "table"


def plan_load(
    target: Target, statement: ReplLoad, store: DumpStore, *, repair: bool = False, source: Metastore | None = None
) -> LoadPlan:
    """What :func:`repl_load` would do now; changes nothing. Takes its arguments, and raises what it raises."""
    reader = prefix_of(opened(store, statement.directory), statement.to_evid)
    database, table = _names(statement, reader)
    replica = TargetDatabase(target, database, lambda: None, dry=True)
    boundary = _boundary(target, source, reader)
    session = Session(replica, reader, table, None, Silent(), _lookahead(target, source, reader), boundary=boundary)
    if (dump := interrupted(replica, store, reader, repair=repair)) is not None:
        session.skipped.append(
            Skipped(reader.header.to_evid, database, f"first {dump.directory} is loaded, which was interrupted")
        )
    events = _run(session, source, repair=repair, only=None)
    if table is None:
        with_joined_tables(session, store, events)
    header = reader.header
    return LoadPlan(
        reader.directory,
        database,
        header.from_evid,
        header.to_evid,
        tuple(session.planned),
        tuple(session.skipped),
        kind=header.kind,
        creates=header.kind == "bootstrap" and not replica.there,
    )


def _lookahead(target: Target, source: Metastore | None, reader: DumpReader) -> Lookahead:
    header, most = reader.header, target.policy.max_message_bytes
    return NoLookahead() if source is None else LogLookahead(source, header.scope.database, header.from_evid, most)


def _boundary(target: Target, source: Metastore | None, reader: DumpReader) -> LoadBoundary:
    return load_boundary(target.policy, reader.header, source or target.source_metastore)


def _run(session: Session, source: Metastore | None, *, repair: bool, only: str | None) -> Sequence[WindowEvent]:
    """Loads a dump; its events, if it is one of events."""
    end_other_recovery(session)
    if session.reader.header.kind == "bootstrap":
        require_not_passed_by(session, source, repair=repair)
        load_objects(session, repair=repair)
        return ()
    return load_window(session, only)


def _names(statement: ReplLoad, reader: DumpReader) -> tuple[str, str | None]:
    """Target database and table of a load."""
    scope = reader.header.scope
    if statement.table is not None and scope.table is None:
        raise BadRequest(
            f"{reader.directory} is a dump of the database {scope.database!r}: name a database, not a table, to load it under"
        )
    return statement.database or scope.database, statement.table or scope.table
