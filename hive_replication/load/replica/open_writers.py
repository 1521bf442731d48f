"""Transactional tables of a database, and open transactions that write to them."""

from __future__ import annotations

from collections.abc import Collection

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table


def transactional_tables(metastore: Metastore, database: str) -> dict[str, Table]:
    """The transactional tables of a database, by name in small letters."""
    tables = metastore.tables(database, metastore.table_names(database))
    return {one.tableName.lower(): one for one in tables if is_transactional(one)}


def writers(metastore: Metastore, database: str, tables: Collection[str] | None = None) -> tuple[int, ...]:
    """Open transactions that have a write id of a table of a database, ascending; none before Hive 4.

    Args:
        metastore: of the side.
        database: on that side.
        tables: names of transactional tables of it, which need not exist; all that it has where None.
    """
    if metastore.features.major < 4:
        return ()
    names = sorted(transactional_tables(metastore, database) if tables is None else tables)
    seen = metastore.write_ids(database, names) if names else {}
    if not any(one.open for one in seen.values()):
        return ()
    return tuple(
        transaction
        for transaction in sorted(metastore.open_transactions())
        if any(write_id in seen[name].open for name, write_id in metastore.write_ids_of(transaction, database, names))
    )
