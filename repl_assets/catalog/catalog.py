"""The catalog: what is known of the source's tables when definitions load. Read from its metastore, kept as JSON."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from hive_replication.errors import ReplicationError
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.table_kinds import is_view
from hive_replication.policy import Policy
from repl_assets.catalog.keys import in_dagster
from repl_assets.catalog.view_lineage import tables_read

if TYPE_CHECKING:
    from hive_replication.metastore.client import Metastore
    from hive_replication.metastore.types import Table

_LOG = logging.getLogger("dagster")


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
        partition_keys: empty for tables without partitions, and for views, whose partitions are not replicated.
        owner: Hive's owner, or "".
        comment: Hive's comment, or "".
        replica: URI of its data at the target, or "".
        text: a view's query.
        reads: databases and tables that a view reads.
    """

    name: str
    view: bool
    location: str
    format: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...]
    owner: str
    comment: str
    replica: str = ""
    text: str = ""
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CatalogDatabase:
    """A database of the policy; ``left_out`` names tables that are not replicated, each with the reason.

    ``replica`` is its directory at the target, "" where that is not known. ``overflow`` is the number of tables where they
    are too many for assets of their own; ``tables`` is empty then.
    """

    name: str
    owner: str
    comment: str
    location: str
    tables: tuple[CatalogTable, ...]
    left_out: tuple[tuple[str, str], ...]
    replica: str = ""
    overflow: int = 0

    @property
    def partitioned_tables(self) -> set[str]:
        """Names of the tables that have partition keys."""
        return {table.name for table in self.tables if table.partition_keys}


@dataclass(frozen=True, slots=True)
class Catalog:
    """All databases of a policy that exist at the source."""

    databases: tuple[CatalogDatabase, ...] = ()

    def database(self, name: str) -> CatalogDatabase:
        """A database; an empty one if the catalog does not have it yet."""
        return next((db for db in self.databases if db.name == name), CatalogDatabase(name, "", "", "", (), ()))

    def to_json(self) -> str:
        """As JSON text."""
        return _CATALOG.dump_json(self, indent=1).decode()

    @staticmethod
    def of_json(text: str) -> Catalog:
        """Reads the text that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is not a catalog.
        """
        return _CATALOG.validate_json(text)


_CATALOG = TypeAdapter(Catalog)


def read_catalog(metastore: Metastore, policy: Policy, replica: Metastore | None = None, last: Catalog = Catalog()) -> Catalog:
    """Reads the catalog, some hundred tables a call.

    Args:
        metastore: the source's.
        policy: the policy, which says what is replicated.
        replica: the target's, for the locations of replicas; they stay unknown while it does not answer.
        last: what was known before, which stays of databases that the source's metastore refuses to show.

    Raises:
        Unreachable: the source's metastore does not answer.
    """
    shown = metastore.with_views_of_materialized() if policy.replicates_materialized_views else metastore
    found = [database for name in sorted(policy.databases) if (database := _readable(shown, policy, name, last))]
    if replica is not None:
        try:
            found = [_with_replica(replica, policy.target_of(database.name), database) for database in found]
        except ReplicationError as error:
            _LOG.warning("locations of replicas are not known: %s", error)
    return Catalog(tuple(found))


def with_overflow(databases: Sequence[CatalogDatabase], most_tables: int) -> list[CatalogDatabase]:
    """The databases, the largest of them in overflow so that at most ``most_tables`` tables have assets of their own.

    Args:
        databases: with all their tables.
        most_tables: the limit for all databases together; 0 puts each of them into overflow.
    """
    chosen: dict[str, CatalogDatabase] = {}
    for database in sorted(databases, key=lambda one: len(one.tables)):
        number = len(database.tables)
        if number <= most_tables:
            chosen[database.name] = database
            most_tables -= number
        else:
            _LOG.warning(
                "the %d tables of %s are partitions of one asset, they are too many for assets of their own (max_tables)",
                number,
                database.name,
            )
            chosen[database.name] = replace(database, tables=(), overflow=number)
            most_tables = 0
    return [chosen[database.name] for database in databases]


