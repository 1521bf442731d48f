"""Managed tables that a load made external for the time of a rename or a drop, with a mark that says so (pure).

A metastore moves or deletes the data of managed tables only. Whoever reads such a table, or an event that has its image, takes it
for what it is: a load may have been killed in that moment, and its replica may be the source of another one.
"""

from __future__ import annotations

from hive_replication.metastore.types import Table, copy_of

#: Parameter of a managed table that is external for a while.
MARK = "hive_replication.renaming"
#: Its values: a managed table, and one that a metastore of Hive 4 has translated to an external one.
MANAGED, TRANSLATED = "managed", "translated"
#: The parameters of a table that a metastore of Hive 4 has translated.
TRANSLATION = frozenset({"EXTERNAL", "TRANSLATED_TO_EXTERNAL", "external.table.purge"})


def restored(table: Table) -> Table:
    """The table without the mark, managed as before."""
    mark = (table.parameters or {}).get(MARK)
    if mark is None:
        return table
    image = copy_of(table)
    image.parameters = {key: value for key, value in table.parameters.items() if key not in (MARK, "EXTERNAL")}
    image.tableType = "MANAGED_TABLE"
    if mark == TRANSLATED:
        image.tableType = "EXTERNAL_TABLE"
        image.parameters |= dict.fromkeys(TRANSLATION, "TRUE")
    return image
