"""What operators do to replicas, each recorded with who did it and when: repair, undo, release, pause, approve, privileges."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.errors import BadRequest
from hive_replication.load.privileges.replicate import PrivilegeReport, Replica, replicate_privileges
from hive_replication.load.replica import pause as pausing
from hive_replication.load.replica.held_reasons import joined_to
from hive_replication.load.replica.ownership import refuse_failed_over, refuse_second_writer
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.report import LoadReport
from hive_replication.load.undo import undo as undoing
from hive_replication.load.undo.undo import Undo
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.partitions import by_name
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.process import actor
from hive_replication.progress import Progress
from hive_replication.recorded import recorded
from hive_replication.repair import repair as repair_objects
from hive_replication.statements import for_shell, parse_name
from hive_replication.units import when
from hive_replication.verify import TableComparison, compare_database

_MOST_PARTITIONS = 500  # repaired one by one; if more differ, the whole table is compared and repaired


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What a repair found and did.

    Args:
        name: source database or table.
        found: tables that differed before it.
        held: tables that were held before it.
        repaired: the load of the repair; None if there was nothing to repair, or only a look was asked for.
        events: the loads of the events before it, also those before dumps that windows passed.
        left: tables that differ after it.
        stood: where the target stood before it was looked at: what is undone since then stays so.
    """

    name: str
    found: tuple[TableComparison, ...] = ()
    held: tuple[str, ...] = ()
    repaired: LoadReport | None = None
    events: tuple[LoadReport, ...] = ()
    left: tuple[TableComparison, ...] = ()
    stood: ReplicaState | None = field(default=None, repr=False, compare=False)

    @property
    def needed(self) -> bool:
        """Whether there is something to repair."""
        return bool(self.found or self.held)

    @property
    def exit_code(self) -> int:
        """0 if all is equal now; 1 if something still differs, or would have to be repaired."""
        if self.repaired is None:
            return 1 if self.needed else 0
        return self.repaired.exit_code or (1 if self.left else 0)


