"""What is replicated: each workload fills a source database, and may change it after the bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Protocol

from bench.source import SourceDatabase
from hive_replication.metastore.types import Table

_KB = 1 << 10


class Workload(Protocol):
    """One measurement."""

    @property
    def title(self) -> str:
        """What it is, with its sizes."""
        ...

    def fill(self, database: SourceDatabase) -> None:
        """What is there at the bootstrap."""
        ...

    def change(self, database: SourceDatabase) -> bool:
        """Changes the source after the bootstrap; False where nothing changes and the bootstrap is timed."""
        ...


@dataclass(frozen=True)
class Bootstrap:
    """W1: a bootstrap of tables with partitions of one file each."""

    tables: int = 20
    partitions: int = 50
    size: int = 64 * _KB

    @property
    def title(self) -> str:
        """What it is."""
        return f"bootstrap: {self.tables} tables x {self.partitions} partitions x one {self.size // _KB} KB file"

    def fill(self, database: SourceDatabase) -> None:
        """The tables."""
        values = [f"{number:05}" for number in range(self.partitions)]
        tables = [database.table(f"t{number:03}") for number in range(self.tables)]
        database.files((f"{database.place(table, value)}/part-0" for table in tables for value in values), self.size)
        for table in tables:
            database.partitions(table, values)

    def change(self, database: SourceDatabase) -> bool:  # noqa: ARG002
        """Nothing."""
        return False


@dataclass
class Added:
    """W2: a window of ADD_PARTITION events with a file each."""

    events: int = 300
    size: int = 64 * _KB
    _table: Table | None = None

    @property
    def title(self) -> str:
        """What it is."""
        return f"incremental: {self.events} ADD_PARTITION with a {self.size // _KB} KB file each"

    def fill(self, database: SourceDatabase) -> None:
        """An empty table."""
        self._table = database.table("t")

    def change(self, database: SourceDatabase) -> bool:
        """The partitions, one event each."""
        assert self._table is not None
        values = [f"{number:05}" for number in range(self.events)]
        database.files((f"{database.place(self._table, value)}/part-0" for value in values), self.size)
        for value in values:
            database.partitions(self._table, [value])
        return True


@dataclass
class Mixed:
    """W3: a window of adds, inserts, overwrites, alters and drops over some tables."""

    events: int = 1_000
    tables: int = 10
    size: int = 64 * _KB
    _tables: list[Table] = field(default_factory=list[Table])

    @property
    def title(self) -> str:
        """What it is."""
        return f"mixed: {self.events} adds, inserts, overwrites, alters and drops over {self.tables} tables"

    def fill(self, database: SourceDatabase) -> None:
        """Tables with five partitions each."""
        self._tables = [database.table(f"t{number:02}") for number in range(self.tables)]
        values = [f"old{number}" for number in range(5)]
        database.files((f"{database.place(t, value)}/part-0" for t in self._tables for value in values), self.size)
        for table in self._tables:
            database.partitions(table, values)

    def change(self, database: SourceDatabase) -> bool:
        """A round over all tables makes one partition: added, inserted into twice, overwritten, altered, every third dropped."""
        steps = islice(self._steps(database), self.events)
        for step in steps:
            step()
        return True

    def _steps(self, database: SourceDatabase) -> Iterator[Callable[[], None]]:
        number = 0
        for table in cycle(self._tables):
            value, number = f"{number:05}", number + 1
            place = database.place(table, value)
            database.files([f"{place}/part-0", *(f"{place}/.part-{n}" for n in (1, 2, 3))], self.size)
            yield lambda t=table, v=value: database.partitions(t, [v])
            for part in (1, 2):
                yield lambda t=table, v=value, p=f"part-{part}": database.insert(t, v, p)
            yield lambda t=table, v=value, p="part-3": database.insert(t, v, p, replace=True)
            yield lambda t=table, v=value, n=number: database.alter(t, v, n)
            if number % 3 == 0:
                yield lambda t=table, v=value: database.drop(t, v)


@dataclass(frozen=True)
class Bytes:
    """W4: a bootstrap of one table of large files."""

    total: int = 4 << 30
    size: int = 64 << 20

    @property
    def title(self) -> str:
        """What it is."""
        return f"bytes: {self.total / (1 << 30):g} GB in {self.size >> 20} MB files"

    def fill(self, database: SourceDatabase) -> None:
        """The table."""
        table = database.table("t", partitioned=False)
        database.files((f"{table.sd.location}/part-{number:04}" for number in range(self.total // self.size)), self.size)

    def change(self, database: SourceDatabase) -> bool:  # noqa: ARG002
        """Nothing."""
        return False
