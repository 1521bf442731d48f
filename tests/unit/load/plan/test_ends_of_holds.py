"""What ends a hold by itself: that why an event is refused does not matter any more, since a later one of its lane sees to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.dump.source_boundary import images_after
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.plan.superseded import Lookahead, NoLookahead, ending, superseding
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Function, ResourceUri, Table
from tests.model import ROOT, Source, includes
from tests.replica import MAPPING, Target

OUTSIDE = "lies outside"
JAR = "hdfs://src/w/db.db/f.jar"


def planned(
    events: Sequence[WindowEvent],
    target: Target,
    state: ReplicaState,
    lookahead: Lookahead | None = None,
    mapping: NameMapping = MAPPING,
) -> LanePlan:
    (segment,) = segments(events)
    (lane,) = segment.lanes
    settings = LaneSettings(target.view(state), mapping, includes, lookahead=lookahead or NoLookahead())
    return LanePlanner(lane, settings).plan()[0]


def source_of(*changes: tuple[str, int, int, int]) -> Source:
    source = Source()
    for change in changes:
        source.act(*change)
    return source


def kinds(plan: LanePlan) -> list[str]:
    return [one.kind for one in plan.operations]


def function_event(evid: int, *, created: bool, outside: str = "") -> WindowEvent:
    image = Function(functionName="f", dbName="db", className="C", resourceUris=[ResourceUri(resourceType=1, uri=JAR)])
    make: Callable[..., r.Event] = r.CreateFunction if created else r.DropFunction
    kind = "CREATE_FUNCTION" if created else "DROP_FUNCTION"
    event = make(evid, 0, kind, "db", "", function="f", **({"after": image} if created else {}))
    return WindowEvent(r.Notification(evid, 0, kind, "db", "", ""), event, (FileGroup("", (FileRef(JAR),)),), outside=outside)


def test_the_drop_of_a_function_ends_its_hold() -> None:
    """Each catch-up stopped again at the creation, whose resources may not be read or which the target refuses."""
    state = ReplicaState("uuid/db", 4, at={"f()": 4})
    made, drop = function_event(5, created=True, outside=OUTSIDE), function_event(6, created=False)
    assert planned([made], Target(), state).stop is not None
    plan = planned([made, drop], Target(), state)
    assert (plan.stop, kinds(plan)) == (None, ["DropFunction"])
    again = planned([made, drop, replace(made, row=replace(made.row, evid=7))], Target(), state)
    assert again.stop is not None  # the next of the name is another one
    refused = replace(made, outside="")
    assert kinds(planned([refused, drop], Target(), state)) == ["CreateFunction", "DropFunction"]
    held = replace(state, held={"f()": "the target function db.f exists and is not a replica"})
    assert kinds(planned([refused, drop], Target(), held)) == ["DropFunction"]


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "VIRTUAL_VIEW"])
def test_the_replica_of_what_is_not_replicated_any_more_goes_with_it(kind: str) -> None:
    """That of a view stayed for good, and so did its hold, where a materialized one had taken its name unseen."""
    source = source_of(("create", 0, 0, 0), ("drop", 0, 0, 0))
    target = Target.replica(source_of(("create", 0, 0, 0)), lambda: 1)
    target.tables["a"].tableType = kind
    state = ReplicaState("uuid/db", 1).quarantine("a", 1, f"{LEFT_OUT_REASON}materialized views are not replicated")
    plan = planned(source.window(1, 2), target, state)
    assert (plan.stop, kinds(plan)) == (None, ["DropTable"])


class Log:
    """What becomes of objects of a source in memory."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        ends = (found for event in self._source.events if event.evid > evid and (found := ending(event)))
        return superseding(ends, table, partition)


PLAIN = (("create", 0, 0, 0),)
PARTITIONED = (("create", 0, 0, 1), ("insert", 0, 0, 0))
ELSEWHERE = "hdfs://src/elsewhere/"


def of_source(before: Sequence[tuple[str, int, int, int]], *changes: tuple[str, int, int, int], back: bool = False) -> LanePlan:
    """The plan of changes after others, of which those at another location may not be read; the last is one back, or is not."""
    source = source_of(*before, *changes)
    if back:
        _move_back(source)
    events = [
        replace(event, outside=OUTSIDE if any(one.startswith(ELSEWHERE) for one in _locations(event.event)) else "")
        for event in source.window(len(before), source.evid)
    ]
    target = Target.replica(source_of(*before), lambda: len(before))
    plan = planned(events, target, ReplicaState("uuid/db", len(before)), Log(source))
    for operation in plan.operations:
        target.apply(operation)
    assert plan.stop is not None or target.state() == source.state()
    return plan


def _locations(event: r.Event | None) -> list[str]:
    return [str(image.sd.location) for image in images_after(event) if not isinstance(image, Function)]


def _move_back(source: Source) -> None:
    """SET LOCATION to the directory that the table or its first partition had first."""
    source.act("relocate", 0, 0, 1)
    event = source.events[-1]
    tab = source.tables["a"]
    thing = next(iter(tab.parts.values()), tab)
    moved, thing.location = thing.location, f"{ROOT}/back"
    source.storage[thing.location] = source.storage.pop(moved)
    for image in images_after(event):
        assert not isinstance(image, Function)
        image.sd.location = thing.location


