# ruff: noqa: D102 - the methods are described once, in the protocols of dump.store
"""The seeds' layout: every database, table and partition is a directory with its own ``_metadata`` and ``_files``.

::

    <root>/<db>/<time>-<token>/
      _dumpmetadata                      the header
      _finished_dump                     the ack file: numbers of records; written last
      _attempt_<n>, _checkpoint_<n>      notes to go on by after an interruption (dump.attempts)
      <db>/_metadata                     bootstrap: the database
      <db>/<table>/_metadata, _files     its tables
      <db>/<table>/<p=v>/<q=w>/_metadata, _files
      <evid>/_metadata                   incremental: an event
      <evid>/_files, <evid>/<p=v>/_files its files
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Any, TypeVar

from hive_replication.dump import encoding
from hive_replication.dump.attempts import Attempt, Resumable, Written, interrupted, left_over
from hive_replication.dump.ordered import ordered
from hive_replication.dump.records import DumpHeader, DumpResult, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.errors import BadRequest
from hive_replication.events.files import FileRef
from hive_replication.metastore import tjson
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage

_ACK = "_finished_dump"
_THREADS = 64
_AHEAD = 512

Value = TypeVar("Value")


class TreeStore:
    """Dumps in the ``tree`` layout under one root.

    Args:
        storage: where they lie.
        root: directory of all dumps.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = root.rstrip("/")

    def create(self, scope: Scope, request: str | None = None) -> TreeWriter:
        """Begins a dump directory, or goes on with an interrupted one; see :class:`hive_replication.dump.store.DumpStore`."""
        parent = f"{self.root}/{scope.database}"
        directory = f"{parent}/{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
        if request is None:
            return TreeWriter(self.storage, directory, scope)
        attempt = interrupted(self.storage, parent, request, _ACK) or Attempt(self.storage, directory, request)
        return TreeWriter(self.storage, attempt.directory, scope, attempt)

    def open(self, directory: str) -> TreeReader:
        """Opens a complete dump; see :class:`hive_replication.dump.store.DumpStore`."""
        return TreeReader(self.storage, self.storage.check(directory).rstrip("/"))

    def dumps(self, database: str) -> list[str]:
        """Directories of the complete dumps of a source database and of its tables."""
        found = [status.uri for status in self.storage.ls(f"{self.root}/{database}") if status.is_dir]
        return [directory for directory in found if self.storage.exists(f"{directory}/{_ACK}")]

    def unfinished(self, database: str, before: float) -> list[str]:
        """Directories of dumps without an ack file that nobody has written to since ``before`` (seconds since the epoch)."""
        return left_over(self.storage, f"{self.root}/{database}", _ACK, before)

    def remove(self, directory: str) -> int:
        """Removes a dump, its ack file first; bytes freed."""
        size = sum(file.size for file in self.storage.files(directory, hidden=True))
        self.storage.delete(f"{directory}/{_ACK}")
        self.storage.delete(directory, recursive=True)
        return size


class _Tree:
    """Paths and reading, shared by writer and reader."""

    def __init__(self, storage: Storage, directory: str) -> None:
        self._storage = storage
        self.directory = directory

    def _table_path(self, database: str, table: str) -> str:
        return f"{self.directory}/{database}/{table}"

    def _read_table(self, path: str) -> TableRecord:
        value = encoding.fields(self._storage.read(f"{path}/_metadata"))
        return TableRecord(tjson.loads(Table, value["table"]), self._read_files(path, value["files"]))

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


