"""Which directories of a table a scan need not list, since the difference to a snapshot does not name them."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from hive_replication.drift.baselines import Baseline
from hive_replication.drift.findings import Scanned
from hive_replication.drift.snapshots import Snapshots, Snapshotted
from hive_replication.errors import ReplicationError
from hive_replication.logs import about
from hive_replication.metastore.table_kinds import is_external
from hive_replication.metastore.types import Table
from hive_replication.policy.checks import Drift

_LOG = logging.getLogger(__name__)

_PURGE = "external.table.purge"


class Spared:
    """What snapshots spare one scan of one table. Made before the scan lists anything.

    Args:
        snapshots: of the database.
        drift: the policy's settings.
        table: of the source.
        objects: the table, or its partitions.
        known: their baselines.
        now: seconds since the epoch.

    Attributes:
        names: of the objects that are not to be listed.
        why: where the policy asks for snapshots, why they spare nothing; else "".
    """

    def __init__(
        self,
        snapshots: Snapshots,
        drift: Drift,
        table: Table,
        objects: Mapping[str, Scanned],
        known: Mapping[str, Baseline],
        now: float,
    ) -> None:
        self._snapshots, self._objects, self._now = snapshots, objects, int(now)
        self._database, self._table, self._location = table.dbName, table.tableName, table.sd.location or ""
        self._found: Snapshotted | None = None
        self._removed = False
        self.names, self.why = frozenset[str](), ""
        if drift.snapshots:
            self._begin(known, self._now - drift.list_all_every, deleted=is_deleted_with_its_table(table))
        elif any(base.mark for base in known.values()):
            self._remove()

    def _begin(self, known: Mapping[str, Baseline], after: int, *, deleted: bool) -> None:
        try:
            self._found = self._snapshots.of(self._location, deleted=deleted)
            self.names = self._unchanged(self._found, known, after)
        except (ReplicationError, OSError) as error:
            self.why = str(error)
        if self.why:
            _LOG.info("all directories are listed: %s", self.why, extra=about(self._database, self._table))

    def _remove(self) -> None:
        try:
            self._snapshots.remove(self._location)
            self._removed = True
        except (ReplicationError, OSError) as error:
            _LOG.warning("snapshots are left at the source: %s", error, extra=about(self._database, self._table))

    def _unchanged(self, found: Snapshotted, known: Mapping[str, Baseline], after: int) -> frozenset[str]:
        """Objects whose baselines hold: for those listed before ``after`` that is not enough."""
        since = {
            name: snapshot
            for name, one in self._objects.items()
            if (base := known.get(name)) and base.evid == one.evid and (snapshot := found.snapshot_of(one.source, base.mark))
        }
        if self._objects and not since:
            self.why = f"no snapshot of {found.uri} is left of an earlier scan"
        listed = {name: snapshot for name, snapshot in since.items() if known[name].listed > after}
        return frozenset(name for name, snapshot in listed.items() if not found.has_changed(self._objects[name].source, snapshot))

    def marked(self, name: str, base: Baseline, digest: str) -> Baseline:
        """A baseline as it is kept after the scan.

        Args:
            name: of the object.
            base: what is known of it now.
            digest: of its directory's listing in this scan; "" where it was not listed.
        """
        if self._removed:
            return base._replace(mark="", listed=0)
        if self._found is None:
            return base
        one = self._objects[name]
        if name in self.names:
            return base._replace(mark=self._found.mark(one.source))
        if mark := self._found.mark(one.source) if (base.digest, base.evid) == (digest, one.evid) else "":
            return base._replace(mark=mark, listed=self._now)
        return base  # what has changed since its snapshot is named by the next difference too

    def recorded(self) -> None:
        """The baselines are written: snapshots that none of them needs can go."""
        if self._found is not None:
            self._snapshots.recorded(self._found, self._location)


def is_deleted_with_its_table(table: Table) -> bool:
    """Whether Hive deletes a table's directory when it drops the table."""
    return not is_external(table) or (table.parameters or {}).get(_PURGE, "").lower() == "true"
