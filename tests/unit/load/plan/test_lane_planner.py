"""Lanes planned from every state that a crash can leave: the end is always the state of the source, and nothing is left then."""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.errors import ReplicationError
from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan import lane_planner
from hive_replication.load.plan.handlers.by_event_type import handlers
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, refused, segments
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON, TAKEN_IN_REASON
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.report import Skipped
from hive_replication.metastore.constraints import KINDS as CONSTRAINTS
from hive_replication.metastore.constraints import Constraint, grouped
from hive_replication.metastore.types import Partition, StorageDescriptor, Table, copy_of
from hive_replication.policy.model import ConflictPolicy
from hive_replication.policy.scope import PartitionFilters
from tests.model import KINDS, ROOT, Actions, Part, Source, Tab, actions, includes, partition_image, table_image
from tests.replica import MAPPING, TARGET, Target


def plans(source: Source, target: Target, state: ReplicaState, until: int, after: int | None = None) -> list[LanePlan]:
    """What a load of the window does, which must be possible."""
    begin = min([state.applied or 0, *state.at.values()]) if after is None else after
    (segment,) = segments(source.window(begin, until))
    view = target.view(state)
    made = [LanePlanner(lane, LaneSettings(view, MAPPING, includes)).plan()[0] for lane in segment.lanes]
    assert [plan.stop for plan in made if plan.stop] == []
    return made


def operations(made: list[LanePlan]) -> list[op.Operation]:
    return [operation for plan in made for operation in plan.operations]


def replicated(before: Actions, seed: int) -> tuple[Source, Target, ReplicaState]:
    """A source after some changes, and its replica with any state ids up to then."""
    source = Source()
    for action in before:
        source.act(*action)
    ids = random.Random(seed)
    return source, Target.replica(source, lambda: ids.randint(0, source.evid)), ReplicaState("uuid/db", source.evid)


def finish(source: Source, target: Target, state: ReplicaState) -> None:
    """The window is carried out to its end, which is the source's state; repeated, it does nothing."""
    for operation in operations(plans(source, target, state, source.evid)):
        target.apply(operation)
    assert target.state() == source.state()
    assert operations(plans(source, target, state, source.evid)) == []
    done = ReplicaState("uuid/db", source.evid)
    assert operations(plans(source, target, done, source.evid, after=state.applied)) == []


@settings(deadline=None, max_examples=150)
@given(actions(), actions((*KINDS, "rename out")), st.integers(0, 2**32))
def test_a_load_killed_after_any_operation_is_finished_by_the_next(before: Actions, window: Actions, seed: int) -> None:
    source, start, state = replicated(before, seed)
    for action in window:
        source.act(*action)
    planned = operations(plans(source, start, state, source.evid))
    for killed in range(len(planned) + 1):
        target = start.copy()
        for operation in planned[:killed]:
            target.apply(operation)
        finish(source, target, state)


@dataclass(frozen=True)
class Stage:
    """A load that does not come to its end: of the window up to an event, of each lane only a share.

    Args:
        until: where its window ends, as a share of all events.
        shares: how much of each lane is carried out, in turn.
        ahead: whether names whose lane is carried out whole are noted as ahead, as a repair does.
    """

    until: float
    shares: tuple[float, ...]
    ahead: bool


stages = st.lists(
    st.builds(Stage, st.floats(0, 1), st.tuples(*[st.sampled_from([0.0, 0.3, 0.7, 1.0])] * 3), st.booleans()), max_size=3
)


@settings(deadline=None, max_examples=100)
@given(actions(), actions(most=20), st.integers(0, 2**32), stages)
def test_held_and_repaired_lanes_come_to_the_same_end(before: Actions, window: Actions, seed: int, stages: list[Stage]) -> None:
    """Lanes of a short window stop anywhere, then a longer window joins them by renames."""
    source, target, state = replicated(before, seed)
    begin = source.evid
    for action in window:
        source.act(*action)
    for stage in sorted(stages, key=lambda stage: stage.until):
        until = begin + int(stage.until * (source.evid - begin))
        for plan, share in zip(plans(source, target, state, until), stage.shares, strict=False):
            done = plan.operations[: round(share * len(plan.operations))]
            for operation in done:
                target.apply(operation)
            if stage.ahead and len(done) == len(plan.operations):
                for name in plan.names:
                    state = state.at_position(name, until)
    finish(source, target, state)


