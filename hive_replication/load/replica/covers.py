"""Comparing state ids with event ids (pure): the one comparison that the gate of a plan and all who look again later build on."""

from __future__ import annotations


def covers(state_id: int | None, evid: int) -> bool:
    """Whether what stands at a state id contains an event already.

    Args:
        state_id: of an object, or the position of a name or database; None where nothing is applied yet.
        evid: event id.
    """
    return state_id is not None and state_id >= evid
