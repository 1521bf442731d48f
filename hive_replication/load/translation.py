"""The translation of a Hive 4 metastore: a managed table that is not transactional is kept as an external one (HIVE-23387).

The metastore moves, drops and shows such a table as the managed one it was made as. Taken back by an ALTER, the translation would
leave a managed table that Hive 4 takes for a transactional one; so it is kept whatever the source says.
"""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Table

_TRANSLATED = "TRANSLATED_TO_EXTERNAL"
#: Parameters that say it.
TRANSLATION = frozenset({"EXTERNAL", _TRANSLATED, "external.table.purge"})


def is_translated(table: Table) -> bool:
    """Whether a metastore made an external table of a managed one."""
    return (table.parameters or {}).get(_TRANSLATED, "").upper() == "TRUE"


def is_managed(table: Table) -> bool:
    """Whether a table is managed, or was before the metastore translated it."""
    return table.tableType == "MANAGED_TABLE" or is_translated(table)


def keep_translation(image: Table, current: Table) -> None:
    """Makes the wanted image of a managed table what the target's metastore made of the present one.

    Args:
        image: as the table shall be; changed in place.
        current: as the target's metastore has it.
    """
    if is_translated(current) and image.tableType == "MANAGED_TABLE":
        image.tableType = current.tableType
        image.parameters = {**(image.parameters or {}), **{k: v for k, v in current.parameters.items() if k in TRANSLATION}}


def translated_tables(metastore: Metastore, database: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the named target tables that are managed ones at heart; asks a Hive 4 metastore only."""
    if metastore.features.major < 4:
        return ()
    return tuple(sorted(table.tableName for table in metastore.tables(database, names) if is_translated(table)))