def planned(source: Source, target: Target, after: int, **options: Any) -> tuple[LanePlan, list[Skipped]]:
    (segment,) = segments(source.window(after, source.evid))
    (lane,) = segment.lanes
    mapping = options.pop("mapping", MAPPING)
    state = options.pop("state", ReplicaState("uuid/db", after))
    gone = options.pop("gone", None)
    return LanePlanner(lane, LaneSettings(target.view(state), mapping, options.pop("includes", includes), **options), gone).plan()


def kinds(plan: LanePlan) -> list[str]:
    return [operation.kind for operation in plan.operations]


def source_of(*changes: tuple[str, int, int, int]) -> Source:
    source = Source()
    for change in changes:
        source.act(*change)
    return source


def test_renamed_out_of_the_policy_is_dropped() -> None:
    source = source_of(("create", 0, 0, 0), ("rename out", 0, 0, 0))
    plan, _ = planned(source, Target.replica(source_of(("create", 0, 0, 0)), lambda: 1), 1)
    assert (kinds(plan), plan.names, plan.base) == (["DropTable"], ("a",), 1)


@pytest.mark.parametrize("error", [KeyError("odd"), ReplicationError("the log cannot be read"), OSError("no answer")], ids=repr)
def test_a_handler_that_fails_in_a_way_that_nobody_foresaw_stops_its_lane(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As one of a site may. What the plan asks others for, as the log, concerns all lanes."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(lane_planner, "handlers", lambda: {**handlers(), "INSERT": fail})
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0))
    if isinstance(error, KeyError):
        plan, _ = planned(source, Target(), 0)
        assert (kinds(plan), plan.stop and plan.stop.evid) == (["CreateTable"], 2)
        assert plan.stop is not None
        assert plan.stop.reason.endswith("KeyError: 'odd'")
    else:
        with pytest.raises(type(error)):
            planned(source, Target(), 0)


ENTERED = (("create", 0, 0, 0), ("rename", 0, 0, 0), ("insert", 1, 0, 0))  # a becomes b at event 2


def only_b(name: str) -> bool:
    return name == "b"


def test_renamed_into_the_policy_comes_whole() -> None:
    plan, skipped = planned(source_of(*ENTERED), Target(), 1, includes=only_b)
    assert (plan.stop, plan.coming, plan.names, kinds(plan)) == (None, ("b",), ("b",), [])
    assert {one.evid: "comes whole" in one.reason for one in skipped} == {2: True, 3: True}


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_hold_under_the_new_name_is_not_ended_by_the_old_one(at: int) -> None:
    """The old name is not of the policy, so it stands at the database's event: that says nothing of the table."""
    held = ReplicaState("uuid/db", 3, at={"b": at}, held={"b": f"{TAKEN_IN_REASON}and comes whole"})
    plan, _ = planned(source_of(*ENTERED), Target(), 1, includes=only_b, state=held)
    assert plan.coming == ("b",)
    plan, _ = planned(source_of(*ENTERED), Target(), 1, includes=only_b, state=ReplicaState("uuid/db", 3, at={"b": at}))
    assert plan.coming == (("b",) if at < 2 else ())  # an event that stands applied brings nothing back


def test_what_came_whole_is_not_awaited_any_more() -> None:
    source = source_of(*ENTERED)
    plan, skipped = planned(source, Target.replica(source, lambda: 3), 1, includes=only_b)
    assert (plan.coming, kinds(plan), [one.evid for one in skipped]) == ((), [], [2, 3])


def test_what_is_awaited_and_goes_away_is_not_awaited_any_more() -> None:
    source = source_of(*ENTERED, ("drop", 1, 0, 0))
    assert planned(source, Target(), 1, includes=only_b)[0].coming == ()
    held = ReplicaState("uuid/db", 3, at={"b": 3}, held={"b": f"{TAKEN_IN_REASON}and comes whole"})
    assert planned(source, Target(), 3, includes=only_b, state=held)[0].coming == ()


def test_a_newcomer_comes_under_its_last_name() -> None:
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0), ("rename", 0, 0, 0))
    plan, _ = planned(source, Target(), 1, newcomer=lambda name: name == "a")
    assert (plan.stop, plan.coming, kinds(plan)) == (None, ("b",), [])


@pytest.mark.parametrize(("after", "done"), [(1, ["DropTable"]), (0, [])])
def test_what_nothing_tells_of_and_is_renamed_comes_whole_under_its_last_name(after: int, done: list[str]) -> None:
    source = source_of(("create", 0, 0, 0), ("alter", 0, 0, 0), ("rename", 0, 0, 0), ("insert", 1, 0, 0))
    source.events[1] = replace(source.events[1], untold=True)  # type: ignore[call-arg] (an ALTER_TABLE)
    target = Target.replica(source_of(("create", 0, 0, 0)), lambda: 1) if after else Target()
    plan, _ = planned(source, target, after)
    assert (plan.stop, plan.coming, plan.names, kinds(plan)) == (None, ("b",), ("a", "b"), done)
    for operation in plan.operations:
        target.apply(operation)
    plan, _ = planned(source, target, after)  # killed before the dump was loaded
    assert (plan.stop, plan.coming, kinds(plan)) == (None, ("b",), [])
    plan, _ = planned(source, Target.replica(source, lambda: 4), after)
    assert (plan.stop, plan.coming, kinds(plan)) == (None, (), [])


