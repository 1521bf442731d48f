"""What of a plan decides whether its approval is still of what the load would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from hive_replication.load.newly_included_tables import with_joined_tables
from hive_replication.load.operations.kinds import AlterPartitions, DropPartitions
from hive_replication.load.plan.load_plan import LanePlan, LoadPlan, SegmentPlan
from hive_replication.load.policy_change import with_scope
from hive_replication.load.replica.state import ReplicaState
from hive_replication.plans.approval import steps
from hive_replication.policy import PolicyScope
from tests.bootstraps import SOURCE, header, loading, replica


def of_one_that_leaves(excluded: str) -> LoadPlan:
    """The plan of a window with which a table leaves the policy."""
    before, now = PolicyScope(), PolicyScope(exclude=("t",))
    head = replace(header(60), kind="incremental", from_evid=50, taken=now.text, before=before.text)
    session = loading(ReplicaState(SOURCE, 50, scope=before.text), head, [replica("t", 40), replica("u", 40)])
    session.target.policy = session.target.policy.model_copy(update={"excluded": excluded})
    session.replica.write_state(with_scope(session, session.state))
    with_joined_tables(session, cast("Any", None))
    return LoadPlan("d", "db", 50, 60, tuple(session.planned), ())


def of_operations(*operations: Any) -> set[str]:
    lane = LanePlan(("t",), 50, operations)
    return set(steps(LoadPlan("d", "db", 50, 60, (SegmentPlan((lane,)),), ())))


def test_a_replica_that_was_to_be_kept_is_not_dropped_by_its_approval() -> None:
    """The policy says by then that those outside of it are dropped; the event is the same one."""
    kept, dropped = (set(steps(of_one_that_leaves(excluded))) for excluded in ("keep", "drop"))
    assert kept == {"db.t: event 60"}
    assert dropped - kept == {"db.t: dropped"}


def test_partitions_that_were_to_be_kept_are_not_dropped_by_their_approval() -> None:
    one, two = DropPartitions(60, "t", ("d=1",)), DropPartitions(60, "t", ("d=1", "d=2"))
    assert of_operations(two) - of_operations(AlterPartitions(60, "t", ())) == {"db.t: partitions dropped at event 60"}
    assert of_operations(one) == of_operations(two)  # an interrupted load has less to do
