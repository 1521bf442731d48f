"""The catalog: what is known of the source's tables when definitions load. Read from its metastore, kept as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from hive_replication.policy import Policy

if TYPE_CHECKING:
    from hive_replication.metastore.client import Metastore
    from hive_replication.metastore.types import Table


@dataclass(frozen=True, slots=True)
class Column:
    """A column or partition key."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table or view that is replicated.

    Args:
        name: its name.
        view: whether it is a view.
        location: URI of its data at the source, or "".
        format: short name of its file format, e.g. ``parquet``; "" for views.
        columns: without partition keys.
        partition_keys: empty for tables without partitions.
        owner: Hive's owner, or "".
        comment: Hive's comment, or "".
    """

    name: str
    view: bool
    location: str
    format: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    owner: str
    comment: str


@dataclass(frozen=True, slots=True)
class CatalogDatabase:
    """A database of the policy; ``left_out`` names tables that are not replicated, each with the reason."""

    name: str
    owner: str
    comment: str
    location: str
    tables: tuple[CatalogTable, ...]
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All databases of a policy that exist at the source."""

    databases: tuple[CatalogDatabase, ...] = ()

    def database(self, name: str) -> CatalogDatabase:
        """A database; one without tables where the catalog does not know it yet."""
        return next((db for db in self.databases if db.name == name), CatalogDatabase(name, "", "", "", (), ()))

    def to_json(self) -> str:
        """As JSON text."""
        return _CATALOG.dump_json(self, indent=1).decode()

    @staticmethod
    def of_json(text: str) -> Catalog:
        """Reads the text that :meth:`to_json` wrote.

        Raises:
            ValueError: it is no catalog.
        """
        return _CATALOG.validate_json(text)


_CATALOG = TypeAdapter(Catalog)


def read_catalog(metastore: Metastore, policy: Policy) -> Catalog:
    """Reads the catalog from the source's metastore, some hundred tables a call.

    Raises:
        Unreachable: the metastore does not answer.
    """
    found = (_database(metastore, policy, name) for name in sorted(policy.databases))
    return Catalog(tuple(database for database in found if database))


def _database(metastore: Metastore, policy: Policy, name: str) -> CatalogDatabase | None:
    from hive_replication.dump.source import why_skipped

    database = metastore.database(name)
    if database is None:
        return None
    tables = list(metastore.tables(name, sorted(filter(policy.includes, metastore.table_names(name)))))
    reasons = {table.tableName: why_skipped(table) for table in tables}
    return CatalogDatabase(
        name,
        database.ownerName or "",
        database.description or "",
        database.locationUri or "",
        tuple(sorted((_table(table) for table in tables if not reasons[table.tableName]), key=lambda table: table.name)),
        tuple(sorted((name, reason) for name, reason in reasons.items() if reason)),
    )


def _table(table: Table) -> CatalogTable:
    view = table.tableType == "VIRTUAL_VIEW"
    columns, keys = (
        tuple(Column(field.name, field.type, field.comment or "") for field in fields or ())
        for fields in (table.sd.cols, table.partitionKeys)
    )
    return CatalogTable(
        name=table.tableName,
        view=view,
        location=table.sd.location or "",
        format="" if view else file_format(table.sd.inputFormat or ""),
        columns=columns,
        partition_keys=keys,
        owner=table.owner or "",
        comment=(table.parameters or {}).get("comment", ""),
    )


def file_format(input_format: str) -> str:
    """Short name of a file format by the class that Hive reads it with, e.g. ``orc`` for ``...OrcInputFormat``."""
    name = input_format.rpartition(".")[2]
    known = (kind for kind in ("parquet", "orc", "avro", "text", "sequencefile", "rcfile") if kind in name.lower())
    return next(known, name)
