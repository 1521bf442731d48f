"""The second half of a failover, which opens the target and closes the source; and the way back before it."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.connect import Connection, Reachable
from hive_replication.drift.snapshots import remove_snapshots
from hive_replication.dump.source import WAS_REPLICA
from hive_replication.errors import MissingEvents, Refused, Unreachable
from hive_replication.failover.changes import changes, untold
from hive_replication.failover.phases import SOURCE, TARGET
from hive_replication.failover.sides import Sides, mark_replica, set_parameters, set_parameters_of_target
from hive_replication.failover.status import FailoverStatus, status
from hive_replication.load.operations.left_open import end_replayed, end_snapshots, retire_not_given_out
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.failover_marks import (
    FailoverMarks,
    Kind,
    counted_failover,
    failover_marks,
    read_only,
    with_background,
    with_marks,
)
from hive_replication.load.replica.open_writers import writers
from hive_replication.load.replica.ownership import refuse_incompatible
from hive_replication.load.replica.state import (
    DUMPING,
    INCOMPATIBLE,
    SOURCE_FOR,
    ReplicaState,
    is_ours,
    is_state,
    object_id,
    replica_state,
)
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database


def finish(connection: Connection, name: str, reach: Reachable | None = None) -> FailoverStatus:
    """Opens the target of a failover that was started, and closes the source; repeating it changes nothing more.

    After an unplanned one it closes the old source, once that answers.

    Args:
        connection: both sides.
        name: source database.
        reach: which sides answer; both where None.

    Raises:
        Refused: it was not started, or was taken back meanwhile, the source was written since, is closed for another target, is a
            replica itself or was opened and its own failback is not done, or the target comes from another one, or is marked as
            incompatible.
        Unreachable: a side does not answer.
    """
    sides = Sides.now(connection, name, reach)
    sides.require_not_replaced()
    if sides.phase in ("ready", "opened"):
        sides.require_closable()
    if sides.phase == "ready":
        refuse_incompatible(sides.target)
        _require_nothing_new(sides)
        open_target(sides, "PLANNED")
    elif sides.phase not in ("opened", "finished"):
        raise Refused(f"no failover of {name!r} is ready (it is {sides.phase}): hive-repl failover start {name} first")
    if not sides.answers:
        raise Unreachable(f"{sides.target_name!r} is open; the old source does not answer, and is not closed: run it later")
    if sides.source is not None:
        target = failover_marks(connection.target.metastore.database(sides.target_name))
        if target.origin != sides.source_identity:
            theirs, ours = target.origin, sides.source_identity
            raise Refused(f"{sides.target_name!r} was opened in place of {theirs}, not of {ours}, which stays as it is")
        close_source(connection.source.metastore, name, sides.target_identity, target)
        remove_snapshots(connection.source, connection.target, name)
    return status(connection, name, reach)


def rollback(connection: Connection, name: str, reach: Reachable | None = None) -> FailoverStatus:
    """Takes back a failover that was started, as long as the target is not open: replication goes on as before.

    Args:
        connection: both sides.
        name: source database.
        reach: which sides answer; both where None.

    Raises:
        Refused: the target is open, or the source is closed for another one.
        Unreachable: a side does not answer.
    """
    sides = Sides.now(connection, name, reach)
    sides.require_not_replaced()
    source, target = sides.marks
    if sides.phase in ("opened", "finished"):
        raise Refused(
            f"the target database {sides.target_name!r} is open, and may have been written: the way back is "
            f"hive-repl failover reverse {sides.target_name}, with the sides of the policy swapped"
        )
    if target.endpoint == TARGET:
        mark_replica(sides, FailoverMarks())
    if not sides.answers:
        raise Unreachable(
            "the source does not answer, and may still be read-only: run it again once it does; "
            f"{sides.target_name!r} is a replica as before"
        )
    if source is not None and source.endpoint == SOURCE:
        before = source.read_only_before
        set_parameters(connection.source.metastore, name, lambda found: read_only(with_marks(found, FailoverMarks()), before))
    return status(connection, name, reach)


def open_target(sides: Sides, kind: Kind) -> None:
    """Makes the replica a database like any other, which keeps what a failback needs to know of it.

    Raises:
        Refused: a load of it runs, or a planned failover is ready no longer.
    """
    metastore, name = sides.connection.target.metastore, sides.target_name
    with MetastoreLock(metastore, name) as lock:
        state, evid = sides.require_replica(), metastore.current_event_id()
        found = metastore.database(name)
        if failover_marks(found).role == "opened":
            return  # by somebody else, meanwhile
        if kind == "PLANNED":
            _require_ready_still(sides, found)
        if replica_state(found) != state:
            raise Refused(f"{name!r} was loaded at the same moment: run it again")
        replayed, target = policy_of(state.source, name), sides.connection.target
        end_snapshots(target, name, replayed, lock.check)  # which are whole, and hidden else
        end_replayed(target, name, replayed, lock.check)
        retire_not_given_out(target, name, state.source, state.applied or 0, lock.check)
        half = _half_made(metastore, name, state)
        lock.check()
        policy, until = target.policy.name, metastore.current_event_id()
        set_parameters_of_target(metastore, name, lambda before: opened(before, state, policy, evid, until, kind, half))


def _half_made(metastore: Metastore, name: str, state: ReplicaState) -> frozenset[str]:
    """Tables that an interrupted load of objects was making: they get their event id last."""
    if not state.checkpoint:
        return frozenset()
    tables = metastore.tables(name, metastore.table_names(name))
    return frozenset(one.tableName.lower() for one in tables if is_ours(one, state.source) and not object_id(one))


def _require_ready_still(sides: Sides, target: Database | None) -> None:
    """Both were marked when the command began; a rollback may have answered since, or another start looks again."""
    source = sides.source and sides.connection.source.metastore.database(sides.name)
    if failover_marks(target).endpoint != TARGET or (sides.source and failover_marks(source).endpoint != SOURCE):
        raise Refused(
            f"the failover of {sides.name!r} was taken back at the same moment, or is started again: "
            f"hive-repl failover status {sides.name} shows where it is"
        )


def opened(
    parameters: dict[str, str],
    state: ReplicaState,
    policy: str,
    evid: int,
    until: int,
    kind: Kind,
    half: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """The parameters of a replica that was opened (pure).

    Args:
        parameters: of the replica.
        state: its replication state.
        policy: name of the policy, for ``repl.source.for`` where there is none.
        evid: newest event id of its own log when it was not written yet.
        until: the same when the last transaction that stands for one of the source had ended.
        kind: of the failover.
        half: tables that are half made.
    """
    applied = state.applied or 0
    stayed = {name: 0 for name in state.held if state.why_left_out(name)}  # by now the source's may be replicated again
    marks = FailoverMarks(
        endpoint=TARGET,
        event=applied,
        origin=state.source,
        opened=evid,
        kind=kind,
        behind={name: at for name, at in state.at.items() if at < applied} | stayed | dict.fromkeys(half, 0),
        message_hash=state.applied_hash,
    )
    counters = {key: value for key, value in parameters.items() if key.startswith(("repl.metrics.", DUMPING))}
    own = {key: value for key, value in parameters.items() if key == INCOMPATIBLE or not is_state(key)}
    source_for = parameters.get(SOURCE_FOR) or policy
    made = read_only({**own, **counters, SOURCE_FOR: source_for, WAS_REPLICA: str(until)}, "")
    return counted_failover(with_background(with_marks(made, marks), enabled=True), kind)


def close_source(metastore: Metastore, name: str, successor: str, of: FailoverMarks) -> None:
    """Marks an old source as the future replica of the opened database, read-only until then.

    Args:
        metastore: of the old source.
        name: of the database.
        successor: identity of the opened database.
        of: marks of the opened database.
    """
    before = failover_marks(metastore.database(name))
    if before.role == "closed":
        return
    marks = replace(of, endpoint=SOURCE, origin="", successor=successor, read_only_before=before.read_only_before, behind={})
    kind: Kind = "UNPLANNED" if of.kind == "UNPLANNED" else "PLANNED"
    set_parameters(metastore, name, lambda found: counted_failover(read_only(with_marks(found, marks), "true"), kind))


def _require_nothing_new(sides: Sides) -> None:
    """Makes sure that the source has nothing that the target lacks: nobody refuses writers that do not go through Hive's hook."""
    source, state, again = sides.connection.source, sides.require_replica(), f"hive-repl failover start {sides.name} again"
    behind = {name: at for name, at in state.at.items() if not state.why_left_out(name)}
    if gone := untold(source, state.applied or 0, behind):
        raise Refused(f"what the source wrote last to {', '.join(gone)} is not known, since its log lacks events: {again}")
    try:
        new = list(changes(source, sides.name, state.applied or 0, behind, state.applied_hash))
    except MissingEvents as error:
        raise Refused(
            f"what the source wrote last is not known: {error}; hive-repl recover {sides.name}, then {again}"
        ) from error
    if new:
        raise Refused(f"{sides.name!r} was written since (event {new[0].evid}, {new[0].type}): {again} brings it")
    if found := writers(source.metastore, sides.name):
        shown = ", ".join(map(str, found))
        raise Refused(f"transactions write to {sides.name!r} again ({shown}): stop its writers, and {again}")
