"""What the target's metastore drops with a table that a load makes anew: foreign keys of other tables to it, and grants on it.

It is read before the drop, and given back when the new table is there. A load that is killed in between does not do so: `verify`
names the foreign keys, which a repair of the tables that have them brings back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from hive_replication.load.foreign_key_lanes import add_late_key
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.logs import about
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.privileges import Grant

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


@dataclass
class KeptWithRebuilt:
    """Foreign keys to tables that a load of objects makes anew, and grants on them."""

    session: Session
    _keys: dict[str, tuple[Constraint, ...]] = field(default_factory=dict[str, tuple[Constraint, ...]])
    _grants: dict[str, list[Grant]] = field(default_factory=dict[str, list[Grant]])

    def watched(self, lanes: Iterable[LanePlan]) -> Iterator[LanePlan]:
        """Lanes before they are carried out."""
        for lane in lanes:
            made = {one.table for one in lane.operations if isinstance(one, op.CreateTable)}
            for name in sorted({one.table for one in lane.operations if isinstance(one, op.DropTable)} & made):
                self._read(name)
            yield lane

    def _read(self, table: str) -> None:
        metastore, database = self.session.target.metastore, self.session.database
        if self.session.dry:
            return
        keys = self._answer("foreign keys to it", table, lambda: metastore.foreign_keys_to(database, table))
        self._keys[table] = tuple(keys)
        on_it = self._answer("grants on it", table, lambda: metastore.grants_on_table(database, table))
        self._grants[table] = [*on_it, *self._grants_below.get(table, ())]

    @cached_property
    def _grants_below(self) -> dict[str, list[Grant]]:
        """Grants on partitions and columns, by table: asked for once, since the metastore tells those of all databases only."""
        target, found = self.session.target, dict[str, list[Grant]]()
        what = "grants on partitions and columns of tables that are made anew"
        for grant in self._answer(what, "", lambda: target.metastore.grants(self.session.database, (), target.threads)):
            found.setdefault(grant.on.table, []).append(grant)
        return found

    def _answer(self, what: str, table: str, ask: Callable[[], Iterable[_T]]) -> Iterable[_T]:
        try:
            return ask()
        except MetastoreError as error:  # as where only HiveServer2 may ask
            _LOG.warning("%s cannot be read, and go: %s", what, error, extra=about(self.session.database, table))
            return ()

    def give_back(self, settled: Collection[str]) -> None:
        """Adds them again, after the lanes.

        Args:
            settled: tables whose foreign keys were those of the dump a moment ago.
        """
        session = self.session
        there = set(session.target.metastore.table_names(session.database)) if self._keys else set[str]()
        for table, keys in self._keys.items():
            for key in keys:
                if key.table != table and not (key.database == session.database and key.table in settled):
                    add_late_key(session, session.reader.header.to_evid, key)
            for grant in self._grants[table] if table in there else ():
                self._grant(grant)

    def _grant(self, grant: Grant) -> None:
        try:
            self.session.target.metastore.grant(self.session.database, [grant])
        except MetastoreError as error:  # of a partition that did not come, for one
            what = grant.on.of(self.session.database)
            reason = f"{grant.privilege} of {grant.to} on it went when the table was made anew: {error}"
            self.session.skipped.append(Skipped(self.session.reader.header.to_evid, what, reason))
