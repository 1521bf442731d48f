"""What directories allow together with all above them."""

from __future__ import annotations

import logging

from hive_replication.storage import Denied, Storage, paths
from hive_replication.storage.access import Access, effective

_LOG = logging.getLogger(__name__)


class EffectiveAccess:
    """What directories allow, each looked at once, up to the top of their store: who may not pass one above a root reads nothing.

    Who may use a directory may ask HDFS for the access to those above it. Where it is denied all the same nobody knows whom
    that one lets pass, and what is below it is for its owner alone.

    Args:
        storage: of their side.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._known: dict[str, Access | None] = {}
        self._own: dict[str, Access | None] = {}

    def of(self, directory: str) -> Access | None:
        """Of a directory and all above it; None where it is absent, or its store knows nothing of access."""
        if directory not in self._known:
            found = self._own[directory] = self.alone(directory)
            above = paths.parent(directory)
            if found is not None and above != directory and (outer := self.of(above)):
                found = effective([outer, found])
            self._known[directory] = found
        return self._known[directory]

    def knows(self, directory: str) -> bool:
        """Whether its store has access at all."""
        return self._storage.about_access(directory, lambda _, path: path) is not None

    def nearest(self, directory: str, up_to: str) -> Access | None:
        """The same; where it is absent, of the nearest above it that is not, up to one of them."""
        return self.of(self._nearest(directory, up_to))

    def own(self, directory: str, up_to: str) -> Access | None:
        """What :meth:`nearest` has itself, without those above it."""
        found = self._nearest(directory, up_to)
        return None if self.of(found) is None else self._own[found]

    def _nearest(self, directory: str, up_to: str) -> str:
        while self.of(directory) is None and directory != up_to and paths.is_under(directory, up_to):
            directory = paths.parent(directory)
        return directory

    def alone(self, directory: str) -> Access | None:
        """Of a directory without those above it; None as :meth:`of`."""
        try:
            if self._storage.holds(directory):
                return self._storage.about_access(directory, lambda store, path: store.read(path))
            return self._above(directory)
        except FileNotFoundError:
            return None

    def _above(self, directory: str) -> Access | None:
        try:
            return self._storage.access_above(directory)
        except Denied as error:
            _LOG.warning("replicas of what lies below are for their owners alone: %s", error)
            return Access("", "", 7, 0, 0)
