"""Renames that leave the data where it is, so that readers who looked a location up a moment ago still find it.

A metastore moves the data of a managed table or partition when it is renamed: between its move and the reader's listing there is
nothing. It moves none of an external table, so the table is one for the time of the call, marked by a parameter. A transactional
table cannot be one: its data is moved, as Hive does, and Hive's readers have locks against that.
"""

from __future__ import annotations

from collections.abc import Sequence

from hive_replication.dump.source import is_transactional
from hive_replication.errors import ReplicationError
from hive_replication.load.retired import retire
from hive_replication.load.state import PREFIX
from hive_replication.load.target import Target
from hive_replication.load.translation import TRANSLATION, is_managed, is_translated
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of

#: Of a managed table that is an external one for the time of a rename.
MARK = PREFIX + "renaming"
_TRANSLATED = "translated"


def rename_table(metastore: Metastore, current: Table, image: Table) -> None:
    """Gives a table the name and description of ``image``; its data stays.

    Args:
        metastore: the target's.
        current: the table as it is.
        image: the table as it shall be.
    """
    _mark(metastore, current)
    metastore.alter_table(current.dbName, current.tableName, unmarked(image))


def rename_partitions(metastore: Metastore, table: Table, renames: Sequence[tuple[str, Partition]]) -> None:
    """Gives partitions other values; their data stays. A metastore takes one in a call.

    Args:
        metastore: the target's.
        table: their table.
        renames: the old name, and the partition as it shall be, of each.
    """
    marked = _mark(metastore, table)
    for old, image in renames:
        metastore.rename_partition(table.dbName, table.tableName, partition_values(old), image)
    settle(metastore, marked)


def settle(metastore: Metastore, table: Table) -> None:
    """Makes a table managed again that a load killed in the middle of a rename left external."""
    if MARK in (table.parameters or {}):
        metastore.alter_table(table.dbName, table.tableName, unmarked(table))


def unmarked(table: Table) -> Table:
    """The table without the mark, and as managed as it was before."""
    mark = (table.parameters or {}).get(MARK)
    if mark is None:
        return table
    image = copy_of(table)
    image.parameters = {key: value for key, value in table.parameters.items() if key not in (MARK, "EXTERNAL")}
    image.tableType = "MANAGED_TABLE"
    if mark == _TRANSLATED:
        image.tableType = "EXTERNAL_TABLE"
        image.parameters |= dict.fromkeys(TRANSLATION, "TRUE")
    return image


def make_room(target: Target, table: Table, destination: str, evid: int) -> None:
    """Moves away what an earlier object left where the metastore is about to move a transactional one, which would refuse.

    Args:
        target: the target side.
        table: the table that is renamed, or whose partition is.
        destination: plain directory under the new name.
        evid: of the rename.

    Raises:
        ReplicationError: another table lies there: a plain one, which keeps its directory when it is renamed.
    """
    metastore = target.metastore
    if not is_transactional(table) or not target.storage.exists(destination):
        return
    database = metastore.database(table.dbName)
    if database is None:
        return
    others = metastore.tables(table.dbName, metastore.table_names(table.dbName))
    if owner := next((one.tableName for one in others if f"{directory_of(one)}/".startswith(f"{destination}/")), ""):
        raise ReplicationError(
            f"{destination}, where a transactional table has to go, is the directory of {owner}: rebuild {owner}"
        )
    retire(target.storage, database.locationUri or "", destination, evid)


def _mark(metastore: Metastore, table: Table) -> Table:
    if not is_managed(table) or is_transactional(table):
        return table
    marked = copy_of(table)
    kept = {key: value for key, value in (table.parameters or {}).items() if key not in TRANSLATION}
    marked.tableType = "EXTERNAL_TABLE"
    marked.parameters = {**kept, "EXTERNAL": "TRUE", MARK: _TRANSLATED if is_translated(table) else "managed"}
    metastore.alter_table(table.dbName, table.tableName, marked)
    return marked
