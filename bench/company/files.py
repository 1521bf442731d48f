"""The files of the company's warehouse, as its HDFS shows them: nothing is stored, nothing can be written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from bench.company import formula
from bench.company.formula import MOST, WAREHOUSE, WRITTEN, Slice


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or directory.

    Args:
        name: its last segment; "" for the root.
        size: bytes; None for a directory.
        modified: seconds since the epoch.
    """

    name: str
    size: int | None
    modified: int = WRITTEN


class Files(Protocol):
    """What the servers show of a file system. Paths are absolute, without a slash at their ends."""

    def status(self, path: str) -> Entry | None:
        """A file or directory; None where there is none."""
        ...

    def ls(self, path: str) -> list[Entry] | None:
        """What a directory holds, by name; for a file, itself; None where there is none."""
        ...

    def content(self, path: str) -> bytes | None:
        """Bytes of a file; None where there is none."""
        ...

    def checksum(self, path: str) -> str | None:
        """Checksum of a file, as hex; None where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A path below a database's directory, by its numbers.

    Args:
        of: the database.
        table: number of the table; None for the database's own directory.
        partition: number of the partition; None for the table's own directory.
        file: number of the file; None for the partition's own directory.
    """

    of: Slice
    table: int | None = None
    partition: int | None = None
    file: int | None = None

    @classmethod
    def at(cls, path: str) -> Place | None:
        """What lies at a path by the formula; None where nothing does."""
        segments = path.removeprefix(f"{WAREHOUSE}/").split("/")
        if not path.startswith(f"{WAREHOUSE}/") or not segments[0].endswith(".db") or len(segments) > 4:
            return None
        of = Slice.of(segments[0].removesuffix(".db"))
        if of is None:
            return None
        # Data is written before its partition is added: the directories of all partitions that there can be are there.
        finders = (of.table_number, replace(of, partitions=MOST).partition_number, of.file_number)
        numbers = [find(segment) for find, segment in zip(finders, segments[1:], strict=False)]
        return None if None in numbers else cls(of, *numbers)

    @property
    def file_numbers(self) -> tuple[int, int, int] | None:
        """Numbers of table, partition and file; None for a directory."""
        if self.table is None or self.partition is None or self.file is None:
            return None
        return self.table, self.partition, self.file

    def names(self) -> Iterator[str]:
        """What a directory holds."""
        if self.table is None:
            return map(formula.table_name, range(self.of.tables))
        if self.partition is None:
            return (f"{formula.KEY}={formula.partition_value(number)}" for number in range(self.of.partitions))
        return map(formula.file_name, range(self.of.files))


class FormulaFiles:
    """The source's file system."""

    def status(self, path: str) -> Entry | None:
        """A file or directory; None where there is none."""
        name = path.rpartition("/")[2]
        if path in ("", "/", WAREHOUSE):
            return Entry(name, None)
        place = Place.at(path)
        if place is None:
            return None
        numbers = place.file_numbers
        return Entry(name, len(formula.content(*numbers)) if numbers else None)

    def ls(self, path: str) -> list[Entry] | None:
        """What a directory holds; the warehouse shows no database, as there are as many as there are names."""
        if path in ("", "/", WAREHOUSE):
            return []
        place = Place.at(path)
        if place is None:
            return None
        if place.file_numbers:
            return [entry for entry in [self.status(path)] if entry]
        if place.table is None or place.partition is None:
            return [Entry(name, None) for name in place.names()]
        table, partition = place.table, place.partition
        return [Entry(name, len(formula.content(table, partition, file))) for file, name in enumerate(place.names())]

    def content(self, path: str) -> bytes | None:
        """Bytes of a file; None where there is none."""
        numbers = place.file_numbers if (place := Place.at(path)) else None
        return formula.content(*numbers) if numbers else None

    def checksum(self, path: str) -> str | None:
        """Checksum of a file, as hex; None where there is none."""
        numbers = place.file_numbers if (place := Place.at(path)) else None
        return formula.checksum(*numbers) if numbers else None
