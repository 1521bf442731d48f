"""How far the log is read for a table of an event, of a window far behind its end."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.incremental.shared_directories import SharedDirectories
from hive_replication.events import event_records as r
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table

_END = 50_000  # event id


def made(created: int, location: str = "hdfs://nn/d") -> Table:
    keys, external = [FieldSchema(name="p", type="string")], {"EXTERNAL": "TRUE"}
    described = StorageDescriptor(location=location)
    return Table("t", "db", createTime=created, sd=described, partitionKeys=keys, parameters=external, tableType="EXTERNAL_TABLE")


def partition(value: str) -> Partition:
    return Partition([value], "db", "t", createTime=8, sd=StorageDescriptor(location="hdfs://nn/d/x"), parameters={})


class LongLog:
    """A source's log: it counts the events that are read."""

    views_of_materialized = False

    def __init__(self, present: Table) -> None:
        self.present, self.read = present, 0

    def current_event_id(self) -> int:
        return _END

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        for evid in range(after + 1, until + 1):
            self.read += 1
            yield NotificationEvent(eventId=evid, eventTime=0, dbName="db", tableName="t", eventType="OTHER", message="{}")

    def tables(self, *_: object) -> list[Table]:
        return [self.present]

    def partition_count(self, *_: object) -> int:
        return 2

    def partitions(self, *_: object) -> list[Partition]:
        return [partition("0"), partition("1")]


@pytest.mark.parametrize(("present", "read"), [(made(7), 0), (made(9), _END - 5), (made(7, "hdfs://nn/e"), _END - 5)])
def test_the_log_is_not_read_on_for_a_table_that_is_still_there(present: Table, read: int) -> None:
    """Else each window of one that is caught up with reads all the rest of it."""
    log = LongLog(present)
    source = SimpleNamespace(policy=SimpleNamespace(metadata_only=False), metastore=log)
    shared = SharedDirectories(source, PresentLocations(log, "db", 5))  # type: ignore[arg-type]
    added = r.AddedPartition("p=1", partition("1"), None)
    event = r.AddPartition(5, 0, "ADD_PARTITION", "db", "t", made(7), (added,))
    one = SimpleNamespace(decoded=event, row=SimpleNamespace(table="t"), evid=5)
    assert (shared.beside(one), log.read) == ("p=0", read)  # type: ignore[arg-type]
