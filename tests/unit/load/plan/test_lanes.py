from __future__ import annotations

from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.plan.lanes import Segment, WindowEvent, segments, window_event
from hive_replication.metastore.types import Database, StorageDescriptor, Table


def event(kind: type[r.Event], evid: int, table: str = "", **fields: object) -> WindowEvent:
    made = kind(evid, evid, "X", "db", table, **fields)
    return WindowEvent(r.Notification(evid, evid, "X", "db", table, ""), made, ())


def drop(evid: int, table: str) -> WindowEvent:
    return event(r.DropTable, evid, table, before=None)


def rename(evid: int, old: str, new: str) -> WindowEvent:
    before, after = (Table(tableName=name, dbName="db", sd=StorageDescriptor()) for name in (old, new))
    return event(r.AlterTable, evid, old, before=before, after=after, truncate=False)


def shown(segment: Segment) -> dict[frozenset[str], list[int]]:
    return {lane.names: [event.evid for event in lane.events] for lane in segment.lanes}


def test_names_that_are_not_renamed_are_lanes_of_their_own() -> None:
    (segment,) = segments([drop(1, "a"), drop(2, "b"), drop(3, "a")])
    assert shown(segment) == {frozenset("a"): [1, 3], frozenset("b"): [2]}
    assert (segment.alters, segment.barrier) == ((), None)


def test_renames_join_names_backwards_and_forwards() -> None:
    (segment,) = segments([drop(1, "c"), drop(2, "x"), rename(3, "a", "b"), drop(4, "a"), rename(5, "b", "c"), drop(6, "a")])
    assert shown(segment) == {frozenset("abc"): [1, 3, 4, 5, 6], frozenset("x"): [2]}


def test_a_database_drop_is_a_barrier_and_lanes_stay_joined_beyond_it() -> None:
    altered = event(r.AlterDatabase, 2, before=Database(), after=Database())
    dropped, created = event(r.DropDatabase, 3), event(r.CreateDatabase, 4, after=None)
    first, second, third = segments([drop(1, "a"), altered, dropped, created, rename(5, "a", "b"), drop(6, "b")])
    assert (shown(first), first.alters, first.barrier) == ({frozenset("ab"): [1]}, (altered,), dropped)
    assert (shown(second), second.alters, second.barrier) == ({}, (), created)
    assert (shown(third), third.alters, third.barrier) == ({frozenset("ab"): [5, 6]}, (), None)


def test_events_of_the_whole_database_are_in_no_lane() -> None:
    (segment,) = segments([event(r.OtherEvent, 1, known=True), event(r.OtherEvent, 2, "a", known=True)])
    assert shown(segment) == {frozenset("a"): [2]}
    assert segments([]) == [Segment((), (), None)]


def test_an_unreadable_message_is_in_the_lane_of_its_row() -> None:
    broken = window_event(EventRecord(r.Notification(7, 8, "ALTER_TABLE", "db", "a", "{}")))
    assert (broken.event, broken.names, broken.evid) == (None, ("a",), 7)
    assert "event 7 (ALTER_TABLE)" in broken.error
    (segment,) = segments([drop(6, "a"), broken])
    assert shown(segment) == {frozenset("a"): [6, 7]}


def test_files_of_an_object() -> None:
    group = FileGroup("p=1", (FileRef("hdfs://s/f"),), listed=True)
    made = window_event(EventRecord(r.Notification(7, 8, "DROP_TABLE", "db", "a", "{}"), (group,)))
    assert (made.files("p=1"), made.files("p=2"), made.files()) == (group, FileGroup("p=2", ()), FileGroup("", ()))
