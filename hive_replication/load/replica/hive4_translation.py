"""The translation of a Hive 4 metastore: a managed table that is not transactional is kept as an external one (HIVE-23387).

The metastore moves, drops and shows such a table as the managed table that was asked of it. An ALTER that removed the translation
would leave a managed table, which Hive 4 takes for a transactional one; so the translation is always kept. Nor does one come to a
table that has none, as in a failback to a metastore of Hive 3: it would be external there, and users' drops would purge its data.
"""

from __future__ import annotations

from hive_replication.metastore.marked_external import TRANSLATION
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table


def is_translated(table: Table) -> bool:
    """Whether the metastore translated a managed table to an external one."""
    return (table.parameters or {}).get("TRANSLATED_TO_EXTERNAL", "").upper() == "TRUE"


def is_managed(table: Table) -> bool:
    """Whether a table is managed, or was before the metastore translated it."""
    return table.tableType == "MANAGED_TABLE" or is_translated(table)


def keep_translation(image: Table, current: Table) -> None:
    """Applies the translation of the present table to the new image of a managed one, or that it has none.

    Args:
        image: the new image; changed in place.
        current: the table in the target's metastore.
    """
    if current.tableType == "MANAGED_TABLE" and not is_transactional(current):
        undo_translation(image)
    elif is_translated(current) and image.tableType == "MANAGED_TABLE":
        image.tableType = current.tableType
        image.parameters = {**(image.parameters or {}), **{k: v for k, v in current.parameters.items() if k in TRANSLATION}}


def undo_translation(image: Table) -> None:
    """Makes a translated table the managed one that was asked of its metastore, in place; others are left."""
    if is_translated(image):
        image.tableType = "MANAGED_TABLE"
        image.parameters = {key: value for key, value in image.parameters.items() if key not in TRANSLATION}
