"""Everything that a database's tables and partitions point at, read anew: what may never be moved or deleted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from hive_replication.metastore.client import Metastore
from hive_replication.storage import Storage, paths


class Locations:
    """Directories that are in use.

    Args:
        data: directories whose content is read: all at, above and below them is in use.
        bases: directories of partitioned tables: what lies below one belongs to nobody, unless a partition points at it.
    """

    def __init__(self, data: Iterable[str], bases: Iterable[str] = ()) -> None:
        self._data = frozenset(data)
        # With the slash at the end, all that lies below a directory stands behind it.
        self._sorted = sorted(f"{place}/" for place in self._data.union(bases))

    def around(self, path: str) -> bool:
        """Whether a path is a directory of data, or lies below one."""
        parts = path.split("/")
        return any("/".join(parts[:length]) in self._data for length in range(1, len(parts) + 1))

    def below(self, path: str) -> bool:
        """Whether anything at or below a path is in use."""
        at = bisect_left(self._sorted, f"{path}/")
        return at < len(self._sorted) and self._sorted[at].startswith(f"{path}/")

    def free_parts(self, storage: Storage, path: str) -> Iterator[str]:
        """The path itself if it is not in use, else the largest parts of it that are not."""
        if self.around(path):
            return
        if not self.below(path):
            yield path
            return
        for child in storage.ls(path):
            if child.uri.rstrip("/") != path:
                yield from self.free_parts(storage, child.uri.rstrip("/"))


def live_locations(metastore: Metastore, database: str, protected: Iterable[str] = ()) -> Locations:
    """Reads where all tables and partitions of a database lie now.

    Args:
        metastore: the target's.
        database: target database.
        protected: other directories to count as in use.
    """
    data, bases = {paths.normalise(place) for place in protected}, set[str]()
    for table in metastore.tables(database, metastore.table_names(database)):
        if table.sd.location:
            (bases if table.partitionKeys else data).add(paths.normalise(table.sd.location))
        if table.partitionKeys:
            parts = metastore.partitions(database, table.tableName)
            data |= {paths.normalise(part.sd.location) for part in parts if part.sd.location}
    return Locations(data, bases)