@pytest.mark.parametrize("before", [PLAIN, PARTITIONED])
def test_what_is_moved_out_and_back_again_is_not_held(before: Sequence[tuple[str, int, int, int]]) -> None:
    """Each catch-up stopped at the first of the two, for good."""
    out = ("relocate", 0, 0, 1), ("insert", 0, 0, 0)
    held = of_source(before, *out).stop
    assert held is not None
    assert (held.evid, held.reason) == (len(before) + 1, OUTSIDE)
    assert kinds(of_source(before, *out, back=True)) == ["ReplaceData"]


def test_a_partition_that_may_not_be_read_and_is_dropped_holds_nothing() -> None:
    source = source_of(*PARTITIONED[:1], ("insert", 0, 0, 0), ("insert", 0, 1, 0), ("drop many", 0, 0, 1))
    target = Target.replica(source_of(*PARTITIONED[:1]), lambda: 1)
    first, *others, drop = source.window(1, 4)
    first = replace(first, outside=OUTSIDE)
    state = ReplicaState("uuid/db", 1)
    assert planned([first, *others], target, state, Log(source)).stop is not None
    plan = planned([first, *others, drop], target, state, Log(source))
    assert (plan.stop, kinds(plan)) == (None, [])
    shared = planned([replace(first, shared="p=9"), drop], target, state, Log(source))
    assert shared.stop is not None  # another one reads the directory


@pytest.mark.parametrize("made_in_window", [True, False])
def test_a_view_that_gets_a_text_that_can_be_replicated_is_not_held(*, made_in_window: bool) -> None:
    """Each catch-up stopped again at the text that it does not have any more."""
    mapping = replace(MAPPING, databases={"db": "other"}, renamed_views="hold")

    def described(evid: int, text: str) -> WindowEvent:
        source = source_of(*PLAIN, *([("alter", 0, 0, 0)] * (evid - 1)))
        event = source.window(evid - 1, evid)[0]
        for image in images_after(event.event):
            assert isinstance(image, Table)
            image.tableType, image.viewOriginalText, image.viewExpandedText = "VIRTUAL_VIEW", text, text
        return event

    bad, good = "SELECT x FROM db.t", "SELECT 1"
    target = Target() if made_in_window else Target.replica(source_of(*PLAIN), lambda: 1)
    state = ReplicaState("uuid/db", 0 if made_in_window else 1)
    events = [described(n, bad) for n in (1, 2)][0 if made_in_window else 1 :]
    assert planned(events, target, state, mapping=mapping).stop is not None
    plan = planned([*events, described(3, good)], target, state, mapping=mapping)
    assert (plan.stop, len(plan.operations)) == (None, len(events) + 1)
    for operation in plan.operations:
        target.apply(operation)
        assert target.tables["a"].viewOriginalText == good
    assert planned([*events, described(3, good), described(4, bad)], Target(), state, mapping=mapping).stop is not None


BAD, GOOD = "SELECT x FROM db.t", "SELECT 1"
CREATE, ALTER, RENAME, ALTER_NEW, DROP_NEW, CREATE_NEW = (
    *(("create", 0, 0, 0), ("alter", 0, 0, 0), ("rename", 0, 0, 0)),
    *(("alter", 1, 0, 0), ("drop", 1, 0, 0), ("create", 1, 0, 0)),
)


@pytest.mark.parametrize(
    ("changes", "held"),
    [
        ([(CREATE, BAD), (RENAME, BAD), (ALTER_NEW, GOOD)], False),
        ([(CREATE, BAD), (ALTER, BAD), (RENAME, BAD), (ALTER_NEW, BAD), (ALTER_NEW, GOOD)], False),
        ([(CREATE, BAD), (ALTER, GOOD), (RENAME, GOOD)], False),
        ([(CREATE, BAD), (RENAME, BAD), (CREATE, GOOD)], True),  # the other view has the first's name, not its text
        ([(CREATE, BAD), (RENAME, BAD), (DROP_NEW, BAD), (CREATE_NEW, GOOD)], False),
        ([(CREATE, BAD), (RENAME, BAD), (ALTER_NEW, GOOD), (ALTER_NEW, BAD)], True),
    ],
)
def test_a_view_that_is_renamed_and_gets_a_text_that_can_be_replicated_is_not_held(
    changes: Sequence[tuple[tuple[str, int, int, int], str]], *, held: bool
) -> None:
    source = source_of(*(change for change, _ in changes))
    for event, (_, text) in zip(source.events, changes, strict=True):
        for image in images_after(event):
            assert isinstance(image, Table)
            image.tableType, image.viewOriginalText, image.viewExpandedText = "VIRTUAL_VIEW", text, text
    mapping, target = replace(MAPPING, databases={"db": "other"}, renamed_views="hold"), Target()
    plan = planned(source.window(0, source.evid), target, ReplicaState("uuid/db", 0), mapping=mapping)
    assert (plan.stop is not None) == held
    for operation in plan.operations:
        target.apply(operation)
    if not held:
        assert {name: (view.tableName, view.viewOriginalText) for name, view in target.tables.items()} == {"b": ("b", GOOD)}
