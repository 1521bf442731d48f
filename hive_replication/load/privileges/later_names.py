"""Which names the source gave to other tables and partitions after what a replica has, by the source's log.

Grants are read as they are now, and a replica stands at an earlier event: under such a name it still has the former object, which
keeps its grants when a later window renames it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import filterfalse

from hive_replication.errors import MissingEvents
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.events_of_policy import notifications
from hive_replication.events.name_changes import ObjectName
from hive_replication.load.privileges.compare import Change
from hive_replication.load.replica.covers import covers
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.privileges import Grant

# Others give no name to another object: what is added to a partitioned table had no namesake, or that was dropped before.
_TYPES = frozenset({"ALTER_PARTITION", "ALTER_TABLE", "CREATE_TABLE", "DROP_DATABASE", "DROP_PARTITION", "DROP_TABLE"})
_SHOWN = 5


@dataclass
class LaterNames:
    """Names that were created, dropped or renamed at the source after the event that a replica stands at.

    Args:
        metastore: the source's.
        database: source database.
        stands: the event.
        most: bytes that a message may unpack to.
        on_target: names a table of the source on the target; None where its grants are left alone.
        at: event ids of tables of the target that stand elsewhere.
    """

    metastore: Metastore
    database: str
    stands: int
    most: int
    on_target: Callable[[str], str | None]
    at: Mapping[str, int]
    _read: int = 0
    _evids: dict[ObjectName, int] = field(default_factory=dict[ObjectName, int])
    _unknown: str = ""

    def without(self, changes: Sequence[Change[Grant]]) -> tuple[Sequence[Change[Grant]], list[str]]:
        """Those changes whose objects still have their names at the source by now, and why others wait.

        The source's grants must have been read before.

        Raises:
            MetastoreError: the metastore refuses to tell its log.
            Unreachable: it does not answer.
        """
        if not changes:
            return changes, []
        self._read_on()
        if self._unknown:
            return [], [f"grants wait: whether the source's tables are those of the replica is not known: {self._unknown}"]
        others = self._others()

        def waits(one: Change[Grant]) -> bool:
            return not others.isdisjoint({(one.of.on.table, ()), (one.of.on.table, one.of.on.values)})

        waiting = list(filter(waits, changes))
        if not waiting:
            return changes, []
        names = sorted({replace(one.of.on, column="").of("").removeprefix(".") for one in waiting})
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        why = f"after event {self.stands} the source created, dropped or renamed what has the name"
        return list(filterfalse(waits, changes)), [f"grants on {shown} wait for the next window: {why}"]

    def _others(self) -> set[tuple[str, tuple[str, ...]]]:
        """Tables of the target, and values of their partitions, that are other objects than the source has under their names."""
        return {
            (there, partition_values(partition) if partition else ())
            for (table, partition), evid in self._evids.items()
            if (there := self.on_target(table)) and not covers(self.at.get(there), evid)
        }

    def _read_on(self) -> None:
        until = self.metastore.current_event_id()
        try:
            for row in notifications(self.metastore, max(self._read, self.stands), until, self.most, self.database):
                self._read = row.evid
                if row.database == self.database and row.type in _TYPES:
                    self._follow(row)
        except (MissingEvents, UnreadableMessage) as error:
            self._unknown = str(error)

    def _follow(self, row: r.Notification) -> None:
        if row.type == "DROP_DATABASE":
            self._unknown = f"the database was dropped there at event {row.evid}"
            return
        for change in decode(row).name_changes:
            self._evids |= {name: row.evid for name in (change.before, change.after) if name is not None}
