from __future__ import annotations

import gc
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any
from zlib import crc32

import pytest
from hive_metastore.ttypes import SQLPrimaryKey
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.format.record_types import PartitionRecord, TableRecord
from hive_replication.dump.statistics import with_statistics
from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.constraints import FOREIGN, OWN, SetConstraints
from hive_replication.load.operations.statistics import SetStatistics
from hive_replication.load.plan.bootstrap_objects import ObjectPlanner
from hive_replication.load.plan.lane_batches import in_batches
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import CHECKPOINT, LAST_ID, ReplicaState
from hive_replication.load.replica.target_partitions import TargetPartitions
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import FieldSchema, Partition
from hive_replication.policy.scope import PartitionFilters
from tests import model
from tests.replica import MAPPING, TARGET, Target, present
from tests.statistics import of_column

EVID = 50
ATTACHED = (SetConstraints, SetStatistics)
LOOKED = ["SetStatistics", "SetConstraints"]
DUMP = "hdfs://d/dump"


def table(*, partitioned: bool, version: int = 7) -> TableRecord:
    tab = model.Tab(version, f"{model.ROOT}/t", partitioned)
    files = () if partitioned else (FileRef(f"{tab.location}/f", "aa"),)
    return TableRecord(model.table_image("t", tab), files)


def attached_to(record: TableRecord) -> TableRecord:
    """The table with a primary key and statistics of a column."""
    key = SQLPrimaryKey(table_db="source", table_name="t", column_name="a", key_seq=1, pk_name="key")
    return TableRecord(with_statistics(record.table, [of_column("a", 1, 2)]), record.files, (Constraint("pks", (key,)),))


STAGED = f"{EVID}-{1 + crc32(b't')}"


def partition(name: str) -> PartitionRecord:
    part = model.Part(7, f"{model.ROOT}/t/{name}")
    return PartitionRecord("t", name, model.partition_image("t", name, part), (FileRef(f"{part.location}/f", "bb"),))


def view(
    record: TableRecord | None,
    state_id: int,
    partitions: Mapping[str, int] | None = None,
    *,
    applied: int | None = 40,
    checkpoint: str = "",
) -> TargetView:
    """A target that has the table and partitions, each with its state id, the table with the directory of a dump."""
    if record is None:
        return TargetView(ReplicaState("uuid/db", applied))
    parts = {
        ("t", name): MAPPING.new_partition(partition(name).partition, record.table, "t", evid)
        for name, evid in (partitions or {}).items()
    }
    made = MAPPING.new_table(record.table, state_id)
    made.parameters |= {CHECKPOINT: checkpoint} if checkpoint else {}
    return TargetView(ReplicaState("uuid/db", applied), {"t": made}, parts)


def plan(found: TargetView, record: TableRecord, *names: str, **options: Any) -> LanePlan:
    planner = ObjectPlanner(MAPPING, found, EVID, DUMP, **options, present=present(found))
    ((lane, skipped),) = planner.plan(record, map(partition, names))
    assert bool(skipped) == (not lane.operations and lane.stop is None and "t" in found.tables and _newer(found))
    return lane


def _newer(found: TargetView) -> bool:
    return int(found.tables["t"].parameters[LAST_ID]) > EVID


def shown(lane: LanePlan) -> list[str]:
    def one(operation: op.Operation) -> str:
        match operation:
            case op.AddPartitions():
                return f"add {' '.join(new.name for new in operation.added)}"
            case op.DropPartitions():
                return f"drop {' '.join(operation.names)}"
            case op.ReplaceData():
                assert operation.compare
                return f"replace {operation.partition}".strip()
            case _:
                return operation.kind

    assert lane.names == ("t",)
    assert {operation.evid for operation in lane.operations} <= {EVID}
    return [one(operation) for operation in lane.operations if not isinstance(operation, ATTACHED)]


def test_an_absent_table_is_created() -> None:
    lane = plan(view(None, 0), table(partitioned=False))
    (created,) = lane.operations
    assert isinstance(created, op.CreateTable)
    assert created.image.parameters[LAST_ID] == str(EVID)
    assert created.image.parameters["hive.repl.ckpt.key"] == "hdfs://d/dump"
    assert (created.plain, created.content) == (
        f"{TARGET}/t",
        op.Content(table(partitioned=False).files, STAGED, origin="hdfs://src/w/db.db/t"),
    )
    assert lane.base == 40