@pytest.mark.parametrize(
    ("obstacle", "coming"),
    [({"shared": "p=9"}, ("b",)), ({"outside": "a partition was renamed into the filter"}, ("b",)), ({}, ())],
)
def test_what_would_be_rebuilt_and_is_renamed_comes_whole_under_its_last_name(
    obstacle: dict[str, str], coming: tuple[str, ...]
) -> None:
    """Nobody had a dump of the table under the name that it had, and its lane was held for good."""
    before = ("create", 0, 0, 1), ("insert", 0, 0, 0)
    source = source_of(*before, ("rename part", 0, 0, 0), ("rename", 0, 0, 0))  # p=0 to p=1
    altered, renamed = source.window(2, 4)
    (segment,) = segments([replace(altered, **obstacle), renamed])
    (lane,) = segment.lanes
    filters = PartitionFilters((("*", "p >= '1'"),) if "outside" in obstacle else ())
    target = Target.replica(source_of(*before), lambda: 2)
    settings = LaneSettings(target.view(ReplicaState("uuid/db", 2)), MAPPING, includes, filters=filters)
    plan, _ = LanePlanner(lane, settings).plan()
    assert (plan.stop, plan.coming) == (None, coming)
    assert kinds(plan) == (["DropTable"] if coming else ["RenamePartition", "RenameTable"])


@pytest.mark.parametrize(("stands", "undumped"), [(3, frozenset[str]()), (2, frozenset("b"))])
def test_what_was_rebuilt_already_or_has_no_dump_is_not_dropped_for_its_new_name(stands: int, undumped: frozenset[str]) -> None:
    """All its files were copied again; where there was no dump, readers lost what they had."""
    before = ("create", 0, 0, 1), ("insert", 0, 0, 0), ("rename part", 0, 0, 0)
    source = source_of(*before, ("rename", 0, 0, 0))
    altered, renamed = source.window(2, 4)
    (segment,) = segments([replace(altered, shared="p=9"), renamed])
    (lane,) = segment.lanes
    target = Target.replica(source_of(*before[:stands]), lambda: stands)
    view = target.view(ReplicaState("uuid/db", 2))
    plan, _ = LanePlanner(lane, LaneSettings(view, MAPPING, includes, undumped=undumped.intersection)).plan()
    assert (kinds(plan), plan.stop and plan.stop.evid, plan.coming) == (([], 3, ()) if undumped else (["RenameTable"], None, ()))


def test_a_replica_that_left_the_policy_is_no_replica_of_what_takes_its_name() -> None:
    source = source_of(("create", 0, 0, 0), ("drop", 0, 0, 0), ("create", 0, 0, 0))
    target = Target.replica(source_of(("create", 0, 0, 0)), lambda: 1)
    plan, _ = planned(source, target, 2, state=ReplicaState("uuid/db", 2, left={"a": 1}))
    assert (plan.stop, kinds(plan)) == (None, ["DropTable", "CreateTable"])


def test_a_rename_is_applied_where_both_names_stand_beyond_it() -> None:
    """The old name belongs to another table by now, which was rebuilt: what it held before is under the new one, or lacks."""
    source = source_of(("create", 0, 0, 0), ("rename", 0, 0, 0), ("create", 0, 0, 0))
    target = Target.replica(source, lambda: 3)
    del target.tables["b"], target.files["b", ""]
    plan, _ = planned(source, target, 1, state=ReplicaState("uuid/db", 1, at={"a": 3}))
    assert plan.stop is not None
    assert (plan.stop.evid, "lacks db.b" in plan.stop.reason) == (2, True)


def test_a_foreign_object_with_the_name_is_refused() -> None:
    source = source_of(("create", 0, 0, 0))
    target = Target.replica(source, lambda: 0)
    target.tables["a"].parameters.clear()
    plan, _ = planned(source, target, 0)
    assert plan.stop is not None
    assert (plan.stop.evid, plan.stop.refused, kinds(plan)) == (1, True, [])
    assert "db.a exists and is not a replica" in plan.stop.reason


