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
      <db>/_functions/<function>/_metadata, _files
      <evid>/_metadata                   incremental: an event
      <evid>/_files, <evid>/<p=v>/_files its files
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from hive_replication.dump import encoding
from hive_replication.dump.attempts import Attempt, interrupted, left_over
from hive_replication.dump.counted import CountedRecords
from hive_replication.dump.ordered import ordered
from hive_replication.dump.records import (
    DumpHeader,
    DumpResult,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.dump.store import DumpReader, DumpWriter
from hive_replication.dump.tree_reader import ACK, FUNCTIONS, THREADS, Tree, TreeReader, acknowledged
from hive_replication.events.files import FileRef
from hive_replication.metastore import tjson
from hive_replication.storage import Storage

_AHEAD = 512


class TreeStore:
    """Dumps in the ``tree`` layout under one root.

    Args:
        storage: where they lie.
        root: directory of all dumps.
    """

    def __init__(self, storage: Storage, root: str) -> None:
        self.storage = storage
        self.root = root.rstrip("/")

    def create(self, scope: Scope, request: str | None = None) -> DumpWriter:
        """Begins a dump directory, or goes on with an interrupted one; see :class:`hive_replication.dump.store.DumpStore`."""
        parent = f"{self.root}/{scope.database}"
        directory = f"{parent}/{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
        if request is None:
            return self._writer(directory, scope, None)
        attempt = interrupted(self.storage, parent, request, ACK) or Attempt(self.storage, directory, request)
        return self._writer(attempt.directory, scope, attempt)

    def _writer(self, directory: str, scope: Scope, attempt: Attempt | None) -> DumpWriter:
        return TreeWriter(self.storage, directory, scope, attempt)

    def open(self, directory: str) -> DumpReader:
        """Opens a complete dump; see :class:`hive_replication.dump.store.DumpStore`."""
        directory = self.storage.check(directory).rstrip("/")
        return self._reader(directory, acknowledged(self.storage, directory))

    def _reader(self, directory: str, ack: dict[str, Any]) -> DumpReader:
        return TreeReader(self.storage, directory, ack)

    def dumps(self, database: str) -> list[str]:
        """Directories of the complete dumps of a source database and of its tables."""
        found = [status.uri for status in self.storage.ls(f"{self.root}/{database}") if status.is_dir]
        return [directory for directory in found if self.storage.exists(f"{directory}/{ACK}")]

    def unfinished(self, database: str, before: float) -> list[str]:
        """Directories of dumps without an ack file that nobody has written to since ``before`` (seconds since the epoch)."""
        return left_over(self.storage, f"{self.root}/{database}", ACK, before)

    def remove(self, directory: str) -> int:
        """Removes a dump, its ack file first; bytes freed."""
        size = sum(file.size for file in self.storage.files(directory, hidden=True))
        self.storage.delete(f"{directory}/{ACK}")
        self.storage.delete(directory, recursive=True)
        return size


class TreeWriter(Tree, CountedRecords):
    """A dump in the ``tree`` layout being written; see :class:`hive_replication.dump.store.DumpWriter`.

    Writes run in threads, since closing a small HDFS file takes long; all reads wait for them.
    """

    def __init__(self, storage: Storage, directory: str, scope: Scope, attempt: Attempt | None = None) -> None:
        super().__init__(storage, directory)
        self._database = scope.database
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="dump")
        self._writes: dict[str, Future[Any]] = {}
        self._count(attempt)

    def put_table(self, record: TableRecord) -> None:
        self._put(self._table_path(self._database, record.name), encoding.table_text(record), record.files)
        self._tables[record.name] = len(record.files)

    def put_partition(self, record: PartitionRecord) -> None:
        path = f"{self._table_path(self._database, record.table)}/{record.name}"
        value = {"partition": tjson.dumps(record.partition), "files": len(record.files)}
        self._put(path, encoding.text(value), record.files)
        self._partitions[record.table, record.name] = len(record.files)

    def put_function(self, record: FunctionRecord) -> None:
        path = f"{self._table_path(self._database, FUNCTIONS)}/{record.name}"
        self._put(path, encoding.function_text(record), record.files)
        self._functions[record.name] = len(record.files)

    def put_event(self, record: EventRecord) -> None:
        path = f"{self.directory}/{record.notification.evid}"
        self._write(f"{path}/_metadata", encoding.event_text(record))
        for group in record.groups:
            if group.files:
                self._write(f"{encoding.group_path(path, group)}/_files", encoding.files_text(group.files))
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

    def suspend(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        super().suspend()

    def finish(self, header: DumpHeader) -> DumpResult:
        self._close()
        if header.kind == "bootstrap":
            self._write(
                f"{self.directory}/{self._database}/_metadata", encoding.text({"db": tjson.dumps(header.source_database)})
            )
        self._write(f"{self.directory}/_dumpmetadata", encoding.header_text(header))
        self._flush()
        self._pool.shutdown()
        return self._acknowledge(header)

    def abandon(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        super().abandon()

    def _put(self, path: str, metadata: bytes, files: tuple[FileRef, ...]) -> None:
        if files:
            self._write(f"{path}/_files", encoding.files_text(files))
        self._write(f"{path}/_metadata", metadata)

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
