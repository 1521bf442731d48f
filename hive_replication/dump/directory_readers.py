"""Which partitions of a table read a directory (pure)."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile

from hive_replication.errors import Refused
from hive_replication.metastore.types import Table
from hive_replication.storage import paths
from hive_replication.storage.boundary import qualified

#: Partitions of a table beyond which nobody looks: all are read with each window that changes one of them, 1,000 in some 0.2 s.
MOST_PARTITIONS = 20_000
TOO_MANY = (
    "it has %s partitions: beyond %s nobody looks whether some share a directory. If some do, what is loaded into one of "
    "them is missing in the others on the replica: hive-repl verify finds that, and hive-repl repair brings it"
)


class DirectoryReaders:
    """Partitions of a table by their directories.

    Args:
        places: directories and names of its partitions.
        everywhere: names of those whose directories are not known.
    """

    def __init__(self, places: Iterable[tuple[str, str]] = (), everywhere: Iterable[str] = ()) -> None:
        self._everywhere = tuple(everywhere)
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        for place, name in places:
            if place:
                self._names[f"{place}/"].append(name)
        self._sorted = sorted(self._names)  # with a slash at the end, what lies below a directory sorts right after it

    def add(self, place: str, name: str) -> None:
        """Adds a partition; one that is elsewhere by now stays where it was, too."""
        if place and f"{place}/" not in self._names:
            insort(self._sorted, f"{place}/")
        if place and name not in self._names[f"{place}/"]:
            self._names[f"{place}/"].append(name)

    def of(self, place: str, *, takes: bool) -> Iterator[str]:
        """Names of the partitions at a directory or above it; where what lies there is taken, of those below it, too."""
        yield from self._everywhere
        parts = place.split("/")
        for length in range(1, len(parts) + 1):
            yield from self._names.get("/".join(parts[:length]) + "/", ())
        if takes and place:
            after = islice(self._sorted, bisect_left(self._sorted, f"{place}/"), None)
            for below in takewhile(lambda one: one.startswith(f"{place}/"), after):
                yield from self._names[below]


def place_of(location: str, table: Table) -> str:
    """One spelling of a partition's directory; as it stands where it is none that is read: the load holds what lies there."""
    try:
        return paths.normalise(qualified(location, table.sd.location or ""))
    except Refused:
        return location
