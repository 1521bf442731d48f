"""The partitions of a table of the target, of which no more than a batch is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition


class TargetPartitions:
    """Partitions of a table of the target, read when they are asked for; only the names of the others are kept.

    Args:
        names: of the partitions.
        read: reads those of some names that exist.
        batch: how many of the others are read at once.
    """

    def __init__(
        self, names: Iterable[str] = (), read: Callable[[list[str]], dict[str, Partition]] = lambda _: {}, batch: int = 500
    ) -> None:
        self._others, self._read, self._batch = set(names), read, batch

    def named(self, names: Iterable[str]) -> dict[str, Partition]:
        """Those of some names, which are asked for once."""
        asked = self._others.intersection(names)
        self._others -= asked
        return self._read(sorted(asked)) if asked else {}

    def others(self) -> Iterator[dict[str, Partition]]:
        """Those that were not asked for, a batch at a time, in order of their names."""
        for names in batches(sorted(self._others), self._batch):
            found = self._read(names)
            yield {name: found[name] for name in names if name in found}
