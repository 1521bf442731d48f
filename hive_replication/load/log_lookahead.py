"""The lookahead of a load whose source can be asked: it reads the source's log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property

from hive_replication.errors import ReplicationError
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.events_of_policy import notifications
from hive_replication.events.unpack import MOST_BYTES
from hive_replication.load.plan.superseded import TYPES, Ending, Move, ending, moves_after, superseding
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore

_LOG = logging.getLogger(__name__)


class LogLookahead:
    """Reads the source's log, once, when first asked; what it keeps are names, for events that end something.

    Args:
        metastore: the source's.
        database: source database.
        after: events up to this one are never asked for.
        most: bytes that a message may unpack to.
    """

    def __init__(self, metastore: Metastore, database: str, after: int, most: int = MOST_BYTES) -> None:
        self._metastore, self._database, self._after, self._most = metastore, database, after, most

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        """See :class:`hive_replication.load.plan.superseded.Lookahead`."""
        return superseding((one for one in self._endings if one.evid > evid), table, partition)

    def moves(self, table: str, partition: str, evid: int) -> tuple[Move, ...]:
        """See :class:`hive_replication.load.plan.superseded.Lookahead`."""
        return moves_after((one for one in self._endings if one.evid > evid), table, partition)

    @cached_property
    def _endings(self) -> tuple[Ending, ...]:
        try:
            return tuple(self._read())
        except ReplicationError as error:
            _LOG.warning("whether later events supersede lost files is not known: %s", error, extra=about(self._database))
            return ()  # unreachable or purged: nobody knows, and the lane is held

    def _read(self) -> Iterator[Ending]:
        end = self._metastore.current_event_id()
        for row in notifications(self._metastore, self._after, end, self._most, self._database):
            if row.database == self._database and row.type in TYPES:
                found = _ending(row)
                if found is not None:
                    yield found


def _ending(row: r.Notification) -> Ending | None:
    """What an event ends; one that cannot be read leaves it open for its own table, or for all where it is of none."""
    try:
        return ending(decode(row))
    except UnreadableMessage:
        return Ending(row.evid, row.table, unknown=True)
