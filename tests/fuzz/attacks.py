"""Dumps as somebody would write them who wants a load to read or write elsewhere: whole, with right digests.

They are made of the records of a recorded dump, in which locations, files, names and settings of the header are others.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hive_replication.dump.format.interface import DumpReader
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import (
    DumpHeader,
    EventRecord,
    FileGroup,
    FunctionRecord,
    PartitionRecord,
    TableRecord,
)
from hive_replication.events.files import FileRef
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Function, Partition, ResourceUri, Table, copy_of
from hive_replication.policy import PolicyScope
from tests.fuzz.memory import MemoryStorage

#: What policies of the fuzzer leave out.
EXCLUDED = "secret"
_URIS = re.compile(r'[a-z]+://[^"\\#\s]+')
_NAMES = re.compile(r'(?<=")(?:a|b|p|plain|parts|other|gone|late|ds=\d|recorded_0\d)(?=\\*")')
_DDL_TIME = re.compile(r'(?<=")transient_lastDdlTime(\\*":\\*")\d+')

T = TypeVar("T")


@dataclass(frozen=True)
class Attack:
    """Changes of one dump.

    Args:
        chance: chooses them.
        home: the source database's directory.
        target: URI of the target's root.
    """

    chance: random.Random
    home: str
    target: str

    def places(self) -> str:
        """A place that no dump may lead to, but for some that it may."""
        root = "/".join(self.home.split("/")[:3])
        store = root.removeprefix("hdfs://")
        names = ("plain", "a", "x/y", ".repl/117-0", ".repl/journal/x", "..", "../other.db/t", "ds=1", "%2e%2e/x")
        bases = (
            *(self.home, f"{self.home}x", f"{self.home}/", f"{self.home}/.", f"{self.home}/..", f"{self.home}/../other.db"),
            *(f"{self.home}/.repl", f"{self.home}/.repl/external", f"{root}/.repl", f"{root}/secret", root, f"{root}/listed"),
            *(f"{root}/source/{one}" for one in ("warehouse/other.db", "warehouse", "cmroot", "cmroot/..", "cmroot2")),
            *(self.home.replace(store, one) for one in ("elsewhere:1", f"elsewhere/{store}", f"u@{store}")),
            *(self.home.replace("hdfs", "HDFS", 1), self.home.replace("hdfs:", "file:", 1), self.home.replace(root, "hdfs://")),
            *(self.home.removeprefix(root), self.home.replace(store, f"{store}:80"), self.home.replace("//127", "//0127")),
            *(f"{self.target}.repl", f"{self.target}target/warehouse/recorded_05.db/.repl/journal", f"{self.target}repl/dumps"),
            *("file:///etc", "/etc", "hdfs:///secret", "hdfs:/secret", "http://elsewhere/x", "har://x", "s3a://bucket", ""),
        )
        base, name = self.chance.choice(bases), self.chance.choice(names)
        return f"{base}/{name}" if self.chance.random() < 0.8 else base

    def text(self, text: str) -> str:
        """JSON, however deep in texts of JSON, with another place, name, type of table, or with a schema in a file."""
        for _ in range(self.chance.choice((1, 1, 2))):
            change = self.chance.choice((self._place, self._place, self._place, self._schema, self._external, self._name))
            text = change(text)
        return text

    def _place(self, text: str) -> str:
        found = sorted(set(_URIS.findall(text)))
        return text.replace(self.chance.choice(found), self.places()) if found else text

    def _schema(self, text: str) -> str:
        return _DDL_TIME.sub(lambda it: f"avro.schema.url{it[1]}{self.places()}", text)

    def _external(self, text: str) -> str:
        return text.replace("MANAGED_TABLE", "EXTERNAL_TABLE")

    def _name(self, text: str) -> str:
        names = sorted(set(_NAMES.findall(text)))
        if not names:
            return text
        name = self.chance.choice(names)
        other = self.chance.choice((EXCLUDED, f"{EXCLUDED}_t", "../x", ".repl", "..", "other", "x/../y", ".repl/journal"))
        return re.sub(rf'(?<="){re.escape(name)}(?=\\*")', lambda _: other, text)

    def files(self, files: tuple[FileRef, ...]) -> tuple[FileRef, ...]:
        """One of the files, or one more, elsewhere."""
        if not files:
            return (FileRef(self.places()),)
        what, file = self.chance.random(), self.chance.choice(files)
        if what < 0.5:
            made = replace(file, uri=self.places())
        elif what < 0.75:
            made = replace(file, cm_root=self.places(), checksum=file.checksum or "ab")
        else:
            made = replace(
                file, subdir=self.chance.choice(("..", "../..", ".repl", "x/../../y", "/x", "delta_1_1/../..", "a//b"))
            )
        return tuple(made if one is file else one for one in files)

    def table(self, record: TableRecord) -> TableRecord:
        """A table."""
        if self.chance.random() < 0.4:
            return replace(record, files=self.files(record.files))
        return replace(record, table=tjson.loads(Table, self.text(tjson.dumps(record.table))))

    def partition(self, record: PartitionRecord) -> PartitionRecord:
        """A partition."""
        if self.chance.random() < 0.4:
            return replace(record, files=self.files(record.files))
        if self.chance.random() < 0.1:
            return replace(record, name=self.chance.choice(("ds=..", "ds=1/..", "ds=1/../..", "..", "ds=.repl", ".repl=1")))
        return replace(record, partition=tjson.loads(Partition, self.text(tjson.dumps(record.partition))))

    def function(self, database: str) -> FunctionRecord:
        """A function with resources anywhere."""
        uris = [self.places() for _ in range(self.chance.choice((1, 1, 2)))]
        name = self.chance.choice(("f", "f", "../f", ".repl", "f/..", EXCLUDED))
        made = Function(name, database, "C", "me", 1, 0, 1, [ResourceUri(1, one) for one in uris])
        return FunctionRecord(made, tuple(FileRef(one) for one in uris if self.chance.random() < 0.8))

    def event(self, record: EventRecord) -> EventRecord:
        """An event, its files, or a function's in its place."""
        what, row = self.chance.random(), record.notification
        groups = [group for group in record.groups if group.files]
        if what < 0.3 and groups:
            group = self.chance.choice(groups)
            made = replace(group, files=self.files(group.files))
            return replace(record, groups=tuple(made if one is group else one for one in record.groups))
        if what < 0.4:
            function = self.function(row.database)
            message = json.dumps({"db": row.database, "functionObjJson": tjson.dumps(function.function), "timestamp": row.time})
            row = replace(row, type="CREATE_FUNCTION", table="", message=message)
            return replace(record, notification=row, groups=(FileGroup("", function.files),))
        if what < 0.5:
            row = replace(row, table=self.chance.choice((EXCLUDED, "a", "plain", "..", "other")))
        return replace(record, notification=replace(row, message=self.text(row.message)))

    def header(self, header: DumpHeader) -> DumpHeader:
        """A header that allows more."""
        home, root = copy_of(header.source_database), "/".join(self.home.split("/")[:3])
        changes: list[Callable[[], dict[str, Any]]] = [
            lambda: {"read": (self.places(), root)},
            lambda: {"taken": PolicyScope(self.chance.choice((("*",), ("plain",), ("a", "s*")))).text},
            lambda: {"joined": {EXCLUDED: self.places(), "other": ""}, "taken": PolicyScope().text},
            lambda: {"metadata_only": not header.metadata_only},
            lambda: {"scope": replace(header.scope, table=self.chance.choice((EXCLUDED, "plain", "a")))},
        ]
        for change in self.chance.sample(changes, self.chance.choice((0, 1, 1, 2))):
            header = replace(header, **change())
        if self.chance.random() < 0.5:
            home.locationUri = self.chance.choice((root, f"{root}/source", self.places()))
        if self.chance.random() < 0.2:
            home.managedLocationUri = self.chance.choice((root, self.places()))
        if self.chance.random() < 0.2:  # a replica's own data may lie below its .repl
            home.parameters = {**(home.parameters or {}), "hive_replication.source": "x/y", "hive_replication.applied.id": "1"}
        return replace(header, source_database=home)

    def some(self, records: Sequence[T], change: Callable[[T], T]) -> list[T]:
        """One of the records, rarely more, changed."""
        chosen = set(self.chance.sample(range(len(records)), min(len(records), self.chance.choice((0, 1, 1, 1, 2)))))
        return [change(one) if number in chosen else one for number, one in enumerate(records)]

    def written(self, reader: DumpReader) -> dict[str, bytes]:
        """The dump with changes, at its place, by URI.

        Raises:
            BadRequest: no dump can hold what was made.
        """
        header, directory = reader.header, reader.directory
        storage = MemoryStorage(self.target, {})
        root = directory.rpartition("/")[0].rpartition("/")[0]
        writer = PackedStore(storage, root, self.chance.choice((0, 10_000))).create(header.scope)
        tables = self.some([*reader.tables()], self.table)
        for record in tables:
            writer.put_table(record)
            for part in self.some([*reader.partitions(record.name)], self.partition):
                writer.put_partition(part)
        if header.kind == "bootstrap":
            for _ in range(self.chance.choice((0, 0, 1))):
                writer.put_function(self.function(header.scope.database))
        for event in self.some([*reader.events()], self.event):
            writer.put_event(event)
        writer.finish(self.header(header) if self.chance.random() < 0.5 else header)
        return {uri.replace(writer.directory, directory): data for uri, data in storage.content.items()}
