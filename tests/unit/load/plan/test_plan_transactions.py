"""Transactions in the plan of a window: lanes, what is due, and where data goes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.events.event_records import (
    AlterPartition,
    AlterTable,
    ChangedPartition,
    CreateTable,
    DropPartition,
    DropTable,
    Event,
    Notification,
)
from hive_replication.events.events_of_policy import LogEvent, ends_transaction
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import TransactionWrite
from hive_replication.load.apply.commit_places import CreatedInLane, DataKey, files_of_commits
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.transactions import (
    AllocateTargetWriteIds,
    ReplayAbort,
    ReplayCommit,
    TruncateTransactional,
)
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments, window_event, with_tables
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.report import Skipped
from hive_replication.metastore.types import Partition, Table
from tests import model
from tests.model import Source
from tests.replica import MAPPING, Target

FILE = FileRef("hdfs://src/w/db.db/a/delta_1_1_0000/f", "00", "", "delta_1_1_0000")


def source_of(*changes: tuple[str, int, int, int]) -> Source:
    source = Source()
    for change in changes:
        source.act(*change)
    return source


def allocated(evid: int, table: str, transaction: int, write_id: int = 1) -> WindowEvent:
    message = json.dumps({"txnIdList": [transaction], "writeIdList": [write_id]})
    return window_event(EventRecord(Notification(evid, 0, "ALLOC_WRITE_ID_EVENT", "db", table, message)))


def ended(evid: int, transaction: int, *tables: str, kind: str = "COMMIT_TXN") -> WindowEvent:
    row = Notification(evid, 0, kind, "db", "", json.dumps({"txnid": transaction}))
    writes = tuple(TransactionWrite(table, "", 1) for table in tables)
    return window_event(EventRecord(row, tuple(FileGroup("", (FILE,), table=table) for table in tables), writes=writes))


def committed(evid: int, partition: str) -> WindowEvent:
    """Of a partition of a, and of b."""
    row = Notification(evid, 0, "COMMIT_TXN", "db", "", json.dumps({"txnid": 7}))
    writes = TransactionWrite("a", partition, 1), TransactionWrite("b", "", 1)
    groups = tuple(FileGroup(one.partition, (FILE,), table=one.table) for one in writes)
    return window_event(EventRecord(row, groups, writes=writes))


def planned(
    events: list[WindowEvent], *, acid: bool = True, ids: int = 0, unable: str = ""
) -> list[tuple[LanePlan, list[Skipped]]]:
    target = Target.replica(source_of(("create", 0, 0, 0), ("create", 1, 0, 0)), lambda: ids)
    view = target.view(ReplicaState("uuid/db", applied=2))
    (segment,) = segments(with_tables(events))
    settings = LaneSettings(view, MAPPING, lambda _: True, acid=acid, unable=unable)
    return [LanePlanner(lane, settings).plan() for lane in segment.lanes]


def test_tables_of_a_transaction_are_one_lane() -> None:
    events = [
        allocated(3, "a", 7),
        allocated(4, "b", 8),
        allocated(5, "b", 7, 2),
        ended(6, 7, "a"),
        ended(7, 8, kind="ABORT_TXN"),
    ]
    ((plan, skipped),) = planned(events)
    assert (plan.names, skipped, plan.stop) == (("a", "b"), [], None)
    kinds = [type(one) for one in plan.operations]
    assert kinds == [AllocateTargetWriteIds, AllocateTargetWriteIds, AllocateTargetWriteIds, ReplayCommit, ReplayAbort]
    commit = plan.operations[3]
    assert [name for name, _ in commit.contents] == ["a"]
    assert dict(commit.contents)["a"].files == (FILE,)


def test_what_began_before_the_window_ends_in_a_lane_of_its_own() -> None:
    ((plan, _),) = planned([ended(3, 9, kind="ABORT_TXN")])
    assert (plan.names, [type(one) for one in plan.operations]) == (("transaction 9()",), [ReplayAbort])


def test_a_commit_is_not_repeated() -> None:
    events = [allocated(3, "a", 7), ended(4, 7, "a", "b")]
    ((plan, skipped),) = planned(events, ids=4)
    assert [one.evid for one in skipped] == [3, 4, 4]
    (end,) = plan.operations  # rebuilt tables stand ahead of transactions that are open on the target still
    assert isinstance(end, ReplayCommit)
    assert end.written == ()


def test_a_part_that_was_applied_is_left_out() -> None:
    target = Target.replica(source_of(("create", 0, 0, 0), ("create", 1, 0, 0)), lambda: 0)
    target.tables["a"].parameters[LAST_ID] = "4"
    (segment,) = segments(with_tables([ended(4, 7, "a", "b")]))
    settings = LaneSettings(target.view(ReplicaState("uuid/db", applied=2)), MAPPING, lambda _: True, acid=True)
    plan, skipped = LanePlanner(segment.lanes[0], settings).plan()
    assert [name for one in plan.operations for name, _ in one.contents] == ["b"]
    assert [one.reason for one in skipped] == ["applied already (state id 4)"]


def test_without_transactional_tables_nothing_is_done() -> None:
    ((plan, skipped),) = planned([allocated(3, "c", 7), ended(4, 7, "c")], acid=False)
    assert (plan.operations, len(skipped), plan.stop) == ((), 2, None)


def test_events_of_data_do_nothing_to_a_view() -> None:
    """The log says neither of write ids nor of deleted statistics that their table is a materialized view."""
    target = Target.replica(source_of(("create", 0, 0, 0), ("create", 1, 0, 0)), lambda: 0)
    target.tables["a"].tableType = "VIRTUAL_VIEW"
    message = json.dumps({"colName": "x"})
    deleted = window_event(EventRecord(Notification(4, 0, "DELETE_TBL_COL_STAT_EVENT", "db", "a", message)))
    events = [allocated(3, "a", 7), deleted, allocated(5, "b", 8), ended(6, 7), ended(7, 8, "b")]
    (segment,) = segments(with_tables(events))
    settings = LaneSettings(target.view(ReplicaState("uuid/db", applied=2)), MAPPING, lambda _: True, acid=True)
    (of_view, skipped), (of_table, _) = (LanePlanner(lane, settings).plan() for lane in segment.lanes)
    assert [(one.evid, one.reason) for one in skipped] == [(n, "the replica is a view, which has no data") for n in (3, 4)]
    assert ([type(one) for one in of_view.operations], of_view.stop) == ([ReplayCommit], None)  # nothing, where it is not open
    assert [type(one) for one in of_table.operations] == [AllocateTargetWriteIds, ReplayCommit]


def test_a_streaming_batch_into_a_table_that_is_dropped_holds_nothing() -> None:
    """The table was held for ever: nothing of the source repairs it any more."""
    shared = replace(FILE, subdir="delta_0000001_0000010")
    written = ended(4, 7, "a")
    commit = replace(written, groups=(FileGroup("", (shared,), table="a"),))
    drop = window_event(EventRecord(Notification(5, 0, "DROP_TABLE", "db", "a", "{}")))
    ((held, _),) = planned([allocated(3, "a", 7), commit])
    assert held.stop is not None
    ((plan, skipped),) = planned([allocated(3, "a", 7), commit, drop])
    assert ([type(one) for one in plan.operations], plan.stop) == ([AllocateTargetWriteIds, ReplayCommit, op.DropTable], None)
    assert [content.files for one in plan.operations for _, content in one.contents] == [()]
    assert len(skipped) == 1


def test_what_was_written_to_a_table_before_its_drop_does_not_come_into_the_next_of_its_name() -> None:
    """Who drops a table without a lock lets its writers go on: the next was held, or had rows of the former."""
    drop = window_event(EventRecord(Notification(4, 0, "DROP_TABLE", "db", "a", "{}")))
    image = MAPPING.new_table(model.table_image("a", model.Tab(7, f"{model.ROOT}/a", partitioned=False)), 0)
    row = Notification(6, 0, "CREATE_TABLE", "db", "a", "")
    made = WindowEvent(row, CreateTable(6, 0, "CREATE_TABLE", "db", "a", image, ()), ())
    of_next = allocated(5, "a", 8), made, ended(7, 8, "a")  # created by the transaction
    ((plan, skipped),) = planned([allocated(3, "a", 7), drop, *of_next, ended(8, 7, "a")])
    commits = [one for one in plan.operations if isinstance(one, ReplayCommit)]
    assert [(one.transaction, len(one.written)) for one in commits] == [(8, 1), (7, 0)]
    assert [one.reason for one in skipped if one.evid == 8] == ["the table is gone at event 4"]


def test_what_was_written_to_a_partition_before_its_drop_holds_nothing() -> None:
    """Who drops a partition without a lock lets its writers go on: their tables were held until somebody repaired them."""
    source = source_of(("create", 0, 0, 1), ("add many", 0, 0, 0), ("create", 1, 0, 0))
    name = model.PARTS[0]
    row = Notification(5, 0, "DROP_PARTITION", "db", "a", "")
    image = model.table_image("a", source.tables["a"])
    drop = WindowEvent(row, DropPartition(5, 0, "DROP_PARTITION", "db", "a", image, (name,)), ())
    commit = committed(6, name)
    target = Target.replica(source, lambda: 2)
    events = [allocated(4, "a", 7), drop, commit]
    for window in (events, events[1:]):  # its write id may have come in an earlier one
        (segment,) = segments(with_tables(window))
        settings = LaneSettings(target.view(ReplicaState("uuid/db", applied=3)), MAPPING, lambda _: True, acid=True)
        plan, skipped = LanePlanner(segment.lanes[0], settings).plan()
        (end,) = (one for one in plan.operations if isinstance(one, ReplayCommit))
        assert (plan.stop, [one.table for one in end.written]) == (None, ["b"])
        assert [one.reason for one in skipped] == ["the target does not have the partition any more"]


def test_what_a_partition_got_before_its_rename_is_not_written_again_under_its_former_name() -> None:
    """A window that was killed is loaded again: readers saw the rows in the next partition of that name, too."""
    source = source_of(("create", 0, 0, 1), ("add many", 0, 0, 0), ("create", 1, 0, 0))
    was, now = model.PARTS[0], "p=9"
    image = model.table_image("a", source.tables["a"])
    part = model.partition_image("a", was, source.tables["a"].parts[was])
    renamed = ChangedPartition(was, now, part, Partition(values=["9"], sd=part.sd, parameters={}))
    rename = WindowEvent(
        Notification(6, 0, "ALTER_PARTITION", "db", "a", ""),
        AlterPartition(6, 0, "ALTER_PARTITION", "db", "a", image, (renamed,), truncate=False),
        (),
    )
    commit = committed(5, was)
    target = Target.replica(source, lambda: 2)
    for name, evid in ((now, 6), (was, 8)):  # the next one is made at event 8
        target.partitions["a", name] = MAPPING.new_partition(part, image, "a", evid)
    (segment,) = segments(with_tables([allocated(4, "a", 7), commit, rename]))
    settings = LaneSettings(target.view(ReplicaState("uuid/db", applied=3)), MAPPING, lambda _: True, acid=True)
    plan, skipped = LanePlanner(segment.lanes[0], settings).plan()
    (end,) = (one for one in plan.operations if isinstance(one, ReplayCommit))
    assert (plan.stop, [one.table for one in end.written]) == (None, ["b"])
    assert [one.reason for one in skipped if one.evid == 5] == ["applied already (state id 6)"]


def test_a_rebalanced_table_is_rebuilt_and_other_compactions_are_left_to_each_side() -> None:
    """Rows had other ids at the source from then on: what later transactions deleted stayed on the target."""

    def of(kind: str, table: str) -> tuple[list[str], str]:
        message = json.dumps({"txnid": 9, "compactionId": 1, "type": kind, "dbname": "db", "tableName": table})
        row = Notification(3, 0, "COMMIT_COMPACTION_EVENT", "db", table, message)
        ((plan, skipped),) = planned([window_event(EventRecord(row, redump="hdfs://dump"))])
        return [one.reason for one in skipped], plan.stop.reason if plan.stop else ""

    assert of("MAJOR", "a") == (["each side compacts for itself"], "")
    assert of("REBALANCE", "a")[1].endswith(
        "was rebalanced, which gave its rows other ids, at event 3: it is rebuilt from a dump"
    )
    (reason,), stop = of("REBALANCE", "unknown")
    assert (reason.startswith("the target does not have the table"), stop) == (True, "")


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_truncation_is_carried_out_before_the_id_rises_that_says_so(*, partitioned: bool) -> None:
    """Killed, refused or held between the two, it was taken for applied: the rows stayed for good, and nothing told of it."""
    source = source_of(("create", 0, 0, int(partitioned)), ("add many", 0, 0, 0))
    image = model.table_image("a", source.tables["a"])
    image.parameters["transactional"] = "true"
    event: Event = AlterTable(3, 0, "ALTER_TABLE", "db", "a", image, image, truncate=True, write_id=7)
    if partitioned:
        parts = {name: model.partition_image("a", name, part) for name, part in source.tables["a"].parts.items()}
        changes = tuple(ChangedPartition(name, name, part, part) for name, part in parts.items())
        event = AlterPartition(3, 0, "ALTER_PARTITION", "db", "a", image, changes, truncate=True, write_id=7)
    window = WindowEvent(Notification(3, 0, event.type, "db", "a", ""), event, ())
    target = Target.replica(source, lambda: 2)
    for done in range(1 + len(plan_of(target, window).operations)):
        killed = target.copy()
        first = plan_of(target, window).operations[:done]
        for operation in first:
            killed.apply(operation)
        both = [*first, *plan_of(killed, window).operations]
        truncated = {name for one in both if isinstance(one, TruncateTransactional) for name in one.names}
        assert truncated == (set(model.PARTS) if partitioned else {""}), f"killed after {done} operations"


def plan_of(target: Target, event: WindowEvent) -> LanePlan:
    (segment,) = segments([event])
    settings = LaneSettings(target.view(ReplicaState("uuid/db", applied=2)), MAPPING, lambda _: True, acid=True)
    plan = LanePlanner(segment.lanes[0], settings).plan()[0]
    assert plan.stop is None
    return plan


def test_a_target_that_cannot_hold_them_refuses() -> None:
    ((plan, _),) = planned([allocated(3, "a", 7), ended(4, 7, "a")], unable="Hive 3")
    assert plan.stop is not None
    assert (plan.operations, plan.stop.evid, plan.stop.reason, plan.stop.refused) == ((), 3, "Hive 3", True)


def test_a_held_table_that_is_dropped_after_a_transaction_gets_nothing_of_it() -> None:
    """What the target refuses of its data is asked of it no more, nor is it gone before its drop; the transaction ends."""
    target = Target.replica(source_of(("create", 0, 0, 0), ("create", 1, 0, 0)), lambda: 2)
    row = Notification(5, 0, "DROP_TABLE", "db", "a", "{}")
    drop = WindowEvent(row, DropTable(5, 0, "DROP_TABLE", "db", "a", None), ())
    for held, tables in (({}, ["a", "b"]), ({"b": "failed"}, ["b"])):
        state = ReplicaState("uuid/db", 2, at=dict.fromkeys(held, 2), held=held)
        (segment,) = segments(with_tables([ended(4, 7, "a", "b"), drop]))
        (lane,) = segment.lanes
        plan, _ = LanePlanner(lane, LaneSettings(target.view(state), MAPPING, lambda _: True, acid=True)).plan()
        commit, dropped = plan.operations
        assert isinstance(commit, ReplayCommit)
        assert ([one.source for one in commit.written], dropped.kind, plan.stop) == (tables, "DropTable", None)


def test_which_ends_of_transactions_concern_a_database() -> None:
    def event(kind: str, **message: object) -> LogEvent:
        return LogEvent(Notification(1, 0, kind, "", "", json.dumps({"txnid": 1} | message)))

    assert ends_transaction(event("COMMIT_TXN", databases=["other", "DB"]), "db")
    assert not ends_transaction(event("COMMIT_TXN", databases=["other"]), "db")
    assert ends_transaction(event("COMMIT_TXN"), "db")  # Hive 4.0 does not tell
    assert ends_transaction(event("ABORT_TXN", dbsUpdated=["db"]), "db")
    assert not ends_transaction(event("ABORT_TXN", dbsUpdated=[]), "db")
    assert not ends_transaction(event("OPEN_TXN"), "db")
    assert ends_transaction(LogEvent(Notification(1, 0, "COMMIT_TXN", "", "", "{")), "db")  # cannot be read


def test_data_goes_where_the_lane_makes_its_object() -> None:
    ((plan, _),) = planned([ended(3, 7, "a")])
    (commit,) = plan.operations
    image = MAPPING.new_table(source_of(("create", 0, 0, 0)).events[0].after, 1)  # type: ignore[attr-defined]
    create = op.CreateTable(1, "a", image, op.Content((), "1-0"), "hdfs://dst/a")
    image.tableName = "b"
    renamed = op.RenameTable(2, "a", image)
    assert created_as([create], "a") == (0, "")
    assert created_as([create, renamed], "b") == (0, "")
    assert created_as([create, op.DropTable(2, "a")], "a") is None
    assert files_of_commits([create, commit]) == {(0, ""): {FILE.relative: FILE}}
    assert files_of_commits([replace(create, table="b"), commit]) == {}
    image.tableName = "a"
    first = replace(create, table="first")
    assert files_of_commits([first, op.RenameTable(2, "first", image), commit]) == {(0, ""): {FILE.relative: FILE}}


def test_data_goes_where_the_lane_makes_its_partition() -> None:
    """Files of a commit are wanted in the table's directory, too, below the partition's."""
    ((plan, _),) = planned([ended(3, 7, "a")])
    (commit,) = plan.operations
    assert isinstance(commit, ReplayCommit)
    create = op.CreateTable(1, "a", Table(), op.Content((), "1-0"), "hdfs://dst/a")
    add = op.AddPartitions(2, "a", (op.NewPartition("p=1", Partition(), op.Content((), "2-0")),))
    renamed = op.RenamePartition(2, "a", "p=1", "p=2", Partition())
    write = replace(commit, written=tuple(replace(one, partition="p=2") for one in commit.written))
    assert created_as([create, add, renamed], "a", "p=2") == (1, "p=1")
    assert created_as([create, add, renamed], "a", "p=1") is None
    assert created_as([create, add, op.DropPartitions(3, "a", ("p=1",))], "a", "p=1") is None
    assert files_of_commits([create, add, renamed, write]) == {
        (0, ""): {f"p=2/{FILE.relative}": FILE},
        (1, "p=1"): {FILE.relative: FILE},
    }
    assert files_of_commits([renamed, write]) == {}  # of a partition that was there before


def created_as(operations: list[op.Operation], table: str, partition: str = "") -> DataKey | None:
    created = CreatedInLane()
    for number, one in enumerate(operations):
        created.follow(number, one.name_changes)
    return created.key(table, partition)
