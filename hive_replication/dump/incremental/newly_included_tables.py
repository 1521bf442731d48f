"""Dumps of the tables that a window takes into the policy: by a change of the policy, or by a rename.

A table that would be rebuilt (see ``table_redumps``) and is renamed later in the window is dealt with as if it was taken in then.

The log does not tell what such a table holds: it comes whole. What the window has of it the load leaves out, and loads the
table's dump after the window's events. So the table has to bear, from the window's end to its dump, the one name; else the dump
says only that it belongs to the policy, the load holds it, and the next window tries again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock

from hive_replication.dump.format.record_types import GONE, MadeWith
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.incremental.table_redumps import DumpTable, dumped_beside
from hive_replication.dump.source import Source
from hive_replication.events import event_records as r
from hive_replication.events import redumps
from hive_replication.events.events_of_policy import LogEvent, refiltered, renamed_into
from hive_replication.events.partition_filters import Entered
from hive_replication.logs import about
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.materialized_views import is_definition
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.policy import PolicyScope

_LOG = logging.getLogger(__name__)

_TYPES = redumps.TYPES | {"CREATE_TABLE", "DROP_TABLE"}


@dataclass
class JoinedTables:
    """Finds the tables that a window takes into the policy, and dumps them.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
        made_with: what the replica was made with.
        dump: dumps a table; None where none is dumped.
    """

    source: Source
    locations: PresentLocations
    made_with: MadeWith
    dump: DumpTable | None
    _names: set[str] = field(default_factory=set[str])
    _created: set[str] = field(default_factory=set[str])
    _unclear: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._names |= set(self.made_with.coming)
        self._lock = Lock()  # reading on in the log is for one at a time

    def follow(self, event: LogEvent, shared: str = "") -> None:
        """Follows an event of the window: who comes into the policy by it, and who changes its name.

        Args:
            event: the next one.
            shared: other partitions at the directories of its own (see ``shared_directories``).
        """
        if event.row.database != self.locations.database or not (shared or event.row.type in _TYPES):
            return
        match event.event:
            case r.AlterTable(rename=True) as change:
                old, new = change.names
                policy, database = self.source.policy, self.locations.database
                comes = renamed_into(change, database, policy.includes) or refiltered(change, policy.filters(database).of)
                comes = comes or old in self._names or old in self._unclear
                self._names.discard(old)
                self._unclear.discard(old)
                self._created |= {new}
                self._names |= {new} if comes and change.after.dbName.lower() == database else set()
            case r.CreateTable():
                self._created.add(event.row.table)
            case r.DropTable():
                self._names.discard(event.row.table)
                self._unclear.discard(event.row.table)
            case r.Event() as change if self._is_rebuilt(change, shared):
                self._unclear.add(event.row.table)
            case _:
                pass

    def _is_rebuilt(self, change: r.Event, shared: str) -> bool:
        return bool(shared) or isinstance(change, Entered) or redumps.is_unclear(change, acid=self.source.acid)

    def dumped(self, evid: int) -> dict[str, str]:
        """Dumps them.

        Args:
            evid: where the window ends.

        Returns:
            By name, the directory of the table's dump; "" where it has another name by now, or cannot be dumped; GONE where the
            source has no such table.
        """
        if self.dump is None:
            return {}
        names = sorted(filter(self.source.policy.includes, {*self._names, *self._newly_included(evid)}))
        # Each dump reads with threads of its own: it does not wait for these.
        return dict(zip(names, self.source.threads.map(partial(self._directory, evid), names), strict=True))

    def _newly_included(self, evid: int) -> Iterator[str]:
        """Tables that the policy includes by now, and did not when the replica was made; they are there, or were at an event."""
        policy, metastore, database = self.source.policy, self.source.metastore, self.locations.database
        if self.made_with.there is not None:
            known = {*self.made_with.there, *self._created}
            yield from (name for name in metastore.table_names(database) if policy.includes(name) and name not in known)
        if not self.made_with.scope:
            return
        before, now = PolicyScope.parse(self.made_with.scope), policy.scope(database, acid=self.source.acid)
        if before.text == now.text:
            return
        names = {*metastore.table_names(database), *self.locations.moved_after(evid)}
        yield from (name for name in names if now.takes_in(name, before))
        acid = now.transactions and not before.transactions
        views = now.materialized_views and not before.materialized_views
        if acid or views:
            included = [name for name in names if now.includes(name) and not now.takes_in(name, before)]
            for table in metastore.tables(database, included):
                if (acid and is_transactional(table)) or (views and is_definition(table)):
                    yield table.tableName.lower()

    def _settled(self, table: str, evid: int) -> bool:
        with self._lock:
            return self.locations.settled(table, evid)

    def _directory(self, evid: int, table: str) -> str:
        if self.dump is None or not self._settled(table, evid):
            return ""
        try:
            if self.source.metastore.table(self.locations.database, table) is None and self._settled(table, evid):
                return GONE
        except MetastoreError as error:
            _LOG.warning("the table cannot be dumped: %s", error, extra=about(self.locations.database, table, evid))
            return ""
        directory = dumped_beside(self.source, self.locations.database, table, self.dump)
        if not directory or self._settled(table, evid):
            return directory
        _LOG.info("the table got or lost its name while it was dumped", extra=about(self.locations.database, table, evid))
        return ""