def test_what_holds_a_lane_is_no_matter_where_its_table_is_dropped_in_the_window() -> None:
    """The lane was held, and tried, for ever: the source has no table that could be repaired."""
    source = source_of(("create", 0, 0, 0), ("create", 2, 0, 0), ("alter", 2, 0, 0), ("rename", 0, 0, 0), ("drop", 1, 0, 0))
    assert [event.names for event in source.events] == [("a",), ("c",), ("c",), ("a", "b"), ("b",)]
    target = Target.replica(source_of(("create", 0, 0, 0)), lambda: 1)
    target.tables["b"] = copy_of(target.tables["a"])
    target.tables["b"].parameters = {}
    (lane,) = [one for one in segments(source.window(1, 5))[0].lanes if "a" in one.names]
    plan, _ = LanePlanner(lane, LaneSettings(target.view(ReplicaState("uuid/db", 1)), MAPPING, includes)).plan()
    assert ([(one.kind, one.table) for one in plan.operations], plan.stop) == ([("DropTable", "a")], None)


@pytest.mark.parametrize("later", [7, None])
def test_an_archived_partition_holds_its_table_until_it_is_unarchived(later: int | None) -> None:
    source = source_of(("create", 0, 0, 0))
    target, table = Target.replica(source, lambda: 1), source.events[0]
    assert isinstance(table, r.CreateTable)
    part = Partition(values=["0"], sd=StorageDescriptor(location="har://hdfs-src:8020/w/data.har"), parameters={})
    change = r.ChangedPartition("p=0", "p=0", None, part)
    archived = r.AlterPartition(5, 0, "ALTER_PARTITION", "db", "a", table.after, (change,), truncate=False)
    event = WindowEvent(r.Notification(5, 0, "ALTER_PARTITION", "db", "a", ""), archived, (), outside="is an archive")
    lookahead = SimpleNamespace(superseded=lambda *_: later)
    settled = LaneSettings(target.view(ReplicaState("uuid/db", 1)), MAPPING, includes, lookahead=lookahead)
    plan, skipped = LanePlanner(segments([event])[0].lanes[0], settled).plan()
    assert (plan.operations, plan.stop and plan.stop.reason) == ((), None if later else "is an archive")
    assert len(skipped) == (1 if later else 0)


def test_a_foreign_object_at_the_destination_of_a_rename() -> None:
    source = source_of(("create", 0, 0, 0), ("alter", 0, 0, 0), ("rename", 0, 0, 0))
    target = Target.replica(source_of(("create", 0, 0, 0)), lambda: 1)
    target.tables["b"] = copy_of(target.tables["a"])
    target.tables["b"].parameters = {}
    plan, _ = planned(source, target, 1)
    assert plan.stop is not None
    assert (plan.stop.evid, plan.stop.refused, kinds(plan)) == (3, True, ["AlterTable"])


def with_foreign(target: Target, partition: str) -> Target:
    """The same with a partition of the table ``a`` that somebody has added on the target."""
    target.partitions["a", partition] = partition_image("a", partition, Part(9, f"{TARGET}/a/{partition}"))
    target.files["a", partition] = {"theirs": "t"}
    return target


@pytest.mark.parametrize("policy", ["adopt", "replace"])
@pytest.mark.parametrize("gone", [{}, {(2, "p=0"): 3}], ids=["with files", "files gone"])
def test_a_partition_that_took_a_foreign_one_s_place_is_dropped_in_the_same_window(
    policy: ConflictPolicy, gone: dict[tuple[int, str], int]
) -> None:
    """The drop was skipped, as if the target did not have it: it stayed for good, with rows that the source has dropped."""
    source = source_of(("create", 0, 0, 1), ("insert", 0, 0, 0), ("drop part", 0, 0, 0))
    target = with_foreign(Target.replica(source_of(("create", 0, 0, 1)), lambda: 1), "p=0")
    plan, _ = planned(source, target, 1, conflicts=policy, gone=gone)
    assert (plan.stop, kinds(plan)) == (None, ["ReplaceData", "DropPartitions"])
    for operation in plan.operations:
        target.apply(operation)
    assert target.state() == source.state()


