"""Texts of views in a lane: of each only the last one counts, since a view holds nothing (pure)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hive_replication.events import event_records as r
from hive_replication.load.plan.lanes import Lane, WindowEvent
from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Table, copy_of


def with_later_texts(lane: Lane, why_held: Callable[[Table], str]) -> Lane:
    """A lane in which views that cannot be replicated are described as a later event does whose text can be.

    Args:
        lane: its events.
        why_held: why a view cannot be replicated, or "".
    """
    later: dict[str, Table] = {}  # by the name of the view, going back in time
    events: list[WindowEvent] = []
    for event in reversed(lane.events):
        change, name = event.event, event.names[-1]
        described = change if isinstance(change, r.CreateTable | r.AlterTable) and is_view(change.after) else None
        if described is not None and not (isinstance(described, r.AlterTable) and described.leaves):
            if not why_held(described.after):
                later[name] = described.after
            elif name in later:
                event = replace(event, event=replace(described, after=_named_as(later[name], described.after)))
        if change is None or change.name_changes:
            known = later.get(name)
            for one in event.names:
                later.pop(one, None)
            if known is not None and event.names[0] != name and described is not None:  # before its rename it had that name
                later[event.names[0]] = known
        events.append(event)
    return replace(lane, events=tuple(reversed(events)))


def _named_as(view: Table, other: Table) -> Table:
    image = copy_of(view)
    image.dbName, image.tableName = other.dbName, other.tableName
    return image
