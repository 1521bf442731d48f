"""Moving what a directory protects: a file of mode 644 in a directory of mode 750 is not for everybody, wherever it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from hive_replication.copy.preserve import Place, Preserve
from hive_replication.copy.tasks import Check
from hive_replication.load.layout.file_moves import move_file
from hive_replication.storage import Storage, paths
from hive_replication.storage.access import Access, effective
from hive_replication.storage.effective_access import EffectiveAccess


class ProtectedMoves:
    """Moves files and directories to where nobody may read them who could not where they were.

    The directory that something goes to gets what those allow together that it came from, as far as the account may, and is for
    less people where it may not. Directories above both places, which protect them alike, are not looked at.

    Args:
        storage: of both places.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage, self._access = storage, EffectiveAccess(storage)
        self._preserve = Preserve.of(("owner", "group", "mode", "acl"))
        self._protected: set[tuple[str, str]] = set()

    def move(self, path: str, place: str) -> None:
        """Gives a file or directory another name, as :meth:`~hive_replication.storage.Storage.rename` does.

        Args:
            path: its URI.
            place: the new one, on the same store.

        Raises:
            Denied: the directory that it goes to is somebody else's, and would let more people read it.
        """
        self._prepare(path, place)
        self._storage.rename(path, place)

    def move_file(self, file: str, place: str, check: Check) -> None:
        """The same of a file, which is copied where it cannot be renamed: to another store, or another encryption zone.

        Args:
            file: its URI.
            place: the new one.
            check: raises if the lock is lost, also while it is copied.
        """
        self._prepare(file, place)
        move_file(self._storage, file, place, shown=file, access=partial(self._new_in, paths.parent(place)), check=check)

    def _new_in(self, directory: str) -> Place | None:
        """The directory of a copy, which gets what the file itself has; None where its store knows nothing of access."""
        self._storage.mkdirs(directory)
        if (present := self._access.alone(directory)) is None:
            return None
        return Place(self._preserve, Access("", present.group, 6, 0, 0, default=present.default), asks=True)

    def _prepare(self, path: str, place: str) -> None:
        way = paths.parent(path), paths.parent(place)
        if way not in self._protected:
            self._protect(*way)
            self._protected.add(way)

    def _protect(self, origin: str, directory: str) -> None:
        above = list(self._left_behind(origin, directory))
        if not above:
            return
        wanted, made = effective(reversed(above)), not self._storage.exists(directory)
        self._storage.mkdirs(directory)  # nothing is in it yet
        present = self._access.alone(directory)
        if present is not None and (made or present.exceeds(wanted)):
            wanted = replace(wanted if made else wanted.below(present), user=7)
            self._preserve.give(self._storage, directory, wanted, present, is_dir=True)

    def _left_behind(self, origin: str, directory: str) -> Iterator[Access]:
        """What protects that which is in ``origin``, beginning there, and not that which is in ``directory``."""
        while paths.split(origin)[2] != "/" and not paths.is_under(directory, origin):
            found = self._access.alone(origin)
            if found is None:
                return
            yield found
            origin = paths.parent(origin)
