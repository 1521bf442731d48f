"""Kinds of tables that are treated alike, as Hive itself tells them apart (pure)."""

from __future__ import annotations

from hive_replication.metastore.types import Table


def is_transactional(table: Table) -> bool:
    """Whether a table's data is written in transactions: full ACID or insert-only."""
    return (table.parameters or {}).get("transactional", "").lower() == "true"


def is_external(table: Table) -> bool:
    """Hive's own rule: the table type, or the parameter EXTERNAL=TRUE."""
    return table.tableType == "EXTERNAL_TABLE" or (table.parameters or {}).get("EXTERNAL", "").upper() == "TRUE"


def is_view(table: Table) -> bool:
    """Whether it is a view, which has no data; a materialized view has."""
    return table.tableType == "VIRTUAL_VIEW"


def has_files(table: Table) -> bool:
    """Whether a table's own directory holds its files: no view, and not partitioned."""
    return not is_view(table) and not table.partitionKeys and bool(table.sd.location)
