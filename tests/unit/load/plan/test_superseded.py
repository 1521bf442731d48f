"""What becomes of an object after an event, by the source's log."""

from __future__ import annotations

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.plan.superseded import Move, ending, moves_after, superseding, why_superseded
from hive_replication.metastore.types import Partition, StorageDescriptor, Table

TABLE = Table(tableName="t", dbName="db", sd=StorageDescriptor(location="l"), partitionKeys=[])
PART = Partition(sd=StorageDescriptor(location="l/p"))


def add(evid: int, name: str, table: str = "t") -> r.Event:
    return r.AddPartition(evid, 0, "ADD_PARTITION", "db", table, TABLE, (r.AddedPartition(name, PART, ()),))


def drop(evid: int, name: str, table: str = "t") -> r.Event:
    return r.DropPartition(evid, 0, "DROP_PARTITION", "db", table, TABLE, (name,))


def move(evid: int, old: str, new: str, table: str = "t") -> r.Event:
    changes = (r.ChangedPartition(old, new, PART, PART),)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", table, TABLE, changes, truncate=False)


def alter(evid: int, name: str, parameters: dict[str, str]) -> r.Event:
    """As of Hive 4.1: no before image tells whether the location was changed."""
    table = Table(tableName="t", dbName="db", sd=TABLE.sd, partitionKeys=[], parameters=parameters)
    changes = (r.ChangedPartition(name, name, None, PART),)
    return r.AlterPartition(evid, 0, "ALTER_PARTITIONS", "db", "t", table, changes, truncate=False)


def rename(evid: int, old: str, new: str) -> r.Event:
    tables = (Table(tableName=name, dbName="db", sd=TABLE.sd, partitionKeys=[]) for name in (old, new))
    return r.AlterTable(evid, 0, "ALTER_TABLE", "db", old, *tables, truncate=False)


def drop_table(evid: int, table: str) -> r.Event:
    return r.DropTable(evid, 0, "DROP_TABLE", "db", table, None)


def insert(evid: int, *files: str, parameters: dict[str, str] | None = None) -> r.Event:
    table = Table(tableName="t", dbName="db", sd=TABLE.sd, partitionKeys=[], parameters=parameters or {})
    return r.Insert(evid, 0, "INSERT", "db", "t", table, PART, "p=1", replace=False, files=tuple(map(FileRef, files)))


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([insert(5)], 5),  # it is listed, and brings all that the partition holds
        ([insert(5, "hdfs://s/l/p/f")], None),
        ([insert(5, parameters={"transactional": "true"})], None),
        ([drop(5, "p=1")], 5),
        ([drop(5, "p=2")], None),
        ([move(5, "p=1", "p=9"), drop(6, "p=9")], 6),
        # another partition has the name by then
        ([move(5, "p=1", "p=9"), add(6, "p=1"), drop(7, "p=1")], None),
        ([rename(5, "t", "u"), drop(6, "p=1", "u")], 6),
        ([rename(5, "t", "u"), drop(6, "p=1", "t")], None),
        ([rename(5, "t", "u"), drop_table(6, "t"), drop_table(7, "u")], 7),
        ([alter(5, "p=1", {})], 5),  # it brings all that the partition holds
        ([alter(5, "p=2", {})], None),
        ([alter(5, "p=1", {"transactional": "true"})], None),
        ([r.DropDatabase(5, 0, "DROP_DATABASE", "db", "")], 5),
    ],
)
def test_what_supersedes_a_partition(events: list[r.Event], found: int | None) -> None:
    assert superseding(filter(None, map(ending, events)), "t", "p=1") == found


def at(evid: int, old: str, new: str, table: str = "t") -> r.Event:
    """A partition is renamed, and its directory with it."""
    parts = (Partition(sd=StorageDescriptor(location=f"{table}/{name}")) for name in (old, new))
    changes = (r.ChangedPartition(old, new, *parts),)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", table, TABLE, changes, truncate=False)


def to(evid: int, old: str, new: str) -> r.Event:
    """A table is renamed, and its directory with it."""
    sides = (Table(tableName=name, dbName="db", sd=StorageDescriptor(location=name), partitionKeys=[]) for name in (old, new))
    return r.AlterTable(evid, 0, "ALTER_TABLE", "db", old, *sides, truncate=False)


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([to(5, "t", "u"), at(6, "p=1", "p=9", "u")], (("t", "u"), ("u/p=1", "u/p=9"))),
        ([at(5, "p=2", "p=9"), to(6, "u", "v")], ()),
        ([to(5, "t", "u"), to(6, "u", "t")], (("t", "u"), ("u", "t"))),
        ([rename(5, "t", "u")], ()),  # an external one stays where it is
        ([at(5, "p=1", "p=9"), drop(6, "p=9"), add(7, "p=9"), to(8, "t", "u")], (("t/p=1", "t/p=9"),)),
    ],
)
def test_where_renames_move_a_partition(events: list[r.Event], found: tuple[Move, ...]) -> None:
    assert moves_after(filter(None, map(ending, events)), "t", "p=1") == found


class Log:
    """The events after one."""

    def __init__(self, *events: r.Event) -> None:
        self.endings = [one for one in map(ending, events) if one]

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        return superseding((one for one in self.endings if one.evid > evid), table, partition)

    def moves(self, table: str, partition: str, evid: int) -> tuple[Move, ...]:
        return moves_after((one for one in self.endings if one.evid > evid), table, partition)


def archived(evid: int, *names: str, new: str = "") -> r.Event:
    part = Partition(sd=StorageDescriptor(location="har://hdfs-s:8020/l/p/data.har"))
    changes = tuple(r.ChangedPartition(name, new or name, PART, part) for name in names)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", "t", TABLE, changes, truncate=False)


def back(evid: int, name: str) -> r.Event:
    part = Partition(sd=StorageDescriptor(location="har://hdfs-s:8020/l/p/data.har"))
    changes = (r.ChangedPartition(name, name, part, PART),)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", "t", TABLE, changes, truncate=False)


@pytest.mark.parametrize(
    ("event", "until"),
    [
        (archived(4, "p=1"), 5),
        (archived(4, "p=1", "p=2"), 6),
        (archived(4, "p=3"), None),
        (archived(4, "p=1", "p=3"), None),
        (archived(4, "p=1", new="p=9"), None),  # a rename is one, whatever becomes of the partition
        (archived(5, "p=1"), None),
        (move(4, "p=1", "p=1"), None),
        (drop_table(4, "t"), None),
        (None, None),
    ],
)
def test_partitions_that_were_archived_for_a_while_hold_nothing(event: r.Event | None, until: int | None) -> None:
    """The table was held for ever, though they were unarchived."""
    reason = why_superseded(event, Log(back(5, "p=1"), drop(6, "p=2")))
    assert reason.startswith(f"superseded: its partitions are archived, and event {until} " if until else "")
    assert bool(reason) == bool(until)
