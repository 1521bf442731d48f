"""What is recorded below the dump root, for reports that are to come whatever is down."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from hive_replication.connect import Connection
from hive_replication.connect.hanging_storage import require_reachable
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.lag import Lag
from hive_replication.load.records import Record, RecordStore
from hive_replication.logs import about

_LOG = logging.getLogger(__name__)

_PATIENCE = 5.0  # seconds to wait for the storage of dumps
_LOADS = frozenset({"window", "bootstrap", "table", "repair", "recovery", "catch-up"})
_RECENT = 20  # records that are read to find the last load


@dataclass(frozen=True)
class KeptRecords:
    """The records of a policy's replicas; none where the dump root does not answer, which is asked once for all of them.

    Args:
        connection: both sides; only the dump root is called.
        problem: why it does not answer, "" if it does.
    """

    connection: Connection
    problem: str = ""

    @classmethod
    def of(cls, connection: Connection) -> KeptRecords:
        """Asks the dump root whether it answers; takes some seconds at most."""
        try:
            require_reachable(connection.store.storage, _PATIENCE)
        except Unreachable as error:
            return cls(connection, str(error))
        return cls(connection)

    def last_load(self, target_database: str) -> Record | None:
        """The record of the last load of a target database; None if none is kept, or this account may not read a newer day."""
        try:
            return None if self.problem else self._of(target_database).last_of(_LOADS, _RECENT)
        except (ReplicationError, OSError) as error:
            _LOG.warning("the last load is not known: %s", error, extra=about(target_database))
            return None

    def lost(self, lags: Iterable[Lag]) -> frozenset[str]:
        """The source databases that had a replica by their records, and have none now."""
        missing = [] if self.problem else [one for one in lags if one.lacks_replica]
        return frozenset(one.database for one in missing if self._had_replica(one.target_database))

    def _had_replica(self, target_database: str) -> bool:
        try:
            return self._of(target_database).had_replica()
        except (ReplicationError, OSError) as error:
            _LOG.warning("whether there was a replica is not known: %s", error, extra=about(target_database))
            return False

    def _of(self, target_database: str) -> RecordStore:
        return RecordStore.of(self.connection.target.policy, self.connection.store, target_database)
