"""Events of tables with a partition filter: only what they say of partitions inside is followed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import notification
from hive_replication.events.events_of_policy import LogEvent, of_policy
from hive_replication.events.partition_filters import Entered, Outside, left_out, within
from hive_replication.metastore.partition_filters import why_unfit
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table, copy_of
from hive_replication.policy.partition_filter import PartitionFilter
from tests.messages import row

KEYS = [FieldSchema(name="ds", type="string")]
TABLE = Table(tableName="t", dbName="d", tableType="MANAGED_TABLE", sd=StorageDescriptor(), parameters={}, partitionKeys=KEYS)
FILTER = PartitionFilter.parse("ds >= '2026'")
HEAD = (7, 1, "ALTER_PARTITION", "d", "t")


def part(day: str) -> Partition:
    return Partition(values=[day], sd=StorageDescriptor())


def added(*days: str) -> r.AddPartition:
    return r.AddPartition(*HEAD, TABLE, tuple(r.AddedPartition(f"ds={day}", part(day), ()) for day in days))


def altered(*changes: tuple[str, str]) -> r.AlterPartition:
    made = (r.ChangedPartition(f"ds={old}", f"ds={new}", part(old), part(new)) for old, new in changes)
    return r.AlterPartition(*HEAD, TABLE, tuple(made), truncate=False)


@pytest.mark.parametrize(
    ("event", "number"),
    [
        (added("2024", "2025"), 2),
        (r.DropPartition(*HEAD, TABLE, ("ds=2025",)), 1),
        (r.Insert(*HEAD, TABLE, part("2025"), "ds=2025", replace=False, files=()), 1),
        (r.UpdateStatistics(*HEAD, "ds=2025", (), ""), 1),
        (r.DeleteStatistics(*HEAD, "ds=2025", ""), 1),
    ],
)
def test_events_outside(event: r.Event, number: int) -> None:
    assert isinstance(within(event, FILTER), Outside)
    assert (left_out(event, FILTER), left_out(event, None)) == (number, 0)


def test_events_inside_stay_as_they_are() -> None:
    table = r.UpdateStatistics(*HEAD, "", (), "")
    odd = r.DropPartition(*HEAD, TABLE, ("no name",))  # left to those who read it
    for event in (added("2026"), altered(("2026", "2026")), altered(("2026", "2027")), table, odd, r.DropTable(*HEAD, TABLE)):
        assert within(event, FILTER) == event


def test_events_of_several_keep_those_inside() -> None:
    assert within(added("2025", "2026"), FILTER) == added("2026")
    assert within(r.DropPartition(*HEAD, TABLE, ("ds=2025", "ds=2026")), FILTER) == r.DropPartition(*HEAD, TABLE, ("ds=2026",))
    assert within(altered(("2025", "2025"), ("2026", "2026")), FILTER) == altered(("2026", "2026"))
    assert isinstance(within(altered(("2025", "2025")), FILTER), Outside)


def test_renames_into_the_filter_and_out_of_it() -> None:
    came, went = within(altered(("2025", "2026")), FILTER), within(altered(("2026", "2025")), FILTER)
    assert came == Entered(*HEAD)
    assert went == r.DropPartition(7, 1, "DROP_PARTITION", "d", "t", TABLE, ("ds=2026",))


def test_events_outside_are_none_of_the_policy() -> None:
    message = {"server": "", "servicePrincipal": "", "db": "d", "table": "t", "timestamp": 1, "partitions": [{"ds": "2025"}]}
    dropped = r.Notification(7, 1, "DROP_PARTITION", "d", "t", json.dumps(message))
    found = LogEvent(dropped, lambda database, table: FILTER if (database, table) == ("d", "t") else None)
    if found.decoded is None:
        pytest.fail("the message was not read")
    assert (found.outside, of_policy(found, "d", "t".__eq__)) == (True, False)
    assert of_policy(replace(found, filter_of=None), "d", "t".__eq__)


def at(location: str, *, external: bool, kind: str = "INSERT") -> LogEvent:
    """An event of a partition outside, in a table at ``hdfs://nn/d``."""
    table, new = copy_of(TABLE), Partition(values=["2025"], dbName="d", tableName="t", sd=StorageDescriptor(location=location))
    table.sd = StorageDescriptor(location="hdfs://nn/d")
    if external:
        table.tableType, table.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
    changed = r.ChangedPartition("ds=2025", "ds=2025", new, new)
    events: dict[str, r.Event] = {
        "INSERT": r.Insert(7, 1, "INSERT", "d", "t", table, new, "ds=2025", replace=False, files=()),
        "ADD_PARTITION": r.AddPartition(7, 1, "ADD_PARTITION", "d", "t", table, (r.AddedPartition("ds=2025", new, ()),)),
        "TRUNCATE": r.AlterPartition(7, 1, "ALTER_PARTITION", "d", "t", table, (changed,), truncate=True),
        "ALTER_PARTITION": r.AlterPartition(7, 1, "ALTER_PARTITION", "d", "t", table, (changed,), truncate=False),
        "DROP_PARTITION": r.DropPartition(7, 1, "DROP_PARTITION", "d", "t", table, ("ds=2025",)),
    }
    return LogEvent(notification(row(events[kind])), lambda *_: FILTER)


@pytest.mark.parametrize(
    ("event", "may"),
    [
        (at("hdfs://nn/d/ds=2025", external=True), True),
        (at("hdfs://nn/d/ds=2025", external=True, kind="ADD_PARTITION"), True),
        (at("hdfs://nn/d/ds=2025", external=True, kind="TRUNCATE"), True),
        (at("hdfs://nn/d/ds=2025", external=True, kind="ALTER_PARTITION"), False),
        (at("hdfs://nn/d/ds=2025", external=True, kind="DROP_PARTITION"), False),
        (at("hdfs://nn/d/ds=2025", external=False), False),
        (at("hdfs://nn/elsewhere", external=False), True),
    ],
)
def test_events_outside_count_where_a_partition_inside_may_have_their_directory(event: LogEvent, may: bool) -> None:
    assert (event.outside, of_policy(event, "d", "t".__eq__)) == (True, False)
    assert of_policy(event, "d", "t".__eq__, shared=True) == may
    assert not of_policy(event, "d", "other".__eq__, shared=True)


def test_tables_that_a_filter_does_not_fit() -> None:
    plain, acid, view = (copy_of(TABLE) for _ in range(3))
    plain.partitionKeys = []
    acid.parameters = {"transactional": "true"}
    view.tableType, view.partitionKeys = "VIRTUAL_VIEW", []
    assert (why_unfit(FILTER, TABLE), why_unfit(FILTER, view), why_unfit(None, acid)) == ("", "", "")
    assert "the table has no partitions; change partition_filters" in why_unfit(FILTER, plain)
    assert "the table is transactional" in why_unfit(FILTER, acid)
