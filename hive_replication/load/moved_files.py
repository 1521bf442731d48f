"""Files that cannot be found where they were, since the source has renamed their table or partition after the event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hive_replication.events.name_changes import ObjectName
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.plan.superseded import Move
from hive_replication.load.session import Session


def following(session: Session, lane: LanePlan, gone: Mapping[tuple[int, str], ObjectName]) -> LanePlan | None:
    """A lane that finds files where renames have moved them; None where that is nowhere else, or outside of what may be read.

    Args:
        session: the load.
        lane: its plan.
        gone: source tables and partitions of the files that cannot be found, by event and content.
    """
    found: dict[tuple[int, str], tuple[Move, ...]] = {}
    for key in gone.keys() - lane.moves.keys():
        moves = session.lookahead.moves(*gone[key], key[0])
        if moves and all(session.boundary.now.data.holds(after) for _, after in moves):
            found[key] = moves
    return replace(lane, moves={**lane.moves, **found}) if found else None
