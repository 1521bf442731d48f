"""Asset specs: what Dagster's catalog shows of a database and of its tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import dagster as dg

from hive_replication.markdown import code_block, escaped, paragraph
from hive_replication.markdown import table as table_of
from hive_replication.policy import Policy
from repl_assets.catalog.catalog import CatalogDatabase, CatalogTable, Column
from repl_assets.catalog.keys import Names, Stage
from repl_assets.catalog.keys import owner as dagster_owner

_NOTICE = "Its {:,} tables are the partitions of one asset, {key}: they are more than max_tables."
_SHOWN = {
    "source": "at the source",
    "dump": "metadata and file references",
    "load": "replica. Materialize it to repair it: what differs from the source is replaced",
}


@dataclass(frozen=True)
class Specs:
    """Makes the specs of one policy.

    Args:
        policy: the policy.
        nodes: databases and tables that have assets of their own, which those of views depend on.
        overflow: databases whose tables are partitions of one asset.
        others: names of the project's other policies.
    """

    policy: Policy
    nodes: frozenset[tuple[str, str]] = frozenset()
    overflow: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()

    @property
    def names(self) -> Names:
        """The policy's names."""
        return Names(self.policy.name, self.overflow, self.others)

    def database(self, database: CatalogDatabase, stage: Stage) -> dg.AssetSpec:
        """The spec of a database's stage; dumps and loads are partitioned by windows of the source's log."""
        source, target = self.policy.source.metastore, self.policy.target.metastore
        # Without marks of code: the catalog's page shows descriptions as plain text.
        name, target_name = escaped(database.name), escaped(self.policy.target_of(database.name))
        descriptions = {
            "source": f"Database {name} of {source}, observed through its notification log.",
            "dump": f"REPL DUMP of {name}: the metadata of a window of the notification log, with references to files.",
            "plan": "What the load of a window would do: the report that its approval rests on.",
            "approval": "Materialize a window to approve it: what was planned is loaded then, and nothing before.",
            "load": f"REPL LOAD into {target_name} of {target}: files, proven, then metadata.",
        }
        metadata = _uri(self.policy, stage, database.location, database.replica)
        if stage == "load" and database.left_out:
            number = len(database.left_out)
            metadata["not replicated"] = dg.MetadataValue.md(table_of(("table", "why"), database.left_out, number, number))
        notice = _NOTICE.format(database.overflow, key=self.names.tables(database.name).path[-1]) if database.overflow else ""
        texts = [descriptions[stage], paragraph(database.comment), notice if stage == "load" else ""]
        return self._spec(
            self.names.database(database.name, stage),
            deps=[
                *self._before(stage, lambda before: self.names.database(database.name, before)),
                *([self.names.database(database.name, "approval")] if stage == "load" and self.policy.approval else []),
            ],
            description="\n\n".join(filter(None, texts)),
            group_name=self.names.group(database.name),
            kinds={"hive", "spark", "hdfs"} if stage == "load" else {"hive"},
            owner=database.owner,
            metadata=metadata,
            partitions_def=None if stage == "source" else self.names.windows,
        )

    def status(self) -> dg.AssetSpec:
        """The spec of the policy's page, which nothing materializes: the sensor ``alarms`` observes it."""
        source, target = escaped(self.policy.source.metastore), escaped(self.policy.target.metastore)
        name, databases = self.policy.name, [*self.policy.databases]
        own = None if name == "default" else name
        return self._spec(
            self.names.status,
            deps=[],
            description=f"Policy {name}: what is behind or failed, and what to do, of all databases from {source} to {target}.",
            # Dagster's lineage opens a group that is the only one: with one database, that shows what is wrong at once.
            group_name=self.names.group(databases[0]) if len(databases) == 1 else own,
            kinds={"hive"},
            owner="",
        )

    def tables(self, database: CatalogDatabase) -> dg.AssetSpec:
        """The spec of all tables of a database in overflow, which are its partitions."""
        return self._spec(
            self.names.tables(database.name),
            deps=[self.names.database(database.name, "source"), self._changed_by(database)],
            description=(
                f"The {database.overflow:,} tables and views of {escaped(self.policy.target_of(database.name))}, each a "
                "partition of this asset: they are too many for assets of their own (max_tables). "
                "Materializing a partition repairs that table."
            ),
            group_name=self.names.group(database.name),
            kinds={"hive"},
            owner=database.owner,
            metadata=_uri(self.policy, "load", "", database.replica),
            partitions_def=self.names.table_partitions(database.name),
        )

    def table(self, database: CatalogDatabase, table: CatalogTable, stage: Stage) -> dg.AssetSpec:
        """The spec of a table's or view's stage; tables are partitioned by their Hive partitions."""
        name = self.policy.target_of(database.name) if stage == "load" else database.name
        kind = "view" if table.view else "table"
        partitions, shown = self.names.partitions(database.name, table.name), escaped(f"{name}.{table.name}")
        return self._spec(
            self.names.table(database.name, table.name, stage),
            deps=[
                *self._before(stage, lambda before: self.names.table(database.name, table.name, before)),
                *self._reads(table, stage),
                *([self._changed_by(database)] if stage == "load" and not table.view else []),
            ],
            description="\n\n".join(filter(None, [f"Hive {kind} {shown}: {_SHOWN[stage]}.", paragraph(table.comment)])),
            group_name=self.names.group(database.name),
            kinds=_kinds(table, stage),
            owner=table.owner,
            metadata=_table_metadata(table, name, stage) | _uri(self.policy, stage, table.location, table.replica),
            # The tables that a view reads change without it: Dagster is to look through it, not to call it out of date.
            is_virtual=table.view and stage == "load",
            # Nothing materializes a source: its partitions would always read "0% filled".
            partitions_def=partitions if table.partition_keys and stage != "source" else None,
        )

    def _spec(self, key: dg.AssetKey, *, deps: Sequence[dg.AssetKey | dg.AssetDep], owner: str, **fields: Any) -> dg.AssetSpec:
        owners = [name for name in [dagster_owner(owner)] if name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)  # virtual assets are in preview
            return dg.AssetSpec(key, deps=deps, owners=owners, skippable=bool(deps), **fields)

    def _reads(self, table: CatalogTable, stage: Stage) -> Iterator[dg.AssetKey]:
        """The tables that a view reads, at the source and in the replica."""
        if stage != "dump":
            yield from (self.names.table(*read, stage) for read in table.reads if read in self.nodes)

    def _changed_by(self, database: CatalogDatabase) -> dg.AssetDep:
        """The edge from a database's loads to a table that they change.

        It is of no window: a window that leaves the table alone must not make it look out of date.
        """
        key = self.names.database(database.name, "load")
        return dg.AssetDep(key, partition_mapping=dg.SpecificPartitionsPartitionMapping([]))

    @staticmethod
    def _before(stage: Stage, key: Callable[[Stage], dg.AssetKey]) -> list[dg.AssetKey]:
        before: dict[Stage, Stage] = {"dump": "source", "plan": "dump", "approval": "plan", "load": "dump"}
        return [key(before[stage])] if stage in before else []