@pytest.mark.parametrize(
    "later",
    [
        [("rename", 0, 0, 0), ("create", 0, 0, 1), ("insert", 0, 0, 0)],  # a becomes b, and another a has a partition p=0
        [("insert", 0, 0, 0), ("drop part", 0, 0, 0)],
        [("insert", 0, 1, 0), ("rename part", 0, 0, 0)],  # p=1 to p=0
    ],
    ids=["of another table", "dropped", "a rename's"],
)
def test_a_foreign_partition_of_an_adopted_table_goes_unless_the_window_brings_it(later: list[tuple[str, int, int, int]]) -> None:
    """It stayed, with rows that the source does not have, where another table of the lane had one of its name."""
    source = source_of(("create", 0, 0, 1), *later)
    target = with_foreign(Target.replica(source_of(("create", 0, 0, 1)), lambda: 0), "p=0")
    target.tables["a"].parameters.clear()
    plan, _ = planned(source, target, 0, conflicts="adopt")
    assert (plan.stop, kinds(plan)[:2]) == (None, ["Adopt", "DropPartitions"])
    for operation in plan.operations:
        target.apply(operation)
    assert target.state() == source.state()


@pytest.mark.parametrize(
    ("policy", "first"),
    [("refuse", ""), ("adopt", "DropPartitions"), ("replace", "DropPartitions"), ("keep-aside", "KeepPartitionsAside")],
)
def test_a_foreign_partition_at_the_destination_of_a_partition_s_rename(policy: ConflictPolicy, first: str) -> None:
    """The metastore refused the rename, and the table was held for good, whatever the policy said."""
    before = ("create", 0, 0, 1), ("insert", 0, 0, 0)
    source = source_of(*before, ("rename part", 0, 0, 0))  # p=0 to p=1
    target = with_foreign(Target.replica(source_of(*before), lambda: 2), "p=1")
    plan, _ = planned(source, target, 2, conflicts=policy)
    assert kinds(plan) == ([first, "RenamePartition"] if first else [])
    if plan.stop is not None:
        assert (plan.stop.evid, plan.stop.refused, policy) == (3, True, "refuse")
        assert "target partition db.a/p=1 exists and is not a replica of this source" in plan.stop.reason
    if policy in ("adopt", "replace"):
        for operation in plan.operations:
            target.apply(operation)
        assert target.state() == source.state()


@pytest.mark.parametrize("last", ["insert", "alter", "rename", "add many"])
def test_a_table_that_the_target_lacks_is_held(last: str) -> None:
    source = source_of(("create", 0, 0, 1), (last, 0, 0, 0))
    plan, _ = planned(source, Target(), 1)
    assert plan.stop is not None
    assert ("lacks db.a" in plan.stop.reason, plan.stop.evid, plan.stop.refused) == (True, 2, False)


def test_a_partition_that_the_target_lacks_is_held() -> None:
    source = source_of(("create", 0, 0, 1), ("add many", 0, 0, 0), ("alter part", 0, 1, 0))
    target = Target.replica(source, lambda: 2)
    del target.partitions["a", "p=1"]
    plan, _ = planned(source, target, 2)
    assert plan.stop is not None
    assert ("lacks db.a/p=1" in plan.stop.reason, plan.stop.evid) == (True, 3)


def test_what_goes_away_after_the_window_is_not_missed() -> None:
    class Later:
        def superseded(self, table: str, partition: str, evid: int) -> int | None:
            return 99 if (table, partition) == ("a", "") and evid == 2 else None

    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0))
    plan, (skipped,) = planned(source, Target(), 1, lookahead=Later())
    assert (plan.stop, kinds(plan), skipped.evid) == (None, [], 2)
    assert "event 99" in skipped.reason


def test_a_database_that_is_dropped_takes_everything_along() -> None:
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0), ("rename", 0, 0, 0))
    plan, skipped = planned(source, Target(), 0, ended=4)
    assert (plan.stop, kinds(plan), [one.evid for one in skipped]) == (None, [], [1, 2, 3])


def test_an_unreadable_message_holds_the_lane_there() -> None:
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0), ("insert", 0, 0, 0))
    events = source.window(0, 3)
    events[1] = WindowEvent(events[1].row, None, (), "cannot be read")
    (segment,) = segments(events)
    plan, _ = LanePlanner(segment.lanes[0], LaneSettings(Target().view(ReplicaState()), MAPPING, includes)).plan()
    assert (kinds(plan), plan.stop) == (["CreateTable"], Stop(2, "cannot be read"))


