"""Transactional tables of a database, and open transactions that write to them."""

from __future__ import annotations

from collections.abc import Sequence

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table


def transactional_tables(metastore: Metastore, database: str) -> dict[str, Table]:
    """The transactional tables of a database, by name in small letters."""
    tables = metastore.tables(database, metastore.table_names(database))
    return {one.tableName.lower(): one for one in tables if is_transactional(one)}


def writers(metastore: Metastore, database: str) -> tuple[int, ...]:
    """Open transactions that have a write id of a table of a database, ascending; none before Hive 4.

    Args:
        metastore: of the side.
        database: on that side.
    """
    if metastore.features.major < 4:
        return ()
    return writers_of(metastore, database, sorted(transactional_tables(metastore, database)))


def writers_of(metastore: Metastore, database: str, names: Sequence[str]) -> tuple[int, ...]:
    """Open transactions that have a write id of one of some tables, ascending; none before Hive 4.

    Args:
        metastore: of the side.
        database: on that side.
        names: of its tables, in small letters, which need not exist.
    """
    seen = metastore.write_ids(database, names) if names and metastore.features.major >= 4 else {}
    if not any(one.open for one in seen.values()):
        return ()
    return tuple(
        transaction
        for transaction in sorted(metastore.open_transactions())
        if any(write_id in seen[name].open for name, write_id in metastore.write_ids_of(transaction, database, names))
    )
