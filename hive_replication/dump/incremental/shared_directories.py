"""Partitions that lie in one directory, or one above the other: an event names one, and what it brings or takes others read.

Hive leaves the directory of an external partition where it is when the partition is renamed. Data that is loaded under the old
name lies there again, and both partitions read it. A partition may also be added at another one's directory, or inside it. So an
event of a partition whose files others read, too, is dumped with a dump of its table, from which the load rebuilds the replica.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from hive_replication.dump.directory_readers import MOST_PARTITIONS, TOO_MANY, DirectoryReaders, place_of
from hive_replication.dump.incremental.present_location import Lookup, PresentLocations
from hive_replication.dump.source import Source
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.shared_directories import Change, shared_changes
from hive_replication.logs import about
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Table

_SHOWN = 3
_LOG = logging.getLogger(__name__)
#: Stands for the names of partitions that the metastore does not show: the load holds the table, since none may be left out.
_UNKNOWN = "perhaps another one (the metastore does not show them)"


@dataclass
class SharedDirectories:
    """Finds partitions at the directories of others, as the source's metastore has them now.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
    """

    source: Source
    locations: PresentLocations
    _readers: dict[str, DirectoryReaders] = field(default_factory=dict[str, DirectoryReaders])
    _too_large: set[str] = field(default_factory=set[str])

    def beside(self, event: LogEvent) -> str:
        """Names of other partitions that read the directories of an event's; "" for none. Asked of all events, in order."""
        if self.source.policy.metadata_only:
            return ""
        self._forget(event)
        others: set[str] = set()
        for one in shared_changes(event.decoded):
            others |= self._others(event, one)
        shown = sorted(others)
        return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} others" if len(shown) > _SHOWN else "")

    def _others(self, event: LogEvent, change: Change) -> set[str]:
        found = set(self._of(event, change.table).of(place_of(change.location, change.table), takes=change.takes))
        found.discard(change.name)
        if found:  # it may be one of them by now: a rename leaves an external partition where it is
            itself = Lookup(change.location, event.row.table, change.name, event.evid, created=change.created)
            found.discard(self.locations.find([itself])[itself].partition)
        return found

    def _forget(self, event: LogEvent) -> None:
        """Forgets whose the names are that an event gives or takes away: from then on they are another table's."""
        match event.decoded:
            case None:
                self._readers.pop(event.row.table, None)
            case r.CreateTable() | r.AlterTable(rename=True) | r.DropTable() as change:
                for name in change.names:
                    self._readers.pop(name, None)
            case _:
                pass

    def _of(self, event: LogEvent, table: Table) -> DirectoryReaders:
        """The partitions of a table; read once for all events of it under a name."""
        name = event.row.table
        if name not in self._readers:
            now = self.locations.find_table(name, event.evid, table).table
            self._readers[name] = self._read(now, table) if now else DirectoryReaders()
        return self._readers[name]

    def _read(self, name: str, table: Table) -> DirectoryReaders:
        metastore, database = self.source.metastore, self.locations.database
        try:
            if (number := metastore.partition_count(database, name)) > MOST_PARTITIONS:
                self._warn(name, number)
                return DirectoryReaders()
            found = by_name(table, metastore.partitions(database, name))
        except NotFound:
            return DirectoryReaders()  # gone this moment, by a later event
        except MetastoreError as error:
            _LOG.warning("nobody knows whether partitions share directories: %s", error, extra=about(database, name))
            return DirectoryReaders(everywhere=[_UNKNOWN])
        return DirectoryReaders((place_of(one.sd.location or "", table), partition) for partition, one in found.items())

    def _warn(self, name: str, number: int) -> None:
        """Says once in a dump of which table nobody looks."""
        if name in self._too_large:
            return
        self._too_large.add(name)
        _LOG.warning(TOO_MANY, f"{number:,}", f"{MOST_PARTITIONS:,}", extra=about(self.locations.database, name))