def _kinds(table: CatalogTable, stage: Stage) -> set[str]:
    if table.view:
        return {"hive", "view"}
    return {"hive", table.format} if stage == "load" and table.format else {"hive"}


def _table_metadata(table: CatalogTable, database: str, stage: Stage) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if stage != "dump":
        metadata["dagster/table_name"] = f"{database}.{table.name}"
        if table.text:
            metadata["query"] = dg.MetadataValue.md(code_block(table.text, "sql"))
        metadata["dagster/column_schema"] = _schema(table.columns, table.partition_keys)
    return metadata


def _uri(policy: Policy, stage: Stage, location: str, replica: str) -> dict[str, Any]:
    uri = {"source": location, "dump": policy.dump_root, "load": replica}.get(stage)
    return {"dagster/uri": uri} if uri else {}


@cache
def _schema(columns: tuple[Column, ...], keys: tuple[Column, ...]) -> dg.TableSchema:
    """Made once for source and replica: of many tables, columns are most of what definitions are made of."""
    return dg.TableSchema([*_columns(columns), *_columns(keys, key=True)])


def _columns(columns: tuple[Column, ...], *, key: bool = False) -> Iterator[dg.TableColumn]:
    for column in columns:
        tags = {"partition_key": ""} if key else None
        yield dg.TableColumn(column.name, column.type, description=escaped(column.comment) or None, tags=tags)