def without_twins(database: CatalogDatabase) -> CatalogDatabase:
    """A database without the tables whose names are one name in Dagster, such as ``a-b`` and ``a_b``: the plainest one stays.

    The others are replicated without assets of their own, as new tables are.
    """
    number = Counter(in_dagster(table.name) for table in database.tables)
    twins = [one.name for one in database.tables if number[in_dagster(one.name)] > 1 and in_dagster(one.name) != one.name]
    if not twins:
        return database
    _LOG.warning("no assets for tables of %s that Dagster cannot tell from others: %s", database.name, ", ".join(twins))
    return replace(database, tables=tuple(table for table in database.tables if table.name not in twins))


def without_cycles(databases: Sequence[CatalogDatabase]) -> list[CatalogDatabase]:
    """The databases, without the lineage of views that read each other, as after a rename: Dagster takes no circle.

    Args:
        databases: with the tables that have assets of their own.
    """
    reads = {(one.name, table.name): table.reads for one in databases for table in one.tables if table.reads}
    number = len(reads)
    while True:
        try:
            TopologicalSorter(reads).prepare()
            break
        except CycleError as error:
            cycle: list[tuple[str, str]] = error.args[1]
            _LOG.warning("lineage is not shown of views that read each other: %s", ", ".join(map(".".join, cycle[1:])))
            reads = {name: read for name, read in reads.items() if name not in cycle}
    if len(reads) == number:
        return list(databases)
    return [
        replace(one, tables=tuple(replace(table, reads=reads.get((one.name, table.name), ())) for table in one.tables))
        for one in databases
    ]


def _with_replica(metastore: Metastore, name: str, database: CatalogDatabase) -> CatalogDatabase:
    there = metastore.database(name)
    if there is None:
        return database
    tables = metastore.tables(name, [table.name for table in database.tables])
    places = {table.tableName: table.sd.location or "" for table in tables}
    known = tuple(replace(table, replica=places.get(table.name, "")) for table in database.tables)
    return replace(database, tables=known, replica=there.locationUri or "")


def _readable(metastore: Metastore, policy: Policy, name: str, last: Catalog) -> CatalogDatabase | None:
    """A database; where the metastore refuses to show it as it was known, else an empty one, which says why.

    The others are to be seen, and what fails of its tables is to stay an alarm.
    """
    try:
        return _database(metastore, policy, name)
    except MetastoreError as error:
        _LOG.warning("tables of %s are not known: %s", name, error)
        unknown = CatalogDatabase(name, "", f"Its tables are not known: {error}", "", (), ())
        return next((one for one in last.databases if one.name == name), unknown)


def _database(metastore: Metastore, policy: Policy, name: str) -> CatalogDatabase | None:
    from hive_replication.dump.source import takes_acid, why_skipped

    database = metastore.database(name)
    if database is None:
        return None
    tables = list(metastore.tables(name, sorted(filter(policy.includes, metastore.table_names(name)))))
    acid = takes_acid(policy, metastore)
    reasons = {table.tableName: why_skipped(table, metadata_only=policy.metadata_only, acid=acid) for table in tables}
    return CatalogDatabase(
        name,
        database.ownerName or "",
        database.description or "",
        database.locationUri or "",
        tuple(sorted((_table(table) for table in tables if not reasons[table.tableName]), key=lambda table: table.name)),
        tuple(sorted((name, reason) for name, reason in reasons.items() if reason)),
    )


def _table(table: Table) -> CatalogTable:
    view = is_view(table)
    text = (table.viewOriginalText or table.viewExpandedText or "") if view else ""
    columns, keys = (
        tuple(Column(field.name, field.type, field.comment or "") for field in fields or ())
        for fields in (table.sd.cols, table.partitionKeys)
    )
    return CatalogTable(
        name=table.tableName,
        view=view,
        location=table.sd.location or "",
        format="" if view else file_format(table.sd.inputFormat or ""),
        columns=(*columns, *keys) if view else columns,
        partition_keys=() if view else keys,
        owner=table.owner or "",
        comment=(table.parameters or {}).get("comment", ""),
        text=text,
        reads=tables_read(table.viewExpandedText or text, table.dbName) if view else (),
    )


def file_format(input_format: str) -> str:
    """Short name of a file format by the class that Hive reads it with, e.g. ``orc`` for ``...OrcInputFormat``."""
    name = input_format.rpartition(".")[2]
    known = (kind for kind in ("parquet", "orc", "avro", "text", "sequencefile", "rcfile") if kind in name.lower())
    return next(known, name)
