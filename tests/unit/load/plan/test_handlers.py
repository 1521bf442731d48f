"""Handlers (design: load, its table of events): what an event that passed the gate becomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.operations.conflict_resolutions import KeepPartitionsAside
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.plan.handlers.by_event_type import handlers
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.superseded import NoLookahead
from hive_replication.load.replica.state import LAST_ID, SOURCE, ReplicaState, object_id
from hive_replication.metastore.types import Function, ResourceUri, Table
from hive_replication.policy.model import ConflictPolicy
from tests.model import PARTS, Source
from tests.replica import MAPPING, TARGET, Target

Changes = tuple[tuple[str, int, int, int], ...]
#: A table ``a`` with partitions p=0 to p=2 (events 1 and 2), and one without (event 1).
PARTITIONED: Changes = (("create", 0, 0, 1), ("add many", 0, 0, 0))
PLAIN: Changes = (("create", 0, 0, 0),)


def source_of(changes: Changes) -> Source:
    source = Source()
    for change in changes:
        source.act(*change)
    return source


def lane_on(
    target: Target, *, policy: ConflictPolicy = "refuse", gone: Mapping[tuple[int, str], int] | None = None, **more: Any
) -> LanePlanning:
    conflicts = Conflicts(policy, MAPPING.source, "db")
    return LanePlanning(target.view(ReplicaState("uuid/db", 0)), MAPPING, NoLookahead(), False, gone or {}, conflicts, **more)


def replica_on(target: Target) -> Replica:
    there = target.tables.get("a")
    return Replica("a", there is not None, object_id(there), "a" if there else "")


def handled(
    before: Changes, change: tuple[str, int, int, int], *, ids: int = 0, dropped: int | None = None, **options: Any
) -> LanePlanning:
    """What a change of the source becomes on a replica of the state before, whose objects stand at ``ids``."""
    source = source_of(before)
    target = options.pop("target", None) or Target.replica(source, lambda: ids)
    source.act(*change)
    (event,) = source.window(source.evid - 1, source.evid)
    lane = lane_on(target, **options)
    lane.partition_incarnations |= {(event.evid, name): Incarnation([(name, -1)], dropped=dropped) for name in PARTS}
    handlers()[event.row.type](lane, event, replica_on(target))
    return lane


def only(lane: LanePlanning) -> op.Operation:
    (operation,) = lane.operations
    return operation


# Tables


def test_a_new_table_comes_with_its_files_and_its_state_id() -> None:
    made = only(handled((("nothing", 0, 0, 0),), ("create", 0, 0, 0)))
    assert isinstance(made, op.CreateTable)
    assert (made.plain, made.image.parameters[LAST_ID], made.image.parameters[SOURCE]) == (f"{TARGET}/a", "2", MAPPING.source)
    assert [file.relative for file in made.content.files] == ["000000_0"]


def test_an_older_replica_in_the_way_of_a_new_table_stops() -> None:
    target = Target.replica(source_of(PLAIN), lambda: 0)
    with pytest.raises(LaneStopped, match=r"an older db\.a in the way"):
        handled((), ("create", 0, 0, 0), target=target)


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        ("adopt", ["Adopt", "ReplaceData"]),
        ("replace", ["DropStranger", "CreateTable"]),
        ("keep-aside", ["KeepAside", "CreateTable"]),
    ],
)
def test_a_foreign_object_in_the_way_of_a_new_table(policy: ConflictPolicy, kinds: list[str]) -> None:
    source, target = source_of(PLAIN), Target.replica(source_of(PLAIN), lambda: 0)
    del target.tables["a"].parameters[SOURCE], target.tables["a"].parameters[LAST_ID]
    (event,) = source.window(0, 1)
    lane = lane_on(target, policy=policy)
    handlers()["CREATE_TABLE"](lane, event, Replica("a", present=False, state_id=0, found_as=""))
    assert [one.kind for one in lane.operations] == kinds
    replaced = lane.operations[-1]
    assert policy != "adopt" or (isinstance(replaced, op.ReplaceData) and replaced.compare)
    with pytest.raises(LaneStopped, match="exists and is not a replica"):
        handlers()["CREATE_TABLE"](lane_on(target), event, Replica("a", present=False, state_id=0, found_as=""))


def test_a_change_of_a_table_is_metadata_only() -> None:
    altered = only(handled(PLAIN, ("alter", 0, 0, 0)))
    assert isinstance(altered, op.AlterTable)
    assert altered.image.parameters[LAST_ID] == "2"


@pytest.mark.parametrize("kind", ["truncate", "relocate"])
def test_a_truncation_and_a_new_location_replace_the_data(kind: str) -> None:
    assert isinstance(only(handled(PLAIN, (kind, 0, 0, 1))), op.ReplaceData)
    # A dump without data changes metadata alone.
    assert isinstance(only(handled(PLAIN, (kind, 0, 0, 1), metadata_only=True)), op.AlterTable)


def test_a_rename_needs_its_new_name_free() -> None:
    lane = handled(PLAIN, ("rename", 0, 0, 0))
    renamed = only(lane)
    assert isinstance(renamed, op.RenameTable)
    assert (renamed.table, renamed.image.tableName) == ("a", "b")
    assert lane.require_free("a", 9) is None
    with pytest.raises(LaneStopped, match=r"an older db\.b in the way"):
        lane.require_free("b", 9)
    both = Target.replica(source_of((*PLAIN, ("create", 1, 0, 0))), lambda: 0)
    with pytest.raises(LaneStopped, match=r"an older db\.b in the way"):
        handled(PLAIN, ("rename", 0, 0, 0), target=both)


def test_columns_that_a_change_brought_to_partitions_come_first() -> None:
    source = source_of(PARTITIONED)
    target = Target.replica(source, lambda: 0)
    source.act("alter", 0, 0, 0)
    (event,) = source.window(2, 3)
    lane = lane_on(target)
    handlers()["ALTER_TABLE"](lane, replace(event, groups=(FileGroup("p=1", ()),)), replica_on(target))
    assert [type(one) for one in lane.operations] == [SetColumns, op.AlterTable]


def test_a_dropped_table_is_gone_for_what_comes_after() -> None:
    source, target = source_of((*PLAIN, ("drop", 0, 0, 0))), Target.replica(source_of(PLAIN), lambda: 0)
    lane, replica = lane_on(target), replica_on(target)
    handlers()["DROP_TABLE"](lane, source.window(1, 2)[0], replica)
    assert (only(lane), replica.present) == (op.DropTable(2, "a"), False)
    assert lane.require_free("a", 3) is None


# Partitions


def test_new_partitions_are_added_in_one_call() -> None:
    added = only(handled(PARTITIONED[:1], ("add many", 0, 0, 0)))
    assert isinstance(added, op.AddPartitions)
    assert [new.name for new in added.added] == list(PARTS)


def test_of_several_partitions_those_are_added_that_the_target_lacks() -> None:
    target = Target.replica(source_of(PARTITIONED), lambda: 2)
    del target.partitions["a", "p=1"]
    older = target.partitions["a", "p=2"]
    older.parameters[LAST_ID] = "1"
    lane = handled(PARTITIONED[:1], ("add many", 0, 0, 0), target=replace(target, tables=target.tables | {"a": unset(target)}))
    assert [one.reason for one in lane.skipped] == ["applied already (state id 2)"]
    replaced, added = lane.operations
    assert isinstance(replaced, op.ReplaceData)
    assert isinstance(added, op.AddPartitions)
    assert (replaced.partition, [new.name for new in added.added]) == ("p=2", ["p=1"])


def unset(target: Target) -> Table:
    """The replica of a table whose state id has not risen yet."""
    return MAPPING.new_table(target.tables["a"], 1)


def test_a_new_partition_that_is_dropped_in_the_window_is_left_out() -> None:
    lane = handled(PARTITIONED[:1], ("add many", 0, 0, 0), dropped=7)
    assert (lane.operations, {one.reason for one in lane.skipped}) == ([], {"dropped at event 7 of this window"})


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [("adopt", ["ReplaceData"]), ("replace", ["ReplaceData"]), ("keep-aside", ["KeepPartitionsAside", "AddPartitions"])],
)
def test_a_foreign_object_in_the_way_of_a_new_partition(policy: ConflictPolicy, kinds: list[str]) -> None:
    target = Target.replica(source_of((PARTITIONED[0], ("insert", 0, 0, 0))), lambda: 0)
    target.partitions["a", "p=0"].parameters.clear()
    lane = handled(PARTITIONED[:1], ("insert", 0, 0, 0), target=target, policy=policy)
    assert [one.kind for one in lane.operations] == kinds
    first = lane.operations[0]
    assert isinstance(first, KeepPartitionsAside) or (isinstance(first, op.ReplaceData) and first.compare == (policy == "adopt"))
    with pytest.raises(LaneStopped, match="exists and is not a replica"):
        handled(PARTITIONED[:1], ("insert", 0, 0, 0), target=target)


def test_changes_of_a_partition() -> None:
    altered = only(handled(PARTITIONED, ("alter part", 0, 0, 0)))
    assert isinstance(altered, op.AlterPartitions)
    for kind in ("truncate", "relocate"):
        assert isinstance(only(handled(PARTITIONED, (kind, 0, 0, 1))), op.ReplaceData)
    dropped = only(handled(PARTITIONED, ("drop many", 0, 0, 1)))
    assert dropped == op.DropPartitions(3, "a", ("p=0", "p=1"))


@pytest.mark.parametrize("change", [("truncate", 0, 0, 1), ("insert", 0, 0, 0)])
def test_what_more_partitions_read_than_the_event_names_stops(change: tuple[str, int, int, int]) -> None:
    source = source_of(PARTITIONED)
    lane = lane_on(Target.replica(source, lambda: 0))
    source.act(*change)
    (event,) = source.window(source.evid - 1, source.evid)
    lane.partition_incarnations |= {(event.evid, name): Incarnation([(name, -1)]) for name in PARTS}
    with pytest.raises(LaneStopped, match="p=9 shares the directory of a partition of event 3"):
        handlers()[event.row.type](lane, replace(event, shared="p=9"), Replica("a", present=True, state_id=0, found_as="a"))


@pytest.mark.parametrize("before", [PLAIN, PARTITIONED])
@pytest.mark.parametrize(("listed", "kinds"), [(True, {"ReplaceData"}), (False, {"AlterTable", "AlterPartitions"})])
def test_a_new_location_whose_content_was_replaced_later_leaves_the_content(
    before: Changes, kinds: set[str], *, listed: bool
) -> None:
    """What lay there nobody knows any more: a lane that was held before the later event showed no rows at all."""
    source = source_of(before)
    target = Target.replica(source, lambda: 0)
    source.act("relocate", 0, 0, 1)
    (event,) = source.window(source.evid - 1, source.evid)
    lane = lane_on(target)
    lane.partition_incarnations |= {(event.evid, name): Incarnation([(name, -1)]) for name in PARTS}
    groups = tuple(replace(group, files=(), listed=listed) for group in event.groups)
    handlers()[event.row.type](lane, replace(event, groups=groups), replica_on(target))
    assert only(lane).kind in kinds


def test_a_renamed_partition_is_known_under_its_new_name() -> None:
    source = source_of((PARTITIONED[0], ("insert", 0, 0, 0)))
    target = Target.replica(source, lambda: 0)
    source.act("rename part", 0, 0, 0)
    (event,) = source.window(2, 3)
    lane, replica = lane_on(target), replica_on(target)
    lane.partition_incarnations[3, "p=0"] = Incarnation([("p=0", -1)])
    handlers()["ALTER_PARTITION"](lane, event, replica)
    assert isinstance(only(lane), op.RenamePartition)
    assert replica.partitions == {"p=0": False, "p=1": True}


@pytest.mark.parametrize(
    ("before", "change"),
    [
        (PARTITIONED, ("alter part", 0, 0, 0)),
        (PARTITIONED, ("truncate", 0, 0, 0)),
        (PARTITIONED, ("relocate", 0, 0, 1)),
        (PARTITIONED, ("drop many", 0, 0, 2)),
        (PARTITIONED, ("insert", 0, 0, 0)),
        (PARTITIONED, ("overwrite", 0, 0, 0)),
        (PARTITIONED[:1], ("add many", 0, 0, 0)),
    ],
)
def test_a_repeat_changes_nothing(before: Changes, change: tuple[str, int, int, int]) -> None:
    """Each partition stands at the event, or is gone, and its table does not yet: as after a crash."""
    after = source_of((*before, change))
    target = Target.replica(after, lambda: after.evid)
    if after.tables["a"].parts:
        target.tables["a"] = MAPPING.new_table(target.tables["a"], 0)
    lane = handled(before, change, target=target, dropped=after.evid)
    assert (lane.operations, all(one.reason for one in lane.skipped)) == ([], True)


def test_a_repeated_rename_of_a_partition_changes_nothing() -> None:
    source = source_of((PARTITIONED[0], ("insert", 0, 0, 0), ("rename part", 0, 0, 0)))
    target = Target.replica(source, lambda: 3)
    target.tables["a"] = unset(target)
    lane = lane_on(target)
    lane.partition_incarnations[3, "p=0"] = Incarnation([("p=0", -1), ("p=1", 3)])
    handlers()["ALTER_PARTITION"](lane, source.window(2, 3)[0], replica_on(target))
    assert (lane.operations, [one.reason for one in lane.skipped]) == ([], ["applied already (state id 3)"])


# INSERT


@pytest.mark.parametrize("before", [PLAIN, PARTITIONED], ids=["table", "partition"])
def test_an_insert_appends_and_an_overwrite_replaces(before: Changes) -> None:
    appended = only(handled(before, ("insert", 0, 0, 0)))
    assert isinstance(appended, op.AppendData)
    replaced = only(handled(before, ("overwrite", 0, 0, 0)))
    assert isinstance(replaced, op.ReplaceData)
    assert not replaced.compare
    # Without a list of its files it is compared with the listing of the dump's time.
    listed = only(handled(before, ("insert unlisted", 0, 0, 0)))
    assert isinstance(listed, op.ReplaceData)
    assert listed.compare


def test_two_files_of_one_place_stop() -> None:
    """A dump of an earlier version tells of no sub-directories: one of the two would be lost."""
    source = source_of(PLAIN)
    target = Target.replica(source, lambda: 0)
    source.act("insert", 0, 0, 0)
    (event,) = source.window(1, 2)
    files = tuple(FileRef(f"hdfs://src/w/db.db/a/HIVE_UNION_SUBDIR_{n}/000000_0", f"c{n}") for n in (1, 2))
    flat = replace(event, groups=(FileGroup("", files),))
    with pytest.raises(LaneStopped, match=r"SUBDIR_1/000000_0 and .*SUBDIR_2/000000_0 of event 2 would have one place"):
        handlers()["INSERT"](lane_on(target), flat, replica_on(target))
    nested = tuple(replace(file, subdir=file.uri.split("/")[-2]) for file in files)
    lane = lane_on(target)
    handlers()["INSERT"](lane, replace(event, groups=(FileGroup("", nested),)), replica_on(target))
    (brought,) = only(lane).contents
    assert brought[1].files == nested


def test_an_insert_whose_files_are_superseded_is_skipped() -> None:
    lane = handled(PLAIN, ("insert", 0, 0, 0), gone={(2, ""): 8})
    assert lane.operations == []
    (skipped,) = lane.skipped
    why = "its files are gone, or the target has others of their names"
    assert skipped.reason == f"superseded: {why}, and event 8 drops, replaces or moves the object away"


# Transactions

FILE = FileRef("hdfs://src/w/db.db/a/delta_1_1_0000/f", "00", "", "delta_1_1_0000")


def commit(*writes: tx.TransactionWrite, file: FileRef = FILE) -> WindowEvent:
    event = tx.CommitTransaction(9, 0, "COMMIT_TXN", "db", "", transaction=7, tables=("a",), writes=writes)
    groups = tuple(FileGroup(one.partition, (file,), table=one.table) for one in writes)
    return WindowEvent(r.Notification(9, 0, "COMMIT_TXN", "db", "", "{}"), event, groups)


def committed(event: WindowEvent, *, dropped: int | None = None, due: bool = True) -> LanePlanning:
    target = Target.replica(source_of(PARTITIONED), lambda: 0)
    lane = lane_on(target)
    if due:
        lane.written[9, "a"] = replica_on(target)
    lane.partition_incarnations |= {(9, f"a/{name}"): Incarnation([(name, -1)], dropped=dropped) for name in (*PARTS, "p=9")}
    handlers()["COMMIT_TXN"](lane, event, replica_on(target))
    return lane


def test_a_commit_brings_what_the_transaction_wrote() -> None:
    ended = only(committed(commit(tx.TransactionWrite("a", "p=0", 1), tx.TransactionWrite("a", "p=1", 1))))
    assert [(name, content.files) for name, content in ended.contents] == [("a/p=0", (FILE,)), ("a/p=1", (FILE,))]


def test_a_commit_ends_where_nothing_of_it_is_due() -> None:
    ended = only(committed(commit(tx.TransactionWrite("a", "p=0", 1)), due=False))
    assert (ended.kind, list(ended.contents)) == ("CommitTransaction", [])


def test_a_commit_to_a_partition_that_the_target_lacks() -> None:
    lane = committed(commit(tx.TransactionWrite("a", "p=9", 1)), dropped=12)
    assert list(only(lane).contents) == []
    assert [one.reason for one in lane.skipped] == ["the target does not have the partition any more"]
    with pytest.raises(LaneStopped, match=r"the target lacks db\.a/p=9"):
        committed(commit(tx.TransactionWrite("a", "p=9", 1)))


def test_files_that_later_transactions_go_on_writing_stop_the_lane() -> None:
    shared = replace(FILE, uri="hdfs://src/w/db.db/a/delta_1_9/f", subdir="delta_1_9")
    with pytest.raises(LaneStopped, match="one of several transactions of a streaming batch"):
        committed(commit(tx.TransactionWrite("a", "p=0", 1), file=shared))


# Constraints, statistics, functions


def statistics(kind: str, event: r.Event, *, ids: int = 0) -> LanePlanning:
    target = Target.replica(source_of(PARTITIONED), lambda: ids)
    target.tables["a"] = unset(target)
    lane = lane_on(target)
    lane.partition_incarnations[9, "p=0"] = Incarnation([("p=0", -1)])
    handlers()[kind](lane, WindowEvent(r.Notification(9, 0, kind, "db", "a", "{}"), event, ()), replica_on(target))
    return lane


@pytest.mark.parametrize("partition", ["", "p=0"])
def test_statistics_of_a_table_and_of_a_partition(partition: str) -> None:
    head = (9, 0, "UPDATE_TBL_COL_STAT_EVENT", "db", "a")
    update = r.UpdateStatistics(*head, partition_name=partition, columns=(), accurate="")
    delete = r.DeleteStatistics(*head, partition_name=partition, column="")
    assert only(statistics("UPDATE_PART_COL_STAT_EVENT", update)).kind == "SetStatistics"
    assert only(statistics("DELETE_PART_COL_STAT_EVENT", delete)).kind == "DeleteStatistics"
    if partition:
        for kind, event in (("UPDATE_PART_COL_STAT_EVENT", update), ("DELETE_PART_COL_STAT_EVENT", delete)):
            lane = statistics(kind, event, ids=9)
            assert (lane.operations, [one.reason for one in lane.skipped]) == ([], ["applied already (state id 9)"])


@pytest.mark.parametrize("partition", ["", "p=0"])
def test_statistics_of_another_engine_stay_where_they_are(partition: str) -> None:
    """Those of Impala's COMPUTE STATS became Hive's own on the replica, where the source has none."""
    head = (9, 0, "UPDATE_PART_COL_STAT_EVENT", "db", "a")
    update = r.UpdateStatistics(*head, partition_name=partition, columns=(), accurate="", engine="impala")
    lane = statistics("UPDATE_PART_COL_STAT_EVENT", update)
    assert (lane.operations, [one.reason for one in lane.skipped]) == ([], ["statistics of the engine impala are not replicated"])


def test_a_constraint_is_dropped_by_its_name() -> None:
    lane = statistics("DROP_CONSTRAINT", r.DropConstraint(9, 0, "DROP_CONSTRAINT", "db", "a", constraint="k"))
    assert only(lane).kind == "DropConstraint"


@pytest.mark.parametrize("named", ["hdfs://src/w/db.db/f.jar", "hdfs:///w/db.db/f.jar"])
def test_a_function_comes_with_its_resources(named: str) -> None:
    uri = "hdfs://src/w/db.db/f.jar"
    image = Function(functionName="F", dbName="db", className="C", resourceUris=[ResourceUri(resourceType=1, uri=named)])
    event = r.CreateFunction(9, 0, "CREATE_FUNCTION", "db", "", function="f", after=image)
    row = r.Notification(9, 0, "CREATE_FUNCTION", "db", "", "{}")
    lane, nothing = lane_on(Target()), Replica("f()", present=False, state_id=0, found_as="")
    handlers()["CREATE_FUNCTION"](lane, WindowEvent(row, event, (FileGroup("", (FileRef(uri),)),)), nothing)
    assert [file.uri for _, content in only(lane).contents for file in content.files] == [uri]
    assert [one.uri for one in only(lane).image.resourceUris] == ["hdfs://dst/w/db.db/.repl/functions/db/f/9/f.jar"]
    superseded = lane_on(Target(), gone={(9, ""): 11})
    handlers()["CREATE_FUNCTION"](superseded, WindowEvent(row, event, (FileGroup("", (FileRef(uri),)),)), nothing)
    assert (superseded.operations, len(superseded.skipped)) == ([], 1)
    dropped = lane_on(Target())
    gone = r.DropFunction(10, 0, "DROP_FUNCTION", "db", "", function="f")
    handlers()["DROP_FUNCTION"](dropped, WindowEvent(replace(row, evid=10, type="DROP_FUNCTION"), gone, ()), nothing)
    assert only(dropped).kind == "DropFunction"
