"""The quarantine of a held lane: which event failed, since when it is held, how often it was tried, and when it is retried."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.replica.parameters import number_of

#: Seconds until a held lane is retried: after the first failure, doubled by each further one, up to the second figure.
CATCH_UP_DELAY = (60.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Quarantine:
    """What a target database records of a held table besides the reason; all 0 if nothing is recorded.

    Args:
        evid: event id that failed last.
        since: when the table was held first, seconds since the epoch.
        attempts: number of loads that failed for it.
        tried: time of the last of these loads, seconds since the epoch.
    """

    evid: int = 0
    since: int = 0
    attempts: int = 0
    tried: int = 0

    @property
    def next_attempt(self) -> int:
        """Earliest time at which a sensor retries it, seconds since the epoch; 0 if unknown."""
        return self.tried + round(delay(self.attempts, CATCH_UP_DELAY)) if self.attempts else 0

    def failed(self, evid: int, now: int) -> Quarantine:
        """The record after another load failed, at this event."""
        return Quarantine(evid, self.since or now, self.attempts + 1, now)

    def __str__(self) -> str:
        return f"{self.evid}:{self.since}:{self.attempts}:{self.tried}"

    @classmethod
    def parse(cls, text: str) -> Quarantine:
        """Reads its text; an empty record if the text has another form."""
        numbers = [number for number in map(number_of, text.split(":")) if number is not None]
        return cls(*numbers) if text.count(":") == 3 and len(numbers) == 4 else cls()


NO_HISTORY = Quarantine()


def delay(attempt: int, limits: tuple[float, float]) -> float:
    """Seconds to wait after an attempt that failed.

    Args:
        attempt: 1 for the first.
        limits: delay after the first failure, and the longest delay.
    """
    first, most = limits
    return min(first * 2 ** min(attempt - 1, 30), most)


def wait_left(due: float, limits: tuple[float, float], now: float) -> float:
    """Seconds until an attempt is due; none where they are more than any delay: the clock was set back since the last one failed.

    Twice the longest delay is still waited for: the clock of another host may be somewhat ahead.

    Args:
        due: seconds since the epoch.
        limits: as for :func:`delay`.
        now: seconds since the epoch.
    """
    return rest if 0 < (rest := due - now) <= 2 * limits[1] else 0.0