def repair(
    connection: Connection,
    name: str,
    partitions: Sequence[str] = (),
    *,
    dry_run: bool = False,
    force: bool = False,
    found: RepairResult | None = None,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> RepairResult:
    """Brings a database, a table or some partitions to the present state of the source: metadata and files.

    Both sides are compared first, by metadata and checksums, and again after it. What is equal is left alone.

    Args:
        connection: both sides.
        name: ``db`` or ``db.table`` on the source.
        partitions: names of partitions of the table; all where there are none.
        dry_run: compare only.
        force: repair also what seems to be equal.
        found: result of an earlier call with ``dry_run``, so that the first comparison is not made again.
        copier: copies files; threads of this process where None.
        progress: shows how far it is.

    Raises:
        BadRequest: the source does not have the object, the policy leaves it out, or the target database is no finished replica.
        Refused: another load runs, the object on the target is no replica, or somebody has undone it meanwhile.
        Unreachable: a metastore or a storage does not answer.
    """
    database, table = parse_name(name)
    if partitions and table is None:
        raise BadRequest(f"partitions belong to a table: name it as {database}.<table>")
    target_name = connection.target.policy.target_of(database)
    state = _state(connection.target, target_name)
    if found is None:
        differ = _different(connection, database, table, partitions, progress)
        if table is not None and partitions:
            _require_partitions(connection, database, table, partitions)
        held = tuple(sorted(one for one in state.held if table in (None, one) and not partitions))
        found = RepairResult(name.lower(), differ, held, stood=state)
    if dry_run or not (found.needed or force):
        return found
    chosen = _chosen(found, table, partitions)
    done = repair_objects(connection, database, table, chosen, stood=found.stood, copier=copier, progress=progress)
    left = _different(connection, database, table, partitions, progress)
    return replace(found, repaired=done.load, events=done.events, left=left)


def undo(connection: Connection, name: str, to_evid: int, *, dry_run: bool = False, progress: Progress | None = None) -> Undo:
    """Brings a replica back to the state after an earlier load; it stays there until :func:`release`.

    Args:
        connection: both sides; only the target is changed.
        name: ``db`` or ``db.table`` on the target.
        to_evid: event id at which a load of the database ended.
        dry_run: change nothing.
        progress: shows how far it is.

    Raises:
        BadRequest: no load ended there, its journal is not kept any more, or there is no such replica.
        Refused: old data is not kept any more, a replica was dropped by hand, or a load of the database is running.
    """
    (database, table), target = parse_name(name), connection.target
    if dry_run:
        return undoing.undo(target, database, table, to_evid, dry_run=True, progress=progress)
    with recorded(connection, "undo", database, table) as notes:
        done = undoing.undo(target, database, table, to_evid, progress=progress)
        notes.tables, notes.to_evid = done.tables, done.to_evid
        notes.text = "; ".join((f"{done.loads} loads taken back", *map(str, done.repaired)))
    return done


def release(connection: Connection, name: str) -> bool:
    """Ends an undo: later events are loaded again. Returns whether anything was undone.

    Args:
        connection: both sides; only the target is changed.
        name: ``db`` or ``db.table`` on the target.

    Raises:
        BadRequest: the target has no such replica, or a table goes on with its database, or with another table.
        Refused: a load of the database is running.
    """
    database, table = parse_name(name)
    state = _state(connection.target, database)
    if table is not None and table not in state.held and connection.target.metastore.table(database, table) is None:
        raise BadRequest(f"the target has no table {database}.{table}")
    if table is not None and (state.undone is not None or (state.stands_with_undo(table) and not state.waits(table))):
        other = None if state.undone is not None else joined_to(state.held[table])[0]
        name = for_shell(database, other)
        raise BadRequest(f"{database}.{table} was not undone alone, it stands with {name}: hive-repl undo {name} --release")
    with recorded(connection, "release", database, table) as notes:
        notes.changed = undoing.release(connection.target, database, table)
    return notes.changed


def pause(connection: Connection, name: str, why: str = "") -> bool:
    """Stops the sensors from loading a database, in every Dagster instance. Returns whether it was not paused before.

    Args:
        connection: both sides; only the target is changed.
        name: source database.
        why: shown until it is resumed.

    Raises:
        BadRequest: there is no such replica.
    """
    target = connection.target
    database = target.policy.target_of(name.lower())
    since = f"since {when(time.time())} by {actor()}"
    with recorded(connection, "pause", database, None) as notes:
        notes.text = why
        notes.changed = pausing.pause(target, database, f"{since}: {why}" if why else since)
    return notes.changed


def resume(connection: Connection, name: str) -> bool:
    """Lets the sensors load a paused database again. Returns whether it was paused; arguments and errors as :func:`pause`."""
    database = connection.target.policy.target_of(name.lower())
    with recorded(connection, "resume", database, None) as notes:
        notes.changed = pausing.resume(connection.target, database)
    return notes.changed


def approve(connection: Connection, name: str, window: str) -> PlannedWindow:
    """Allows the load of the window that was planned for a database.

    Args:
        connection: both sides; only the dump root is written.
        name: source database.
        window: e.g. ``170-1400``.

    Raises:
        BadRequest: another window waits, or none.
    """
    policy = connection.target.policy
    if not policy.approval:
        raise BadRequest("windows are loaded without approval: the policy does not set approval")
    database = policy.target_of(name.lower())
    with recorded(connection, "approve", database, None) as notes:
        notes.text = window
        return Approvals.of(policy).approve(database, window, actor())


def privileges(connection: Connection, name: str, *, apply: bool = False) -> PrivilegeReport:
    """Compares grants on a replica, and the roles that have them, with those of the source, as ``privileges`` of the policy says.

    Args:
        connection: both sides; only the target's metastore is changed.
        name: source database.
        apply: grant and revoke what differs.

    Raises:
        BadRequest: the source has no such database, or the target no replica of it.
        Refused: it is a replica of another source, a failover ended this direction, or a load of it is running.
        ReplicationError: a metastore refuses to tell its grants, or to change any.
        Unreachable: a metastore does not answer.
    """
    source, target, name = connection.source, connection.target, name.lower()
    database, identity = target.policy.target_of(name), f"{source.identity}/{name}"

    def replicated(check: Callable[[], None]) -> PrivilegeReport:
        state = _state(target, database)
        refuse_failed_over(state, database, source.database(name), f"{target.identity}/{database}")
        refuse_second_writer(state, database, identity, target.policy.name)
        replica = Replica(name, database, identity, state, target.policy.includes)
        return replicate_privileges(source.metastore, target, replica, check, apply=apply)

    if not apply:
        return replicated(lambda: None)
    with recorded(connection, "privileges", database, None) as notes, MetastoreLock(target.metastore, database) as lock:
        done = replicated(lock.check)
        notes.text = ", ".join(f"{what}: {number}" for what, number in done.numbers.items())
        notes.changed = bool(done.numbers)
    return done


def _state(target: Target, database: str) -> ReplicaState:
    state = replica_state(target.metastore.database(database))
    if not state.source:
        raise BadRequest(f"the target has no replica {database!r}")
    return state


def _require_partitions(connection: Connection, database: str, table: str, partitions: Sequence[str]) -> None:
    """A name that neither side has is misspelt: it is not told as missing on the target, nor one outside the filter as equal."""
    target, there = connection.target.within_filters(database), set[str]()
    sides = (connection.source.metastore, database), (target.metastore, target.policy.target_of(database))
    for metastore, name in sides:
        found = metastore.table(name, table)
        there |= by_name(found, metastore.partitions(name, table, partitions)).keys() if found and found.partitionKeys else set()
    if absent := [one for one in partitions if one not in there]:
        inside = f" inside its filter {one.text}" if (one := target.policy.partition_filter(database, table)) else ""
        raise BadRequest(f"neither side has the partition {absent[0]} of {database}.{table}{inside}")


def _different(
    connection: Connection, database: str, table: str | None, partitions: Sequence[str], progress: Progress | None
) -> tuple[TableComparison, ...]:
    found = compare_database(
        connection.source, connection.target, database, table=table, partitions=partitions or None, progress=progress
    )
    return tuple(one for one in found if one.differences)


def _chosen(found: RepairResult, table: str | None, partitions: Sequence[str]) -> tuple[str, ...] | None:
    """The partitions to repair: those that were named, else those that differ; None for the whole table or database."""
    if partitions:
        return tuple(partitions)
    if table is None or found.held or len(found.found) != 1:
        return None
    differ = found.found[0].repairs
    return differ if differ and "" not in differ and len(differ) <= _MOST_PARTITIONS else None
