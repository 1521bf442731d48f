"""Random renames in and out of a policy, and policies that change, with loads killed anywhere: the end is the source's."""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.name_mapping import point_at
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import copy_of
from tests.model import KINDS, NAMES, Actions, Source, State, actions
from tests.replica import MAPPING, Target

MOVES = (*KINDS, *("rename out", "rename in", "rename") * 3)
scopes = st.sets(st.sampled_from(NAMES), min_size=1)


@dataclass
class Replica:
    """A replica with the state of its database, and what it was made with."""

    target: Target
    state: ReplicaState
    scope: AbstractSet[str]

    def plans(self, source: Source, scope: AbstractSet[str]) -> list[LanePlan]:
        """What a load of all that the source did since does, which must be possible."""

        def of_policy(event: WindowEvent) -> bool:
            return any(name in scope for name in event.names)

        begin = min([self.state.applied or 0, *self.state.at.values()])
        (segment,) = segments(filter(of_policy, source.window(begin, source.evid)))
        view, new = self.target.view(self.state), scope - self.scope
        made = LaneSettings(view, MAPPING, scope.__contains__, newcomer=new.__contains__)
        found = [LanePlanner(lane, made).plan()[0] for lane in segment.lanes]
        assert [plan.stop for plan in found if plan.stop] == []
        return found

    def apply(self, found: list[LanePlan], most: int) -> None:
        """Carries out some of the operations."""
        for operation in [one for plan in found for one in plan.operations][:most]:
            self.target.apply(operation)

    def done(self, source: Source, scope: AbstractSet[str], found: list[LanePlan]) -> set[str]:
        """Writes the state after a window: awaited tables are held, and those that left the policy noted."""
        coming = {name for plan in found for name in plan.coming}
        coming |= self.state.coming - {name for plan in found for name in plan.names}
        coming |= (scope - self.scope) & source.tables.keys()
        left = {name: at for name, at in self.state.left.items() if name in self.target.tables}
        left |= {name: source.evid for name in self.target.tables if name not in scope and name not in left}
        held = dict.fromkeys(coming, f"{TAKEN_IN_REASON}and so on")
        self.state = ReplicaState("uuid/db", source.evid, at=dict.fromkeys(coming, source.evid), held=held, left=left)
        self.scope = scope
        return coming

    def join(self, source: Source, names: set[str]) -> None:
        """Loads the dumps of awaited tables, whatever is there under their names."""
        for name in names:
            self.drop(name)
        dumped = Target.replica(source, lambda: source.evid)
        for name in names & source.tables.keys():
            self.target.tables[name] = dumped.tables[name]
            self.target.files |= {key: files for key, files in dumped.files.items() if key[0] == name}
            self.target.partitions |= {key: part for key, part in dumped.partitions.items() if key[0] == name}
            self.state = self.state.at_position(name, source.evid)
        for name in [name for name in self.state.left if name in self.scope and name not in self.state.held]:
            if name in self.target.tables and self.state.is_stale(self.target.tables[name]):
                self.drop(name)  # the policy takes it in again, and the source does not have it
        left = {name: at for name, at in self.state.left.items() if name not in self.scope or name in self.state.held}
        self.state = replace(self.state, left=left)

    def drop(self, name: str) -> None:
        for objects in (self.target.partitions, self.target.files):
            for key in [key for key in objects if key[0] == name]:
                del objects[key]
        self.target.tables.pop(name, None)

    def seen(self) -> State:
        """What the replica claims to have of the source."""
        return restricted(self.target.state(), self.scope)


def restricted(state: State, scope: AbstractSet[str]) -> State:
    return {name: found for name, found in state.items() if name in scope}


def first(before: Actions, scope: AbstractSet[str], ids: random.Random) -> tuple[Source, Replica]:
    """A source after some changes, its replica, and stale replicas of tables that left the policy before."""
    source = Source()
    for action in before:
        source.act(*action)
    target, left = Target.replica(source, lambda: ids.randint(0, source.evid)), dict[str, int]()
    for name in [name for name in target.tables if name not in scope]:
        left[name] = source.evid
        image = copy_of(target.tables[name])
        image.parameters["version"] = "-1"
        point_at(image.sd, f"{image.sd.location}-stale")
        target.tables[name] = image
    return source, Replica(target, ReplicaState("uuid/db", source.evid, left=left), scope)


@pytest.mark.no_cover
@settings(deadline=None, max_examples=200)
@given(actions(), st.lists(st.tuples(actions(MOVES), scopes), min_size=1, max_size=3), scopes, st.integers(0, 2**32))
def test_the_end_is_what_the_policy_takes_of_the_source(
    before: Actions, windows: list[tuple[Actions, set[str]]], scope: set[str], seed: int
) -> None:
    ids = random.Random(seed)
    source, replica = first(before, scope, ids)
    for moves, taken in windows:
        for move in moves:
            source.act(*move)
        if ids.random() < 0.5:  # killed in the middle of the window
            replica.apply(replica.plans(source, taken), ids.randint(0, 5))
        found = replica.plans(source, taken)
        replica.apply(found, len(source.events) * 9)
        coming = replica.done(source, taken, found)
        if ids.random() < 0.3:  # killed before, or in the middle of, the tables that come whole
            replica.join(source, set(sorted(coming)[: ids.randint(0, len(coming))]))
        else:
            replica.join(source, coming)
            assert replica.seen() == restricted(source.state(), taken)
    found = replica.plans(source, replica.scope)
    replica.apply(found, 999)
    replica.join(source, replica.done(source, replica.scope, found))
    assert replica.seen() == restricted(source.state(), replica.scope)
    again = replica.plans(source, replica.scope)
    assert [(plan.operations, plan.coming) for plan in again if plan.operations or plan.coming] == []
