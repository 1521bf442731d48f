"""Failback: the old source becomes the replica of the database that replaced it. Only what differs is copied.

The sides are those of the policy that replicates back: its source is the database that was opened, its target the old source.

Why this is correct. Where the old source changed nothing after the last event that the other has, both were equal when the other
was opened. So its tables are marked as replicas, and the database as one that stands at that event of the opened database's log:
the events since then are its next window. What it did change, because the other never got it, is named first, and by default
nothing is done then; else those tables count as unfinished. At the end all tables are compared, by metadata and checksums, and
those that differ or are unfinished are recovered (``recover.command``), file by file. Killed anywhere, the next call goes on: the
old source is no replica before all of its tables are marked, and what it had changed is noted before the first one is.
"""

from __future__ import annotations

import time
from dataclasses import replace

from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.errors import BadRequest, Refused
from hive_replication.failover.drain import writers
from hive_replication.failover.finish import close_source
from hive_replication.failover.reverse_findings import (
    FailoverReverse,
    both_changed,
    compared,
    kept_aside,
    require_allowed,
    written,
)
from hive_replication.failover.sides import require_not_opened, set_parameters, set_parameters_of_target
from hive_replication.failover.stamp import stamp
from hive_replication.load.command import repl_load
from hive_replication.load.journal.journal import Journal
from hive_replication.load.replica.failover_marks import (
    SUCCESSOR,
    FailoverMarks,
    counted_failback,
    failover_marks,
    with_background,
    with_marks,
)
from hive_replication.load.replica.owners import owned_on_target, owner_of
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.policy_scope import made_with
from hive_replication.load.replica.state import ReplicaState, database_with_state, replica_state
from hive_replication.load.report import LoadReport
from hive_replication.load.window import visible
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database
from hive_replication.progress import Progress
from hive_replication.recover import Gap, TableFinding, dump_recovery, survey
from hive_replication.statements import ReplDump, ReplLoad

#: Why a table is unfinished until it is recovered.
_CONFLICT = "changed on the old source, and the opened database never got it"


