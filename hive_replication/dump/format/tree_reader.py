# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""Reading a dump in the ``tree`` layout; see :mod:`hive_replication.dump.format.tree`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import Literal

from hive_replication.dump.format import encoding
from hive_replication.dump.format.ack import ACK, Ack
from hive_replication.dump.format.digests import most_of
from hive_replication.dump.format.reader_base import ReaderBase
from hive_replication.dump.format.record_types import EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.storage import Storage, paths

METADATA = "_metadata"
FUNCTIONS = "_functions"  # Hive's name
#: What a dump has from the moment at which it is being removed: what is left of it is never resumed.
REMOVED = "_removed"


class Tree:
    """Paths and reading, shared by writer and reader."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self.directory = directory

    def _content(self, uri: str) -> bytes:
        """The content of a file."""
        return self._storage.read(uri, most=most_of(uri))

    def table_path(self, database: str, table: str) -> str:
        """Directory of a table."""
        return f"{self.database_path(database)}/{encoding.path_name(table, FUNCTIONS, METADATA)}"

    def database_path(self, database: str) -> str:
        """A database may have the name of one of the dump's own files."""
        own = database.startswith(("_attempt_", "_checkpoint_")) or database in ("_dumpmetadata", ACK, REMOVED)
        return f"{self.directory}/{encoding.path_name(database, *([database] if own else ()))}"

    def _functions_path(self, database: str) -> str:
        return f"{self.database_path(database)}/{FUNCTIONS}"

    def _read_table(self, path: str) -> TableRecord:
        return encoding.table_of(self._content(f"{path}/_metadata"), lambda number: self._read_files(path, number))

    def _read_function(self, path: str) -> FunctionRecord:
        return encoding.function_of(self._content(f"{path}/_metadata"), lambda number: self._read_files(path, number))

    def _read_partition(self, table: str, table_path: str, name: str) -> PartitionRecord:
        path = f"{table_path}/{name}"
        part, number = encoding.partition_of(self._content(f"{path}/_metadata"))
        return PartitionRecord(table, name, part, self._read_files(path, number))

    def _read_files(self, path: str, number: int) -> tuple[FileRef, ...]:
        files = encoding.files_of(self._content(f"{path}/_files")) if number else ()
        if len(files) != number:
            raise ValueError(f"{path}/_files names {len(files)} files instead of {number}")
        return files


class TreeReader(Tree, ReaderBase):
    """A complete dump in the ``tree`` layout; see :class:`hive_replication.dump.format.interface.DumpReader`.

    Args:
        storage: where it lies.
        directory: its directory.
        ack: its ack file.
    """

    def __init__(self, storage: Storage, directory: str, ack: Ack) -> None:
        ReaderBase.__init__(self, storage, directory, ack)

    def tables(self) -> Iterator[TableRecord]:
        names = self._names("table")
        yield from self._storage.threads.map(lambda name: self._guard(lambda: self._table_in(name)), names)

    def _table_in(self, directory: str) -> TableRecord:
        """The table of a directory.

        Raises:
            Refused: it is another one than the directory's name says, so that its partitions would be those of another table.
        """
        record = self._read_table(f"{self._root}/{directory}")
        if directory not in (record.name, encoding.path_name(record.name, FUNCTIONS, METADATA)):
            raise Refused(f"the dump {self.directory} has the table {record.name!r} in the directory {directory!r}: dump again")
        return record

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        path = self.table_path(self.header.scope.database, table)
        names = self._partition_names.get(paths.name(path), [])
        yield from self._storage.threads.map(lambda name: self._guard(lambda: self._read_partition(table, path, name)), names)

    def functions(self) -> Iterator[FunctionRecord]:
        root = self._functions_path(self.header.scope.database)
        yield from (self._guard(partial(self._read_function, f"{root}/{name}")) for name in self._names("function"))

    def events(self) -> Iterator[EventRecord]:
        evids = sorted(map(int, self._names("event")))
        yield from self._storage.threads.map(lambda evid: self._guard(lambda: self._read_event(evid)), evids)

    def _count(self) -> None:
        for kind in ("event", "table", "function"):
            self._expect(kind, len(self._names(kind)))
        self._expect("partition", sum(map(len, self._partition_names.values())))
        if self._ack.files is not None:
            self._refuse_strangers()

    def _refuse_strangers(self) -> None:
        """What lies beside the files of the ack file is not read; still, somebody has been there."""
        known = {*self._names("event"), paths.name(self._root), *self._names("table"), FUNCTIONS}
        for place in (self.directory, self._root) if self.header.kind == "bootstrap" else (self.directory,):
            found = {paths.name(status.uri) for status in self._storage.ls(place) if status.is_dir}
            if strangers := sorted(found - known):
                raise self._unreadable(ValueError(f"it was finished without the directory {strangers[0]!r}"))

    @property
    def _root(self) -> str:
        return self.database_path(self.header.scope.database)

    def _content(self, uri: str) -> bytes:
        return self._files.read(uri.removeprefix(f"{self.directory}/"))

    @cached_property
    def _metadata(self) -> list[list[str]]:
        """The directories of all records, as segments of their paths below the dump's: from the ack file, else listed."""
        below = len(self.directory) + 1
        listed = self._ack.files or (status.uri[below:] for status in self._storage.files(self.directory, hidden=True))
        return sorted(path.split("/")[:-1] for path in listed if path.endswith("/_metadata"))

    def _names(self, kind: Literal["event", "table", "function"]) -> list[str]:
        """Names of the directories of records of a kind."""
        database, found = paths.name(self._root), self._metadata
        match kind:
            case "event" if self.header.kind == "bootstrap":
                return []  # the directory of a database may be all digits
            case "event":
                return [path[0] for path in found if len(path) == 1 and path[0].isascii() and path[0].isdigit()]
            case "table":
                return [path[1] for path in found if len(path) == 2 and path[0] == database and path[1] != FUNCTIONS]
            case "function":
                return [path[2] for path in found if len(path) == 3 and path[:2] == [database, FUNCTIONS]]

    @cached_property
    def _partition_names(self) -> dict[str, list[str]]:
        """Names of the partitions of each table, by its directory, in order."""
        database, found = paths.name(self._root), dict[str, list[str]]()
        for path in self._metadata:
            if len(path) > 2 and path[0] == database and path[1] != FUNCTIONS:
                found.setdefault(path[1], []).append("/".join(path[2:]))
        return {table: sorted(names) for table, names in found.items()}

    def _read_event(self, evid: int) -> EventRecord:
        path = f"{self.directory}/{evid}"
        record, numbers = encoding.event_of(self._content(f"{path}/_metadata"))
        if record.notification.evid != evid:
            raise ValueError(f"{path} holds event {record.notification.evid}")
        places = (encoding.group_path(path, group) for group in record.groups)
        files = map(self._read_files, places, numbers)
        groups = tuple(replace(group, files=refs) for group, refs in zip(record.groups, files, strict=True))
        return replace(record, groups=groups)
