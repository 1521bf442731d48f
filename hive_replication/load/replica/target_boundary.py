"""Which directories of the target a load may write for one database, whatever the source says of places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hive_replication.errors import Refused, ReplicationError
from hive_replication.load.replica.target import Target
from hive_replication.storage.boundary import RESERVED, Boundary, is_reserved


@dataclass(frozen=True)
class TargetBoundary:
    """The directories of one target database.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory.
    """

    target: Target
    database: str
    location: str

    @cached_property
    def _beside(self) -> Boundary:
        policy = self.target.policy
        named = tuple(one for one in (policy.external_root, policy.functions_root, *policy.target.paths) if one)
        return Boundary("target.paths", named, self._defaults)

    def _defaults(self) -> tuple[str, ...]:
        return self.target.default_locations(self.database, self.location)

    def require_free(self, directory: str, shown: str) -> None:
        """Makes sure that a new object's directory, which follows from names and paths of the source, is not replication's own.

        Raises:
            Refused: it is.
        """
        if is_reserved(directory):
            raise Refused(
                f"{shown} would lie at {directory}: {RESERVED} is replication's own directory on the target; rename the source's "
                "table, or move it to another directory"
            )

    def require_within(self, directory: str, shown: str) -> None:
        """Makes sure that an object's files may be written to a directory.

        Raises:
            Refused: they may not.
        """
        if reason := self.why_outside(directory):
            raise Refused(f"{shown} is not written: {reason}")

    def why_outside(self, directory: str) -> str:
        """Why nothing may be written to a directory, or "" where it may."""
        return "" if directory.startswith(self.location + "/") else self._beside.why_outside(directory)


def boundary_of(target: Target, database: str) -> TargetBoundary:
    """The boundary of a target database as it is now.

    Raises:
        ReplicationError: it does not exist any more.
    """
    found = target.metastore.database(database)
    if found is None or not found.locationUri:
        raise ReplicationError(f"the target database {database!r} went away during the load")
    return TargetBoundary(target, database, found.locationUri.rstrip("/"))
