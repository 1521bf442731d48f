"""The directories that the tables and partitions of a database point at now; they are never moved or deleted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from hive_replication.metastore.client import Metastore
from hive_replication.storage import Storage, paths


class Locations:
    """Directories that are in use.

    Args:
        data: directories with data; they, everything below them and the directories above them are in use.
        bases: directories of partitioned tables; what lies below one is in use only if a partition points at it.
    """

    def __init__(self, data: Iterable[str], bases: Iterable[str] = ()) -> None:
        self._data = frozenset(data)
        # With a slash at the end, everything below a directory sorts right after it.
        self._sorted = sorted(f"{place}/" for place in self._data.union(bases))

    def contains(self, path: str) -> bool:
        """Whether a path is a directory with data, or lies below one."""
        parts = path.split("/")
        return any("/".join(parts[:length]) in self._data for length in range(1, len(parts) + 1))

    def any_below(self, path: str) -> bool:
        """Whether anything at or below a path is in use."""
        index = bisect_left(self._sorted, f"{path}/")
        return index < len(self._sorted) and self._sorted[index].startswith(f"{path}/")

    def unused_parts(self, storage: Storage, path: str) -> Iterator[str]:
        """The path itself if it is not in use, otherwise the largest subdirectories and files of it that are not."""
        if self.contains(path):
            return
        if not self.any_below(path):
            yield path
            return
        for child in storage.ls(path):
            if child.uri.rstrip("/") != path:
                yield from self.unused_parts(storage, child.uri.rstrip("/"))


def live_locations(metastore: Metastore, database: str, protected: Iterable[str] = ()) -> Locations:
    """Reads the locations of all tables and partitions of a database.

    Args:
        metastore: the target's.
        database: target database.
        protected: further directories that count as in use.
    """
    data, bases = {paths.normalise(place) for place in protected}, set[str]()
    for table in metastore.tables(database, metastore.table_names(database)):
        if table.sd.location:
            (bases if table.partitionKeys else data).add(paths.normalise(table.sd.location))
        if table.partitionKeys:
            parts = metastore.partitions(database, table.tableName)
            data |= {paths.normalise(part.sd.location) for part in parts if part.sd.location}
    return Locations(data, bases)
