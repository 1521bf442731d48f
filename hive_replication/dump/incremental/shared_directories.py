"""External partitions that lie in one directory: an event names one of them, and what it brings all of them read.

Hive leaves the directory of an external partition where it is when the partition is renamed. Data that is loaded under the old
name lies there again, and both partitions read it. So an event of a partition whose directory is another one's, too, is dumped
with a dump of its table, from which the load rebuilds the replica.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.source import Source
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_external
from hive_replication.metastore.types import Table
from hive_replication.storage import paths
from hive_replication.storage.boundary import qualified

#: Partitions of a table beyond which nobody looks: all are read with each window that changes one of them, 1,000 in some 0.2 s.
MOST_PARTITIONS = 20_000
_SHOWN = 3


@dataclass
class SharedDirectories:
    """Finds partitions at the directories of others, as the source's metastore has them now.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
    """

    source: Source
    locations: PresentLocations
    _names: dict[str, Mapping[str, list[str]]] = field(default_factory=dict[str, Mapping[str, list[str]]])

    def beside(self, event: LogEvent) -> str:
        """Names of other partitions at the directories of an event's; "" for none."""
        if self.source.policy.metadata_only:
            return ""
        others: set[str] = set()
        for table, name, location in _brought(event.decoded):
            at = self._at(event, table).get(_place(location, table), ())
            others.update(one for one in at if one != name)
        shown = sorted(others)
        return ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} others" if len(shown) > _SHOWN else "")

    def _at(self, event: LogEvent, table: Table) -> Mapping[str, list[str]]:
        """Names of a table's partitions by directory; read once a dump."""
        name = event.row.table
        if name not in self._names:
            now = self.locations.find_table(name, event.evid).table
            self._names[name] = self._read(now, table) if now else {}
        return self._names[name]

    def _read(self, name: str, table: Table) -> Mapping[str, list[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        metastore, database = self.source.metastore, self.locations.database
        try:
            if metastore.partition_count(database, name) > MOST_PARTITIONS:
                return {}
            for partition, described in by_name(table, metastore.partitions(database, name)).items():
                found[_place(described.sd.location or "", table)].append(partition)
        except NotFound:
            return {}  # gone this moment, by a later event
        return found


def _place(location: str, table: Table) -> str:
    """One spelling of a partition's directory; as it stands where it is none that is read: the load holds what lies there."""
    try:
        return paths.normalise(qualified(location, table.sd.location or ""))
    except Refused:
        return location


def _brought(event: r.Event | None) -> Iterator[tuple[Table, str, str]]:
    """External partitions to which an event may bring files: the table, the partition's name and directory."""
    match event:
        case r.AddPartition() if is_external(event.table_object):
            for added in event.partitions:
                yield event.table_object, added.name, added.partition.sd.location or ""
        case r.Insert(partition=partition) if partition is not None and is_external(event.table_object):
            yield event.table_object, event.partition_name, partition.sd.location or ""
        case _:
            pass
