"""Lanes planned from every state that a crash can leave: the end is always the state of the source, and nothing is left then."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.load import operations as op
from hive_replication.load.lanes import segments
from hive_replication.load.plan import LanePlan
from hive_replication.load.plan_lane import LanePlanner
from hive_replication.load.state import ReplicaState
from tests.model import KINDS, MAPPING, Actions, Source, Target, actions, includes


def plans(source: Source, target: Target, state: ReplicaState, until: int, after: int | None = None) -> list[LanePlan]:
    """What a load of the window does, which must be possible."""
    begin = min([state.applied or 0, *state.at.values()]) if after is None else after
    (segment,) = segments(source.window(begin, until))
    view = target.view(state)
    made = [LanePlanner(lane, view, MAPPING, includes).plan()[0] for lane in segment.lanes]
    assert [plan.obstacle for plan in made if plan.obstacle] == []
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


@settings(deadline=None, max_examples=300)
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


@settings(deadline=None, max_examples=200)
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
                    state = state.moved(name, until)
    finish(source, target, state)
