"""Errors that a user of the library or of ``hive-repl`` sees: one clear sentence that says what to do, and an exit code."""

from __future__ import annotations

from typing import ClassVar


class ReplicationError(Exception):
    """The work failed; running it again may help (exit code 1).

    Where a load fails, ``unchanged`` says whether it is certain that it has not changed any object.
    """

    exit_code: ClassVar[int] = 1
    unchanged: bool = False


class BadRequest(ReplicationError):
    """The request itself is wrong: broken statement, unknown database, absent or incomplete dump (exit code 2)."""

    exit_code: ClassVar[int] = 2


class Refused(ReplicationError):
    """Done as asked, data would be lost or mixed: a foreign object on the target, another source's dump (exit code 3)."""

    exit_code: ClassVar[int] = 3


class LockLost(Refused):
    """Another load may run: whatever was under way under the lock ends as a whole."""


class LockSilent(LockLost):
    """No sign of life got through for so long that another load may take the lock over; the next one tells that none has."""


class Outdated(Refused):
    """A dump of an object is from before what the target has of it by now: a new dump helps."""


class MetastoreError(ReplicationError):
    """The metastore refused a call; ``__cause__`` is its own exception."""


#: What concerns one database alone where it is looked at: a mark on it was edited by hand, or its metastore refuses to show it,
#: as a metastore with storage-based authorization does for a directory that the account may not read.
OF_ONE_DATABASE = (Refused, MetastoreError)


class MissingEvents(ReplicationError):
    """The notification log has a hole, or no longer reaches back to the requested event id (Hive's error 40006)."""


class Unreachable(ReplicationError):
    """A metastore or a storage cannot be reached, after all retries."""
