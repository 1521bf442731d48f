# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""The seeds' layout: every database, table and partition is a directory with its own ``_metadata`` and ``_files``.

::

    <root>/<db>/<time>-<token>/
      _dumpmetadata                      the header
      _finished_dump                     the ack file: numbers of records, digests of all files; written last
      _attempt_<n>, _checkpoint_<n>      notes to resume by (dump.format.resume)
      <db>/_metadata                     bootstrap: the database
      <db>/<table>/_metadata, _files     its tables
      <db>/<table>/<p=v>/<q=w>/_metadata, _files   (odd names are percent-encoded)
      <db>/_functions/<function>/_metadata, _files
      <evid>/_metadata                   incremental: an event
      <evid>/_files, <evid>/<p=v>/_files its files
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.format import encoding
from hive_replication.dump.format.ack import ACK, Ack, read_ack
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.claims import is_left_over, note_attempt, policy_of, remove
from hive_replication.dump.format.closed_directories import chosen
from hive_replication.dump.format.digests import DumpFiles, digest_of, most_of
from hive_replication.dump.format.interface import DumpReader, DumpWriter, VerifiedReader
from hive_replication.dump.format.record_types import (
    DumpHeader,
    DumpResult,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.dump.format.resume import WriterClaim, interrupted
from hive_replication.dump.format.tree_reader import METADATA, Tree, TreeReader
from hive_replication.dump.format.writer_base import WriterBase
from hive_replication.errors import BadRequest
from hive_replication.events.files import FileRef
from hive_replication.logs import about
from hive_replication.metastore import thrift_json as tjson
from hive_replication.parallel import Call, settle
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage, TooLarge

_LOG = logging.getLogger(__name__)

_AHEAD = 512  # writes under way


class TreeStore:
    """Dumps in the ``tree`` layout under one root.

    Args:
        storage: where they lie.
        root: directory of all dumps.
        key: signs dumps, and those that it has not signed are refused; None for neither.
    """

    def __init__(self, storage: Storage, root: str, key: SigningKey | None = None) -> None:
        self.storage = storage
        self.root = root.rstrip("/")
        self._key = key

    def create(self, scope: Scope, request: str | None = None, *, resumable: bool = True) -> DumpWriter:
        """Begins a dump directory, or goes on with an interrupted one; see :class:`~.interface.DumpStore`."""
        parent = f"{self.root}/{scope.database}"
        directory = f"{parent}/{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"
        if request is None or not resumable:
            if request is not None:
                note_attempt(self.storage, directory, request)
            return self._writer(directory, scope, None)
        claim = interrupted(self.storage, parent, request, ACK, self._key)
        if claim is not None:
            try:
                return self._writer(claim.directory, scope, claim)
            except BadRequest as error:
                _LOG.warning("the interrupted dump is not resumed, and deleted: %s", error, extra=about(scope.database))
                remove(self.storage, claim.directory, ACK)
        return self._writer(directory, scope, WriterClaim(self.storage, directory, request, key=self._key))

    def _writer(self, directory: str, scope: Scope, claim: WriterClaim | None) -> DumpWriter:
        return TreeWriter(self.storage, directory, scope, claim, self._key)

    def open(self, directory: str) -> DumpReader:
        """Opens a complete dump and verifies it; see :class:`hive_replication.dump.format.interface.DumpStore`."""
        reader = self._opened(directory, self._key)
        reader.verify()
        return reader

    def header(self, directory: str, *, signed: bool = True) -> DumpHeader:
        """The header of a complete dump; see :class:`hive_replication.dump.format.interface.DumpStore`."""
        return self._opened(directory, self._key if signed else None).header

    def _opened(self, directory: str, key: SigningKey | None) -> VerifiedReader:
        if ":/" not in directory:
            raise BadRequest(f"{directory!r} is no dump directory such as {self.root}/sales/...: give it as REPL DUMP printed it")
        directory = self.storage.check(directory).rstrip("/")
        return self._reader(directory, read_ack(self.storage, directory, key))

    def _reader(self, directory: str, ack: Ack) -> VerifiedReader:
        return TreeReader(self.storage, directory, ack)

    def dumps(self, database: str) -> list[str]:
        """Directories of the complete dumps of a source database and of its tables."""
        found = (status.uri for status in self.storage.ls(f"{self.root}/{database}") if status.is_dir)
        return chosen(found, lambda directory: self.storage.exists(f"{directory}/{ACK}"))

    def unfinished(self, database: str, before: float) -> list[str]:
        """Directories of dumps that were left without an ack file; see :class:`~.interface.DumpStore`."""
        found = (one.uri for one in self.storage.ls(f"{self.root}/{database}") if one.is_dir and one.modified < before)
        return chosen(found, lambda directory: self.is_unfinished(directory, before))

    def is_unfinished(self, directory: str, before: float) -> bool:
        """Whether a directory is that of a dump left without an ack file; see :class:`~.interface.DumpStore`."""
        return is_left_over(self.storage, directory, ACK, before)

    def policy_of(self, directory: str) -> str:
        """Name of the policy that a dump was begun for; see :class:`~.interface.DumpStore`."""
        return policy_of(self.storage, directory)

    def remove(self, directory: str) -> int:
        """Removes a dump, its ack file first; bytes freed."""
        size = sum(file.size for file in self.storage.files(directory, hidden=True))
        remove(self.storage, directory, ACK)
        return size


class TreeWriter(Tree, WriterBase):
    """A dump in the ``tree`` layout being written; see :class:`hive_replication.dump.format.interface.DumpWriter`.

    Writes run in threads, since closing a small HDFS file takes long; a read waits for those of what it reads.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        scope: Scope,
        claim: WriterClaim | None = None,
        key: SigningKey | None = None,
    ) -> None:
        self._storage, self.directory, self._key = storage, directory, key
        self._database = scope.database
        self._writes: dict[str, Call[None]] = {}
        self._count(claim)
        if claim is not None and claim.done is not None:
            self._go_on()

    def put_table(self, record: TableRecord) -> None:
        self._put(self.table_path(self._database, record.name), encoding.table_text(record), record.files)
        self._tables[record.name] = len(record.files)

    def put_partition(self, record: PartitionRecord) -> None:
        path = f"{self.table_path(self._database, record.table)}/{record.name}"
        self._put(path, encoding.partition_text(record), record.files)
        self._partitions[record.table, record.name] = len(record.files)

    def put_function(self, record: FunctionRecord) -> None:
        path = f"{self._functions_path(self._database)}/{encoding.path_name(record.name)}"
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
        path = self.table_path(self._database, name)
        self._await_object(path)
        return self._read_table(path)

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        if (table, name) not in self._partitions:
            return None
        path = self.table_path(self._database, table)
        self._await_object(f"{path}/{name}")
        return self._read_partition(table, path, name)

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        path = self.table_path(self._database, table)
        self._await_below(path)
        names = sorted(name for owner, name in self._partitions if owner == table)
        return self._storage.threads.map(lambda name: self._read_partition(table, path, name), names)

    def drop_table(self, name: str) -> None:
        path = self.table_path(self._database, name)
        self._await_below(path)
        if self._tables.pop(name, None) is not None:
            self._storage.delete(path, recursive=True)
            self._forget(path)
        for key in [key for key in self._partitions if key[0] == name]:
            del self._partitions[key]

    def drop_partition(self, table: str, name: str) -> None:
        path = f"{self.table_path(self._database, table)}/{name}"
        self._await_object(path)
        if self._partitions.pop((table, name), None) is not None:
            self._storage.delete(path, recursive=True)
            self._forget(path)

    def keep(self, checkpoint: Checkpoint) -> None:
        super().keep(replace(checkpoint, begun={}))  # a table is noted once it is whole

    def suspend(self) -> None:
        settle(self._writes.values())
        super().suspend()

    def finish(self, header: DumpHeader) -> DumpResult:
        self._close()
        if header.kind == "bootstrap":
            self._write(
                f"{self.database_path(self._database)}/{METADATA}", encoding.text({"db": tjson.dumps(header.source_database)})
            )
        self._write(f"{self.directory}/_dumpmetadata", encoding.header_text(header))
        self._flush()
        return self._acknowledge(header)

    def abandon(self) -> None:
        settle(self._writes.values())
        super().abandon()

    def _put(self, path: str, metadata: bytes, files: tuple[FileRef, ...]) -> None:
        if files:
            self._write(f"{path}/_files", encoding.files_text(files))
        self._write(f"{path}/_metadata", metadata)

    def _write(self, uri: str, data: bytes) -> None:
        self._await(uri)  # or the first of two writes of one file could end last
        self._digests[uri.removeprefix(f"{self.directory}/")] = digest_of(data)
        self._writes[uri] = self._storage.threads.begin(self._storage.write, uri, data)
        if len(self._writes) > _AHEAD:
            self._writes.pop(next(iter(self._writes))).result()

    def _forget(self, path: str) -> None:
        """The files below a directory are not of the dump any more."""
        below = f"{path}/".removeprefix(f"{self.directory}/")
        for one in [one for one in self._digests if one.startswith(below)]:
            del self._digests[one]

    def _go_on(self) -> None:
        """Keeps the digests of what the checkpoints say is whole; files of earlier versions, which noted none, are read.

        With a key such files are none of the dump: nobody knows who wrote them.
        """
        below = len(self.directory) + 1
        whole = {str(evid) for evid in self._events} | {self.table_path(self._database, name)[below:] for name in self._tables}
        for status in () if self._key else self._storage.files(self.directory, hidden=True):
            path = status.uri[below:]
            first, _, rest = path.partition("/")
            kept = rest and (first in whole or f"{first}/{rest.partition('/')[0]}" in whole)
            if kept and path not in self._digests:
                try:
                    self._digests[path] = digest_of(self._storage.read(status.uri, most=most_of(path)))
                except TooLarge as error:
                    raise BadRequest(f"{error}: no writer wrote it") from error
        for path in [path for path in self._digests if not whole & {path.split("/")[0], "/".join(path.split("/")[:2])}]:
            del self._digests[path]

    def _content(self, uri: str) -> bytes:
        """What was written into a file: it is signed, or at least proven, with what becomes of it."""
        try:
            return DumpFiles(self._storage, self.directory, self._digests).read(uri.removeprefix(f"{self.directory}/"))
        except ValueError as error:
            raise BadRequest(f"{self.directory}: {error}; dump again") from error

    def _await(self, uri: str) -> None:
        write = self._writes.pop(uri, None)
        if write is not None:
            write.result()

    def _await_object(self, path: str) -> None:
        self._await(f"{path}/_files")
        self._await(f"{path}/_metadata")

    def _await_below(self, path: str) -> None:
        for uri in [uri for uri in self._writes if uri.startswith(f"{path}/")]:
            self._await(uri)

    def _flush(self) -> None:
        for write in self._writes.values():
            write.result()
        self._writes.clear()
