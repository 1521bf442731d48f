"""The first half of a planned failover: the source is closed for writers, and the target is brought to its last event.

As Hive does it: the source is marked, its open write transactions end, the event id is noted, they are looked for again, and the
last window goes up to that event. Then both sides are compared. Killed anywhere, the next call finds by the marks what is left.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hive_replication.connect import Connection, Reachable
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.errors import BadRequest, Refused
from hive_replication.events.event_records import is_function
from hive_replication.failover.changes import changes, untold
from hive_replication.failover.drain import drain
from hive_replication.failover.finish import open_target
from hive_replication.failover.grants import replicate_grants
from hive_replication.failover.phases import SOURCE, TARGET
from hive_replication.failover.promised import Promised, stays_left
from hive_replication.failover.sides import Sides, mark_replica, require_replica_still, set_parameters
from hive_replication.failover.status import FailoverStatus, status
from hive_replication.load.command import repl_load
from hive_replication.load.replica.failover_marks import (
    ENDPOINT,
    READ_ONLY,
    FailoverMarks,
    failover_marks,
    read_only,
    with_marks,
)
from hive_replication.load.replica.ownership import refuse_incompatible
from hive_replication.load.replica.policy_scope import made_with
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import LoadReport
from hive_replication.progress import Progress
from hive_replication.recover import require_history
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database

_WINDOWS = 3  # last windows, while writers that nothing refuses go on
_SHOWN = 5


@dataclass(frozen=True)
class FailoverStart:
    """What the start of a failover did.

    Args:
        status: where it stands.
        aborted: transactions of the source that were aborted.
        loads: the last windows.
        seconds: what each step took.
    """

    status: FailoverStatus
    aborted: tuple[int, ...] = ()
    loads: tuple[LoadReport, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()


def start(
    connection: Connection,
    name: str,
    *,
    wait: float | None = None,
    abort: bool | None = None,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> FailoverStart:
    """Brings a planned failover to the point where the target can be opened; repeating it goes on.

    Arguments and errors: :func:`hive_replication.direction.failover_start`.
    """
    sides, acid = Sides.now(connection, name), connection.source.policy.acid
    _require_begin(sides)
    if sides.marks[1].endpoint == TARGET:  # of an earlier start: it may not be opened while this one looks again
        mark_replica(sides, FailoverMarks())
    clock = _Clock()
    set_parameters(connection.source.metastore, name, _marked)
    clock.took("source marked")
    wait = acid.open_txn_timeout if wait is None else wait
    abort = acid.at_timeout == "abort" if abort is None else abort
    aborted, loads = set[int](), list[LoadReport]()
    for _ in range(_WINDOWS):
        aborted.update(drain(connection.source.metastore, name, wait, abort=abort))
        clock.took("transactions ended")
        evid = connection.source.metastore.current_event_id()
        aborted.update(drain(connection.source.metastore, name, 0, abort=abort))  # those that began before the id was noted
        loads += _last_window(sides, evid, copier or connection.copier, progress)
        clock.took("last window")
        if not any(True for _ in changes(connection.source, name, evid)):
            break
    else:
        raise Refused(
            f"{name!r} is still written, although it is marked as {READ_ONLY}: stop its writers (HiveServer2 refuses them where "
            "EnforceReadOnlyDatabaseHook is a pre-execution hook) and run it again"
        )
    _require_equal(connection, name, progress)
    clock.took("compared")
    replicate_grants(sides)
    _mark_target(sides, evid)
    return FailoverStart(status(connection, name), tuple(sorted(aborted)), tuple(loads), tuple(clock.spent.items()))


def start_unplanned(connection: Connection, name: str, reach: Reachable, *, force: bool = False) -> FailoverStatus:
    """Opens the target where it stands, without the source.

    Args:
        connection: both sides.
        name: source database.
        reach: which sides answer.
        force: also where the source answers.

    Raises:
        BadRequest: there is no finished replica.
        Refused: the source answers, so that a planned failover loses nothing; or a load runs.
        Unreachable: the target does not answer.
    """
    sides = Sides.now(connection, name, reach)
    if sides.marks[1].role == "opened":
        return status(connection, name, reach)
    if not force:
        sides.require_not_replaced()
    sides.require_replica()
    if sides.answers and not force:
        raise Refused(
            f"the source answers: hive-repl failover start {name} without --unplanned loses nothing; --force opens the target "
            "all the same"
        )
    open_target(sides, "UNPLANNED")
    return status(connection, name, reach)


class _Clock:
    """What steps took, in seconds."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._since = time.monotonic()

    def took(self, step: str) -> None:
        now = time.monotonic()
        self.spent[step] = round(self.spent.get(step, 0.0) + now - self._since, 3)
        self._since = now


