"""Reading how far the databases of a policy are behind, once or again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from hive_replication.dump.source import Source
from hive_replication.events.log import of_policy
from hive_replication.events.records import Notification
from hive_replication.lag.figures import Lag, behind, bytes_of, not_applied, start_of, stopped, table_lags
from hive_replication.lag.log import Reach, WaitingLog, by_database
from hive_replication.lag.sizes import FileSizes
from hive_replication.lag.waiting import WaitingEvent, waiting_event
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.load.target import Target
from hive_replication.recover import history_gap

_MOST_FILES = 1_000


class LagReader:
    """Reads lags; of the log only what is new since the last time.

    Args:
        source: the source side.
        target: the target side.
        databases: source databases; all of the policy where None.
        most_events: events of the log to read at a time; None for all.
    """

    def __init__(
        self, source: Source, target: Target, databases: Sequence[str] | None = None, *, most_events: int | None = None
    ) -> None:
        self._source, self._target = source, target
        self._databases = tuple(source.policy.databases if databases is None else databases)
        self._log = WaitingLog(source.metastore, self._kept, most_events)
        self._sizes = FileSizes(source.storage, _MOST_FILES)

    def read(self) -> tuple[Lag, ...]:
        """Asks both metastores where they are, and the source's storage for sizes of files.

        Raises:
            Unreachable: a metastore does not answer.
        """
        policy, metastore = self._source.policy, self._target.metastore
        states = {name: replica_state(metastore.database(policy.target_of(name))) for name in self._databases}
        current = self._source.metastore.current_event_id()  # after the states: it is never behind them
        starts = (start_of(state) for state in states.values())
        reach = self._log.cover((start for start in starts if start is not None), current)
        events = by_database(self._log.events)
        waiting = {name: not_applied(state, events.get(name, ())) for name, state in states.items()}
        self._sizes.look_up(file for found in waiting.values() for event in found for file in event.files)
        return tuple(self._lag(name, states[name], reach, current, waiting[name]) for name in self._databases)

    def _lag(self, name: str, state: ReplicaState, reach: Reach, current: int, waiting: Sequence[WaitingEvent]) -> Lag:
        target_name, held = self._source.policy.target_of(name), tuple(sorted(state.held.items()))
        gap, complete = self._gap(state, reach, current), reach.until >= current
        found = Lag(
            name, target_name, state.last_id, current, None, None, held, gap=gap, stopped=stopped(state), complete=complete
        )
        if state.applied is None or gap or not (complete or waiting):
            return found
        now, total = time.time(), self._sizes.total
        return replace(
            found,
            waiting=len(waiting),
            seconds_behind=behind(waiting, now),
            bytes_waiting=bytes_of(waiting, total) if complete else None,
            tables=table_lags(state, waiting, now, total),
        )

    def _gap(self, state: ReplicaState, reach: Reach, current: int) -> str:
        start = start_of(state)
        if start is None:
            return ""
        found = history_gap(self._source, state, current)
        if found is not None:
            return found.reason
        return reach.problem if start < reach.after else ""

    def _kept(self, row: Notification) -> WaitingEvent | None:
        policy = self._source.policy
        mine = row.database in self._databases and policy.takes(row.type) and of_policy(row, row.database, policy.includes)
        return waiting_event(row, data=not policy.metadata_only) if mine else None


def lag(source: Source, target: Target, database: str) -> Lag:
    """How far one database is behind now.

    Args:
        source: the source side.
        target: the target side.
        database: source name.

    Raises:
        Unreachable: a metastore does not answer.
    """
    return LagReader(source, target, [database]).read()[0]
