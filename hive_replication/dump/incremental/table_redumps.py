"""Dumps of tables that a window rebuilds: their data was changed without a transaction, or unsaid by a metastore of Hive 2.

A plain table that is made transactional keeps its files. Where the log has such an event, the window gets a dump of the table
beside it, as it is now, and the event says where. The load applies the table's lane up to the event, rebuilds the table from
that dump, as a repair does, and continues with the lane.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hive_replication.dump.format.record_types import DumpResult
from hive_replication.dump.incremental.present_location import PresentLocations, table_of
from hive_replication.dump.source import Source
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events import redumps
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.partition_filters import Entered
from hive_replication.logs import about

_LOG = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0  # seconds: other tables of the window wait, too
#: Dumps one table as it is now.
DumpTable = Callable[[Source, str], DumpResult]


@dataclass
class TableRedumps:
    """Dumps the tables that a window rebuilds, each once.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
        dump: dumps a table; None where the tables are left out.
    """

    source: Source
    locations: PresentLocations
    dump: DumpTable | None
    _made: dict[str, str] = field(default_factory=dict[str, str])

    def redump(self, event: LogEvent, shared: str = "") -> str:
        """Directory of a dump of the event's table; "" where none is needed, or the table is gone or renamed by now.

        Args:
            event: of the window.
            shared: other partitions at the directories of its own (see ``shared_directories``).
        """
        if self.dump is not None and shared:
            return self._directory(event)
        if self.dump is None or event.row.type not in redumps.TYPES or event.event is None:
            return ""
        needed = isinstance(event.event, Entered) or redumps.is_unclear(event.event, acid=self.source.acid)
        return self._directory(event) if needed else ""

    def _directory(self, event: LogEvent) -> str:
        table = event.row.table
        if self.locations.find_table(table, event.evid, table_of(event.decoded)).table != table:
            return ""
        if table not in self._made:
            assert self.dump is not None  # noqa: S101 - redump asks only then
            self._made[table] = dumped_beside(self.source, self.locations.database, table, self.dump)
        return self._made[table]


def dumped_beside(source: Source, database: str, table: str, dump: DumpTable) -> str:
    """Dumps a table beside a window.

    Args:
        source: the source side.
        database: source database.
        table: its table.
        dump: dumps it.

    Returns:
        The dump's directory; "" where transactions stay open, or the table went away: its lane is held, and tried again.
    """
    settings = source.policy.acid
    wait = {"open_txn_timeout": min(settings.open_txn_timeout, _LONGEST_WAIT), "at_timeout": "fail"}
    patient = replace(source, policy=source.policy.model_copy(update={"acid": settings.model_copy(update=wait)}))
    try:
        return dump(patient, table).directory
    except Unreachable:
        raise
    except ReplicationError as error:
        _LOG.warning("the table is not dumped beside the window: %s", error, extra=about(database, table))
        return ""
