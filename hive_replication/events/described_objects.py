"""The objects that an event's message describes: whether they are those of its row, and of the catalog that is replicated (pure).

The row of the log says which object an event is of; the message has images of it, and of objects inside it. A listener of the
source, or whoever can write its log, may let them differ: an event of one table would then change another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hive_replication.events import event_records as r
from hive_replication.metastore.types import Database, Function, Partition, Table

#: The catalog of a metastore that policies mean; the databases of others are not replicated, whatever their names.
CATALOG = "hive"
Image = Database | Table | Partition | Function


def images(event: r.Event) -> Iterator[Image]:
    """The metastore's objects in an event's message."""
    match event:
        case r.CreateDatabase() | r.CreateTable() | r.CreateFunction():
            found: tuple[Image | None, ...] = (event.after,)
        case r.AlterDatabase() | r.AlterTable():
            found = (event.before, event.after)
        case r.DropTable():
            found = (event.before,)
        case r.AddPartition():
            found = (event.table_object, *(added.partition for added in event.partitions))
        case r.AlterPartition():
            found = (event.table_object, *(image for one in event.changes for image in (one.before, one.after)))
        case r.DropPartition():
            found = (event.table_object,)
        case r.Insert():
            found = (event.table_object, event.partition)
        case _:
            found = ()
    return (image for image in found if image is not None)


def elsewhere(event: r.Event) -> str:
    """Of what else an event is than of its row's database in the catalog of the policy, "" where of nothing else.

    A foreign key is logged in the database of its parent; the table that has it may be of another one.
    """
    if isinstance(event, r.AddConstraints):
        other = next((one.database for one in event.constraints if one.parent and one.database != event.database), "")
        return f"the database {other}" if other else ""
    catalog = next((name for name in map(_catalog, images(event)) if name not in ("", CATALOG)), "")
    return f"the catalog {catalog}" if catalog else ""


def mismatch(row: r.Notification, message: Mapping[str, Any], event: r.Event) -> str:
    """Why a message is not of its row's object, "" where it is.

    Args:
        row: the row.
        message: its message.
        event: what was read from it.
    """
    database, tables = row.database, {row.table}
    if isinstance(event, r.AlterTable) and event.rename:
        before, after = ((_database(image), _table(image)) for image in (event.before, event.after))
        if before == (database, row.table):  # and gone to wherever it is now
            return ""
        if after == (database, row.table) and before[0] != database:  # it comes whole, as it is at the source
            return ""
        tables |= {before[1]} if after == (database, row.table) else set()
    elif isinstance(event, r.AddConstraints) and event.constraints[0].parent:
        tables |= {event.table} if row.table in event.names else set()
    named = [*_named(message), *((_database(image), _table(image)) for image in images(event)), *_constrained(event)]
    for found in named:
        if found[0] and database and found[0] != database:
            return f"its message is of the database {found[0]}"
        if found[1] and row.table and found[1] not in tables:
            return f"its message is of the table {found[1]}"
    return ""


def _named(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for database, table in (("db", "table"), ("dbName", "tableName")):
        yield str(message.get(database) or "").lower(), str(message.get(table) or "").strip().lower()


def _constrained(event: r.Event) -> Iterator[tuple[str, str]]:
    """Of constraints that one event adds, all are of one table."""
    if isinstance(event, r.AddConstraints):
        yield from ((one.database, one.table) for one in event.constraints)


def _database(image: Image) -> str:
    return ((image.name if isinstance(image, Database) else image.dbName) or "").lower()


def _table(image: Image) -> str:
    return ((image.tableName if isinstance(image, Table | Partition) else "") or "").strip().lower()


def _catalog(image: Image) -> str:
    return ((image.catalogName if isinstance(image, Database) else image.catName) or "").lower()
