"""Rules of collapsing, one by one, and long random windows; all short ones are in test_collapse_exhaustive."""

from __future__ import annotations

import gc
import random
import time
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.statistics import Columns, SetStatistics
from hive_replication.load.plan.collapse import collapsed
from hive_replication.load.plan.collapse_savings import savings
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import segments
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica import target as sides
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Collapsed
from hive_replication.metastore.types import Partition, Table
from tests.model import KINDS, Actions, Source, actions, includes
from tests.replica import MAPPING, Target
from tests.statistics import of_column

NO_FILES = op.Content((), "1-0")


def content(*names: str, checksum: str = "c") -> op.Content:
    return op.Content(tuple(FileRef(f"hdfs://s/{name}", checksum) for name in names), "1-0")


def image(evid: int) -> Partition:
    return Partition(parameters={"repl.last.id": str(evid)})


def create(evid: int, table: str = "t", files: op.Content = NO_FILES) -> op.Operation:
    return op.CreateTable(evid, table, Table(parameters={"repl.last.id": str(evid)}), files, "plain")


def add(evid: int, *names: str, files: op.Content = NO_FILES) -> op.Operation:
    return op.AddPartitions(evid, "t", tuple(op.NewPartition(name, image(evid), files) for name in names))


def drop(evid: int, *names: str) -> op.Operation:
    return op.DropPartitions(evid, "t", names)


def alter(evid: int, name: str) -> op.Operation:
    return op.AlterPartitions(evid, "t", ((name, image(evid)),)) if name else alter_table(evid)


def alter_table(evid: int, table: str = "t") -> op.Operation:
    return op.AlterTable(evid, table, Table(parameters={"repl.last.id": str(evid)}))


def append(evid: int, name: str, *files: str, checksum: str = "c") -> op.Operation:
    return op.AppendData(evid, "t", name, image(evid), content(*files, checksum=checksum))


def overwrite(evid: int, name: str, *files: str, compare: bool = False) -> op.Operation:
    return op.ReplaceData(evid, "t", name, image(evid), content(*files), compare)


def rename(evid: int, old: str, new: str) -> op.Operation:
    return op.RenameTable(evid, old, Table(tableName=new))


def statistics(evid: int, name: str, *columns: str) -> op.Operation:
    found = tuple(of_column(column, 1, 1) for column in columns or ("a",))
    return SetStatistics(evid, "t", (Columns(name, found, ""),))


def shown(operation: op.Operation) -> str:
    """Kind, events, and files with their events, of each partition."""
    contents = {name: {file.name: evid for file, evid in c.events(operation.evid).items()} for name, c in operation.contents}
    names = " ".join(f"{name}{files or ''}" for name, files in contents.items())
    match operation:
        case op.DropPartitions():
            names = " ".join(operation.names)
        case op.AlterPartitions():
            names = " ".join(name for name, _ in operation.images)
        case SetStatistics():
            names = " ".join(change.partition for change in operation.changes)
        case _:
            pass
    return f"{operation.kind} {operation.table} {operation.evids} {names}".rstrip()


def result(*operations: op.Operation, stop: Stop | None = None) -> list[str]:
    return [shown(one) for one in collapsed(LanePlan(("t",), 0, operations, stop)).operations]


