"""The cursor: what a tick keeps for the next one. It only saves work; all of it can be found again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from hive_replication.policy import Policy

RECHECK = 600.0  # seconds after which a tick reads the target even if the source has no new event


@dataclass(frozen=True, slots=True)
class Cursor:
    """The sensor's cursor.

    Args:
        policy: fingerprint of what the policy includes; the cursor of another policy is discarded.
        settled: newest event id of the source when nothing was left to do, or None.
        checked: when that was found, seconds since the epoch.
        idle: by database, ``(applied, scanned)``: the log has no event of it in between.
        scheduled: by database that waits for the policy's schedule: since when, seconds since the epoch.
        rests_until: the schedule's next time; nothing is due before it.
        asked: when an operator had last changed a replica by hand; if that changes, the target is read.
        observed: ids of the last records of what operators did that Dagster has.
    """

    policy: str
    settled: int | None = None
    checked: float = 0.0
    idle: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])
    rests_until: float = 0.0
    asked: float = 0.0
    observed: tuple[str, ...] = ()

    def ends_tick(self, current: int, now: float) -> bool:
        """Whether the source's event id alone shows that there is nothing to do."""
        return self.settled == current and now - self.checked < RECHECK

    def rests(self, now: float) -> bool:
        """Whether the time alone shows that there is nothing to do."""
        return now < self.rests_until and now - self.checked < RECHECK

    def scanned(self, database: str, applied: int) -> int:
        """Event id up to which the log has no event of a database after ``applied``."""
        known, scanned = self.idle.get(database, (applied, applied))
        return scanned if known == applied else applied

    def to_json(self) -> str:
        """As compact JSON."""
        return _CURSOR.dump_json(self).decode()


_CURSOR = TypeAdapter(Cursor)


def read_cursor(text: str | None, policy: Policy) -> Cursor:
    """The cursor of the last tick; an empty one if there is none, it is unreadable, or it is of another policy."""
    mine = hashlib.sha256(
        policy.model_dump_json(include={"source", "target", "databases", "tables", "exclude", "schedule", "time_zone"}).encode()
    ).hexdigest()[:16]
    try:
        cursor = _CURSOR.validate_json(text or "")
    except ValidationError:
        return Cursor(mine)
    return cursor if cursor.policy == mine else Cursor(mine)
