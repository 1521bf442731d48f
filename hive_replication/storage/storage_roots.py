"""Which storage root a URI lies under: every one is checked here before a store is asked."""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.errors import Refused
from hive_replication.policy import Root
from hive_replication.storage import paths


class StorageRoots:
    """The roots of one warehouse, found by URI.

    Args:
        roots: of the policy; of two that hold a URI the first counts.

    Attributes:
        prefixes: their URIs in normal spelling.
    """

    def __init__(self, roots: Iterable[Root]) -> None:
        self._found = [(paths.normalise(root.uri), root) for root in roots]
        self.prefixes = tuple(prefix for prefix, _ in self._found)

    def holds(self, uri: str) -> bool:
        """Whether a full URI lies under a root."""
        return any(paths.is_under(paths.normalise(uri), prefix) for prefix in self.prefixes)

    def of(self, uri: str) -> tuple[str, str, Root]:
        """A URI in its normal spelling, its path, and the root that it lies under.

        Raises:
            Refused: it lies under none, or has ``.``, ``..`` or empty segments.
        """
        normal = paths.normalise(uri)
        for prefix, root in self._found:
            if paths.is_under(normal, prefix):
                return normal, paths.split(normal)[2], root
        raise Refused(f"{uri!r} lies outside the storage roots of the policy ({', '.join(self.prefixes)})")

    def above(self, uri: str) -> tuple[str, str, Root]:
        """The same of a directory above a root.

        Raises:
            Refused: no root lies below it.
        """
        normal = paths.normalise(uri)
        for prefix, root in self._found:
            if paths.is_under(prefix, normal):
                return normal, paths.split(normal)[2], root
        raise Refused(f"{uri!r} lies above none of the storage roots of the policy ({', '.join(self.prefixes)})")

    def require_below(self, uri: str) -> None:
        """Makes sure that a URI is that of no root, and of nothing that holds one.

        Raises:
            Refused: it is, or lies under none.
        """
        normal = self.of(uri)[0]
        if any(paths.is_under(prefix, normal) for prefix in self.prefixes):
            raise Refused(f"{uri} is a storage root, which is never moved or deleted")
