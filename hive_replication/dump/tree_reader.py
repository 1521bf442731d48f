# ruff: noqa: D102 - the methods are described once, in the protocols of dump.store
"""Reading a dump in the ``tree`` layout; see :mod:`hive_replication.dump.tree`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from hive_replication.dump import encoding
from hive_replication.dump.ordered import ordered
from hive_replication.dump.records import (
    DumpHeader,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    TableRecord,
)
from hive_replication.errors import BadRequest
from hive_replication.events.files import FileRef
from hive_replication.metastore import tjson
from hive_replication.metastore.types import Partition
from hive_replication.storage import Storage

ACK = "_finished_dump"
FUNCTIONS = "_functions"  # Hive's name, and none that a table can have
THREADS = 64

Value = TypeVar("Value")


class Tree:
    """Paths and reading, shared by writer and reader."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self.directory = directory

    def _table_path(self, database: str, table: str) -> str:
        return f"{self.directory}/{database}/{table}"

    def _read_table(self, path: str) -> TableRecord:
        return encoding.table_of(self._storage.read(f"{path}/_metadata"), lambda number: self._read_files(path, number))

    def _read_function(self, path: str) -> FunctionRecord:
        return encoding.function_of(self._storage.read(f"{path}/_metadata"), lambda number: self._read_files(path, number))

    def _read_partition(self, table_path: str, name: str) -> PartitionRecord:
        path = f"{table_path}/{name}"
        value = encoding.fields(self._storage.read(f"{path}/_metadata"))
        part = tjson.loads(Partition, value["partition"])
        return PartitionRecord(PurePosixPath(table_path).name, name, part, self._read_files(path, value["files"]))

    def _read_files(self, path: str, number: int) -> tuple[FileRef, ...]:
        files = encoding.files_of(self._storage.read(f"{path}/_files")) if number else ()
        if len(files) != number:
            raise ValueError(f"{path}/_files names {len(files)} files instead of {number}")
        return files

    def _partition_names(self, table_path: str) -> Iterator[str]:
        paths = (status.uri for status in self._storage.files(table_path, hidden=True))
        prefix = len(table_path) + 1
        return (path[prefix : -len("/_metadata")] for path in paths if path.endswith("/_metadata") and "/" in path[prefix:])


class TreeReader(Tree):
    """A complete dump in the ``tree`` layout; see :class:`hive_replication.dump.store.DumpReader`.

    Every stream checks at its end that nothing the ack file counted is missing.

    Args:
        storage: where it lies.
        directory: its directory.
        counts: numbers of records, of the ack file.
    """

    def __init__(self, storage: Storage, directory: str, counts: dict[str, Any]) -> None:
        super().__init__(storage, directory)
        self._counts = counts
        self.header: DumpHeader = self._guard(lambda: encoding.header_of(storage.read(f"{directory}/_dumpmetadata")))

    def tables(self) -> Iterator[TableRecord]:
        root = f"{self.directory}/{self.header.scope.database}"
        names = [name for name in self._directories(root) if name != FUNCTIONS]
        self._expect("tables", len(names))
        self._expect("partitions", sum(1 for name in names for _ in self._partition_names(f"{root}/{name}")))
        with ThreadPoolExecutor(THREADS, thread_name_prefix="dump") as pool:
            yield from ordered(pool, lambda name: self._guard(lambda: self._read_table(f"{root}/{name}")), sorted(names))

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        path = self._table_path(self.header.scope.database, table)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="dump") as pool:
            names = sorted(self._partition_names(path))
            yield from ordered(pool, lambda name: self._guard(lambda: self._read_partition(path, name)), names)

    def functions(self) -> Iterator[FunctionRecord]:
        if self._counts.get("functions"):
            root = self._table_path(self.header.scope.database, FUNCTIONS)
            names = sorted(self._directories(root))
            self._expect("functions", len(names))
            yield from (self._guard(partial(self._read_function, f"{root}/{name}")) for name in names)

    def _directories(self, root: str) -> list[str]:
        return [PurePosixPath(status.uri).name for status in self._storage.ls(root) if status.is_dir]

    def events(self) -> Iterator[EventRecord]:
        evids = sorted(int(name) for name in self._directories(self.directory) if name.isdigit())
        self._expect("events", len(evids))
        with ThreadPoolExecutor(THREADS, thread_name_prefix="dump") as pool:
            yield from ordered(pool, lambda evid: self._guard(lambda: self._read_event(evid)), evids)

    def _read_event(self, evid: int) -> EventRecord:
        path = f"{self.directory}/{evid}"
        record, numbers = encoding.event_of(self._storage.read(f"{path}/_metadata"))
        if record.notification.evid != evid:
            raise ValueError(f"{path} holds event {record.notification.evid}")
        places = (encoding.group_path(path, group) for group in record.groups)
        files = map(self._read_files, places, numbers)
        groups = tuple(replace(group, files=refs) for group, refs in zip(record.groups, files, strict=True))
        return replace(record, groups=groups)

    def _expect(self, what: str, found: int) -> None:
        if self._counts.get(what) != found:
            raise BadRequest(
                f"the dump {self.directory} is incomplete: {found} {what} instead of {self._counts.get(what)}; dump again"
            )

    def _guard(self, read: Callable[[], Value]) -> Value:
        """Turns whatever a damaged dump makes of itself into one clear error."""
        try:
            return read()
        except FileNotFoundError as error:
            raise BadRequest(f"the dump {self.directory} is incomplete: {error}; dump again") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRequest(f"the dump {self.directory} is unreadable: {error!r}; dump again") from error


def acknowledged(storage: Storage, directory: str) -> dict[str, Any]:
    """What the ack file of a dump says: numbers of records.

    Raises:
        BadRequest: there is no dump, or it has no ack file, or that is unreadable.
    """
    if storage.status(directory) is None:
        raise BadRequest(f"there is no dump at {directory}")
    try:
        return dict(json.loads(storage.read(f"{directory}/{ACK}")))
    except FileNotFoundError as error:
        raise BadRequest(f"the dump {directory} is incomplete (it has no {ACK}): dump again") from error
    except (ValueError, TypeError) as error:
        raise BadRequest(f"the dump {directory} is unreadable: {error!r}; dump again") from error
