"""Where the data is that loads have replaced or dropped: retention moves it, and deletes it in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hive_replication.errors import Refused
from hive_replication.load.journal.journal import Entry, LaneFile
from hive_replication.load.layout.directories import Layout
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.logs import reason
from hive_replication.storage import Storage, TooLarge, paths

_MOST = 64 * 1024  # bytes of a path


class OldDataLocator:
    """Finds the directories that loads left behind: in place, or retired.

    Args:
        storage: the target's.
        location: the database's directory.
        loads: all loads of the journal, in order.
    """

    def __init__(self, storage: Storage, location: str, loads: Iterable[tuple[Entry, list[LaneFile]]]) -> None:
        self._storage, self._layout, self._moves = storage, Layout(location), ProtectedMoves(storage)
        self._left: dict[str, list[str]] = {}
        self._halves: dict[str, list[str]] = {}
        for entry, lanes in loads:
            for place in {place for lane in lanes for place in (*lane.record.left, *lane.record.placed)}:
                self._left.setdefault(place, []).append(entry.token)

    def locate(self, place: str, token: str) -> str:
        """The present path of a directory from before a load; one outside the database's directory is never moved.

        Args:
            place: its path before the load.
            token: of the load.
        """
        if not self._layout.holds(place):
            return place  # nobody moved it
        parts = place.split("/")
        tokens = {one for length in range(4, len(parts) + 1) for one in self._left.get("/".join(parts[:length]), ())}
        for later in sorted(one for one in tokens if one >= token):
            kept = self._layout.retired(later, place)
            if self._storage.exists(kept):
                return kept
        return place

    def is_whole(self, place: str, found: str) -> bool:
        """Whether all of a directory is at its present path: retention may have moved or deleted a part of it.

        Args:
            place: its path before the load.
            found: its present path.

        Raises:
            Refused: what says where retention is at is damaged.
        """
        root = f"{self._layout.retired_root}/"
        if not found.startswith(root):
            return True
        token = found[len(root) :].partition("/")[0]
        return not any(
            any(paths.is_under(part, one) or paths.is_under(one, part) for one in (place, found)) and self._storage.exists(part)
            for part in self._half_retired(token)
        )

    def _half_retired(self, token: str) -> list[str]:
        if token not in self._halves:
            marks, files = self._layout.half_retired(token), self._storage.ls(paths.parent(self._layout.half_retired(token)))
            self._halves[token] = [self._marked(one.uri) for one in files if one.uri.startswith(marks)]
        return self._halves[token]

    def _marked(self, mark: str) -> str:
        """The directory that a mark names, which users of the target can write, and retention deletes when it is through."""
        try:
            return self._storage.read(mark, most=_MOST).decode()
        except (TooLarge, UnicodeDecodeError, FileNotFoundError) as error:
            why = f"{mark}, which names old data that retention is at, cannot be read ({reason(error)})"
            raise Refused(f"{why}: let retention end, then undo again") from error

    def retire(self, token: str, file: str, check: Callable[[], None]) -> None:
        """Retires a file at once, for a token of its directory's own; ``check`` raises if the lock is lost."""
        layout = self._layout
        kept = layout.retired(token, file) if layout.holds(file) else layout.retired_from_outside(token, file)
        self._moves.move_file(file, kept, check)
