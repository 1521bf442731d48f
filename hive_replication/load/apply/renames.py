"""Renames that leave the data in place, so that readers who have just looked up its location still find it.

A metastore moves the data of a managed table or partition when it is renamed, but not that of an external table. So the table
is made external for the time of the call, marked by a parameter. A transactional table cannot be external: its data is moved, as
Hive does, and Hive's readers take locks against that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from hive_replication.errors import ReplicationError
from hive_replication.load.layout.live_locations import Locations, all_tables, partition_places
from hive_replication.load.layout.move_to_retired import retire
from hive_replication.load.replica.drops import drop_table, is_placeholder, restoring, vacate
from hive_replication.load.replica.hive4_translation import is_managed, is_translated
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.marked_external import MANAGED, MARK, TRANSLATED, TRANSLATION, restored
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of


def rename_table(metastore: Metastore, current: Table, image: Table) -> None:
    """Gives a table the name and description of ``image``; its data stays in place.

    Args:
        metastore: the target's.
        current: the present table.
        image: the wanted table.
    """
    vacate(metastore, image)
    marked = _mark(metastore, current)
    with restoring(metastore, None if marked is current else current):  # a table of the target has the name, for one
        metastore.alter_table(current.dbName, current.tableName, restored(image))


def rename_partitions(metastore: Metastore, table: Table, renames: Sequence[tuple[str, Partition]]) -> None:
    """Gives partitions other values, one metastore call each; their data stays in place.

    Args:
        metastore: the target's.
        table: their table.
        renames: old name and wanted partition of each.
    """
    marked = _mark(metastore, table)
    values = [(partition_values(old), image) for old, image in renames]
    with restoring(metastore, None if marked is table else table):  # another partition has the name, for one
        metastore.rename_partitions(table.dbName, table.tableName, values)
    restore_managed(metastore, marked)


def mended(metastore: Metastore, table: Table) -> Table | None:
    """Ends what a load was killed in that was about to rename or drop a table; returns the present table, None if it is none."""
    if is_placeholder(table):
        drop_table(metastore, table)
        return None
    return restore_managed(metastore, table)


def restore_managed(metastore: Metastore, table: Table) -> Table:
    """Makes a table managed again that a load left external, as it was killed during a rename; returns the present table."""
    image = restored(table)
    if image is not table:
        metastore.alter_table(table.dbName, table.tableName, image)
    return image


def clear_destination(target: Target, table: Table, destination: str, evid: int) -> None:
    """Retires old data at the directory to which the metastore is about to move a transactional table, which it would refuse.

    Args:
        target: the target side.
        table: the table that is renamed, or whose partition is.
        destination: default directory for the new name.
        evid: event id of the rename.

    Raises:
        ReplicationError: another table or partition uses it: one that is not transactional keeps its directory when it is
            renamed.
    """
    metastore = target.metastore
    if not is_transactional(table) or not target.storage.exists(destination):
        return
    database = metastore.database(table.dbName)
    if database is None:
        return
    for one in all_tables(metastore, table.dbName):
        if Locations(chain([directory_of(one)], partition_places(metastore, one))).any_below(destination):
            owner = one.tableName
            raise ReplicationError(f"{destination}, where a transactional table has to go, is a directory of {owner}: rebuild it")
    retire(target.storage, database.locationUri or "", destination, evid)


def _mark(metastore: Metastore, table: Table) -> Table:
    if not is_managed(table) or is_transactional(table):
        return table
    marked = copy_of(table)
    kept = {key: value for key, value in (table.parameters or {}).items() if key not in TRANSLATION}
    marked.tableType = "EXTERNAL_TABLE"
    marked.parameters = {**kept, "EXTERNAL": "TRUE", MARK: TRANSLATED if is_translated(table) else MANAGED}
    metastore.alter_table(table.dbName, table.tableName, marked)
    return marked