def test_a_partitioned_table_gets_its_state_id_last() -> None:
    lane = plan(view(None, 0), table(partitioned=True), "p=1", "p=2")
    assert shown(lane) == ["CreateTable", "add p=1 p=2", "AlterTable"]
    first, added, last = lane.operations
    assert first.image.parameters[LAST_ID] == "0"
    assert {new.image.parameters[LAST_ID] for new in added.added} == {"50"}
    assert last.image.parameters[LAST_ID] == "50"
    assert [content.staging for _, content in added.contents] == [STAGED, STAGED]


def test_staged_data_is_not_in_the_directory_of_another_table_or_of_an_event() -> None:
    """All of them may have the same event id, and a table may lie where another one's partitions would be staged."""
    other = table(partitioned=True)
    other.table.tableName = "other"
    (first, *_), (second, *_) = (plan(view(None, 0), one, "p=1").operations for one in (table(partitioned=True), other))
    staged = {content.staging for one in (first, second) for _, content in one.contents}
    assert len(staged | {staging_name(EVID, 0, transactional=False)}) == 3


def test_a_killed_bootstrap_goes_on() -> None:
    record, begun = table(partitioned=True), {"applied": None, "checkpoint": DUMP}
    assert shown(plan(view(record, 0, {"p=1": 50}, **begun), record, "p=1", "p=2")) == ["add p=2", "AlterTable"]
    assert shown(plan(view(record, 0, {"p=1": 50, "p=2": 50}, **begun), record, "p=1", "p=2")) == ["AlterTable"]
    assert plan(view(record, 50, {"p=1": 50, "p=2": 50}, **begun), record, "p=1", "p=2").operations == ()
    assert plan(view(table(partitioned=False), 50, **begun), table(partitioned=False)).operations == ()


def kinds(lane: LanePlan) -> list[str]:
    return [operation.kind for operation in lane.operations]


@pytest.mark.parametrize("applied", [None, 40])
def test_what_belongs_to_a_table_of_another_dump_is_looked_at_until_all_of_it_is_this_dumps(applied: int | None) -> None:
    """A bootstrap that began again from a second dump left the constraints and statistics that only the first one had."""
    bare, first = table(partitioned=False), {"applied": applied, "checkpoint": "hdfs://d/first"}
    lane = plan(view(bare, 30, **first), bare)
    assert kinds(lane) == ["ReplaceData", *LOOKED, "AlterTable"]
    replaced, statistics, constraints, last = lane.operations
    assert isinstance(replaced, op.ReplaceData)
    assert isinstance(statistics, SetStatistics)
    assert isinstance(constraints, SetConstraints)
    assert isinstance(last, op.AlterTable)
    assert (statistics.whole, constraints.whole) == (True, OWN | FOREIGN if applied is None else OWN)
    checkpoints = [one.image.parameters[CHECKPOINT] for one in (replaced, last)]
    assert checkpoints == ["hdfs://d/first", DUMP], "else one that is killed in between is taken for done"
    assert kinds(plan(view(bare, 50, **first), bare)) == [*LOOKED, "AlterTable"]  # killed in between
    done = {"applied": applied, "checkpoint": DUMP}
    assert kinds(plan(view(bare, 50, **done), bare)) == []
    assert kinds(plan(view(bare, 50, **done), attached_to(bare))) == LOOKED  # killed after it was created


@pytest.mark.parametrize("applied", [None, 40])
def test_statistics_of_partitions_of_another_dump_are_looked_at_until_all_of_the_table_is_this_dumps(
    applied: int | None,
) -> None:
    record = table(partitioned=True)

    def looked_at(state_id: int, checkpoint: str) -> list[str]:
        found = view(record, state_id, {"p=1": 50, "p=2": 30}, applied=applied, checkpoint=checkpoint)
        every = plan(found, record, "p=1", "p=2", "p=3").operations
        return [one.partition for each in every if isinstance(each, SetStatistics) for one in each.changes]

    assert looked_at(30, "hdfs://d/first") == looked_at(0, "hdfs://d/first") == ["p=1", "p=2", ""]
    assert looked_at(0, DUMP) == []


def test_an_older_replica_is_brought_up() -> None:
    record = table(partitioned=True)
    lane = plan(view(record, 30, {"p=1": 20, "p=2": 50, "p=3": 30}), record, "p=1", "p=2")
    assert shown(lane) == ["replace p=1", "drop p=3", "AlterTable"]
    plain = table(partitioned=False)
    assert shown(plan(view(plain, 30), plain)) == ["replace", "AlterTable"]


