"""A source warehouse in memory that writes events as Hive does, and a target that carries out operations: what properties need.

Both are plain interpreters, made without the code under test: content is a map from file name to checksum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from hive_replication.dump.records import FileGroup
from hive_replication.events import records as r
from hive_replication.events.files import FileRef
from hive_replication.load import operations as op
from hive_replication.load.lanes import WindowEvent
from hive_replication.load.mapping import NameMapping
from hive_replication.load.state import LAST_ID, SOURCE, ReplicaState, object_id
from hive_replication.load.view import TargetView
from hive_replication.metastore.types import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

ROOT = "hdfs://src/w/db.db"
TARGET = "hdfs://dst/w/db.db"
NAMES = ("a", "b", "c")
OUTSIDE = "outside"
PARTS = ("p=0", "p=1", "p=2")
HIVE_NAMES = ("000000_0", *(f"000000_0_copy_{n}" for n in range(1, 99)))

Files = dict[str, str]
MAPPING = NameMapping("uuid/db", "db", "db", ROOT, TARGET, ("hdfs://src/",))


def includes(name: str) -> bool:
    return name != OUTSIDE


@dataclass
class Part:
    version: int
    location: str


@dataclass
class Tab:
    version: int
    location: str
    partitioned: bool
    parts: dict[str, Part] = field(default_factory=dict)


def table_image(name: str, tab: Tab) -> Table:
    return Table(
        tableName=name,
        dbName="db",
        tableType="MANAGED_TABLE",
        sd=StorageDescriptor(
            location=tab.location,
            cols=[FieldSchema(name="x", type="int")],
            serdeInfo=SerDeInfo(serializationLib="text", parameters={}),
        ),
        partitionKeys=[FieldSchema(name="p", type="string")] if tab.partitioned else [],
        parameters={"version": str(tab.version)},
    )


def partition_image(table: str, name: str, part: Part) -> Partition:
    return Partition(
        values=[name.partition("=")[2]],
        dbName="db",
        tableName=table,
        sd=StorageDescriptor(location=part.location, serdeInfo=SerDeInfo(parameters={})),
        parameters={"version": str(part.version)},
    )


State = dict[str, tuple[int, bool, Files, dict[str, tuple[int, Files]]]]
"""Name to version, whether partitioned, own files, partitions with their versions and files."""


@dataclass
class Source:
    """A managed database ``db``; every change appends its event.

    Args:
        unique: whether files get names that no other had (Spark, Impala), not the first that is free (Hive).
    """

    unique: bool = False
    tables: dict[str, Tab] = field(default_factory=dict)
    storage: dict[str, Files] = field(default_factory=dict)
    events: list[r.Event] = field(default_factory=list)
    evid: int = 0
    past: list[State] = field(default_factory=lambda: [{}])

    def state(self) -> State:
        return {
            name: (
                tab.version,
                tab.partitioned,
                {} if tab.partitioned else dict(self.storage[tab.location]),
                {key: (part.version, dict(self.storage[part.location])) for key, part in tab.parts.items()},
            )
            for name, tab in self.tables.items()
        }

    def refs(self, location: str, names: Iterable[str] | None = None) -> tuple[FileRef, ...]:
        found = self.storage.get(location, {})
        return tuple(FileRef(f"{location}/{name}", found[name]) for name in (found if names is None else names))

    def act(self, kind: str, table: int, part: int, extra: int) -> None:
        """One change, made fit: an absent table is created, an absent partition added, whatever was meant."""
        name, key = NAMES[table], PARTS[part]
        tab = self.tables.get(name)
        self.evid += 1
        if kind in ("rename", "drop") and tab is None and self.tables:
            name, tab = sorted(self.tables.items(), key=lambda item: item[0])[table % len(self.tables)]
        if tab and tab.parts and kind in ("rename part", "drop part", "alter part", "truncate"):
            key = sorted(tab.parts)[part % len(tab.parts)]
        if tab is None and kind in ("create", "insert", "add many"):
            self._create(name, partitioned=extra > 0)
        elif tab is not None and kind in ("drop", "rename", "rename out", "alter"):
            self._change_table(kind, name, tab, extra)
        elif tab is not None and tab.partitioned:
            self._change_partitions(kind, name, tab, key, extra)
        elif tab is not None and kind in CONTENT:
            self._change_content(kind, name, tab, "", extra)
        if len(self.events) < self.evid:  # nothing fitted: an event of another kind, since evids are dense
            self._log(r.OtherEvent, name, known=True)
        self.past.append(self.state())

    def _log(self, kind: Callable[..., r.Event], table: str, **more: Any) -> None:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", kind.__name__).upper()
        name = "ALTER_PARTITIONS" if any(change.before is None for change in more.get("changes", ())) else name
        self.events.append(kind(self.evid, self.evid, name, "db", table, **more))

    def _create(self, name: str, *, partitioned: bool) -> None:
        tab = Tab(self.evid, f"{ROOT}/{name}", partitioned)
        self.storage[tab.location] = {} if partitioned or self.evid % 2 else {"000000_0": f"c{self.evid}"}
        self.tables[name] = tab
        self._log(r.CreateTable, name, after=table_image(name, tab), files=self.refs(tab.location))

    def _change_table(self, kind: str, name: str, tab: Tab, extra: int) -> None:
        before = table_image(name, tab)
        if kind == "drop":
            del self.tables[name]
            for location in (tab.location, *(part.location for part in tab.parts.values())):
                self.storage.pop(location, None)
            self._log(r.DropTable, name, before=before)
            return
        new = name
        if kind != "alter":
            free = [OUTSIDE] if kind == "rename out" else [new for new in NAMES if new not in self.tables]
            if not free:
                return
            new = free[extra % len(free)]
            del self.tables[name]
            self._move(tab, f"{ROOT}/{new}")
            if new != OUTSIDE:
                self.tables[new] = tab
        tab.version = self.evid
        self._log(r.AlterTable, name, before=before, after=table_image(new, tab), truncate=False)

    def _move(self, tab: Tab, location: str) -> None:
        """A rename moves the directory, and partitions in it."""
        old, tab.location = tab.location, location
        if not old.startswith(ROOT):
            tab.location = old
            return
        self.storage[location] = self.storage.pop(old)
        for part in tab.parts.values():
            if part.location.startswith(old + "/"):
                moved = location + part.location[len(old) :]
                self.storage[moved] = self.storage.pop(part.location)
                part.location = moved

    def _add(self, name: str, tab: Tab, keys: list[str]) -> None:
        added: list[r.AddedPartition] = []
        for key in keys:
            part = tab.parts[key] = Part(self.evid, f"{tab.location}/{key}")
            self.storage[part.location] = {"000000_0": f"c{self.evid}{key}"} if self.evid % 2 else {}
            added.append(r.AddedPartition(key, partition_image(name, key, part), self.refs(part.location)))
        if added:
            self._log(r.AddPartition, name, table_object=table_image(name, tab), partitions=tuple(added))

    def _drop_parts(self, name: str, tab: Tab, keys: list[str]) -> None:
        for key in keys:
            self.storage.pop(tab.parts.pop(key).location)
        if keys:
            self._log(r.DropPartition, name, table_object=table_image(name, tab), partitions=tuple(keys))

    def _alter_parts(self, name: str, tab: Tab, keys: list[str], *, relocate: bool) -> None:
        """As ALTER_PARTITIONS of Hive 4.1 on: no before images."""
        for key in keys:
            part = tab.parts[key]
            part.version = self.evid
            if relocate:
                part.location = f"hdfs://src/elsewhere/{self.evid}/{key}"
                self.storage[part.location] = {"given": f"g{self.evid}{key}"}
        changes = tuple(r.ChangedPartition(key, key, None, partition_image(name, key, tab.parts[key])) for key in keys)
        if changes:
            self._log(r.AlterPartition, name, table_object=table_image(name, tab), changes=changes, truncate=False)

    def _change_partitions(self, kind: str, name: str, tab: Tab, key: str, extra: int) -> None:
        if kind == "add many":
            self._add(name, tab, [key for key in PARTS if key not in tab.parts])
        elif kind == "drop many":
            self._drop_parts(name, tab, list(tab.parts)[: extra + 1])
        elif kind in ("alter many", "relocate many"):
            self._alter_parts(name, tab, list(tab.parts), relocate=kind == "relocate many")
        elif key in tab.parts:
            self._change_part(kind, name, tab, key, extra)
        elif kind in ("create", "insert", "overwrite"):
            self._add(name, tab, [key])

    def _change_part(self, kind: str, name: str, tab: Tab, key: str, extra: int) -> None:
        if kind == "drop part":
            self._drop_parts(name, tab, [key])
            return
        if kind in CONTENT:
            self._change_content(kind, name, tab, key, extra)
        if kind not in ("rename part", "alter part"):
            return
        part = tab.parts[key]
        before, new = partition_image(name, key, part), key
        if kind == "rename part":
            free = [new for new in PARTS if new not in tab.parts]
            if not free:
                return
            new = free[extra % len(free)]
            del tab.parts[key]
            tab.parts[new] = part
            if part.location.startswith(ROOT):
                moved = f"{tab.location}/{new}"
                self.storage[moved] = self.storage.pop(part.location)
                part.location = moved
        part.version = self.evid
        change = r.ChangedPartition(key, new, before, partition_image(name, new, part))
        self._log(r.AlterPartition, name, table_object=table_image(name, tab), changes=(change,), truncate=False)

    def _change_content(self, kind: str, name: str, tab: Tab, key: str, extra: int) -> None:
        """INSERT, INSERT OVERWRITE, TRUNCATE or SET LOCATION of a table or partition."""
        thing = tab.parts[key] if key else tab
        if kind in ("truncate", "relocate"):
            before = table_image(name, tab), partition_image(name, key, tab.parts[key]) if key else None
            if kind == "relocate":
                thing.location = f"hdfs://src/elsewhere/{self.evid}"
                self.storage[thing.location] = {"given": f"g{self.evid}"} if extra else {}
            else:
                self.storage[thing.location] = {}
            thing.version = self.evid
            truncate = kind == "truncate"
            if not key:
                self._log(r.AlterTable, name, before=before[0], after=table_image(name, tab), truncate=truncate)
                return
            change = r.ChangedPartition(key, key, before[1], partition_image(name, key, tab.parts[key]))
            self._log(r.AlterPartition, name, table_object=table_image(name, tab), changes=(change,), truncate=truncate)
            return
        overwrite = kind == "overwrite"
        files = self.storage[thing.location]
        if overwrite:
            files.clear()
        names = (f"part-{self.evid}",) if self.unique else HIVE_NAMES
        new = next(n for n in names if n not in files)
        files[new] = f"c{self.evid}"
        self._log(
            r.Insert,
            name,
            table_object=table_image(name, tab),
            partition=partition_image(name, key, tab.parts[key]) if key else None,
            partition_name=key,
            replace=overwrite,
            files=() if kind == "insert unlisted" else self.refs(thing.location, [new]),
        )

    def table(self, name: str) -> Table | None:
        return table_image(name, self.tables[name]) if name in self.tables else None

    def partitions(self, table: str) -> list[Partition]:
        return [partition_image(table, name, part) for name, part in sorted(self.tables[table].parts.items())]

    def window(self, after: int, until: int) -> list[WindowEvent]:
        """The events of ``(after, until]`` as a dump made now holds them."""
        return [self._window_event(event) for event in self.events[after:until]]

    def _window_event(self, event: r.Event) -> WindowEvent:
        row = r.Notification(event.evid, event.time, event.type, event.database, event.table, "")
        groups: list[FileGroup] = []
        match event:
            case r.CreateTable():
                groups = [FileGroup("", event.files)]
            case r.AlterTable() if event.relocated:
                groups = [FileGroup("", self.refs(event.after.sd.location), listed=True)]
            case r.AddPartition():
                groups = [FileGroup(added.name, added.files or ()) for added in event.partitions]
            case r.AlterPartition(truncate=False):
                groups = [
                    FileGroup(c.after_name, self.refs(c.after.sd.location), listed=True) for c in event.changes if c.relocated
                ]
            case r.Insert() if event.files:
                groups = [FileGroup(event.partition_name, event.files)]
            case r.Insert():
                thing = event.partition or event.table_object
                groups = [FileGroup(event.partition_name, self.refs(thing.sd.location), listed=True)]
            case _:
                pass
        return WindowEvent(row, event, tuple(groups))


def _contents(files: Iterable[FileRef]) -> Files:
    return {file.relative: file.checksum for file in files}


@dataclass
class Target:
    """The target's metastore and storage; an operation that the real ones would refuse fails the test.

    Args:
        repaired: a repair may set objects that stand at its event already.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    partitions: dict[tuple[str, str], Partition] = field(default_factory=dict)
    files: dict[tuple[str, str], Files] = field(default_factory=dict)
    repaired: bool = False

    @classmethod
    def replica(cls, source: Source, state_id: Callable[[], int]) -> Target:
        """A replica of the source as it is, each object with a state id of its own."""
        made = cls()
        for name, tab in source.tables.items():
            made.tables[name] = MAPPING.new_table(table_image(name, tab), state_id())
            made.files[name, ""] = {} if tab.partitioned else dict(source.storage[tab.location])
            for key, part in tab.parts.items():
                made.partitions[name, key] = MAPPING.new_partition(partition_image(name, key, part), name, state_id())
                made.files[name, key] = dict(source.storage[part.location])
        return made

    def copy(self) -> Target:
        """What is in the maps is never changed, only replaced."""
        return Target(dict(self.tables), dict(self.partitions), dict(self.files), self.repaired)

    def view(self, state: ReplicaState) -> TargetView:
        return TargetView(state, dict(self.tables), dict(self.partitions))

    def state(self) -> State:
        return {
            name: (
                int(table.parameters["version"]),
                bool(table.partitionKeys),
                self.files[name, ""],
                {
                    key: (int(part.parameters["version"]), self.files[name, key])
                    for (owner, key), part in self.partitions.items()
                    if owner == name
                },
            )
            for name, table in self.tables.items()
        }

    def ids(self) -> dict[tuple[str, str], int]:
        tables = {(name, ""): object_id(table) for name, table in self.tables.items()}
        return tables | {key: object_id(part) for key, part in self.partitions.items()}

    def apply(self, operation: op.Operation) -> None:
        name = operation.table
        if isinstance(operation, op.CreateTable):
            assert name not in self.tables, f"{operation} meets a table"
            assert operation.image.tableName == name
            self.tables[name] = operation.image
            self.files[name, ""] = _contents(operation.content.files)
        else:
            assert name in self.tables, f"{operation} has no table"
            self._change(operation)

    def _change(self, operation: op.Operation) -> None:
        name = operation.table
        match operation:
            case op.AlterTable():
                self._raise(self.tables[name], operation.image)
                self.tables[name] = operation.image
            case op.RenameTable():
                self._rename(operation)
            case op.DropTable():
                del self.tables[name]
                for key in [key for key in self.partitions if key[0] == name]:
                    del self.partitions[key]
                for key in [key for key in self.files if key[0] == name]:
                    del self.files[key]
            case op.ReplaceData() | op.AppendData():
                self._content(operation)
            case _:
                self._change_partitions(operation)

    def _rename(self, operation: op.RenameTable) -> None:
        old, new = operation.table, operation.image.tableName
        assert new not in self.tables, f"{operation} meets a table"
        self._raise(self.tables.pop(old), operation.image)
        self.tables[new] = operation.image
        for key in [key for key in self.partitions if key[0] == old]:
            self.partitions[new, key[1]] = self.partitions.pop(key)
        for key in [key for key in self.files if key[0] == old]:
            self.files[new, key[1]] = self.files.pop(key)

    def _change_partitions(self, operation: op.Operation) -> None:
        name = operation.table
        match operation:
            case op.AddPartitions():
                for new in operation.added:
                    assert (name, new.name) not in self.partitions, f"{operation} meets {new.name}"
                    self.partitions[name, new.name] = new.image
                    self.files[name, new.name] = _contents(new.content.files)
            case op.AlterPartitions():
                for key, image in operation.images:
                    self._raise(self.partitions[name, key], image)
                    self.partitions[name, key] = image
            case op.RenamePartition():
                assert (name, operation.new) not in self.partitions, f"{operation} meets a partition"
                self._raise(self.partitions.pop((name, operation.old)), operation.image)
                self.partitions[name, operation.new] = operation.image
                self.files[name, operation.new] = self.files.pop((name, operation.old))
            case op.DropPartitions():
                for key in operation.names:
                    del self.partitions[name, key]
                    del self.files[name, key]
            case _:
                raise AssertionError(operation)

    def _content(self, operation: op.ReplaceData | op.AppendData) -> None:
        key = operation.table, operation.partition
        new = _contents(operation.content.files)
        if isinstance(operation, op.AppendData):
            for file, checksum in new.items():
                assert self.files[key].get(file, checksum) == checksum, f"{operation} meets another {file}"
            new = self.files[key] | new
        self.files[key] = new
        if operation.partition:
            self._raise(self.partitions[key], operation.image)
            self.partitions[key] = operation.image  # type: ignore[assignment]
        else:
            self._raise(self.tables[operation.table], operation.image)
            self.tables[operation.table] = operation.image  # type: ignore[assignment]

    def _raise(self, before: Table | Partition, after: Table | Partition) -> None:
        assert after.parameters[SOURCE] == MAPPING.source
        risen = int(after.parameters[LAST_ID]) - object_id(before)
        assert risen > 0 or (self.repaired and risen == 0), "a state id does not rise"


CONTENT = ("create", "insert", "insert unlisted", "overwrite", "truncate", "relocate")
KINDS = (
    *("nothing", "drop", "rename", "rename", "rename", "create", "alter"),
    *("add many", "drop many", "alter many", "drop part", "rename part", "rename part", "alter part"),
    *("truncate", "insert", "overwrite"),
)
Actions = list[tuple[str, int, int, int]]


def actions(kinds: tuple[str, ...] = KINDS, *, least: int = 6, most: int = 14) -> st.SearchStrategy[Actions]:
    """Changes for :meth:`Source.act`; long lists, since most of them meet nothing that they fit."""
    some = st.integers(0, 2)
    return st.lists(st.tuples(st.sampled_from(kinds), some, some, some), min_size=least, max_size=most)


def database() -> Database:
    return Database(name="db", locationUri=ROOT, parameters={})
