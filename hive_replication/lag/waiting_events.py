"""The events that wait for one table, function or database: numbers in arrays, since millions may wait after an outage."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from hive_replication.events.files import FileRef
from hive_replication.lag.waiting_event import WaitingEvent
from hive_replication.load.replica.parameters import MOST

_UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Waiting:
    """Figures of events that wait.

    Args:
        events: how many.
        oldest: commit time of the oldest, seconds since the epoch; None without events.
        size: bytes by their messages, without those of ``files``; None where a message has no size.
        files: data files that messages name without their sizes.
    """

    events: int = 0
    oldest: int | None = None
    size: int | None = 0
    files: tuple[FileRef, ...] = ()


def together(found: Iterable[Waiting]) -> Waiting:
    """Figures of several names."""
    all_of_them = tuple(found)
    sizes = [one.size for one in all_of_them]
    known = [size for size in sizes if size is not None]
    return Waiting(
        sum(one.events for one in all_of_them),
        min((one.oldest for one in all_of_them if one.oldest is not None), default=None),
        sum(known) if len(known) == len(sizes) else None,
        tuple(file for one in all_of_them for file in one.files),
    )


@dataclass
class WaitingEvents:
    """Events of one name in the order of the log: 24 bytes for each, and the files of some."""

    _evids: array[int] = field(default_factory=lambda: array("q"))
    _times: array[int] = field(default_factory=lambda: array("q"))
    _sizes: array[int] = field(default_factory=lambda: array("q"))
    _files: dict[int, tuple[FileRef, ...]] = field(default_factory=dict[int, tuple[FileRef, ...]])

    def __len__(self) -> int:
        """How many events."""
        return len(self._evids)

    @property
    def files(self) -> int:
        """How many files are kept."""
        return sum(map(len, self._files.values()))

    def add(self, event: WaitingEvent, *, with_files: bool = True) -> None:
        """Adds an event, which is later than those before; without its files its size counts as unknown."""
        self._evids.append(event.evid)
        self._times.append(event.time)
        size = event.size if with_files or not event.files else None
        self._sizes.append(_UNKNOWN if size is None or size > MOST else size)  # sizes are parameters, which anybody may set
        if with_files and event.files:
            self._files[event.evid] = event.files

    def forget(self, until: int) -> None:
        """Forgets events up to an id."""
        done = bisect_right(self._evids, until)
        for numbers in (self._evids, self._times, self._sizes):
            del numbers[:done]
        self._files = {evid: files for evid, files in self._files.items() if evid > until}

    def after(self, position: int) -> Waiting:
        """Figures of the events after an id."""
        first = bisect_right(self._evids, position)
        times, sizes = self._times[first:], self._sizes[first:]
        files = tuple(file for evid, some in self._files.items() if evid > position for file in some)
        return Waiting(len(times), min(times, default=None), None if _UNKNOWN in sizes else sum(sizes), files)
