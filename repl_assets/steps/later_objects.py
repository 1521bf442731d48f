"""Objects of a replica that changed later than Dagster shows: looked up at the target, in an order of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import dagster as dg

from hive_replication.load.replica.state import object_id
from hive_replication.load.report import Commit
from hive_replication.metastore.names import partition_name as hive_partition_name
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Partition, Table
from repl_assets.catalog.keys import Names, partition_key, partition_name
from repl_assets.dagster_private import DATA_VERSION_TAG
from repl_assets.recording.left_out import Commits, LeftOut
from repl_assets.recording.reached import Place
from repl_assets.steps.engine import Engine, as_dagster_failure


@dataclass(frozen=True, slots=True)
class Later:
    """An object whose last change Dagster does not show.

    Args:
        table: of the replica.
        partition: its Hive partition, None for the table itself.
        evid: the last event that changed it.
        commit: the last commit to it, if its load observed one.
    """

    table: str
    partition: str | None
    evid: int
    commit: Commit | None


@dataclass(frozen=True, slots=True)
class LaterObjects:
    """Looks objects up.

    Args:
        instance: what Dagster shows.
        engine: connected.
        names: of the policy.
    """

    instance: dg.DagsterInstance
    engine: Engine
    names: Names

    def find(self, left: LeftOut, after: Place) -> Iterator[Later]:
        """What of a table, or of all of a database, is later than Dagster shows where it is recorded today, in order.

        Since the load its database may have gone into overflow or out of it.

        Args:
            left: the table, or database.
            after: only objects after this one.

        Raises:
            Failure: a metastore does not answer, or does not show the database.
        """
        database, table, commits = left.database, left.table, left.commits
        with as_dagster_failure():
            tables = [name for name in ([table] if table else self.engine.tables(database)) if name >= after[0]]
        if database in self.names.overflow:
            newest = {table: max(commits.values(), key=lambda one: one.evid)} if table and commits else commits
            yield from self._tables(database, (name for name in tables if (name, "") > after), newest)
            return
        for name in tables:
            own = commits if table else {"": commits[name]} if name in commits else {}
            yield from self._objects(database, name, own, after)

    def _objects(self, database: str, table: str, commits: Commits, after: Place) -> Iterator[Later]:
        """A table's known Hive partitions, or the table itself, whose last event is later than Dagster shows."""
        metastore, target = self.engine.connection.target.metastore, self.engine.target_name(database)
        key = self.names.table(database, table, "load")
        with as_dagster_failure():
            found = metastore.table(target, table)
            if found is None:
                return
            if not is_partitioned(found):
                evid = _newest(found, commits.get(""))
                if (table, "") > after and evid > _evid(data_version(last_entry(self.instance, key))):
                    yield Later(table, None, evid, commits.get(""))
                return
            known = map(partition_name, self.instance.get_dynamic_partitions(str(self.names.partitions(database, table).name)))
            left = sorted(name for name in known if (table, name) > after)
            shown = self._shown(key)
            columns = [column.name for column in found.partitionKeys]
            for some in batches(left, at_once(found.sd.cols if found.sd else ())):
                parts = {hive_partition_name(columns, part.values): part for part in metastore.partitions(target, table, some)}
                for name, part in sorted(parts.items()):
                    if (evid := _newest(part, commits.get(name))) > shown.get(partition_key(name), -1):
                        yield Later(table, name, evid, commits.get(name))

    def _tables(self, database: str, tables: Iterable[str], commits: Commits) -> Iterator[Later]:
        """Those of some tables of a database in overflow whose last event is later than Dagster shows."""
        metastore, target = self.engine.connection.target.metastore, self.engine.target_name(database)
        shown = self._shown(self.names.tables(database))
        with as_dagster_failure():
            for some in batches(tables, at_once(())):
                for table in sorted(metastore.tables(target, some), key=lambda one: one.tableName):
                    name = table.tableName
                    if (evid := _newest(table, commits.get(name))) > shown.get(partition_key(name), -1):
                        yield Later(name, None, evid, commits.get(name))

    def _shown(self, key: dg.AssetKey) -> dict[str, int]:
        """The event that Dagster shows of each partition of an asset."""
        kind, storage = dg.DagsterEventType.ASSET_MATERIALIZATION, self.instance.event_log_storage
        found = storage.get_latest_tags_by_partition(key, kind, [DATA_VERSION_TAG])
        return {partition: _evid(tags.get(DATA_VERSION_TAG)) for partition, tags in found.items()}


def last_entry(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization | None:
    """The newest entry of an asset that says what it holds; None without one."""
    entry = instance.get_latest_materialization_event(key)
    made = entry.asset_materialization if entry else None
    return made if made and data_version(made) else None


def data_version(made: dg.AssetMaterialization | None) -> str:
    """The data version of an entry, "" without one."""
    return (made.tags or {}).get(DATA_VERSION_TAG, "") if made else ""


def _newest(thing: Table | Partition, commit: Commit | None) -> int:
    """The last event that changed a table or partition."""
    return max(object_id(thing), commit.evid if commit else -1)


def _evid(data_version: str | None) -> int:
    """The event of a data version; -1 if there is none, or if it is no event id."""
    return int(data_version) if data_version and data_version.isdigit() else -1
