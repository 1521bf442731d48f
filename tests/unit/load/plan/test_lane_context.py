"""A lane while it is planned: names that are free or taken, conflicts, what the target lacks, and the gate for partitions."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from hive_replication.events.event_records import Notification
from hive_replication.load.operations.conflict_resolutions import Adopt, DropForeignTable, KeepAside, KeepPartitionsAside
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.superseded import NoLookahead
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.types import Partition, Table
from hive_replication.policy.model import ConflictPolicy
from tests.model import Part, Tab, partition_image, table_image
from tests.replica import MAPPING

EVID = 10
FOREIGN = table_image("a", Tab(1, "hdfs://dst/w/db.db/a", partitioned=True))
OURS = MAPPING.new_table(FOREIGN, 5)


class Later:
    """Event 20 drops, replaces or moves every object away."""

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        return 20


@dataclass
class Made:
    """A lane, and the replica of its table ``a``."""

    lane: LanePlanning
    replica: Replica = field(default_factory=lambda: Replica("a", present=True, state_id=5, found_as="a"))

    def passes(self, *, needed: bool = True) -> bool:
        return self.lane.passes(event(), "p=0", self.replica, needed=needed)

    @property
    def reasons(self) -> list[str]:
        return [one.reason for one in self.lane.skipped]


def event(kind: str = "ALTER_PARTITION") -> WindowEvent:
    row = Notification(EVID, 0, kind, "db", "a", "{}")
    return WindowEvent(row, None, ())


def partition(state_id: int | None) -> Partition:
    image = partition_image("a", "p=0", Part(1, "hdfs://dst/w/db.db/a/p=0"))
    return (
        image
        if state_id is None
        else MAPPING.new_partition(image, table_image("a", Tab(1, "hdfs://src/w/db.db/a", True)), "a", state_id)
    )


def made(
    table: Table | None = OURS,
    part: Partition | None = None,
    *,
    conflicts: ConflictPolicy = "refuse",
    incarnation: Incarnation | None = None,
    later: bool = False,
) -> Made:
    view = TargetView(ReplicaState("uuid/db", 8), {"a": table} if table else {}, {("a", "p=0"): part} if part else {})
    lookahead = Later() if later else NoLookahead()
    lane = LanePlanning(view, MAPPING, lookahead, False, {}, Conflicts(conflicts, MAPPING.source, "db"))
    lane.partition_incarnations[EVID, "p=0"] = incarnation or Incarnation([("p=0", -1)])
    return Made(lane)


def test_a_free_name_needs_nothing() -> None:
    lane = made(None).lane
    assert (lane.require_free("a", EVID), lane.operations) == (None, [])


def test_a_replica_in_the_way_stops_the_lane() -> None:
    with pytest.raises(LaneStopped, match=r"an older db\.a in the way"):
        made().lane.require_free("a", EVID)


def test_names_are_free_and_taken_as_the_plan_goes_on() -> None:
    lane = made().lane
    lane.leave("a")
    assert lane.require_free("a", EVID) is None
    lane.take("a")
    with pytest.raises(LaneStopped, match=r"an older db\.a in the way"):
        lane.require_free("a", EVID)


@pytest.mark.parametrize(
    ("policy", "first"),
    [
        ("adopt", Adopt(EVID, "a", "uuid/db")),
        ("replace", DropForeignTable(EVID, "a")),
        ("keep-aside", KeepAside(EVID, "a", f"a_kept_{EVID}")),
    ],
)
def test_what_settles_a_conflict_is_planned_and_returned(policy: ConflictPolicy, first: object) -> None:
    lane = made(FOREIGN, conflicts=policy).lane
    assert lane.require_free("a", EVID, FOREIGN) == first
    assert lane.operations == [first]
    assert lane.require_free("a", EVID, FOREIGN) is None  # settled once


def test_a_refused_conflict_stops_the_lane_to_protect_data() -> None:
    lane = made(FOREIGN).lane
    with pytest.raises(LaneStopped, match="exists and is not a replica") as stop:
        lane.require_free("a", EVID, FOREIGN)
    assert (stop.value.refused, lane.operations) == (True, [])


def test_an_event_that_needs_the_table_itself_does_not_settle() -> None:
    with pytest.raises(LaneStopped, match="rebuild it") as stop:
        made(FOREIGN, conflicts="replace").lane.require_free("a")
    assert stop.value.refused


def test_what_the_target_lacks_is_skipped_only_where_it_goes_away_later() -> None:
    one = made(later=True)
    one.lane.lacking(event(), one.replica, "a", "p=0")
    assert one.reasons == ["the target lacks it, and event 20 drops, replaces or moves it away"]
    with pytest.raises(LaneStopped, match=r"the target lacks db\.a/p=0, which event 10 \(ALTER_PARTITION\) changes: rebuild it"):
        made().lane.lacking(event(), one.replica, "a", "p=0")


@pytest.mark.parametrize("state_id", [0, 5, 9])
def test_an_event_of_an_older_partition_applies(state_id: int) -> None:
    one = made(part=partition(state_id))
    assert (one.passes(), one.reasons) == (True, [])


@pytest.mark.parametrize("state_id", [10, 11])
def test_an_event_of_a_partition_is_not_repeated(state_id: int) -> None:
    one = made(part=partition(state_id))
    assert (one.passes(), one.reasons) == (False, [f"applied already (state id {state_id})"])


def test_a_table_that_was_repaired_covers_its_partitions() -> None:
    one = made(part=partition(5))
    one.replica.state_id = 12
    assert (one.passes(), one.reasons) == (False, ["applied already (state id 12)"])


def test_a_partition_that_the_plan_made_takes_later_events() -> None:
    one = made()
    one.replica.partitions["p=0"] = True
    assert one.passes()


def test_a_lacking_partition_whose_incarnation_ends_in_the_window_is_skipped() -> None:
    one = made(incarnation=Incarnation([("p=0", -1)], dropped=12))
    assert (one.passes(), one.reasons) == (False, ["the target does not have the partition any more"])


def test_a_lacking_partition_is_missed_or_goes_away_later() -> None:
    with pytest.raises(LaneStopped, match="the target lacks"):
        made().passes()
    one = made(later=True)
    assert (one.passes(), len(one.reasons)) == (False, 1)
    drop = made()
    assert (drop.passes(needed=False), drop.reasons) == (False, [])  # a drop has nothing to do


def test_a_change_of_a_foreign_partition_stops_under_any_policy() -> None:
    for policy in ("refuse", "adopt", "replace", "keep-aside"):
        with pytest.raises(LaneStopped, match="was made by somebody else") as stop:
            made(part=partition(None), conflicts=policy).passes()
        assert stop.value.refused


def test_a_drop_of_a_foreign_partition_follows_the_policy() -> None:
    with pytest.raises(LaneStopped, match="not a replica of this source"):
        made(part=partition(None)).passes(needed=False)
    for policy in ("adopt", "replace"):
        one = made(part=partition(None), conflicts=policy)
        assert (one.passes(needed=False), one.lane.operations) == (True, [])
    aside = made(part=partition(None), conflicts="keep-aside")
    assert not aside.passes(needed=False)  # what was kept is not dropped
    assert aside.lane.operations == [KeepPartitionsAside(EVID, "a", ("p=0",), f"a_kept_{EVID}")]


def test_an_adoption_that_came_no_further_is_known_again() -> None:
    adopted = MAPPING.new_table(FOREIGN, 0)
    adopted.parameters["hive_replication.adopted"] = str(EVID)
    one = made(adopted)
    assert (one.lane.adopted(one.replica, EVID), one.lane.adopted(one.replica, EVID + 1)) == (True, False)
    adopted.parameters[LAST_ID] = str(EVID)
    assert not one.lane.adopted(one.replica, EVID)  # its properties followed