RULES = {
    "add then drop is a drop": ([add(1, "p"), drop(2, "p")], ["DropPartitions t (1, 2) p"]),
    "add, drop, add is a drop and an add": (
        [add(1, "p"), drop(2, "p"), add(3, "p")],
        ["DropPartitions t (1, 2) p", "AddPartitions t (3,) p"],
    ),
    "inserts are one": (
        [append(1, "p", "a"), append(2, "p", "b", "a")],
        ["AppendData t (1, 2) p{'a': 1, 'b': 2}"],
    ),
    "before an overwrite nothing is copied": (
        [append(1, "p", "a"), overwrite(2, "p", "b"), append(3, "p", "c")],
        ["ReplaceData t (1, 2, 3) p{'b': 2, 'c': 3}"],
    ),
    "creation takes everything": (
        [create(1, files=content("a")), append(2, "", "b"), alter(3, ""), overwrite(4, "", "c"), append(5, "", "d")],
        ["CreateTable t (1, 2, 3, 4, 5) {'c': 4, 'd': 5}"],
    ),
    "a new partition takes everything": (
        [add(1, "p", files=content("a")), append(2, "p", "b"), alter(3, "p")],
        ["AddPartitions t (1, 2, 3) p{'a': 1, 'b': 2}"],
    ),
    "partitions go together, the table comes last": (
        [add(1, "p"), alter(2, ""), alter(3, "q"), drop(4, "r"), add(5, "s"), alter(6, "u"), drop(7, "v"), alter(8, "")],
        ["DropPartitions t (4, 7) r v", "AddPartitions t (1, 5) p s", "AlterPartitions t (3, 6) q u", "AlterTable t (2, 8)"],
    ),
    "a creation is no watermark for partitions before": (
        [create(1), alter(2, ""), add(3, "p"), alter(4, ""), append(5, "p", "a")],
        ["CreateTable t (1, 2)", "AddPartitions t (3, 5) p{'a': 5}", "AlterTable t (4,)"],
    ),
    "alter and insert are one": ([alter(1, "p"), append(2, "p", "a")], ["AppendData t (1, 2) p{'a': 2}"]),
    "insert and alter are one": ([append(1, "p", "a"), alter(2, "p")], ["AppendData t (1, 2) p{'a': 1}"]),
    "a dropped table takes everything along": (
        [append(1, "p", "a"), rename(2, "t", "u"), alter_table(3, "u"), create(4, "t"), op.DropTable(5, "u"), alter(6, "")],
        ["RenameTable t (2,)", "DropTable u (1, 3, 5)", "CreateTable t (4, 6)"],
    ),
    "but not what a rename relies on": (
        [
            add(1, "p", files=content("a")),
            append(2, "", "b"),
            overwrite(2, "", "c"),
            rename(3, "t", "u"),
            alter_table(4, "u"),
            op.DropTable(5, "u"),
        ],
        ["AddPartitions t (1,) p{'a': 1}", "ReplaceData t (2,) {'c': 2}", "RenameTable t (3,)", "DropTable u (2, 4, 5)"],
    ),
    "another table of the name keeps what was done to it": (
        [alter(1, ""), rename(2, "t", "u"), create(3), op.DropTable(4, "t"), alter_table(5, "u")],
        ["AlterTable t (1,)", "RenameTable t (2,)", "DropTable t (3, 4)", "AlterTable u (5,)"],
    ),
    "created and dropped is a drop": ([create(1), append(2, "", "a"), op.DropTable(3, "t")], ["DropTable t (1, 2, 3)"]),
    "dropped and created again": (
        [alter(1, ""), op.DropTable(2, "t"), create(3), append(4, "", "a")],
        ["DropTable t (1, 2)", "CreateTable t (3, 4) {'a': 4}"],
    ),
    "nothing moves across renames": (
        [append(1, "p", "a"), op.RenamePartition(2, "t", "p", "q", image(2)), append(3, "q", "b"), append(4, "q", "c")],
        ["AppendData t (1,) p{'a': 1}", "RenamePartition t (2,)", "AppendData t (3, 4) q{'b': 3, 'c': 4}"],
    ),
    "a name with two contents is not one append": (
        [append(1, "p", "a"), append(2, "p", "a", checksum="d"), append(3, "p", "b")],
        ["AppendData t (1,) p{'a': 1}", "AppendData t (2, 3) p{'a': 2, 'b': 3}"],
    ),
    "statistics come after the data of many": (
        [append(1, "p", "a"), statistics(2, "p"), append(3, "q", "b"), statistics(4, "q"), append(5, "r", "c")],
        [
            "AppendData t (1,) p{'a': 1}",
            "AppendData t (3,) q{'b': 3}",
            "AppendData t (5,) r{'c': 5}",
            "SetStatistics t (2,) p",
            "SetStatistics t (4,) q",
        ],
    ),
    "the last statistics count": (
        [append(1, "p", "a"), statistics(2, "p"), append(3, "p", "b"), statistics(4, "p", "a", "b")],
        ["AppendData t (1, 3) p{'a': 1, 'b': 3}", "SetStatistics t (2, 4) p"],
    ),
    "but not for columns of which they do not tell": (
        [append(1, "p", "a"), statistics(2, "p", "a", "b"), append(3, "p", "b"), statistics(4, "p", "b"), statistics(5, "p")],
        [
            "AppendData t (1,) p{'a': 1}",
            "SetStatistics t (2,) p",
            "AppendData t (3,) p{'b': 3}",
            "SetStatistics t (4,) p",
            "SetStatistics t (5,) p",
        ],
    ),
    "later data is not what statistics tell of": (
        [append(1, "p", "a"), append(2, "p", "b"), statistics(3, "p"), append(4, "p", "c"), alter(5, "p")],
        ["AppendData t (1, 2) p{'a': 1, 'b': 2}", "SetStatistics t (3,) p", "AppendData t (4, 5) p{'c': 4}"],
    ),
    "a table's own statistics come last": (
        [create(1), statistics(2, ""), add(3, "p"), statistics(4, "p"), add(5, "q")],
        [
            "CreateTable t (1,)",
            "AddPartitions t (3, 5) p q",
            "SetStatistics t (4,) p",
            "SetStatistics t (2,)",
        ],
    ),
    "a change of the table is between statistics": (
        [statistics(1, "p"), alter(2, ""), statistics(3, "q"), alter(4, "")],
        ["SetStatistics t (1,) p", "AlterTable t (2,)", "SetStatistics t (3,) q", "AlterTable t (4,)"],
    ),
    "statistics go with a dropped partition": (
        [add(1, "p"), statistics(2, "p"), drop(3, "p"), add(4, "p"), statistics(5, "p")],
        ["DropPartitions t (1, 3) p", "AddPartitions t (4,) p", "SetStatistics t (2, 5) p"],
    ),
    "and with a dropped table": (
        [statistics(1, "p"), rename(2, "t", "u"), op.DropTable(3, "u")],
        ["RenameTable t (2,)", "DropTable u (1, 3)"],
    ),
    "nor is one whose content nobody knows": (
        [append(1, "p", "a", checksum=""), append(2, "p", "a", checksum=""), append(3, "p", "b")],
        ["AppendData t (1,) p{'a': 1}", "AppendData t (2, 3) p{'a': 2, 'b': 3}"],
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    operations, expected = RULES[name]
    assert result(*operations) == expected


def test_a_lane_that_cannot_be_shorter_stays_as_it_is() -> None:
    plan = LanePlan(("t",), 0, (alter(1, ""), add(2, "p")))
    assert collapsed(plan) is plan


def test_what_comes_after_an_obstacle_is_left_out() -> None:
    assert result(append(1, "p", "a"), append(2, "p", "b"), overwrite(3, "p", "c"), stop=Stop(3, "no")) == [
        "AppendData t (1, 2) p{'a': 1, 'b': 2}"
    ]


def test_the_last_image_counts() -> None:
    plan = collapsed(LanePlan(("t",), 0, (add(1, "p"), append(2, "p", "a"), alter(3, "p"))))
    (made,) = plan.operations
    assert isinstance(made, op.AddPartitions)
    assert made.added[0].image == image(3)
    assert [one.evid for one in plan.uncollapsed] == [1, 2, 3]


def test_a_comparison_is_kept() -> None:
    (made,) = collapsed(LanePlan(("t",), 0, (overwrite(1, "p", "a", compare=True), append(2, "p", "b")))).operations
    assert isinstance(made, op.ReplaceData)
    assert made.compare


def test_a_sites_own_operation_is_a_barrier() -> None:
    class Own(op.CustomOperation):
        def carry_out(self, target: sides.Target, database: str) -> None:
            """Does nothing."""

    own = Own(3, "t")
    assert result(alter(1, ""), alter(2, ""), own, alter(4, ""), op.DropTable(5, "t")) == [
        "AlterTable t (1, 2)",
        "Own t (3,)",
        "DropTable t (4, 5)",
    ]


def test_many_partitions_are_several_calls() -> None:
    names = [f"p={n}" for n in range(2_500)]
    plan = collapsed(LanePlan(("t",), 0, tuple(add(n, name) for n, name in enumerate(names))))
    assert [len(one.added) for one in plan.operations if isinstance(one, op.AddPartitions)] == [100] * 25
    assert [one.evid for one in plan.operations] == [*range(99, 2_500, 100)]


def test_partitions_of_one_event_are_added_by_one_call() -> None:
    first, second = ([f"{event}={n}" for n in range(250)] for event in "ab")
    lane = (add(1, "p=1"), add(2, *first), add(3, *second), add(4, "p=2"), append(5, "p=1", "f"))
    plan = collapsed(LanePlan(("t",), 0, lane))
    found = [(len(one.added), tuple(one.evids)) for one in plan.operations if isinstance(one, op.AddPartitions)]
    assert found == [(251, (1, 2, 5)), (250, (3,)), (1, (4,))]


@pytest.mark.no_cover
def test_many_inserts_take_no_longer_each() -> None:
    few, many = (min(seconds(number) for _ in range(3)) for number in (1_000, 5_000))
    assert many < 15 * few


def seconds(inserts: int) -> float:
    """Of CPU that it takes to collapse them."""
    lane = LanePlan(("t",), 0, tuple(append(n, "p", f"f{n}") for n in range(inserts)))
    gc.collect()
    began = time.process_time()
    assert [len(one.parts) for one in collapsed(lane).operations] == [inserts]
    return time.process_time() - began


def test_savings() -> None:
    plan = collapsed(LanePlan(("t",), 0, (append(1, "p", "a"), overwrite(2, "p", "b"), alter(3, "q"))))
    assert savings([plan], {FileRef("hdfs://s/a", "c"): 7}) == Collapsed(events=2, operations=1, files=1, bytes=7)
    assert savings([plan], {}) == Collapsed(events=2, operations=1, files=1, bytes=-1)
    assert savings([replace(plan, uncollapsed=())], {}) == Collapsed()


@dataclass(frozen=True)
class Attempt:
    """A load that does not come to its end: of the window up to a share of the events, a share of each lane's operations."""

    until: float
    shares: tuple[float, ...]
    collapse: bool


shares = st.floats(0, 1)
attempts = st.lists(st.builds(Attempt, shares, st.tuples(shares, shares, shares), st.booleans()), max_size=3)


def plans(source: Source, target: Target, begin: int, until: int, *, collapse: bool = True) -> list[LanePlan]:
    (segment,) = segments(source.window(begin, until))
    view = target.view(ReplicaState("uuid/db", begin))
    made = [LanePlanner(lane, LaneSettings(view, MAPPING, includes)).plan()[0] for lane in segment.lanes]
    assert [plan.stop for plan in made if plan.stop] == []
    return [collapsed(plan) for plan in made] if collapse else made


@settings(deadline=None, max_examples=80)
@given(actions(most=20), actions((*KINDS, "rename out", "exchange"), least=20, most=60), st.integers(0, 2**32), attempts)
def test_long_windows_with_any_number_of_crashes(before: Actions, window: Actions, seed: int, attempts: list[Attempt]) -> None:
    """Windows of retries only grow; the end is the model's, and all state ids are those of one event at a time."""
    source, ids = Source(), random.Random(seed)
    for action in before:
        source.act(*action)
    begin, start = source.evid, Target.replica(source, lambda: ids.randint(0, source.evid))
    for action in window:
        source.act(*action)
    plain, target = start.copy(), start.copy()
    for plan in plans(source, plain, begin, source.evid, collapse=False):
        for operation in plan.operations:
            plain.apply(operation)
    for attempt in sorted(attempts, key=lambda attempt: attempt.until):
        until = begin + int(attempt.until * (source.evid - begin))
        for plan, share in zip(plans(source, target, begin, until, collapse=attempt.collapse), attempt.shares, strict=False):
            for operation in plan.operations[: round(share * len(plan.operations))]:
                target.apply(operation)
    for plan in plans(source, target, begin, source.evid):
        for operation in plan.operations:
            target.apply(operation)
    assert target.state() == plain.state() == source.state()
    assert target.ids() == plain.ids()
    assert [plan.operations for plan in plans(source, target, begin, source.evid) if plan.operations] == []