class TreeWriter(_Tree, Resumable):
    """A dump in the ``tree`` layout being written; see :class:`hive_replication.dump.store.DumpWriter`.

    Writes run in threads, since closing a small HDFS file takes long; all reads wait for them.
    """

    def __init__(self, storage: Storage, directory: str, scope: Scope, attempt: Attempt | None = None) -> None:
        super().__init__(storage, directory)
        self._database = scope.database
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="dump")
        self._writes: dict[str, Future[Any]] = {}
        self._attempt = attempt
        written = attempt.written if attempt else Written()
        self._tables, self._partitions, self._events = written.tables, written.partitions, written.events

    def put_table(self, record: TableRecord) -> None:
        path = self._table_path(self._database, record.name)
        self._put(path, {"table": tjson.dumps(record.table), "files": len(record.files)}, record.files)
        self._tables[record.name] = len(record.files)

    def put_partition(self, record: PartitionRecord) -> None:
        path = f"{self._table_path(self._database, record.table)}/{record.name}"
        self._put(path, {"partition": tjson.dumps(record.partition), "files": len(record.files)}, record.files)
        self._partitions[record.table, record.name] = len(record.files)

    def put_event(self, record: EventRecord) -> None:
        path = f"{self.directory}/{record.notification.evid}"
        self._write(f"{path}/_metadata", encoding.event_text(record))
        for group in record.groups:
            if group.files:
                self._write(f"{_group_path(path, group.partition)}/_files", encoding.files_text(group.files))
        self._events[record.notification.evid] = sum(len(group.files) for group in record.groups)

    def table(self, name: str) -> TableRecord | None:
        if name not in self._tables:
            return None
        self._flush()
        return self._read_table(self._table_path(self._database, name))

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        if (table, name) not in self._partitions:
            return None
        self._flush()
        return self._read_partition(self._table_path(self._database, table), name)

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        self._flush()
        path = self._table_path(self._database, table)
        names = sorted(name for owner, name in self._partitions if owner == table)
        return ordered(self._pool, lambda name: self._read_partition(path, name), names)

    def drop_table(self, name: str) -> None:
        self._flush()
        if self._tables.pop(name, None) is not None:
            self._storage.delete(self._table_path(self._database, name), recursive=True)
        for key in [key for key in self._partitions if key[0] == name]:
            del self._partitions[key]

    def drop_partition(self, table: str, name: str) -> None:
        self._flush()
        if self._partitions.pop((table, name), None) is not None:
            self._storage.delete(f"{self._table_path(self._database, table)}/{name}", recursive=True)

    @property
    def number_of_events(self) -> int:
        return len(self._events)

    def suspend(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._attempt is None or not self._attempt.release():
            self._storage.delete(self.directory, recursive=True)

    def finish(self, header: DumpHeader) -> DumpResult:
        if self._attempt is not None:
            self._attempt.check()
            self._attempt.seal()
        if header.kind == "bootstrap":
            self._write(
                f"{self.directory}/{self._database}/_metadata", encoding.text({"db": tjson.dumps(header.source_database)})
            )
        self._write(f"{self.directory}/_dumpmetadata", encoding.header_text(header))
        self._flush()
        self._pool.shutdown()
        counts = {"tables": len(self._tables), "partitions": len(self._partitions), "events": len(self._events)}
        self._storage.write(f"{self.directory}/{_ACK}", json.dumps(counts).encode())
        files = sum(sum(numbers.values()) for numbers in (self._tables, self._partitions, self._events))
        return DumpResult(self.directory, header.to_evid, header, files=files, **counts)

    def abandon(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._storage.delete(self.directory, recursive=True)

    def _put(self, path: str, value: dict[str, Any], files: tuple[FileRef, ...]) -> None:
        if files:
            self._write(f"{path}/_files", encoding.files_text(files))
        self._write(f"{path}/_metadata", encoding.text(value))

    def _write(self, uri: str, data: bytes) -> None:
        if uri in self._writes:
            self._flush()  # or the first of two writes of one file could end last
        self._writes[uri] = self._pool.submit(self._storage.write, uri, data)
        if len(self._writes) > _AHEAD:
            self._writes.pop(next(iter(self._writes))).result()

    def _flush(self) -> None:
        for write in self._writes.values():
            write.result()
        self._writes.clear()


class TreeReader(_Tree):
    """A complete dump in the ``tree`` layout; see :class:`hive_replication.dump.store.DumpReader`.

    Every stream checks at its end that nothing the ack file counted is missing.
    """

    def __init__(self, storage: Storage, directory: str) -> None:
        super().__init__(storage, directory)
        if storage.status(directory) is None:
            raise BadRequest(f"there is no dump at {directory}")
        if not storage.exists(f"{directory}/{_ACK}"):
            raise BadRequest(f"the dump {directory} is incomplete (it has no {_ACK}): dump again")
        self._counts: dict[str, int] = self._guard(lambda: dict(json.loads(storage.read(f"{directory}/{_ACK}"))))
        self.header: DumpHeader = self._guard(lambda: encoding.header_of(storage.read(f"{directory}/_dumpmetadata")))
        self._partitions_seen = 0

    def tables(self) -> Iterator[TableRecord]:
        root = f"{self.directory}/{self.header.scope.database}"
        names = [PurePosixPath(status.uri).name for status in self._storage.ls(root) if status.is_dir]
        self._expect("tables", len(names))
        self._expect("partitions", sum(1 for name in names for _ in self._partition_names(f"{root}/{name}")))
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="dump") as pool:
            yield from ordered(pool, lambda name: self._guard(lambda: self._read_table(f"{root}/{name}")), sorted(names))

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        path = self._table_path(self.header.scope.database, table)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="dump") as pool:
            names = sorted(self._partition_names(path))
            yield from ordered(pool, lambda name: self._guard(lambda: self._read_partition(path, name)), names)

    def events(self) -> Iterator[EventRecord]:
        names = (PurePosixPath(status.uri).name for status in self._storage.ls(self.directory) if status.is_dir)
        evids = sorted(int(name) for name in names if name.isdigit())
        self._expect("events", len(evids))
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="dump") as pool:
            yield from ordered(pool, lambda evid: self._guard(lambda: self._read_event(evid)), evids)

    def _read_event(self, evid: int) -> EventRecord:
        path = f"{self.directory}/{evid}"
        row, groups, numbers = encoding.event_of(self._storage.read(f"{path}/_metadata"))
        if row.evid != evid:
            raise ValueError(f"{path} holds event {row.evid}")
        files = (
            self._read_files(_group_path(path, group.partition), number) for group, number in zip(groups, numbers, strict=True)
        )
        return EventRecord(row, tuple(FileGroup(g.partition, refs, g.listed) for g, refs in zip(groups, files, strict=True)))

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


def _group_path(event_path: str, partition: str) -> str:
    return f"{event_path}/{partition}" if partition else event_path
