"""Reads the lag of a policy's databases, once or repeatedly."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hive_replication.connect import Connection, Reachable
from hive_replication.dump.ended_transactions import ended_in
from hive_replication.dump.source import Source
from hive_replication.errors import OF_ONE_DATABASE, MetastoreError, ReplicationError
from hive_replication.events.event_records import Notification
from hive_replication.events.events_of_policy import LogEvent, of_policy
from hive_replication.events.renames_between_databases import rows_of
from hive_replication.lag.cached_log import Reach, WaitingLog
from hive_replication.lag.compute_lag import Lag, behind, bytes_of, not_applied, start_of, starts_of, stopped, table_lags
from hive_replication.lag.sizes import FileSizes
from hive_replication.lag.waiting_event import WaitingEvent, waiting_event
from hive_replication.lag.waiting_events import Waiting, together
from hive_replication.load.replica.interrupted import is_interrupted
from hive_replication.load.replica.policy_scope import changed, without_data
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import is_remote
from hive_replication.recover import history_gap, interrupted_gap

#: Events of the log that a reading takes where no more are asked for: some 15 s; the next one continues.
MOST_EVENTS = 10_000
_MOST_FILES = 1_000
_CHANGED = "the policy takes other tables or partitions than the replica was made with: the next load settles that"
_INTERRUPTED = "a load of its objects was killed, and tables may be half made: the next load does it first"


class LagReader:
    """Reads lags; of the log only the events since the last reading.

    With ``most_events``, databases that are further behind than that have a reading of their own: it takes many calls until it
    reaches the log's end, and the lag of the others is to be known meanwhile.

    Args:
        source: the source side.
        target: the target side.
        databases: source databases; all of the policy where None.
        most_events: events of the log to read at a time, for either of them; None for all.
    """

    def __init__(
        self, source: Source, target: Target, databases: Sequence[str] | None = None, *, most_events: int | None = None
    ) -> None:
        self._source, self._target = source, target
        self._databases = tuple(source.policy.databases if databases is None else databases)
        self._asked = frozenset(self._databases)
        self._most = most_events
        self._near, self._far = (
            WaitingLog(source.metastore, self._kept, most_events, source.policy.max_message_bytes) for _ in range(2)
        )
        self._sizes = FileSizes(source.storage, _MOST_FILES)

    def fits(self, source: Source) -> bool:
        """Whether a new connection's source is still what this reader takes its own for, which asks that only once.

        A metastore that was upgraded from Hive 3 gives transactional tables, and one that was made anew has another log.

        Args:
            source: newly connected; its metastore is asked what it is.

        Raises:
            Unreachable: the metastore does not answer.
        """
        mine = self._source
        return mine.policy == source.policy and (mine.acid, mine.identity) == (source.acid, source.identity)

    def read(self) -> tuple[Lag, ...]:
        """Reads the positions of both metastores, and sizes of files from the source's storage.

        Raises:
            Unreachable: a metastore does not answer.
        """
        policy = self._source.policy
        states, unreadable = self._states()
        current = self._source.metastore.current_event_id()  # after the states, so that it is never lower than them
        reaches: dict[str, Reach] = {}
        waiting: dict[str, dict[str, Waiting]] = {}
        for log, far in ((self._near, False), (self._far, True)):
            some = {name: state for name, state in states.items() if self._is_far(state, current) == far}
            reach = log.cover((start for state in some.values() for start in starts_of(state)), current)
            reaches |= dict.fromkeys(some, reach)
            waiting |= {name: not_applied(state, log.events_of(name)) for name, state in some.items()}
        self._sizes.look_up(file for found in waiting.values() for one in found.values() for file in one.files)
        # Hundreds of databases may have a call each: one after another they would take longer than a tick of a sensor may.
        stands = self._source.threads.map(lambda name: self._stands(name, states[name], reaches[name], current), [*states])
        known = dict(zip(states, stands, strict=True))
        return tuple(
            self._with_figures(known[name], states[name], waiting[name])
            if name in states
            else _without_state(Lag(name, policy.target_of(name), None, current, None, None), unreadable[name])
            for name in self._databases
        )

    def read_on(self) -> tuple[Lag, ...]:
        """Reads of the log as much as it takes to know since when an event waits, of each database."""
        found = self.read()
        while any(one.waiting is None and not one.complete and not one.gap for one in found):
            found = self.read()
        return found

    def _is_far(self, state: ReplicaState, current: int) -> bool:
        start = start_of(state, undone=True)
        return self._most is not None and start is not None and start < current - self._most

    def _states(self) -> tuple[dict[str, ReplicaState], dict[str, ReplicationError]]:
        """States by database, and why those of others cannot be read."""
        found = dict(zip(self._databases, self._source.threads.map(self._state, self._databases), strict=True))
        states = {name: state for name, state in found.items() if isinstance(state, ReplicaState)}
        return states, {name: error for name, error in found.items() if isinstance(error, ReplicationError)}

    def _state(self, name: str) -> ReplicaState | ReplicationError:
        try:
            return replica_state(self._target.metastore.database(self._source.policy.target_of(name)))
        except OF_ONE_DATABASE as error:
            return error

    def _stands(self, name: str, state: ReplicaState, reach: Reach, current: int) -> Lag:
        """A lag without its figures."""
        target_name, held = self._source.policy.target_of(name), tuple(sorted(state.held.items()))
        gap, complete = self._gap(state, reach, current), reach.until >= current
        found = Lag(
            name, target_name, state.last_id, current, None, None, held, gap=gap, stopped=stopped(state), complete=complete
        )
        changes = _CHANGED if changed(state, self._source, name) else self._interrupted(state, target_name)
        no_data = state.applied is not None and without_data(state, self._source.policy)
        found = replace(found, changed=changes, left=tuple(sorted(state.left)), without_data=no_data, loading=state.checkpoint)
        if state.applied is not None:
            return found
        try:
            there = self._source.metastore.database(name)
            return replace(found, in_source=there is not None and not is_remote(there))
        except MetastoreError as error:
            return replace(found, gap=str(error), hidden="source")

    def _interrupted(self, state: ReplicaState, target_name: str) -> str:
        """What a killed load of objects has left to do. Who stopped the database knows that nothing is loaded."""
        if not state.checkpoint or state.applied is None or state.obstacle or stopped(state):
            return ""
        try:
            return _INTERRUPTED if is_interrupted(self._target.metastore, target_name) else ""
        except MetastoreError:  # it does not show its locks: a load says so
            return ""

    def _with_figures(self, found: Lag, state: ReplicaState, waiting: Mapping[str, Waiting]) -> Lag:
        if state.applied is None or found.gap:
            return found
        all_of_them = together(some for table, some in waiting.items() if not state.stands_with_undo(table))
        if not (found.complete or all_of_them.events):
            return found
        now, total = time.time(), self._sizes.total
        return replace(
            found,
            waiting=all_of_them.events,
            seconds_behind=behind(all_of_them, now),
            bytes_waiting=bytes_of(all_of_them, total) if found.complete else None,
            tables=table_lags(state, waiting, now, total),
        )

    def _gap(self, state: ReplicaState, reach: Reach, current: int) -> str:
        start = start_of(state)
        if start is None:
            return ""
        found = history_gap(self._source, state, current) or (interrupted_gap(state) if state.obstacle else None)
        if found is not None:
            return found.reason
        return reach.problem if start < reach.after else ""

    def _kept(self, row: Notification) -> Iterator[WaitingEvent]:
        policy = self._source.policy
        for database in ended_in(self._source, row, self._asked):
            # Of which tables it is only the metastore knows, and what it brings.
            yield WaitingEvent(row.evid, row.time, database, "", None if row.type == "COMMIT_TXN" else 0)
        for one in rows_of(row, self._asked):
            event = LogEvent(one, policy.partition_filter)
            data = not policy.metadata_only
            if not policy.takes(one.type) or not of_policy(event, one.database, policy.includes, shared=data):
                continue
            found = waiting_event(one, data=data and not event.outside)  # of which only the dump knows whether it brings any
            if one.table and not policy.includes(one.table) and event.event is not None:
                # A rename out of the policy is logged under its new name: it waits as long as the old one does.
                found = replace(found, name=next(filter(policy.includes, event.event.names), found.name))
            yield found


def lags_reachable(connection: Connection, reach: Reachable, databases: Sequence[str] | None = None) -> tuple[Lag, ...]:
    """The lags of databases as far as the servers answer: without one side, what the other one says.

    Args:
        connection: both sides.
        reach: which of them answer.
        databases: source databases; all of the policy where None.

    Raises:
        Unreachable: a metastore stopped answering.
    """
    source, target = connection.source, connection.target
    if reach.complete:
        return LagReader(source, target, databases).read()
    problem = " and ".join(f"the {side}'s metastore" for side in reach.problems())
    problem += " does not answer" if len(reach.problems()) == 1 else " do not answer"
    current = None if reach.source else source.metastore.current_event_id()
    found: list[Lag] = []
    for name in source.policy.databases if databases is None else databases:
        target_name = source.policy.target_of(name)
        state, unreadable = ReplicaState(), None
        try:
            state = state if reach.target else replica_state(target.metastore.database(target_name))
        except OF_ONE_DATABASE as error:
            unreadable = error
        held, last = tuple(sorted(state.held.items())), state.last_id
        known = Lag(name, target_name, last, current, None, None, held, stopped=stopped(state), problem=problem)
        known = replace(known, without_data=last is not None and without_data(state, source.policy), loading=state.checkpoint)
        found.append(_without_state(known, unreadable) if unreadable else known)
    return tuple(found)


def _without_state(known: Lag, error: ReplicationError) -> Lag:
    """A lag of a replica whose state cannot be read: a parameter was edited by hand, or its metastore does not show it."""
    hidden = isinstance(error, MetastoreError)
    return replace(known, gap=str(error), unreadable=not hidden, hidden="target" if hidden else "")


def lag(source: Source, target: Target, database: str, *, most_events: int | None = None) -> Lag:
    """The lag of one database now.

    Args:
        source: the source side.
        target: the target side.
        database: source name.
        most_events: events of the log to read, more only as long as none of them waits; None for all.

    Raises:
        Unreachable: a metastore does not answer.
    """
    return LagReader(source, target, [database], most_events=most_events).read_on()[0]
