"""Partitions of a draft that lie in the directory of one that an event of the dump's time fills or empties.

The event names one; what it brings or takes the others read, too: no event tells of theirs, so that they are listed again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from hive_replication.dump.directory_readers import MOST_PARTITIONS, TOO_MANY, DirectoryReaders, place_of
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.events import event_records as r
from hive_replication.events.shared_directories import shared_changes
from hive_replication.logs import about
from hive_replication.metastore.types import Partition, Table

_LOG = logging.getLogger(__name__)


@dataclass
class SharedPartitions:
    """Finds partitions at the directories of others, as a draft has them.

    Args:
        draft: the dump being written.
        database: name of the source database.
    """

    draft: DumpWriter
    database: str
    _readers: dict[str, DirectoryReaders] = field(default_factory=dict[str, DirectoryReaders])

    def beside(self, event: r.Event) -> Iterator[str]:
        """Names of other partitions that read the directories of an event's, of a table that the draft has."""
        for change in shared_changes(event):
            found = self._of(event.table, change.table).of(place_of(change.location, change.table), takes=change.takes)
            yield from (name for name in found if name != change.name)

    def note(self, table: str, name: str, partition: Partition) -> None:
        """Notes where a partition is by an event."""
        record = self.draft.table(table) if table in self._readers else None
        if record is not None:
            self._readers[table].add(place_of(partition.sd.location or "", record.table), name)

    def forget(self, table: str) -> None:
        """Forgets the partitions of a table that the draft no longer has under its name."""
        self._readers.pop(table, None)

    def _of(self, name: str, table: Table) -> DirectoryReaders:
        """The partitions of a table; read back once, since each event of its may ask."""
        if name not in self._readers:
            found = list(islice(self._places(name, table), MOST_PARTITIONS + 1))
            if len(found) > MOST_PARTITIONS:
                _LOG.warning(TOO_MANY, f"more than {MOST_PARTITIONS:,}", f"{MOST_PARTITIONS:,}", extra=about(self.database, name))
                found.clear()
            self._readers[name] = DirectoryReaders(found)
        return self._readers[name]

    def _places(self, name: str, table: Table) -> Iterator[tuple[str, str]]:
        return ((place_of(one.partition.sd.location or "", table), one.name) for one in self.draft.partitions(name))
