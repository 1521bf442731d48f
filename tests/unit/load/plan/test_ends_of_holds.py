"""What ends a hold by itself: that why an event is refused does not matter any more, since a later one of its lane sees to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Function, ResourceUri
from tests.model import Source, includes
from tests.replica import MAPPING, Target

OUTSIDE = "lies outside"
JAR = "hdfs://src/w/db.db/f.jar"


def planned(events: Sequence[WindowEvent], target: Target, state: ReplicaState) -> LanePlan:
    (segment,) = segments(events)
    (lane,) = segment.lanes
    return LanePlanner(lane, LaneSettings(target.view(state), MAPPING, includes)).plan()[0]


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