def test_a_commit_that_cannot_be_followed_holds_its_tables_until_they_are_repaired() -> None:
    """What stands for the transaction on the target stayed open for ever, and each load held the tables again."""
    source = source_of(("create", 0, 0, 0), ("create", 1, 0, 0))
    target = Target.replica(source, lambda: 2)
    row = r.Notification(5, 0, "COMMIT_TXN", "db", "", "{}")
    event = tx.CommitTransaction(5, 0, "COMMIT_TXN", "db", "", transaction=7)
    commit = refused(WindowEvent(row, event, tuple(FileGroup("", (), table=name) for name in "ab")), "why")

    def plan(*more: WindowEvent, **at: int) -> LanePlan:
        (segment,) = segments([commit, *more])
        (lane,) = segment.lanes
        assert lane.names == {"a", "b"}
        settings = LaneSettings(target.view(ReplicaState("uuid/db", 2, at=at)), MAPPING, includes, acid=True, rebuilt=at)
        return LanePlanner(lane, settings).plan()[0]

    for at in ({}, {"a": 9}, {"b": 9}):
        assert plan(**at).stop == Stop(5, "why")
    repaired = plan(a=9, b=9)
    assert ([one.kind for one in repaired.operations], repaired.stop) == (["CommitTransaction"], None)
    drop = r.DropTable(6, 0, "DROP_TABLE", "db", "b", None)
    dropped = plan(WindowEvent(r.Notification(6, 0, "DROP_TABLE", "db", "b", "{}"), drop, ()), a=9)
    assert ([one.kind for one in dropped.operations], dropped.stop) == (["CommitTransaction", "DropTable"], None)


def test_what_is_not_applied_is_told() -> None:
    source = source_of(("nothing", 0, 0, 0), ("create", 0, 0, 0))
    acid = source.events[1]
    assert isinstance(acid, r.CreateTable)
    acid.after.parameters["transactional"] = "true"
    plan, skipped = planned(source, Target(), 0)
    assert (plan.stop, kinds(plan)) == (None, [])
    assert [(one.evid, one.what.partition(" ")[0]) for one in skipped] == [(1, "OTHER_EVENT"), (2, "CREATE_TABLE")]
    assert ["not applied" in skipped[0].reason, "ACID" in skipped[1].reason] == [True, True]


def test_the_gate_is_the_highest_of_the_ids() -> None:
    source = source_of(("create", 0, 0, 1), ("add many", 0, 0, 0), *[("alter part", 0, 0, 0)] * 3)
    target = Target.replica(source, lambda: 2)

    def applied(**state: Any) -> list[int]:
        found = ReplicaState("uuid/db", **{"applied": 2} | state)
        return [operation.evid for operation in planned(source, target, 2, state=found)[0].operations]

    assert applied() == [3, 4, 5]
    assert applied(at={"a": 4}) == [5]
    assert applied(applied=4, at={"a": 2}) == [3, 4, 5]
    target.partitions["a", "p=0"].parameters[LAST_ID] = "3"
    assert applied() == [4, 5]
    target.tables["a"].parameters[LAST_ID] = "5"
    assert applied() == []


def test_a_table_loaded_under_another_name() -> None:
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0), ("drop", 0, 0, 0), ("create", 0, 0, 0))
    mapping = replace(MAPPING, source_table="a", target_table="other")
    plan, _ = planned(source, Target(), 0, mapping=mapping, includes=lambda name: name == "a")
    (created,) = plan.operations
    assert isinstance(created, op.CreateTable)
    assert (created.evid, created.table, created.image.tableName, created.plain) == (4, "other", "other", f"{TARGET}/other")
    assert plan.names == ("other",)


def test_inserted_files_that_are_nowhere_are_superseded_alone() -> None:
    source = source_of(("create", 0, 0, 0), ("insert", 0, 0, 0), ("overwrite", 0, 0, 0))
    plan, (skipped,) = planned(source, Target(), 0, gone={(2, ""): 3})
    assert (kinds(plan), skipped.evid) == (["CreateTable", "ReplaceData"], 2)


@pytest.mark.parametrize("until", [3, 4])
def test_what_is_created_without_its_files_takes_what_comes_later(until: int) -> None:
    """In the same window or in a later one."""
    created, added = ("create", 0, 0, 1), ("add many", 0, 0, 0)
    for changes, key in ((["nothing", "create"], (2, "")), ([created, added], (2, "p=0"))):
        source = source_of(*[(c, 0, 0, 0) if isinstance(c, str) else c for c in changes])
        source.storage[f"{ROOT}/a" + f"/{key[1]}".rstrip("/")] = {"lost": "c0"}
        source.act("nothing", 0, 0, 0)
        source.act("overwrite", 0, 0, 0)
        target, after = Target(), 0
        for end in (until, 4):
            (segment,) = segments(source.window(after, end))
            state = ReplicaState("uuid/db", after)
            plan, _ = LanePlanner(segment.lanes[0], LaneSettings(target.view(state), MAPPING, includes), {key: 4}).plan()
            assert plan.stop is None
            for operation in plan.operations:
                target.apply(operation)
            after = end
            if end == 4:
                break
        assert target.state() == source.state()


# Tables that are left out


