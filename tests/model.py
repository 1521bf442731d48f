"""A source warehouse in memory that writes events as Hive does: a simple interpreter that does not use the code under test.

Content is a map from file name to checksum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.metastore.types import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table

ROOT = "hdfs://src/w/db.db"
NAMES = ("a", "b", "c")
OUTSIDE = "outside"
PARTS = ("p=0", "p=1", "p=2")
HIVE_NAMES = ("000000_0", *(f"000000_0_copy_{n}" for n in range(1, 99)))

Files = dict[str, str]


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
        empty: whether tables and partitions are created without files, as DDL does.
        unions: whether each that is created has a file in a sub-directory, too, as of a UNION ALL, which its event does not name.
    """

    unique: bool = False
    empty: bool = False
    unions: bool = False
    tables: dict[str, Tab] = field(default_factory=dict)
    storage: dict[str, Files] = field(default_factory=dict)
    events: list[r.Event] = field(default_factory=list)
    evid: int = 0
    past: list[State] = field(default_factory=lambda: [{}])
    outside: Tab | None = None

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

    def _made(self, location: str) -> tuple[FileRef, ...]:
        """The files that an event names of what was created at a directory."""
        if self.unions:
            self.storage[location]["HIVE_UNION_SUBDIR_1/000000_0"] = f"u{self.evid}{location}"
        return self._named(location)

    def _named(self, location: str) -> tuple[FileRef, ...]:
        return self.refs(location, [name for name in self.storage[location] if "/" not in name])

    def act(self, kind: str, table: int, part: int, extra: int) -> None:
        """Makes one change, adjusted to the state: an absent table is created and an absent partition added first."""
        name, key = NAMES[table], PARTS[part]
        tab = self.tables.get(name)
        self.evid += 1
        if kind in ("rename", "drop") and tab is None and self.tables:
            name, tab = sorted(self.tables.items(), key=lambda item: item[0])[table % len(self.tables)]
        if tab and tab.parts and kind in ("rename part", "drop part", "alter part", "truncate"):
            key = sorted(tab.parts)[part % len(tab.parts)]
        if kind == "rename in":
            self._enter(extra)
        elif tab is None and kind in ("create", "insert", "add many"):
            self._create(name, partitioned=extra > 0)
        elif tab is not None and kind == "exchange":
            self._exchange(name, tab, key)
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
        self.storage[tab.location] = {} if partitioned or self.empty or self.evid % 2 else {"000000_0": f"c{self.evid}"}
        self.tables[name] = tab
        files = () if partitioned else self._made(tab.location)
        self._log(r.CreateTable, name, after=table_image(name, tab), files=files)

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
            outside = [OUTSIDE] if self.outside is None else []
            free = outside if kind == "rename out" else [new for new in NAMES if new not in self.tables]
            if not free:
                return
            new = free[extra % len(free)]
            del self.tables[name]
            self._move(tab, f"{ROOT}/{new}")
            if new != OUTSIDE:
                self.tables[new] = tab
            else:
                self.outside = tab
        tab.version = self.evid
        self._log(r.AlterTable, name, before=before, after=table_image(new, tab), truncate=False)

    def _enter(self, extra: int) -> None:
        """The table that was renamed out of the policy comes back under any name; what was done to it there no event tells."""
        free = [new for new in NAMES if new not in self.tables]
        if self.outside is None or not free:
            return
        tab, new, self.outside = self.outside, free[extra % len(free)], None
        before = table_image(OUTSIDE, tab)
        self._move(tab, f"{ROOT}/{new}")
        for place in (part.location for part in tab.parts.values()) if tab.partitioned else (tab.location,):
            self.storage[place] = {**self.storage[place], f"unseen{self.evid}": f"u{self.evid}"}
        tab.version = self.evid
        self.tables[new] = tab
        self._log(r.AlterTable, OUTSIDE, before=before, after=table_image(new, tab), truncate=False)

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
            self.storage[part.location] = {"000000_0": f"c{self.evid}{key}"} if self.evid % 2 and not self.empty else {}
            added.append(r.AddedPartition(key, partition_image(name, key, part), self._made(part.location)))
        if added:
            self._log(r.AddPartition, name, table_object=table_image(name, tab), partitions=tuple(added))

    def _drop_parts(self, name: str, tab: Tab, keys: list[str]) -> None:
        for key in keys:
            self.storage.pop(tab.parts.pop(key).location)
        if keys:
            self._log(r.DropPartition, name, table_object=table_image(name, tab), partitions=tuple(keys))

    def _exchange(self, name: str, tab: Tab, key: str) -> None:
        """EXCHANGE PARTITION moves the directory to the first other table that does not have the partition; two events."""
        others = (
            other for other in self.tables.items() if other[0] != name and other[1].partitioned and key not in other[1].parts
        )
        other, into = next(others, ("", tab))
        if key not in tab.parts or not other:
            return
        moved = into.parts[key] = Part(self.evid, f"{into.location}/{key}")
        self.storage[moved.location] = dict(self.storage[tab.parts[key].location])
        added = r.AddedPartition(key, partition_image(other, key, moved), self._named(moved.location))
        self._log(r.AddPartition, other, table_object=table_image(other, into), partitions=(added,))
        self.past.append(self.state())
        self.evid += 1
        self._drop_parts(name, tab, [key])

    def _alter_parts(self, name: str, tab: Tab, keys: list[str], *, relocate: bool) -> None:
        """As ALTER_PARTITIONS of Hive 4.1 on: no before images."""
        for key in keys:
            part = tab.parts[key]
            part.version = self.evid
            if relocate:
                back = f"{tab.location}/{key}"
                part.location = f"hdfs://src/elsewhere/{self.evid}/{key}" if part.location == back else back
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
