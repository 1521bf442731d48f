"""Recovery from a gap: tables that differ from the source are bootstrapped again, equal ones stay.

Why this is correct. The newest event id b is read first, then all tables are compared. The dump that follows starts at b and
leaves out the equal tables, except those with an event after b; it is consistent at event e. A table that is left out had no
event from b to e, so it is the same at e as when it was compared, and equal to its replica. Every other table of the source at e
is in the dump, and tables in neither are dropped from the target. Events after e are then applied as usual. The end of a
transaction is an event of no table: transactional tables that have an open one after b, or on the target, do not count as equal.
No transaction of the source was open at e: what stands for one on the target is aborted before the load.

Where a bootstrap or a recovery failed for some tables, and nothing else is the matter, b is the event that the replica has
applied, and all others count as equal without a comparison: none but those of later events are read.

Nothing else may change the replica between the comparison and the load: a token in its state makes sure of that (see
``load.source_history``). If a recovery is killed, the gap remains, and the next recovery finds fewer differences.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass, replace

from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult, Known
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest, MissingEvents, Refused
from hive_replication.load.command import repl_load
from hive_replication.load.replica.ownership import refuse_incompatible, refuse_other_policy, refuse_undone
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.policy_scope import changed
from hive_replication.load.replica.state import database_with_state, replica_state
from hive_replication.load.replica.target import Target, state_of
from hive_replication.load.report import LoadReport
from hive_replication.logs import about
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.progress import Progress
from hive_replication.recover.gap import UNFINISHED, Gap, find_gap
from hive_replication.recover.survey import TableFinding, survey, unfinished
from hive_replication.statements import ReplDump, ReplLoad

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Recovery:
    """What a recovery found and did.

    Args:
        database: source database.
        gap: why it was needed.
        tables: the result of the comparison for each table.
        dump: what was bootstrapped again; None where nothing was to be changed (dry run).
        load: what the load of it did; None before.
    """

    database: str
    gap: Gap
    tables: tuple[TableFinding, ...]
    dump: DumpResult | None = None
    load: LoadReport | None = None

    @property
    def different(self) -> tuple[TableFinding, ...]:
        """Tables that were not equal."""
        return tuple(table for table in self.tables if table.state != "equal")


def recover(
    connection: Connection,
    database: str,
    *,
    dry_run: bool = False,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> Recovery | None:
    """Recovers a replica from a gap; None where there is none.

    Args:
        connection: both sides.
        database: source database; the policy names its replica.
        dry_run: compare only, change nothing.
        copier: copies files; threads of this process where None.
        progress: shows the progress.

    Raises:
        BadRequest: the target database is no finished replica.
        Refused: it is a replica of another source, the source does not have the database any more, it was undone by request, or
            another load runs.
    """
    source, target = connection.source, connection.target
    gap = find_gap(source, target, database, interrupted=True)
    if gap is None:
        return None
    if dry_run:
        return Recovery(database, gap, _looked(source, target, database, gap, progress).tables)
    made, dump = dump_recovery(connection, database, gap, progress=progress)
    load = repl_load(
        target,
        ReplLoad(dump.directory, target.policy.target_of(database)),
        connection.store,
        copier or connection.copier,
        source=source.metastore,
        progress=progress,
    )
    return replace(made, load=load)


def dump_recovery(
    connection: Connection, database: str, gap: Gap, *, progress: Progress | None = None
) -> tuple[Recovery, DumpResult]:
    """The first half of a recovery: compares, and dumps what differs. ``REPL LOAD`` of the dump is the second.

    Args:
        connection: both sides.
        database: source database.
        gap: why.
        progress: shows the progress.

    Raises:
        Refused: the source does not have the database any more, it was undone by request, another policy writes the target, it is
            marked as incompatible, or another load runs.
    """
    source, target = connection.source, connection.target
    if source.metastore.database(database) is None:
        raise Refused(
            f"{gap.reason}; and the source has no database {database!r} any more: if that is meant, drop the target database "
            f"{target.policy.target_of(database)!r}"
        )
    token = secrets.token_hex(8)
    _mark(target, target.policy.target_of(database), token)
    found = _looked(source, target, database, gap, progress)
    try:
        dump = repl_dump(source, ReplDump(database), connection.store, known=found.known(token), progress=progress)
    except MissingEvents as error:
        if gap.kind != UNFINISHED:
            raise
        gap = Gap("missing events", gap.applied, str(error))
        found = _looked(source, target, database, gap, progress)
        dump = repl_dump(source, ReplDump(database), connection.store, known=found.known(token), progress=progress)
    return Recovery(database, gap, found.tables, dump), dump


@dataclass(frozen=True)
class _Looked:
    """What was found of the tables, and the event at which the equal ones stand at least."""

    evid: int
    tables: tuple[TableFinding, ...]

    def known(self, token: str) -> Known:
        return Known(self.evid, frozenset(table.table for table in self.tables if table.state == "equal"), token)


def _looked(source: Source, target: Target, database: str, gap: Gap, progress: Progress | None) -> _Looked:
    """Compares all tables; where nothing but unfinished tables is the matter, the others are taken as events have made them."""
    state = state_of(target, database)
    if gap.kind == UNFINISHED and state.scope and not state.checkpoint and not changed(state, source, database):
        evid, tables = state.applied or 0, unfinished(source, target, database, state)
        _LOG.warning("the tables that are not in the replica yet are dumped: %s", gap.reason, extra=about(database, evid=evid))
        return _Looked(evid, tuple(tables))
    evid = source.metastore.current_event_id()
    _LOG.warning("the replica is compared with its source: %s", gap.reason, extra=about(database, evid=evid))
    tables = survey(source, target, database, evid, progress=progress)
    equal = sum(table.state == "equal" for table in tables)
    _LOG.info("%d of %d tables are equal and not dumped", equal, len(tables), extra=about(database, evid=evid))
    return _Looked(evid, tuple(tables))


def _mark(target: Target, database: str, token: str) -> None:
    """Writes the recovery's token, while no load runs."""
    with MetastoreLock(target.metastore, database) as lock, parameter_lock(target.metastore, database):
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or state.applied is None:
            raise BadRequest(f"the target database {database!r} no longer exists")
        refuse_incompatible(found)
        refuse_other_policy(state, database, target.policy.name)
        refuse_undone(state, database)
        lock.check()
        target.metastore.alter_database(database, database_with_state(found, replace(state, recovery=token)), found)
