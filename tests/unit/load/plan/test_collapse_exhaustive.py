"""Every sequence of changes up to a length, every window in it, from every state that crashes can leave: three ways to one end.

The ways are: collapsed, one event at a time, and the model of the source, which shares no code with the planner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.collapse import collapsed
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import Segment, segments
from hive_replication.load.replica.state import ReplicaState
from tests.model import Source, includes
from tests.replica import MAPPING, Target
from tests.sequences import Move, Moves, fork, one_listed, one_partitioned, one_plain, two_tables

FULL: tuple[Move, ...] = (("create", 0, 0, 1), ("create", 0, 0, 0), ("create", 0, 1, 0))
PAIR: tuple[Move, ...] = (("create", 0, 0, 1), ("create", 1, 0, 1), ("create", 0, 0, 0))

#: Targets by all that a plan goes by, and all content.
States = dict[str, Target]


def fingerprint(target: Target) -> str:
    return repr((sorted(target.ids().items()), sorted(target.files.items()), sorted(target.state().items())))


def operations(segment: Segment, target: Target, state: ReplicaState, *, collapse: bool) -> list[op.Operation]:
    view, found = target.view(state), list[op.Operation]()
    for lane in segment.lanes:
        plan, _ = LanePlanner(lane, LaneSettings(view, MAPPING, includes)).plan()
        assert plan.stop is None
        found.extend((collapsed(plan) if collapse else plan).operations)
    return found


def steps(target: Target, planned: Iterable[op.Operation]) -> Iterator[Target]:
    """The target after each operation."""
    for operation in planned:
        target = target.copy()
        target.apply(operation)
        yield target


@dataclass
class Walk:
    """A walk over all sequences that some moves make.

    Args:
        moves: which changes may come next.
        depth: length of the sequences, ``first`` not counted.
        first: changes before all of them.
    """

    moves: Moves
    depth: int
    first: tuple[Move, ...] = ()
    begin: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])

    def run(self) -> Counter[str]:
        source = Source(unique=self.moves is one_listed)
        for move in self.first:
            source.act(*move)
        target = Target()
        if source.events:
            (segment,) = segments(source.window(0, source.evid))
            *_, target = steps(target, operations(segment, target, ReplicaState("uuid/db", 0), collapse=False))
        self._visit(source, (), {source.evid: {fingerprint(target): target}})
        return self.counts

    def _visit(self, source: Source, past: tuple[Move, ...], reached: dict[int, States]) -> None:
        """Checks all windows that end here, then goes on; ``reached`` are the states that loads from each begin can leave."""
        self.counts["sequences"] += 1
        reached = {begin: self._window(source, begin, states) for begin, states in reached.items()}
        if len(past) == self.depth:
            return
        level = next(iter(reached))
        done = next(target for target in reached[level].values() if target.state() == source.state())
        reached = {**reached, source.evid: {fingerprint(done): done}}
        for move in self.moves(source, past):
            changed = fork(source)
            changed.act(*move)
            self._visit(changed, (*past, move), reached)

    def _window(self, source: Source, begin: int, states: States) -> States:
        """Loads a window from each state, collapsed and not, to its end; answers these states and all between."""
        if begin == source.evid:
            return states
        (exact,), (longer,) = (segments(source.window(after, source.evid)) for after in (begin, self.begin))
        ways = [(exact, True), (exact, False), *([(longer, True)] if begin > self.begin else [])]
        found, waiting = dict(states), list(states.values())
        ids = None
        while waiting:
            start = waiting.pop()
            for segment, collapse in ways:
                end = start
                for end in steps(start, operations(segment, start, ReplicaState("uuid/db", begin), collapse=collapse)):
                    if (mark := fingerprint(end)) not in found:
                        found[mark] = end
                        waiting.append(end)
                ids = ids or end.ids()
                assert (end.state(), end.ids()) == (source.state(), ids)
        self.counts["windows"] += 1
        self.counts["loads"] += len(found) * len(ways)
        return found


SHORT = [(one_partitioned, 4, ()), (one_plain, 3, ()), (one_listed, 3, ()), (two_tables, 3, ()), (one_partitioned, 2, FULL)]
LONG = [(one_partitioned, 6, ()), (one_plain, 6, ()), (one_listed, 5, ()), (two_tables, 5, ()), (one_partitioned, 4, FULL)]
LONG += [(two_tables, 4, PAIR)]


@pytest.mark.no_cover
@pytest.mark.parametrize(("moves", "depth", "first"), SHORT)
def test_all_short_sequences(moves: Moves, depth: int, first: tuple[Move, ...]) -> None:
    _all_sequences(moves, depth, first)


@pytest.mark.long
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("moves", "depth", "first"), LONG)
def test_all_sequences(moves: Moves, depth: int, first: tuple[Move, ...]) -> None:
    _all_sequences(moves, depth, first)


def _all_sequences(moves: Moves, depth: int, first: tuple[Move, ...]) -> None:
    counts = Walk(moves, depth, first).run()
    print(moves.__name__, depth, len(first), dict(counts))
    assert counts["loads"] > 3 * counts["windows"] > 3 * counts["sequences"] > 90