def reverse(
    connection: Connection,
    name: str,
    *,
    dry_run: bool = False,
    drop: bool = False,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> FailoverReverse:
    """Makes the old source a replica of the database that was opened; then windows replicate as from any source.

    Arguments and errors: :func:`hive_replication.direction.failover_reverse`.
    """
    began = time.time()
    state, marks = _require_opened(connection, name)
    target, target_name = connection.target, connection.target.policy.target_of(name)
    identity = f"{connection.source.identity}/{name}"
    if state.source == identity and not state.failed_over:
        if marks.origin == f"{target.identity}/{target_name}" and not dry_run:  # else all marks are those of other failovers
            _end(connection, name, began, count=False)
        return FailoverReverse(name, target_name, done=True)
    looked = target.metastore.current_event_id()
    found = both_changed(connection, name, marks, progress)
    if dry_run:
        return replace(found, tables=tuple(compared(connection, name, progress)))
    require_allowed(found, target.policy.conflicts, drop=drop)
    close_source(target.metastore, target_name, identity, marks)
    _take_over(connection, name, marks, found, looked)
    window = None if found.problem else _window(connection, name, copier, progress)
    tables, recovery = _compare(connection, name, copier, progress)
    _end(connection, name, began, count=True)
    return replace(found, tables=tables, loads=tuple(filter(None, (window, recovery))))


def _window(connection: Connection, name: str, copier: Copier | None, progress: Progress | None) -> LoadReport | None:
    """What the opened database changed, as a window of its log; None where nothing waits."""
    source, target = connection.source, connection.target
    target_name, current = target.policy.target_of(name), source.metastore.current_event_id()
    state = replica_state(target.metastore.database(target_name))
    if state.applied is None or state.applied >= current:
        return None
    made = made_with(state, source, name, lambda: target.metastore.table_names(target_name))
    statement = ReplDump(name, None, state.applied, current)
    dump = repl_dump(source, statement, connection.store, made_with=made, progress=progress)
    return _load(connection, dump.directory, target_name, copier, progress)


def _compare(
    connection: Connection, name: str, copier: Copier | None, progress: Progress | None
) -> tuple[tuple[TableFinding, ...], LoadReport | None]:
    """Compares all tables, and recovers those that differ or are unfinished."""
    source, target = connection.source, connection.target
    target_name, evid = target.policy.target_of(name), source.metastore.current_event_id()
    state = replica_state(target.metastore.database(target_name))
    tables = tuple(survey(source, target, name, evid, progress=progress))
    functions = any(one.resourceUris for one in source.metastore.functions(name))  # the old source's become replicas by a load
    different = state.held or functions or any(table.state != "equal" for table in tables)
    if not different and _same_properties(connection, name):
        return tables, None
    gap = Gap("failback", state.applied or 0, f"{name!r} replaced {target_name!r}, which becomes its replica")
    recovery, dump = dump_recovery(connection, name, gap, progress=progress)
    return recovery.tables, _load(connection, dump.directory, target_name, copier, progress)


def _same_properties(connection: Connection, name: str) -> bool:
    """Whether the databases themselves have the same properties, comment and owner."""
    ours = connection.source.metastore.database(name)
    theirs = connection.target.metastore.database(connection.target.policy.target_of(name))
    if ours is None or theirs is None:
        return ours is theirs
    wanted = owned_on_target(ours, connection.target.policy.owners)
    found = [(visible(one).parameters, one.description, owner_of(one, theirs)) for one in (wanted, theirs)]
    return found[0] == found[1]


def _load(connection: Connection, directory: str, name: str, copier: Copier | None, progress: Progress | None) -> LoadReport:
    return repl_load(
        connection.target,
        ReplLoad(directory, name),
        connection.store,
        copier or connection.copier,
        source=connection.source.metastore,
        progress=progress,
    )


def _require_opened(connection: Connection, name: str) -> tuple[ReplicaState, FailoverMarks]:
    """The old source's state, and the opened database's marks.

    Raises:
        BadRequest: one of the databases is not there.
        Refused: it is no pair of a failover.
    """
    source, target = connection.source, connection.target
    target_name = target.policy.target_of(name)
    marks, old = failover_marks(source.database(name)), target.metastore.database(target_name)
    if old is None:
        raise BadRequest(
            f"{target.metastore.uri} has no database {target_name!r} any more: hive-repl REPL DUMP {name}, then REPL LOAD, make "
            f"it anew; hive-repl failover reverse {name} after them ends the failover"
        )
    state, identity = replica_state(old), f"{source.identity}/{name}"
    if state.source == identity and not state.failed_over:
        return state, marks
    if marks.role != "opened" and failover_marks(old).successor == identity:
        raise Refused(_one_sided(connection, name))
    if marks.role != "opened" or marks.origin != f"{target.identity}/{target_name}":
        raise Refused(
            f"{name!r} of {source.metastore.uri} was not opened by a failover from {target_name!r} of {target.metastore.uri}: "
            "swap the sides of the policy, whose source is the database that was opened"
        )
    if state.source not in ("", identity):
        raise Refused(
            f"{target_name!r} is a replica of {state.source}: open it in place of that one by a failover first, or drop it, and "
            f"{name!r} is replicated there by a bootstrap"
        )
    if (before := failover_marks(old)).origin != identity:
        require_not_opened(target_name, before)
    return state, marks


def _one_sided(connection: Connection, name: str) -> str:
    """Why there is no failback where the old source alone knows of a failover, and what helps: the policy's way, or the other."""
    source, target = connection.source, connection.target
    target_name = target.policy.target_of(name)
    own = f"{target.identity}/{target_name}"
    said = f"{target_name!r} was closed by a failover, which put {name!r} of {source.metastore.uri} in its place, and "
    if replica_state(source.metastore.database(name)).source == own:
        return (
            f"{said}that says it is a replica, since its metastore was restored from before that: by the policy of the failover, "
            f"hive-repl failover start {target_name} --unplanned --force opens it again as it stands, or "
            f"hive-repl failover rollback {target_name} opens the old source"
        )
    return (
        f"{said}that knows nothing of it: if its failback was done, and the metastore of {target_name!r} restored from before "
        f"that, drop {target_name!r} there, or set its database parameter {SUCCESSOR} to '' and conflicts in the policy to adopt "
        f"(equal files stay); then hive-repl REPL DUMP {name}, and REPL LOAD, make it a replica again; if {name!r} is lost, "
        f"hive-repl failover rollback {target_name}, by the policy of the failover, opens the old source"
    )


def _take_over(connection: Connection, name: str, marks: FailoverMarks, found: FailoverReverse, looked: int) -> None:
    """Makes the old source's tables replicas that stand where the other database was opened, then the database itself.

    Args:
        connection: from the opened database to the old source.
        name: the opened database.
        marks: its own.
        found: what both had changed.
        looked: newest event id of the old source's log before that was looked for.
    """
    source, target = connection.source, connection.target
    target_name, identity, evid = found.target_database, f"{source.identity}/{name}", marks.opened or 0
    with MetastoreLock(target.metastore, target_name) as lock:
        settled, own = target.metastore.current_event_id(), dict.fromkeys(found.conflicting, 0)

        def noted(parameters: dict[str, str]) -> dict[str, str]:
            before = failover_marks(Database(name=target_name, parameters=parameters))
            due = before.settled is None or own.keys() - before.behind.keys()
            return with_marks(parameters, replace(before, settled=settled, behind=own)) if due else parameters

        closed = target.metastore.database(target_name)
        if not replica_state(closed).source:
            _require_nothing_new(connection, name, looked, stamped=failover_marks(closed).settled is not None)
        lock.check()
        old = set_parameters_of_target(target.metastore, target_name, noted)
        if replica_state(old).source:
            return
        lock.check()
        Journal(target.storage, old.locationUri or "").end()
        stamp(source, target.within_filters(name), target_name, identity, evid, kept_aside(connection, found), lock.check)
        when, message_hash = source.reach(evid)
        scope = source.policy.scope(name, acid=source.acid).text
        state = ReplicaState(identity, evid, when, message_hash, policy=target.policy.name, scope=scope)
        for one in found.conflicting:
            state = state.quarantine(one, 0, _CONFLICT)
        lock.check()
        with parameter_lock(target.metastore, target_name):
            now = target.metastore.database(target_name) or old
            target.metastore.alter_database(target_name, database_with_state(now, state), now)


def _require_nothing_new(connection: Connection, name: str, looked: int, *, stamped: bool) -> None:
    """Makes sure that the old source, which is closed now, was not written since its changes were looked for.

    Raises:
        Refused: it was, or will be.
    """
    metastore, target_name = connection.target.metastore, connection.target.policy.target_of(name)
    stop = f"stop its writers, and run hive-repl failover reverse {name} again, which names what they changed"
    if new := next(written(connection, target_name, looked, stamped=stamped), None):
        raise Refused(f"the old source {target_name!r} was written meanwhile (event {new.evid}, {new.type}): {stop}")
    if found := writers(metastore, target_name):
        raise Refused(f"transactions write to the old source {target_name!r} ({', '.join(map(str, found))}): {stop}")


def _end(connection: Connection, name: str, began: float, *, count: bool) -> None:
    """Both databases are as in any replication: marks of the failover are removed, counters stay."""

    def ended(parameters: dict[str, str]) -> dict[str, str]:
        made = with_background(with_marks(parameters, FailoverMarks()), enabled=False)
        return counted_failback(made, began, time.time()) if count else made

    set_parameters_of_target(connection.target.metastore, connection.target.policy.target_of(name), ended)
    set_parameters(connection.source.metastore, name, ended)
