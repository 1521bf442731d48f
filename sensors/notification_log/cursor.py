"""The cursor: what a tick keeps for the next one. It only saves work; all of it can be found again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from hive_replication.policy import Policy

_INCLUDES = {
    "source", "target", "databases", "tables", "exclude", "partition_filters", "metadata_only", "acid", "materialized_views",
    "schedule", "time_zone",
}  # fmt: skip
RECHECK = 600.0  # seconds after which a tick reads the target even if the source has no new event


class Reading(NamedTuple):
    """What the log has of a database after an event id; no tick reads that again.

    Args:
        after: the id: the database's applied one, or the end of the window that a run loads.
        scanned: event id up to which the log was read.
        first: id and commit time of the first event there that belongs to the policy, or None.
        events: how many events of the database there are.
    """

    after: int
    scanned: int
    first: tuple[int, int] | None = None
    events: int = 0


@dataclass(frozen=True, slots=True)
class Cursor:
    """The sensor's cursor.

    Args:
        policy: fingerprint of what the policy includes; the cursor of another policy is discarded.
        settled: newest event id of the source when nothing was left to do, or None.
        checked: when that was found, seconds since the epoch.
        readings: by database, what the log has of it.
        event: id, commit time and message hash of the log's newest event then: where it is another one now, so is the log.
        scheduled: by database that waits for the policy's schedule: since when, seconds since the epoch.
        rests_until: the schedule's next time; nothing is due before it.
        asked: when an operator had last changed a replica by hand; if that changes, the target is read.
        observed: ids of the last records of what operators did that Dagster has.
        delayed: by database that waits until other runs have ended: since when.
    """

    policy: str
    settled: int | None = None
    checked: float = 0.0
    readings: Mapping[str, Reading] = field(default_factory=dict[str, Reading])
    event: tuple[int, int, str] = (0, 0, "")
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])
    rests_until: float = 0.0
    asked: float = 0.0
    observed: tuple[str, ...] = ()
    delayed: Mapping[str, float] = field(default_factory=dict[str, float])

    def ends_tick(self, current: int, now: float) -> bool:
        """Whether the source's event id alone shows that there is nothing to do."""
        return self.settled == current and self._is_checked(now)

    def rests(self, now: float) -> bool:
        """Whether the time alone shows that there is nothing to do."""
        return now < self.rests_until and self._is_checked(now)

    def _is_checked(self, now: float) -> bool:
        """Whether all was looked at a short while ago; not where that would be in the future: the clock was set back since."""
        return abs(now - self.checked) < RECHECK

    def of_log(self, time: int, message_hash: str) -> Cursor:
        """The cursor, without what was read if the log is another one: its metastore was restored.

        Args:
            time: commit time of the event with the id in ``event``, seconds since the epoch.
            message_hash: of its message; "" where the log does not have it, so that nobody knows.
        """
        return self if message_hash and (time, message_hash) == self.event[1:] else replace(self, readings={})

    def reading(self, database: str, after: int) -> Reading | None:
        """What was read of a database after an event id."""
        found = self.readings.get(database)
        return found if found and found.after == after else None

    def waits_since(self, database: str, now: float) -> float:
        """Since when a database is known to wait."""
        return min(self.scheduled.get(database, now), self.delayed.get(database, now))

    def to_json(self) -> str:
        """As compact JSON."""
        return _CURSOR.dump_json(self).decode()


_CURSOR = TypeAdapter(Cursor)


def read_cursor(text: str | None, policy: Policy) -> Cursor:
    """The cursor of the last tick; an empty one if there is none, it is unreadable, or it is of another policy."""
    mine = hashlib.sha256(policy.model_dump_json(include=_INCLUDES).encode()).hexdigest()[:16]
    try:
        cursor = _CURSOR.validate_json(text or "")
    except ValidationError:
        return Cursor(mine)
    return cursor if cursor.policy == mine else Cursor(mine)