def test_what_is_newer_than_the_dump_stays() -> None:
    record = table(partitioned=True)
    assert shown(plan(view(record, 51), record, "p=1")) == []
    assert shown(plan(view(record, 30, {"p=1": 60, "p=2": 60}), record, "p=1")) == ["AlterTable"]
    assert shown(plan(view(record, 51), record, "p=1", repair=True)) == []


def test_a_repair_compares_what_stands_at_the_event_already() -> None:
    record = table(partitioned=True)
    found = view(record, 50, {"p=1": 50, "p=2": 50, "p=3": 60})
    assert shown(plan(found, record, "p=1", repair=True)) == ["replace p=1", "drop p=2", "AlterTable"]


def test_what_belongs_to_a_table_is_looked_at_with_it() -> None:
    def attached(lane: LanePlan) -> list[str]:
        return [operation.kind for operation in lane.operations if isinstance(operation, ATTACHED)]

    bare, record = table(partitioned=False), attached_to(table(partitioned=False))
    assert attached(plan(view(None, 0), bare)) == []
    assert attached(plan(view(None, 0), record)) == ["SetStatistics", "SetConstraints"]
    assert attached(plan(view(bare, 50, applied=50), record)) == []
    assert attached(plan(view(bare, 50, applied=None), record)) == ["SetStatistics", "SetConstraints"]
    assert attached(plan(view(bare, 30), bare)) == ["SetStatistics", "SetConstraints"]
    *_, constraints = plan(view(None, 0), record).operations
    assert isinstance(constraints, SetConstraints)
    assert [(one.kind, one.rows[0].table_db) for one in constraints.constraints] == [("pks", "db")]


def test_a_repair_of_some_partitions_leaves_the_others() -> None:
    record = table(partitioned=True)
    found = view(record, 50, {"p=1": 50, "p=2": 50})
    assert shown(plan(found, record, "p=1", "p=9", repair=True, whole=False)) == ["add p=9", "replace p=1"]
    lane = plan(view(None, 0), record, "p=1", repair=True, whole=False)
    assert lane.stop is not None
    assert ("lacks db.t" in lane.stop.reason, lane.operations) == (True, ())


@pytest.mark.parametrize(("excluded", "gone"), [("keep", ("p=4",)), ("drop", ("p=1", "p=4"))])
def test_of_partitions_outside_the_filter_those_of_replication_may_go(excluded: str, gone: tuple[str, ...]) -> None:
    """One inside that the source has no longer always goes, one that somebody else made outside never."""
    record = table(partitioned=True)
    found = view(record, 30, {"p=1": 30, "p=2": 30, "p=3": 30, "p=4": 30})
    found.partitions["t", "p=2"].parameters.pop("hive_replication.source")
    lane = plan(found, record, "p=3", filters=PartitionFilters((("t", "p >= '3'"),)), excluded=excluded)
    assert [one.names for one in lane.operations if isinstance(one, op.DropPartitions)] == [gone]


def test_a_table_that_its_filter_does_not_fit_stops_the_lane() -> None:
    transactional = table(partitioned=True)
    transactional.table.parameters["transactional"] = "true"
    for record, text in ((transactional, "p > '3'"), (table(partitioned=True), "q > '3'"), (table(partitioned=False), "p > '3'")):
        lane = plan(view(None, 0), record, filters=PartitionFilters((("t", text),)))
        assert lane.stop is not None
        assert (lane.operations, lane.stop.refused, "does not fit" in lane.stop.reason) == ((), True, True)


@pytest.mark.parametrize("conflicts", ["refuse", "adopt", "replace", "keep-aside"])
def test_partitions_that_others_have_added_to_a_replica_stay(conflicts: str) -> None:
    """They stopped the repair of all else, or went with it."""
    record = table(partitioned=True)
    names = [f"p={number}" for number in range(10)]
    found = view(record, 30, dict.fromkeys(names, 30))
    for name in names[3:]:
        found.partitions["t", name].parameters.pop("hive_replication.source")
        found.partitions["t", name].parameters.pop(LAST_ID)
    options: Any = {"conflicts": conflicts, "repair": True, "present": present(found)}
    (lane, none), (nothing, told) = ObjectPlanner(MAPPING, found, EVID, "x", **options).plan(record, map(partition, ["p=1"]))
    assert ([one.names for one in lane.operations if isinstance(one, op.DropPartitions)], none) == ([("p=0", "p=2")], [])
    assert any(isinstance(one, op.ReplaceData) for one in lane.operations)
    assert (nothing.operations, nothing.stop, [one.what for one in told]) == ((), None, ["db.t"])
    assert told[0].reason.endswith("which the source does not have, stay: p=3, p=4, p=5, p=6, p=7 and 2 more")