def of_events(
    target: Target, *events: r.Event, applied: int, acid: bool = False, leaving: Container[str] = (), held: str = ""
) -> tuple[LanePlan, list[Skipped]]:
    rows = (r.Notification(one.evid, 0, one.type, one.database, one.table, "") for one in events)
    (segment,) = segments([WindowEvent(row, event, ()) for row, event in zip(rows, events, strict=True)])
    (lane,) = segment.lanes
    state = ReplicaState("uuid/db", applied)
    view = target.view(state.quarantine("a", applied, held) if held else state)
    return LanePlanner(lane, LaneSettings(view, MAPPING, includes, acid=acid, leaving=leaving)).plan()


LEFT_OUT = {
    "transactional": {"transactional": "true"},
    "of a storage handler": {"storage_handler": "hbase"},
    "iceberg": {"table_type": "ICEBERG"},
}


def left_out(kind: str) -> tuple[Target, Table, Table]:
    """A replica of a plain table, the table, and what it becomes: one that is not replicated."""
    source = Source()
    source.act("create", 0, 0, 0)
    plain = table_image("a", source.tables["a"])
    other = copy_of(plain)
    other.parameters |= LEFT_OUT[kind]
    return Target.replica(source, lambda: 1), plain, other


@pytest.mark.parametrize("kind", LEFT_OUT)
def test_a_replica_whose_table_is_left_out_from_now_on_is_held(kind: str) -> None:
    target, plain, other = left_out(kind)
    becomes = r.AlterTable(2, 0, "ALTER_TABLE", "db", "a", plain, other, truncate=False)
    plan, skipped = of_events(target, becomes, applied=1)
    assert plan.operations == ()
    assert plan.stop is not None
    assert plan.stop.reason.startswith("the source table cannot be followed any more: t")
    assert (plan.stop.evid, plan.stop.refused, plan.stop.table, skipped) == (2, True, "a", [])
    # Without a replica it is left out as ever, so it is where the replica stands beyond the event, or goes in this window.
    assert of_events(Target(), becomes, applied=1)[0].stop is None
    assert of_events(target, becomes, applied=2)[0].stop is None
    plan, _ = of_events(target, becomes, r.DropTable(3, 0, "DROP_TABLE", "db", "a", None), applied=1)
    assert [(one.kind, one.evid) for one in plan.operations] == [("DropTable", 3)]
    assert plan.stop is None


def test_a_replica_that_is_held_since_its_table_is_left_out_takes_no_event() -> None:
    """What made it so may lie before where it stands: it lacks all that was done to the table since."""
    target, plain, other = left_out("iceberg")
    back = r.AlterTable(6, 0, "ALTER_TABLE", "db", "a", other, plain, truncate=False)
    held = f"{LEFT_OUT_REASON}tables of storage handlers"
    plan, skipped = of_events(target, back, applied=5, held=held)
    assert (plan.operations, plan.stop and plan.stop.reason, plan.base, skipped) == ((), held, 5, [])
    assert of_events(target, back, applied=5, held="no space")[0].stop is None
    plan, _ = of_events(target, back, r.DropTable(7, 0, "DROP_TABLE", "db", "a", None), applied=5, held=held)
    assert ([(one.kind, one.evid) for one in plan.operations], plan.stop) == ([("DropTable", 7)], None)


def test_a_table_that_takes_the_name_of_one_that_is_left_out_is_replicated() -> None:
    """The hold is that of the replica which goes."""
    target, plain, _ = left_out("iceberg")
    held, drop = f"{LEFT_OUT_REASON}tables of Iceberg", r.DropTable(6, 0, "DROP_TABLE", "db", "a", None)
    plan, skipped = of_events(target, drop, r.CreateTable(7, 0, "CREATE_TABLE", "db", "a", plain, ()), applied=5, held=held)
    assert ([one.kind for one in plan.operations], plan.stop, skipped) == (["DropTable", "CreateTable"], None, [])
    source = Source()
    source.act("create", 0, 0, 0)
    source.act("create", 1, 0, 0)
    other = table_image("b", source.tables["b"])
    renamed = copy_of(other)
    renamed.tableName = "a"
    both = Target.replica(source, lambda: 2)
    rename = r.AlterTable(7, 0, "ALTER_TABLE", "db", "b", other, renamed, truncate=False)
    altered = r.AlterTable(8, 0, "ALTER_TABLE", "db", "a", renamed, with_parameter(renamed), truncate=False)
    plan, skipped = of_events(both, drop, rename, altered, applied=5, held=held)
    assert ([one.kind for one in plan.operations], plan.stop, skipped) == (["DropTable", "RenameTable", "AlterTable"], None, [])


