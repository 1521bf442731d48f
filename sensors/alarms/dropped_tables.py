"""The tables of failed runs, and partitions of these, that the source does not have any more."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError, Unreachable
from repl_assets.catalog.run_partitions import spelled_by_hive

_MOST_NAMES = 100  # of tables of a database that one tick asks for


class DroppedTables:
    """Finds them: what the source does not list is asked for by name, in each tick what was not asked for the longest."""

    def __init__(self) -> None:
        self._ticks = 0
        self._asked: dict[tuple[str, str], int] = {}  # by database and table, in which tick last
        self._gone: set[tuple[str, str]] = set()

    def of(self, connection: Connection, tables: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """Those that are known to be dropped by now, of some tables, and partitions as ``table/ds=1``, by source database.

        Raises:
            Unreachable: the source's metastore does not answer.
        """
        self._ticks += 1
        missing = {database: {*names} - _listed(connection, database) for database, names in tables.items()}
        known = {(database, name) for database, names in missing.items() for name in names}
        self._gone &= known
        self._asked = {one: tick for one, tick in self._asked.items() if one in known}
        for database, names in missing.items():
            left = sorted((self._asked.get((database, name), 0), name) for name in names if (database, name) not in self._gone)
            for _, name in left[:_MOST_NAMES]:
                if _is_dropped(connection, database, name):
                    self._gone.add((database, name))
                self._asked[database, name] = self._ticks
        return {database: sorted(name for name in names if (database, name) in self._gone) for database, names in missing.items()}


def _listed(connection: Connection, database: str) -> set[str]:
    try:
        return {*connection.source.metastore.table_names(database)}
    except Unreachable:
        raise
    except ReplicationError:
        return set()


def _is_dropped(connection: Connection, database: str, name: str) -> bool:
    """Whether the source has no such table or partition; one that its metastore refuses to show is there."""
    metastore = connection.source.metastore
    table, _, partition = name.partition("/")
    try:
        found = metastore.table(database, table)
        if found is None or not partition:
            return found is None
        known = spelled_by_hive(partition, [key.name for key in found.partitionKeys or ()])
        return bool(known) and not any(metastore.partitions(database, table, [known]))
    except Unreachable:
        raise
    except ReplicationError:
        return False
