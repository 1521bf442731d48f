"""How often all grants of a database are compared: large ones not after each load, so that these do not wait for it.

A metastore tells grants table by table. Where that takes long, loads compare those of the tables that they have changed, until
ten times as long has passed. When all were compared is kept in the database's directory; where it cannot be, they are each time.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from hive_replication.bounded_json import Seconds
from hive_replication.errors import ReplicationError
from hive_replication.load.layout.directories import Layout
from hive_replication.logs import about
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

_MOST = 4096  # bytes of the file
_SECONDS = 1.0  # what takes less is done by each load, and not noted
_SHARE = 10


@dataclass(frozen=True, slots=True)
class Compared:
    """When all grants of a database were compared.

    Args:
        ended: seconds since the epoch.
        seconds: how long it took.
    """

    ended: Seconds
    seconds: Seconds

    def due(self, now: float) -> bool:
        """Whether they are to be compared again; also where the clock was set back."""
        return not 0 <= now - self.ended < _SHARE * self.seconds


_COMPARED = TypeAdapter(Compared)


def all_due(storage: Storage, location: str, now: float) -> bool:
    """Whether a load compares all grants of a database.

    Args:
        storage: the target's.
        location: the target database's directory.
        now: seconds since the epoch.
    """
    try:
        return _COMPARED.validate_json(storage.read(Layout(location).privileges, most=_MOST)).due(now)
    except (ReplicationError, OSError, ValidationError) as error:
        _LOG.debug("it is not known when grants were compared: %s", error)
        return True


def note(storage: Storage, location: str, compared: Compared, database: str) -> None:
    """Keeps when all grants were compared, if it took long; that it cannot be written is no error.

    Args:
        storage: the target's.
        location: the target database's directory.
        compared: when, and how long it took.
        database: its name, for the log.
    """
    if compared.seconds < _SECONDS:
        return
    try:
        storage.write(Layout(location).privileges, _COMPARED.dump_json(compared))
    except (ReplicationError, OSError) as error:
        _LOG.info("when grants were compared is not kept: %s", error, extra=about(database))
