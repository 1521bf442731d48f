"""Incarnations of names: which incarnation of a table or partition each event of a window is about (pure).

The same name may be created, dropped, renamed and created again inside one window. An incarnation begins before the window or
with a creation in it, may be renamed, and ends with a drop or lasts beyond the window. The state id of an object on the target
shows which incarnation it is: it lies between the events with which the incarnation took the name and left it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hive_replication.events import event_records as r
from hive_replication.load.plan import gate

#: Events of partitions.
PartitionEvent = r.AddPartition | r.AlterPartition | r.DropPartition | r.Insert | r.UpdateStatistics | r.DeleteStatistics

BEFORE = -1
"""Stands for the time before the window."""


@dataclass
class Incarnation:
    """One incarnation.

    Args:
        names: the names it has in turn, each with the event id from which on.
        created: event id of its creation inside the window, or None where it is older.
        dropped: event id of its drop (or rename out of the policy) inside the window, or None where it lasts.
        entered: event id of its rename into the policy inside the window, or None where it was of it before.
        unclear_evid: first event of it that does not tell what it holds from then on, or does not tell it of it alone.
        rebuilt: whether it ends with a rename for that reason alone, which a window that begins later does not know.
    """

    names: list[tuple[str, int]]
    created: int | None = None
    dropped: int | None = None
    entered: int | None = None
    unclear_evid: int | None = None
    rebuilt: bool = False

    def unknown_from(self, evid: int) -> bool:
        """Whether windows that begin after an event do not know any more that the incarnation ends."""
        return self.rebuilt and self.unclear_evid is not None and evid >= self.unclear_evid

    def gone_by(self, evid: int) -> bool:
        """Whether it ended before an event."""
        return self.dropped is not None and bool(gate.applied(self.dropped, position=evid))

    def located(self, state_id: Callable[[str], int | None]) -> str | None:
        """The name under which the target has this very incarnation now, or None where it does not have it.

        Args:
            state_id: state id of the target's object of a name, None where there is none.
        """
        left = self.dropped
        for name, entered in reversed(self.names):
            found = state_id(name)
            if found is not None and gate.of_incarnation(found, entered, left):
                return name
            left = entered
        return None


@dataclass
class Incarnations:
    """Follows names through the events of a window, in order."""

    current: dict[str, Incarnation] = field(default_factory=dict[str, Incarnation])
    _dropped: dict[str, Incarnation] = field(default_factory=dict[str, Incarnation])

    def of(self, name: str) -> Incarnation:
        """The incarnation that has the name now; one from before the window where nothing is known of it."""
        return self.current.setdefault(name, Incarnation([(name, BEFORE)]))

    def of_or_gone(self, name: str) -> Incarnation:
        """The same; where nothing has the name since a drop, the incarnation that was dropped."""
        found, gone = self.of(name), self._dropped.get(name)
        return gone if gone is not None and found.created is None and found.names == [(name, gone.dropped)] else found

    def create(self, name: str, evid: int) -> Incarnation:
        """The name is created."""
        self.current[name] = Incarnation([(name, evid)], created=evid)
        return self.current[name]

    def enter(self, name: str, evid: int) -> Incarnation:
        """The name is given to a table from outside the policy: what it was before, nobody here knows."""
        self.current[name] = Incarnation([(name, evid)], entered=evid)
        return self.current[name]

    def drop(self, name: str, evid: int) -> Incarnation:
        """The name is dropped; whatever comes under it later is another incarnation."""
        incarnation = self.of(name)
        incarnation.dropped = evid
        self.current[name], self._dropped[name] = Incarnation([(name, evid)]), incarnation
        return incarnation

    def rename(self, old: str, new: str, evid: int) -> Incarnation:
        """The incarnation goes on under another name."""
        incarnation = self.of(old)
        incarnation.names.append((new, evid))
        self.current[old] = Incarnation([(old, evid)])
        self.current[new] = incarnation
        return incarnation


def incarnations_of_partitions(incarnations: Incarnations, event: PartitionEvent) -> list[tuple[str, Incarnation]]:
    """Names and incarnations of the partitions that an event is about.

    Args:
        incarnations: those of the table's partitions.
        event: the next one.
    """
    match event:
        case r.AddPartition():
            return [(added.name, incarnations.create(added.name, event.evid)) for added in event.partitions]
        case r.DropPartition():
            return [(name, incarnations.drop(name, event.evid)) for name in event.partitions]
        case r.AlterPartition():
            return [
                (
                    c.before_name,
                    incarnations.rename(c.before_name, c.after_name, event.evid) if c.rename else incarnations.of(c.before_name),
                )
                for c in event.changes
            ]
        case r.Insert() | r.UpdateStatistics() | r.DeleteStatistics():
            return [(event.partition_name, incarnations.of(event.partition_name))] if event.partition_name else []
