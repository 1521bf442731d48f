"""Tables that were repaired since the point of an undo: what the repair replaced may be damaged, and nobody knows since when.

Where no event has changed them between that point and the repair, or what they need to go back is not there any more, they stay
as the repair left them, and stand where it did. Others go back, and stand nowhere then: no event is applied to them, and after
the release the next recovery brings them whole.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hive_replication.load.journal.journal import Entry, Journal, LaneFile
from hive_replication.load.undo.obstacles import Chosen, Obstacles
from hive_replication.load.undo.reverse_lane import STAYS


@dataclass(frozen=True, slots=True)
class RepairedTable:
    """A table that was repaired, or brought by a recovery, since the point of an undo, or was joined to one.

    Args:
        table: its name on the target.
        evid: event id of the repair.
        stays: whether it stays as the repair left it; else it goes back, and comes whole after the release.
    """

    table: str
    evid: int
    stays: bool

    def __str__(self) -> str:
        """One sentence."""
        since = f"{self.table} was repaired at event {self.evid} since"
        if self.stays:
            return f"{since}, and stays as that left it"
        return f"{since}: the damage of before may be back, so that the table comes whole from the source after the release"


@dataclass(frozen=True, slots=True)
class WithRepairs:
    """What is reversed, and what became of repairs.

    Args:
        chosen: the lanes to reverse.
        tables: those that were repaired.
        partial: tokens of loads of which lanes stay.
    """

    chosen: list[tuple[Entry, list[LaneFile]]]
    tables: tuple[RepairedTable, ...] = ()
    partial: frozenset[str] = frozenset()

    @property
    def stay(self) -> dict[str, int]:
        """Where tables stand that stay as a repair left them."""
        return {one.table: one.evid for one in self.tables if one.stays}

    @property
    def unknown(self) -> dict[str, int]:
        """Tables that go back to what may be damaged: they stand nowhere."""
        return {one.table: 0 for one in self.tables if not one.stays}


def with_repairs(journal: Journal, chosen: Chosen, obstacles: Obstacles) -> WithRepairs:
    """Finds the repaired tables, and leaves out the lanes of those that stay.

    Args:
        journal: of the target database.
        chosen: the loads from the newest on, with the lanes to reverse.
        obstacles: tells what is there that lanes need.

    Returns:
        The lanes that are left to reverse, and the repaired tables.
    """
    repairs, tables, partial = journal.repairs(entry for entry, lanes in chosen if lanes), list[RepairedTable](), set[str]()
    for names in _repaired(chosen, repairs):
        own = [(entry, [lane for lane in lanes if names & set(lane.record.names)]) for entry, lanes in chosen]
        last = next(entry for entry, lanes in own if entry.token in repairs and any(map(_goes_back, lanes)))
        state = journal.state(last)
        before = {entry.token for entry, lanes in own if lanes and entry.token <= last.token}
        same = all(repairs.get(token) == "level" for token in before)
        later, until = ([one for one in own if (one[0].token > last.token) == is_later] for is_later in (True, False))
        # what stands nowhere may have the damage back: an undo has reversed a later repair of it, or was killed after that
        stays = state is not None and not names & (state.held.keys() | obstacles.lost) and (same or obstacles.lacks(own))
        if state is None or not stays or not obstacles.all_there(later, until):
            tables += [RepairedTable(name, last.to_evid, stays=False) for name in sorted(names)]
            continue
        tables += [RepairedTable(name, state.position(name), stays=True) for name in sorted(names)]
        partial |= before
        chosen = [
            (entry, [lane for lane in lanes if entry.token > last.token or not names & set(lane.record.names)])
            for entry, lanes in chosen
        ]
    return WithRepairs(list(chosen), tuple(tables), frozenset(partial))


def _goes_back(lane: LaneFile) -> bool:
    """Whether a lane has more than what no undo takes back."""
    return any(step.kind not in STAYS for step in lane.record.steps)


def _repaired(chosen: Chosen, repairs: Collection[str]) -> list[set[str]]:
    """Names of tables that lanes join to each other, of which a repair has changed one."""
    found: dict[str, set[str]] = {}
    for names in (set(lane.record.names) for _, lanes in chosen for lane in lanes) if repairs else ():
        joined = names.union(*(found[name] for name in names & found.keys()))
        found |= dict.fromkeys(joined, joined)
    lanes = (lane for entry, lanes in chosen if entry.token in repairs for lane in lanes if _goes_back(lane))
    return list({id(names): names for lane in lanes for names in (found[lane.record.names[0]],)}.values())