def with_parameter(table: Table) -> Table:
    image = copy_of(table)
    image.parameters["colour"] = "blue"
    return image


def test_a_replica_goes_when_its_table_which_is_left_out_is_renamed() -> None:
    """Another table takes the name."""
    target, plain, other = left_out("iceberg")
    renamed = copy_of(other)
    renamed.tableName = "b"
    window = (
        r.AlterTable(2, 0, "ALTER_TABLE", "db", "a", plain, other, truncate=False),
        r.AlterTable(3, 0, "ALTER_TABLE", "db", "a", other, renamed, truncate=False),
        r.AlterTable(4, 0, "ALTER_TABLE", "db", "b", renamed, renamed, truncate=False),
        r.CreateTable(5, 0, "CREATE_TABLE", "db", "a", plain, ()),
    )
    plan, _ = of_events(target, *window, applied=1)
    assert plan.stop is None
    assert [(one.kind, one.table, one.evid) for one in plan.operations] == [("DropTable", "a", 3), ("CreateTable", "a", 5)]
    assert plan.coming == ()


def test_write_ids_of_a_replica_say_that_its_table_is_left_out() -> None:
    target, _, _ = left_out("transactional")
    written = tx.AllocateWriteIds(2, 0, "ALLOC_WRITE_ID_EVENT", "db", "a", ((1, 1),))
    plan, _ = of_events(target, written, applied=1)
    assert plan.stop is not None
    assert "cannot be followed any more" in plan.stop.reason
    assert of_events(Target(), written, applied=1)[0].stop is None
    # Where the policy takes no transactional tables from now on, the window marks those that it had.
    plan, (skipped,) = of_events(target, written, applied=1, leaving=["a"])
    assert (plan.stop, plan.operations, skipped.evid) == (None, (), 2)


def key(kind: str, **names: str) -> tuple[Constraint, ...]:
    return grouped(kind, [CONSTRAINTS[kind].row(**names, key_seq=1)])


def attached() -> list[r.Event]:
    primary = key("pks", table_db="db", table_name="a", column_name="x", pk_name="pk")
    return [
        r.AddConstraints(3, 0, "ADD_PRIMARYKEY", "db", "a", primary),
        r.DropConstraint(3, 0, "DROP_CONSTRAINT", "db", "a", "pk"),
        r.UpdateStatistics(3, 0, "UPDATE_TBL_COL_STAT_EVENT", "db", "a", "", (), ""),
        r.DeleteStatistics(3, 0, "DELETE_TBL_COL_STAT_EVENT", "db", "a", "", ""),
    ]


@pytest.mark.parametrize("event", attached(), ids=lambda event: event.type)
def test_constraints_and_statistics_of_a_table_that_is_left_out_hold_nothing(event: r.Event) -> None:
    """Their events do not tell what kind of table it is."""
    plan, skipped = of_events(Target(), event, applied=2)
    assert (plan.stop, plan.operations) == (None, ())
    assert [one.reason for one in skipped] == [
        "the target does not have the table, with which its constraints and statistics come"
    ]


def test_a_foreign_key_to_a_table_that_is_left_out_does_not_come() -> None:
    target, _, _ = left_out("iceberg")
    names = {
        "fktable_db": "db",
        "fktable_name": "a",
        "fkcolumn_name": "x",
        "pktable_db": "db",
        "pkcolumn_name": "y",
        "fk_name": "fk",
    }
    points_at = {parent: key("fks", pktable_name=parent, **names) for parent in ("a", "b")}
    event = r.AddConstraints(3, 0, "ADD_FOREIGNKEY", "db", "a", points_at["b"])
    plan, skipped = of_events(target, event, applied=2)
    assert (plan.stop, plan.operations) == (None, ())
    assert [one.reason for one in skipped] == ["the foreign key fk points at db.b, which is not replicated with it"]
    # It does where the target has the table, or gets it before.
    (made,) = of_events(target, replace(event, constraints=points_at["a"]), applied=2)[0].operations
    assert made.kind == "SetConstraints"
    parent = r.CreateTable(2, 0, "CREATE_TABLE", "db", "b", table_image("b", Tab(2, f"{ROOT}/b", partitioned=False)), ())
    plan, _ = of_events(target, parent, event, applied=1)
    assert [one.kind for one in plan.operations] == ["CreateTable", "SetConstraints"]
    gone = r.DropTable(3, 0, "DROP_TABLE", "db", "b", None)
    plan, _ = of_events(target, parent, gone, replace(event, evid=4), applied=1)
    assert [one.kind for one in plan.operations] == []
