"""What directories allow together with all above them."""

from __future__ import annotations

from hive_replication.storage import Storage, paths
from hive_replication.storage.access import Access, effective


class EffectiveAccess:
    """What directories allow, each looked at once.

    Args:
        storage: of their side.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, Access | None] = {}

    def of(self, directory: str) -> Access | None:
        """Of a directory and all above it; None where it is absent, or its store knows nothing of access."""
        if directory not in self._known:
            found = self._read(directory)
            above = paths.parent(directory)
            if found is not None and above != directory and self._storage.holds(above) and (outer := self.of(above)):
                found = effective([outer, found])
            self._known[directory] = found
        return self._known[directory]

    def knows(self, directory: str) -> bool:
        """Whether its store has access at all."""
        return self._storage.about_access(directory, lambda _, path: path) is not None

    def nearest(self, directory: str, up_to: str) -> Access | None:
        """The same; where it is absent, of the nearest above it that is not, up to one of them."""
        while (found := self.of(directory)) is None and directory != up_to and paths.is_under(directory, up_to):
            directory = paths.parent(directory)
        return found

    def _read(self, directory: str) -> Access | None:
        try:
            return self._storage.about_access(directory, lambda store, path: store.read(path))
        except FileNotFoundError:
            return None
