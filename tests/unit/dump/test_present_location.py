"""Where an object of an event lies after later events, and how far the source's log is read for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hive_replication.dump.incremental import present_location
from hive_replication.dump.incremental.present_location import Location, Lookup, PresentLocations, followed
from hive_replication.errors import MetastoreError
from hive_replication.events import event_records as r
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table
from tests import model
from tests.messages import row

WAREHOUSE = "hdfs://s/w"


def table(name: str) -> Table:
    return Table(tableName=name, dbName="db", sd=StorageDescriptor(location=f"{WAREHOUSE}/{name}"), parameters={})


def renamed(evid: int, old: str, new: str) -> r.AlterTable:
    return r.AlterTable(evid, 0, "ALTER_TABLE", "db", new, table(old), table(new), truncate=False)


def partition(evid: int, owner: str, old: str, new: str) -> r.AlterPartition:
    before, after = (Partition(values=[v], sd=StorageDescriptor(location=f"{WAREHOUSE}/{owner}/d={v}")) for v in (old, new))
    change = r.ChangedPartition(f"d={old}", f"d={new}", before, after)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", owner, table(owner), (change,), truncate=False)


def dropped(evid: int, name: str) -> r.DropTable:
    return r.DropTable(evid, 0, "DROP_TABLE", "db", name, None)


def test_a_partition_that_the_metastore_does_not_show_is_followed_to_the_end_of_a_long_log() -> None:
    """Whether it is where it should lie, nobody knows before; it ended the dump."""

    def refused(*_: object) -> None:
        raise MetastoreError("get_partitions_by_names db.a: Permission denied")

    read = list[tuple[int, int]]()
    metastore = SimpleNamespace(
        current_event_id=lambda: 25_000,
        events=lambda after, until, *_, **__: iter(read.append((after, until)) or ()),
        tables=lambda *_: [table("a")],
        partitions=refused,
    )
    lookup = Lookup(f"{WAREHOUSE}/a/d=1", "a", "d=1", 5, created=7)
    found = PresentLocations(metastore, "db", 4).find([lookup])  # type: ignore[arg-type]
    assert found == {lookup: Location(f"{WAREHOUSE}/a/d=1", 0, "a", "d=1")}
    assert read[-1][1] == 25_000


def test_nothing_happened() -> None:
    events = [renamed(5, "b", "c"), dropped(6, "c")]
    assert followed(events, f"{WAREHOUSE}/a", "a", "") == Location(f"{WAREHOUSE}/a", 0, "a")


def test_renames_move_the_directory() -> None:
    events = [renamed(5, "a", "b"), renamed(6, "b", "c"), dropped(7, "a")]
    assert followed(events, f"{WAREHOUSE}/a", "a", "") == Location(f"{WAREHOUSE}/c", 6, "c")
    assert followed(events, f"{WAREHOUSE}/a/d=1", "a", "d=1") == Location(f"{WAREHOUSE}/c/d=1", 6, "c", "d=1")
    assert followed(events, "hdfs://elsewhere/x", "a", "") == Location("hdfs://elsewhere/x", 6, "c")


def test_drops_leave_nothing() -> None:
    assert followed([renamed(5, "a", "b"), dropped(6, "b")], f"{WAREHOUSE}/a", "a", "") == Location(None, 6)
    events = [r.DropPartition(5, 0, "DROP_PARTITION", "db", "a", None, ("d=1",))]
    assert followed(events, f"{WAREHOUSE}/a/d=1", "a", "d=1") == Location(None, 5)
    assert followed(events, f"{WAREHOUSE}/a/d=2", "a", "d=2") == Location(f"{WAREHOUSE}/a/d=2", 0, "a", "d=2")


def test_a_partition_that_is_renamed_with_its_table() -> None:
    events = [partition(5, "a", "1", "2"), renamed(6, "a", "b"), partition(7, "b", "2", "3")]
    assert followed(events, f"{WAREHOUSE}/a/d=1", "a", "d=1") == Location(f"{WAREHOUSE}/b/d=3", 7, "b", "d=3")


class Log:
    """A log that tells from where it was read."""

    views_of_materialized = False

    def __init__(self, events: list[NotificationEvent]) -> None:
        self.rows, self.read = events, list[int]()

    def current_event_id(self) -> int:
        return len(self.rows)

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        self.read.append(after)
        yield from self.rows[after:until]


def test_the_log_is_read_on_from_the_events_of_the_batch() -> None:
    source = model.Source()
    for action in (("create", 0, 0, 0), ("rename", 0, 0, 1), ("create", 0, 0, 2), ("rename", 0, 0, 2)):
        source.act(*action)
    log = Log(list(map(row, source.events)))
    locations = PresentLocations(log, "db", 0)  # type: ignore[arg-type]
    first = locations.decode_batch(log.rows[:2])
    assert log.read == []
    assert locations.find_table(model.NAMES[0], 1).since == 2
    assert log.read == [2]
    ahead = [one for one in locations._events if one.evid > 2]
    later = locations.decode_batch(log.rows[2:])
    assert [one.evid for one in (*first, *later)] == [one.eventId for one in log.rows]
    assert all(any(one is found for found in later) for one in ahead)
    locations.find_table(model.NAMES[0], 3)
    assert (log.read, min(one.evid for one in locations._events) > 2) == ([2], True)


def test_changes_that_move_nothing_are_not_kept() -> None:
    """A backlog has many, each with its message."""
    source = model.Source()
    for action in (("create", 0, 0, 1), ("add many", 0, 0, 0), *[("alter part", 0, 0, 0)] * 500, *[("alter", 0, 0, 0)] * 500):
        source.act(*action)
    log = Log(list(map(row, source.events)))
    assert {one.eventType for one in log.rows[2:]} == {"ALTER_PARTITION", "ALTER_TABLE"}
    locations = PresentLocations(log, "db", 2)  # type: ignore[arg-type]
    assert locations.find_table(model.NAMES[0], 2).since == 0
    assert list(locations._events) == []
    source.act("rename", 0, 0, 1)
    log.rows.append(row(source.events[-1]))
    assert locations.find_table(model.NAMES[0], 2).since == log.rows[-1].eventId


class Far(Log):
    """A log of 1,000 events without a rename but for some, and the tables that there are at its end."""

    def __init__(self, events: list[NotificationEvent], present: list[Table]) -> None:
        super().__init__(events)
        self._present = present

    def tables(self, _: str, names: Iterable[str]) -> list[Table]:
        return [one for one in self._present if one.tableName in names]

    def partitions(self, _: str, table: str, names: list[str]) -> list[Partition]:
        return [Partition(values=["1"], sd=StorageDescriptor(location=f"{WAREHOUSE}/{table}/d=1"), createTime=7)]


def test_far_from_its_end_the_log_is_read_on_only_until_all_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(present_location, "_NEAR", 10)
    source = model.Source()
    for action in (("create", 0, 0, 0), ("create", 1, 0, 0), *[("alter", 0, 0, 0)] * 30, ("rename", 1, 0, 2)):
        source.act(*action)
    source.act("create", 1, 0, 0)
    for _ in range(60):
        source.act("alter", 0, 0, 0)
    first, second, third = model.NAMES[:3]
    keys = [FieldSchema(name="d", type="string")]
    there = [table(first), table(second), table(third)]
    for one, created in zip(there, (5, 9, 6), strict=True):
        one.createTime, one.partitionKeys = created, keys
    there[2].sd.location = f"{WAREHOUSE}/{second}"  # an external table keeps it
    log = Far(list(map(row, source.events)), there)
    stays, part, renames = (
        Lookup(f"{WAREHOUSE}/{first}", first, "", 1, created=5),
        Lookup(f"{WAREHOUSE}/{first}/d=1", first, "d=1", 1, created=7),
        Lookup(f"{WAREHOUSE}/{second}", second, "", 2, created=6),
    )
    locations = PresentLocations(log, "db", 2)  # type: ignore[arg-type]
    assert locations.find([stays, part])[part] == Location(f"{WAREHOUSE}/{first}/d=1", 0, first, "d=1")
    assert log.read == []
    assert locations.find([stays, renames])[renames].table == third
    assert log.read == [2, 12, 22, 32]
    assert locations.find([replace(stays, created=4)])[replace(stays, created=4)].location == stays.location
    assert log.read[-1] == 92
