"""Open transactions that write to a database."""

from __future__ import annotations

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_transactional


def writers(metastore: Metastore, database: str) -> tuple[int, ...]:
    """Open transactions that have a write id of a table of a database, ascending; none before Hive 4.

    Args:
        metastore: of the side.
        database: on that side.
    """
    if metastore.features.major < 4:
        return ()
    names = [
        one.tableName.lower() for one in metastore.tables(database, metastore.table_names(database)) if is_transactional(one)
    ]
    seen = metastore.write_ids(database, names) if names else {}
    if not any(one.open for one in seen.values()):
        return ()
    return tuple(
        transaction
        for transaction in sorted(metastore.open_transactions())
        if any(write_id in seen[name].open for name, write_id in metastore.write_ids_of(transaction, database, names))
    )
