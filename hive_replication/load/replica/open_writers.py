"""Open transactions that write to a database, and the end of those that stand for a source's."""

from __future__ import annotations

import logging

from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_transactional

_LOG = logging.getLogger(__name__)


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


def abort_replayed(metastore: Metastore, database: str, policy: str) -> None:
    """Aborts what stands for a source's transactions, which nothing will ever end.

    Args:
        metastore: of the target.
        database: target database.
        policy: whose transactions they are (:func:`hive_replication.load.operations.transactions.policy_of`).
    """
    if found := writers(metastore, database):
        _LOG.warning(
            "what stands for open transactions of the source is aborted: %s", ", ".join(map(str, found)), extra=about(database)
        )
        metastore.abort_replayed(policy, found)
    if left := writers(metastore, database):
        _LOG.warning("transactions of %s stay open: %s", database, ", ".join(map(str, left)), extra=about(database))