def test_partitions_of_others_in_a_table_that_is_adopted_go() -> None:
    record = table(partitioned=True)
    found = view(record, 0, {"p=1": 0, "p=2": 0})
    found.tables["t"].parameters["hive_replication.adopted"] = str(EVID)
    found.partitions["t", "p=2"].parameters.pop("hive_replication.source")
    found.partitions["t", "p=2"].parameters.pop(LAST_ID)
    lane = plan(found, record, "p=1", conflicts="adopt")
    assert [one.names for one in lane.operations if isinstance(one, op.DropPartitions)] == [("p=2",)]


@pytest.mark.parametrize(
    ("conflicts", "kinds"),
    [("refuse", None), ("replace", ["DropTable"]), ("keep-aside", ["KeepPartitionsAside", "DropTable"])],
)
def test_partitions_of_others_do_not_go_unasked_with_a_table_that_is_made_anew(conflicts: str, kinds: list[str] | None) -> None:
    """The drop took them along, whatever the policy said."""
    record = replace(table(partitioned=True), write_ids=WriteIds(3))
    found = view(record, 30, {"p=1": 30, "p=2": 30})
    found.partitions["t", "p=2"].parameters.pop("hive_replication.source")
    found.partitions["t", "p=2"].parameters.pop(LAST_ID)
    lane = plan(found, record, "p=1", conflicts=conflicts, repair=True)
    if kinds is None:
        assert lane.stop is not None
        assert (lane.operations, lane.stop.refused) == ((), True)
        assert "db.t/p=2 exists and is not a replica of this source: drop it there" in lane.stop.reason
    else:
        assert shown(lane)[: len(kinds)] == kinds


def test_a_foreign_object_stops_the_lane() -> None:
    record = table(partitioned=False)
    found = view(record, 30)
    found.tables["t"].parameters.pop("hive_replication.source")
    ((lane, _),) = ObjectPlanner(MAPPING, found, EVID, "x", repair=True).plan(record, ())
    assert lane.stop is not None
    assert (lane.operations, lane.stop.refused) == ((), True)
    assert "db.t is a replica of Hive" in lane.stop.reason


@pytest.mark.parametrize("change", ["keys", "type of a key", "partitioned", "view"])
def test_a_table_of_another_shape_is_dropped_first(change: str) -> None:
    old, new = table(partitioned=change != "partitioned"), table(partitioned=True)
    if change == "keys":
        new.table.partitionKeys = [FieldSchema(name="q", type="string")]
    elif change == "type of a key":
        new.table.partitionKeys = [FieldSchema(name="p", type="int")]
    elif change == "view":
        new.table.tableType = "VIRTUAL_VIEW"
    found = view(old, 30, {"p=1": 30} if change != "partitioned" else {})
    assert shown(plan(found, new, "p=1"))[:3] == ["DropTable", "CreateTable", "add p=1"]


def test_batches() -> None:
    record = table(partitioned=True)
    names = [f"p={number:04}" for number in range(1200)]
    added = [operation for operation in plan(view(None, 0), record, *names).operations if isinstance(operation, op.AddPartitions)]
    assert [len(operation.added) for operation in added] == [100] * 12
    lane = plan(view(record, 30, dict.fromkeys(names, 30)), record)
    dropped = [operation for operation in lane.operations if isinstance(operation, op.DropPartitions)]
    assert [name for operation in dropped for name in operation.names] == names


