"""The target's objects that a dump touches, read in batches before planning, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock

from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition, Table

_TOGETHER = 100  # tables in a call
_IMAGES = 2_000  # partitions of a table that are in memory at once where all are asked for


@dataclass(frozen=True)
class TargetView:
    """Some of the target's objects; those that do not exist are not in the maps.

    Args:
        state: the database's replication state.
        tables: by target name.
        partitions: by target table name and partition name.
    """

    state: ReplicaState
    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    partitions: Mapping[tuple[str, str], Partition] = field(default_factory=dict[tuple[str, str], Partition])


class KnownObjects:
    """The target's objects as they are before some lanes change them. Each is read once; threads of several lanes share them.

    Args:
        metastore: the target's.
        database: target database.
        state: its replication state.
        restored: called with each table that is read; returns it as it is afterwards, None where it is none.
    """

    def __init__(
        self,
        metastore: Metastore,
        database: str,
        state: ReplicaState,
        restored: Callable[[Table], Table | None] = lambda table: table,
    ) -> None:
        self._metastore, self._database, self._state, self._restored = metastore, database, state, restored
        self._tables: dict[str, Table | None] = {}
        self._partitions: dict[str, dict[str, Partition | None]] = {}
        self._complete: set[str] = set()
        self._lock = Lock()
        self._coming: dict[str, tuple[str, ...]] = {}

    def announce(self, names: Iterable[str]) -> None:
        """Tables that will be asked for one by one: with the first of some that follow each other the others are read, too."""
        for batch in batches(names, _TOGETHER):
            self._coming |= dict.fromkeys(batch, tuple(batch))

    def view(self, wanted: Mapping[str, Iterable[str] | None]) -> TargetView:
        """Some tables and partitions, as they were before the lanes.

        Args:
            wanted: names of partitions by table name; None for all partitions of a table.
        """
        names = {name: None if parts is None else set(parts) for name, parts in wanted.items()}
        coming = {other for name in names if name not in self._tables for other in self._coming.get(name, (name,))}
        self._read_tables([name for name in coming if name not in self._tables])
        tables = {name: table for name in names if (table := self._tables[name]) is not None}
        partitions: dict[tuple[str, str], Partition] = {}
        for name, table in tables.items():
            if table.partitionKeys and (needed := names[name]) != set():
                known = self._known_partitions(table, name, needed)
                partitions |= {(name, part): found for part in needed or known if (found := known.get(part)) is not None}
        return TargetView(self._state, tables, partitions)

    def images(self, name: str) -> Iterator[dict[str, Partition]]:
        """All partitions of a table that was viewed, some at a time; none of them stays here.

        Args:
            name: of the table.
        """
        table = self._tables[name]
        if table is not None and table.partitionKeys:
            for batch in batches(self._metastore.partitions(self._database, name), _IMAGES):
                yield by_name(table, batch)

    def forget(self) -> None:
        """Reads every object again from now on."""
        with self._lock:
            self._tables, self._partitions, self._complete = {}, {}, set()

    def _read_tables(self, names: list[str]) -> None:
        if names:
            read = {one.tableName.lower(): self._restored(one) for one in self._metastore.tables(self._database, sorted(names))}
            with self._lock:
                self._tables |= dict.fromkeys(names) | read

    def _known_partitions(self, table: Table, name: str, needed: set[str] | None) -> Mapping[str, Partition | None]:
        with self._lock:
            known = self._partitions.setdefault(name, {})
            missing = None if needed is None else needed - known.keys()
            if name in self._complete or missing == set():
                return dict(known) if needed is None else known
        wanted = None if missing is None else sorted(missing)
        read = by_name(table, self._metastore.partitions(self._database, name, wanted))
        with self._lock:
            known |= dict.fromkeys(missing or ()) | read
            if needed is not None:
                return known
            self._complete.add(name)
            return dict(known)  # which a thread that began before may still add to
