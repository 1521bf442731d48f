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
        known: baselines of the table, or of its partitions.
        now: seconds since the epoch.

    Attributes:
        number: of the objects that were not to be listed.
    """

    def __init__(self, snapshots: Snapshots, drift: Drift, table: Table, known: Mapping[str, Baseline], now: float) -> None:
        self._snapshots, self._now, self._after = snapshots, int(now), int(now) - drift.list_all_every
        self._database, self._table, self._location = table.dbName, table.tableName, table.sd.location or ""
        self._found: Snapshotted | None = None
        self._removed = False
        self._objects: Mapping[str, Scanned] = {}  # of the present batch, as are the names
        self._names: frozenset[str] = frozenset()
        self._why, self._asked, self._had_any = "", False, False
        self.number = 0
        if drift.snapshots:
            self._begin(deleted=is_deleted_with_its_table(table))
        elif any(base.mark for base in known.values()):
            self._remove()

    @property
    def why(self) -> str:
        """Where the policy asks for snapshots, why they spared nothing; else ""."""
        if self._found is not None and not self._why and self._asked and not self._had_any:
            return f"no snapshot of {self._found.uri} is left of an earlier scan"
        return self._why

    def of(self, objects: Mapping[str, Scanned], known: Mapping[str, Baseline]) -> frozenset[str]:
        """Names of those objects of the next batch that are not to be listed.

        Args:
            objects: of the batch.
            known: their baselines.
        """
        self._objects, self._names = objects, frozenset[str]()
        if self._found is not None and objects and not self._why:
            self._asked = True
            try:
                self._names = self._unchanged(self._found, known)
            except (ReplicationError, OSError) as error:
                self._why = str(error)
        self.number += len(self._names)
        return self._names

    def _begin(self, *, deleted: bool) -> None:
        try:
            self._found = self._snapshots.of(self._location, deleted=deleted)
        except (ReplicationError, OSError) as error:
            self._why = str(error)

    def _remove(self) -> None:
        try:
            self._snapshots.remove(self._location)
            self._removed = True
        except (ReplicationError, OSError) as error:
            _LOG.warning("snapshots are left at the source: %s", error, extra=about(self._database, self._table))

    def _unchanged(self, found: Snapshotted, known: Mapping[str, Baseline]) -> frozenset[str]:
        """Objects whose baselines hold: for those listed too long ago that is not enough."""
        since = {
            name: snapshot
            for name, one in self._objects.items()
            if (base := known.get(name)) and base.evid == one.evid and (snapshot := found.snapshot_of(one.source, base.mark))
        }
        self._had_any |= bool(since)
        listed = {name: snapshot for name, snapshot in since.items() if known[name].listed > self._after}
        return frozenset(name for name, snapshot in listed.items() if not found.has_changed(self._objects[name].source, snapshot))

    def marked(self, name: str, base: Baseline, digest: str) -> Baseline:
        """A baseline as it is kept after the scan.

        Args:
            name: of an object of the present batch.
            base: what is known of it now.
            digest: of its directory's listing in this scan; "" where it was not listed.
        """
        if self._removed:
            return base._replace(mark="", listed=0)
        if self._found is None:
            return base
        one = self._objects[name]
        if name in self._names:
            return base._replace(mark=self._found.mark(one.source))
        if mark := self._found.mark(one.source) if (base.digest, base.evid) == (digest, one.evid) else "":
            return base._replace(mark=mark, listed=self._now)
        return base  # what has changed since its snapshot is named by the next difference too

    def recorded(self) -> None:
        """The baselines are written: snapshots that none of them needs can go."""
        if self.why:
            _LOG.info("all directories are listed: %s", self.why, extra=about(self._database, self._table))
        if self._found is not None:
            self._snapshots.recorded(self._found, self._location)


def is_deleted_with_its_table(table: Table) -> bool:
    """Whether Hive deletes a table's directory when it drops the table."""
    return not is_external(table) or (table.parameters or {}).get(_PURGE, "").lower() == "true"