@settings(deadline=None, max_examples=100)
@given(model.actions(), model.actions(), st.integers(0, 2**16), st.booleans())
def test_killed_anywhere_a_bootstrap_ends_as_the_dump(
    older: model.Actions, newer: model.Actions, killed: int, repair: bool
) -> None:
    """Over whatever an older replica is."""
    source = model.Source()
    for action in older:
        source.act(*action)
    target = Target.replica(source, lambda: source.evid)
    target.repaired = repair
    for action in newer:
        source.act(*action)
    state = ReplicaState("uuid/db", 0)

    def planned() -> list[op.Operation]:
        made: list[op.Operation] = []
        for name, tab in sorted(source.tables.items()):
            files = () if tab.partitioned else source.refs(tab.location)
            record = TableRecord(model.table_image(name, tab), files)
            parts = [
                PartitionRecord(name, key, model.partition_image(name, key, part), source.refs(part.location))
                for key, part in sorted(tab.parts.items())
            ]
            found = target.view(state)
            planner = ObjectPlanner(MAPPING, found, source.evid + 1, "x", repair=repair, present=present(found, name))
            made += next(planner.plan(record, parts))[0].operations
        return made

    first = planned()
    for operation in first[: killed % (len(first) + 1)]:
        target.apply(operation)
    for operation in planned():
        target.apply(operation)
    kept = {name: state for name, state in target.state().items() if name in source.tables}
    assert kept == source.state()
    assert repair or planned() == []


def most_held(size: int, *, there: bool) -> int:
    """The most partitions that are in memory while a table of so many is planned in parts, over none or as many others."""
    gc.collect()  # of what other tests left behind
    record, most, planned = table(partitioned=True), 0, 0
    like = MAPPING.new_partition(partition("ds=0").partition, record.table, "t", 30)
    found = TargetPartitions(
        (f"ds={number:05}" for number in range(1, 2 * size, 2)), lambda names: {name: deepcopy(like) for name in names}
    )
    planner = ObjectPlanner(MAPPING, view(record if there else None, 30), EVID, "hdfs://d/dump", present=found)
    lanes = (lane for lane, _ in planner.plan(record, (partition(f"ds={2 * n:05}") for n in range(size)), 1_000))
    for batch in in_batches(lanes, 1_000):
        planned += sum(len(one.added) for lane in batch for one in lane.operations if isinstance(one, op.AddPartitions))
        most = max(most, sum(isinstance(one, Partition) for one in gc.get_objects()))
    assert planned == size
    return most


@pytest.mark.parametrize("there", [False, True])
def test_a_table_of_many_partitions_is_planned_in_parts(*, there: bool) -> None:
    """A lane of one part held them all."""
    assert most_held(2_000, there=there) <= 1.1 * most_held(800, there=there)


@pytest.mark.parametrize("most", [None, 1, 3, 100])
def test_parts_are_the_lane(most: int | None) -> None:
    found = view(table(partitioned=True), 40, {"ds=1": 40, "ds=2": 40, "ds=4": 40})
    names = "ds=1", "ds=2", "ds=3"
    planner = ObjectPlanner(MAPPING, found, EVID, "hdfs://d/dump", present=present(found))
    parts = [lane.operations for lane, _ in planner.plan(table(partitioned=True), map(partition, names), most)]
    assert sum(parts, ()) == plan(found, table(partitioned=True), *names).operations
    assert (len(parts) > 1) == (most is not None and most < 4)


def test_a_table_that_is_made_again_is_one_part() -> None:
    found = view(table(partitioned=False), 40)
    planner = ObjectPlanner(MAPPING, found, EVID, "hdfs://d/dump", present=present(found))
    ((lane, _),) = planner.plan(table(partitioned=True), map(partition, ("ds=1", "ds=2")), 1)
    assert isinstance(lane.operations[0], op.DropTable)


def test_batches_are_as_small_as_their_last_lane_lets_them_be() -> None:
    lanes = [plan(view(None, 0), table(partitioned=False)) for _ in range(5)]  # each: itself, its table and a file
    assert list(map(len, in_batches(lanes, 6))) == [2, 2, 1]
    assert list(map(len, in_batches(lanes, None))) == [5]
    assert list(in_batches([], 6)) == []


def test_wide_partitions_are_planned_in_smaller_parts() -> None:
    """Of 200 columns each takes as much memory as nine that have none."""
    record = table(partitioned=True)
    planner = ObjectPlanner(MAPPING, view(None, 30), EVID, "hdfs://d/dump", present=TargetPartitions())

    def largest(columns: int) -> int:
        wide = [partition(f"ds={number:05}") for number in range(2_000)]
        for one in wide:
            one.partition.sd.cols = [FieldSchema(f"c{n}", "string") for n in range(columns)]
        lanes = (lane for lane, _ in planner.plan(record, wide, 2_000))
        sizes = [
            sum(len(one.added) for lane in batch for one in lane.operations if isinstance(one, op.AddPartitions))
            for batch in in_batches(lanes, 2_000)
        ]
        assert sum(sizes) == len(wide)
        return max(sizes)

    assert largest(24) == 1_000  # with a file each
    assert largest(200) == 200
