"""Lives of names: which incarnation of a table or partition each event of a window is about (pure).

The same name may be created, dropped, renamed and created again inside one window. A life begins before the window or with a
creation in it, may be renamed, and ends with a drop or lasts beyond the window. Which life an object on the target is tells its
state id: it lies between the event with which the life took the name and the one with which it left it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

BEFORE = -1
"""Stands for the time before the window."""


@dataclass
class Life:
    """One incarnation.

    Args:
        names: the names it has in turn, each with the event id from which on.
        created: event id of its creation inside the window, or None where it is older.
        dropped: event id of its drop (or rename out of the policy) inside the window, or None where it lasts.
    """

    names: list[tuple[str, int]]
    created: int | None = None
    dropped: int | None = None

    def located(self, state_id: Callable[[str], int | None]) -> str | None:
        """The name under which the target has this very life now, or None where it does not have it.

        Args:
            state_id: state id of the target's object of a name, None where there is none.
        """
        left = self.dropped
        for name, entered in reversed(self.names):
            found = state_id(name)
            if found is not None and entered <= found and (left is None or found < left):
                return name
            left = entered
        return None


@dataclass
class Lives:
    """Follows names through the events of a window, in order."""

    current: dict[str, Life] = field(default_factory=dict[str, Life])

    def of(self, name: str) -> Life:
        """The life that has the name now; one from before the window where nothing is known of it."""
        return self.current.setdefault(name, Life([(name, BEFORE)]))

    def create(self, name: str, evid: int) -> Life:
        """The name is created."""
        self.current[name] = Life([(name, evid)], created=evid)
        return self.current[name]

    def drop(self, name: str, evid: int) -> Life:
        """The name is dropped; whatever comes under it later is another life."""
        life = self.of(name)
        life.dropped = evid
        self.current[name] = Life([(name, evid)])
        return life

    def rename(self, old: str, new: str, evid: int) -> Life:
        """The life goes on under another name."""
        life = self.of(old)
        life.names.append((new, evid))
        self.current[old] = Life([(old, evid)])
        self.current[new] = life
        return life
