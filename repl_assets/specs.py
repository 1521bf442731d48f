"""Asset specs: what Dagster's catalog shows of a database and of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog import CatalogDatabase, CatalogTable, Column
from repl_assets.keys import Names, Stage
from repl_assets.keys import owner as dagster_owner

_SHOWN = {"source": "at the source", "dump": "metadata and file references", "load": "replica"}


@dataclass(frozen=True)
class Specs:
    """Makes the specs of one policy.

    Args:
        policy: the policy.
    """

    policy: Policy

    @property
    def names(self) -> Names:
        """The policy's names."""
        return Names.of(self.policy)

    def database(self, database: CatalogDatabase, stage: Stage) -> dg.AssetSpec:
        """The spec of a database's stage; dumps and loads are partitioned by windows of the source's log."""
        source, target = self.policy.source.metastore, self.policy.target.metastore
        descriptions = {
            "source": f"Database `{database.name}` of {source}, observed through its notification log.",
            "dump": f"`REPL DUMP {database.name}`: the metadata of a window of the notification log, with references to files.",
            "load": f"`REPL LOAD` into `{self.policy.target_of(database.name)}` of {target}: files, proven, then metadata.",
        }
        metadata: dict[str, Any] = {"dagster/uri": database.location} if stage == "source" and database.location else {}
        if stage == "load" and database.left_out:
            rows = (f"| {name} | {reason} |" for name, reason in database.left_out)
            metadata["not replicated"] = dg.MetadataValue.md("\n".join(["| table | why |", "|---|---|", *rows]))
        comment = f"\n\n{database.comment}" if database.comment else ""
        return self._spec(
            self.names.database(database.name, stage),
            deps=self._before(stage, lambda before: self.names.database(database.name, before)),
            description=descriptions[stage] + comment,
            group_name=self.names.group(database.name),
            kinds={"hive", "spark", "hdfs"} if stage == "load" else {"hive"},
            owner=database.owner,
            metadata=metadata,
            partitions_def=None if stage == "source" else self.names.windows,
        )

    def table(self, database: CatalogDatabase, table: CatalogTable, stage: Stage) -> dg.AssetSpec:
        """The spec of a table's or view's stage; tables are partitioned by their Hive partitions."""
        name = self.policy.target_of(database.name) if stage == "load" else database.name
        kind = "view" if table.view else "table"
        return self._spec(
            self.names.table(database.name, table.name, stage),
            deps=self._before(stage, lambda before: self.names.table(database.name, table.name, before)),
            description="\n\n".join(filter(None, [f"Hive {kind} `{name}.{table.name}`: {_SHOWN[stage]}.", table.comment])),
            group_name=self.names.group(database.name),
            kinds=_kinds(table, stage),
            owner=table.owner,
            metadata=_table_metadata(table, name, stage),
            partitions_def=self.names.partitions(database.name, table.name) if table.partition_keys else None,
        )

    def _spec(self, key: dg.AssetKey, *, deps: list[dg.AssetKey], owner: str, **fields: Any) -> dg.AssetSpec:
        owners = [name for name in [dagster_owner(owner)] if name]
        return dg.AssetSpec(key, deps=deps, owners=owners, skippable=bool(deps), **fields)

    @staticmethod
    def _before(stage: Stage, key: Any) -> list[dg.AssetKey]:
        before: dict[Stage, Stage] = {"dump": "source", "load": "dump"}
        return [key(before[stage])] if stage in before else []


def _kinds(table: CatalogTable, stage: Stage) -> set[str]:
    if table.view:
        return {"hive", "view"}
    return {"hive", "spark", table.format} if stage == "load" and table.format else {"hive"}


def _table_metadata(table: CatalogTable, database: str, stage: Stage) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if stage != "dump":
        metadata["dagster/table_name"] = f"{database}.{table.name}"
        metadata["dagster/column_schema"] = dg.TableSchema([*_columns(table.columns), *_columns(table.partition_keys, key=True)])
    if stage == "source" and table.location:
        metadata["dagster/uri"] = table.location
    return metadata


def _columns(columns: tuple[Column, ...], *, key: bool = False) -> Iterator[dg.TableColumn]:
    for column in columns:
        tags = {"partition_key": ""} if key else None
        yield dg.TableColumn(column.name, column.type, description=column.comment or None, tags=tags)
