"""What a target database keeps of a hold besides its reason: the event that failed, since when, and how often it was tried."""

from __future__ import annotations

from dataclasses import dataclass

#: Seconds after which a held lane is tried again: after the first failure, doubled by each, up to the second figure.
CATCH_UP_DELAY = (60.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold's history; all 0 where it is not known.

    Args:
        evid: event id that failed last.
        since: when the table was held first, seconds since the epoch.
        attempts: number of loads that failed for it.
        tried: when the last of them was, seconds since the epoch.
    """

    evid: int = 0
    since: int = 0
    attempts: int = 0
    tried: int = 0

    @property
    def next_attempt(self) -> int:
        """When a sensor tries again at the earliest, seconds since the epoch; 0 where that is not known."""
        return self.tried + round(delay(self.attempts, CATCH_UP_DELAY)) if self.attempts else 0

    def failed(self, evid: int, now: int) -> Hold:
        """After one more load that failed at an event."""
        return Hold(evid, self.since or now, self.attempts + 1, now)

    def __str__(self) -> str:
        return f"{self.evid}:{self.since}:{self.attempts}:{self.tried}"

    @classmethod
    def parse(cls, text: str) -> Hold:
        """Reads the text of a hold; one of nothing where it is another text."""
        numbers = text.split(":")
        return cls(*map(int, numbers)) if len(numbers) == 4 and all(map(str.isdecimal, numbers)) else cls()


UNKNOWN = Hold()


def delay(attempt: int, limits: tuple[float, float]) -> float:
    """Seconds to wait after an attempt that failed.

    Args:
        attempt: 1 for the first.
        limits: seconds after the first, and at most.
    """
    first, most = limits
    return min(first * 2 ** min(attempt - 1, 30), most)