def _require_begin(sides: Sides) -> None:
    sides.require_not_replaced()
    if sides.phase in ("opened", "finished", "failed back"):
        raise Refused(f"{sides.name!r} has failed over already: hive-repl failover status {sides.name} shows where it stands")
    if sides.source is None:
        raise BadRequest(f"the source {sides.connection.source.metastore.uri} has no database {sides.name!r}")
    sides.require_closable()
    sides.require_replica()
    refuse_incompatible(sides.target)


def _marked(parameters: dict[str, str]) -> dict[str, str]:
    """The source's parameters: of a failover under way, read-only for writers that go through Hive's hook."""
    if parameters.get(ENDPOINT) == SOURCE:
        return read_only(parameters, "true")
    marks = FailoverMarks(endpoint=SOURCE, read_only_before=parameters.get(READ_ONLY, ""))
    return read_only(with_marks(parameters, marks), "true")


def _last_window(sides: Sides, evid: int, copier: Copier, progress: Progress | None) -> Sequence[LoadReport]:
    """The events up to the noted one; none where the replica has them, and nothing is held."""
    connection, database = sides.connection, sides.target_name
    target = connection.target
    state = require_replica_still(target.metastore.database(database), database, sides.name)
    applied = state.applied or 0
    if applied >= evid and all(map(stays_left, state.held.values())):
        return ()
    _require_brought(sides, state)
    begin = min([applied, *(at for name, at in state.at.items() if at and not state.why_left_out(name))])
    require_history(connection.source, target, sides.name, applied)
    made = made_with(state, connection.source, sides.name, lambda: target.metastore.table_names(database))
    statement = ReplDump(sides.name, None, begin, max(evid, applied))
    dump = repl_dump(connection.source, statement, connection.store, made_with=made, progress=progress)
    load = ReplLoad(dump.directory, database)
    report = repl_load(target, load, connection.store, copier, source=connection.source.metastore, progress=progress)
    if held := [lane for lane in report.held if not stays_left(lane.reason)]:
        names = ", ".join(sorted({name for lane in held for name in lane.tables}))
        raise Refused(
            f"tables of {database!r} are held ({names}): {held[0].reason}; hive-repl repair {sides.name}.<table> brings "
            "them, then run it again"
        )
    return (report,)


def _require_brought(sides: Sides, state: ReplicaState) -> None:
    """Makes sure that a window brings all that is behind: no load brings what was undone, nor what the log no longer tells."""
    name, behind = sides.name, {table: at for table, at in state.at.items() if not state.why_left_out(table)}
    if undone := [table for table in sorted(behind) if state.waits(table)]:
        raise Refused(
            f"tables of {sides.target_name!r} were undone by request ({', '.join(undone)}): first hive-repl undo "
            f"{sides.target_name}.{undone[0]} --release, then run it again"
        )
    if gone := untold(sides.connection.source, state.applied or 0, behind):
        raise Refused(
            f"tables of {sides.target_name!r} stand before what the source's log still has ({', '.join(gone)}): hive-repl repair "
            f"{name}.{gone[0]} brings one of them, then run it again"
        )


def _require_equal(connection: Connection, name: str, progress: Progress | None) -> None:
    found = compare_database(connection.source, connection.target, name, progress=progress)
    differing, promised = [one for one in found if one.differences], Promised(connection, name)
    different = [f"{one.table}: {one.differences[0]}" for one in differing if not promised.is_met(one)]
    if different:
        more = f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
        own = any(is_function(one.table) for one in differing)
        functions = " (functions that only the target has: drop them there)" if own else ""
        raise Refused(
            f"the replica of {name!r} differs from its source ({'; '.join(different[:_SHOWN])}{more}): hive-repl repair {name}"
            f"{functions}, then run it again"
        )


def _mark_target(sides: Sides, evid: int) -> None:
    """The target has all up to the event: it may be opened, unless the failover was taken back meanwhile."""

    def require() -> None:
        if failover_marks(sides.connection.source.metastore.database(sides.name)).endpoint != SOURCE:
            raise Refused(
                f"the failover of {sides.name!r} was taken back at the same moment: hive-repl failover start begins anew"
            )

    mark_replica(sides, FailoverMarks(endpoint=TARGET, event=evid), require)
