"""Messages of ``NOTIFICATION_LOG`` to records: one function per event type, found through :data:`DECODERS`.

A new event type needs, in the order in which an event travels (leave out what does not concern it):

1. ``events/event_records.py``: its record. ``names`` are the tables that it touches, ``name_changes`` what it renames.
2. Here: the function that reads its message, and its line in :data:`DECODERS`; strike it from :data:`KNOWN_NOT_APPLIED`.
   ``statistics.py`` and ``transactions.py`` hold theirs themselves.
3. ``events/described_objects.py``: the objects in its message, so that one about another object than its row's is refused.
4. ``dump/incremental/event_files.py``: its files. ``dump/source_boundary.py``: its locations, which may lie outside the policy.
5. ``dump/bootstrap/fold.py``: what it does to an object that was dumped before it happened.
6. ``load/plan/handlers/``: its handler, and its line in ``by_event_type.py``.
7. ``load/operations/``, if no operation fits: its ``kind`` stays for ever, it is in journals. It is carried out by itself or, if
   files are placed for it, in ``load/apply/change_tables.py`` or ``change_partitions.py``.
8. ``load/plan/incarnations.py``, ``superseded.py`` and ``lanes.py``: if it begins, ends or joins tables or partitions.
9. ``lag/waiting_event.py``: if it brings data, which counts as bytes that wait.
10. Tests: its message by real Hive in ``tests/fixtures/events`` (``tests/fixtures/record.py``), ``tests/unit/load/plan`` and a
    scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from hive_replication.errors import ReplicationError
from hive_replication.events import event_records as r
from hive_replication.events import statistics, transactions, unpack, untold
from hive_replication.events.described_objects import CATALOG, elsewhere, mismatch
from hive_replication.events.files import FileRef
from hive_replication.events.materialized_views import of_view
from hive_replication.logs import printable
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.constraints import KINDS, grouped
from hive_replication.metastore.marked_external import restored
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.spark_tables import at_its_data
from hive_replication.metastore.table_kinds import as_stored, has_files, is_transactional, is_view
from hive_replication.metastore.types import Database, Function, NotificationEvent, Partition, Table

Message = Mapping[str, Any]
Head = tuple[int, int, str, str, str]
_LONGEST = 300  # characters of an error, which may quote the message

#: Event types that Hive is known to write and that are recorded but not applied.
KNOWN_NOT_APPLIED = frozenset(
    """
    OPEN_TXN ACID_WRITE_EVENT BATCH_ACID_WRITE_EVENT
    RELOAD CREATE_ISCHEMA ALTER_ISCHEMA DROP_ISCHEMA ADD_SCHEMA_VERSION ALTER_SCHEMA_VERSION DROP_SCHEMA_VERSION
    CREATE_INDEX ALTER_INDEX DROP_INDEX
    CREATE_CATALOG DROP_CATALOG ALTER_CATALOG CREATE_DATACONNECTOR ALTER_DATACONNECTOR DROP_DATACONNECTOR CONFIG_CHANGE_EVENT
    """.split()  # noqa: SIM905 - twenty names read better as words
)


class UnreadableMessage(ReplicationError):
    """An event's message cannot be decoded; names the evid."""


def notification(event: NotificationEvent, most: int = unpack.MOST_BYTES, *, views: bool = False) -> r.Notification:
    """Unpacks a row of the log: ``json-0.2`` is plain JSON, ``gzip(json-2.0)`` is Base64 of its gzip.

    A message that is not what its format says, or unpacks to too much, stays as it is: :func:`decode` will not read it, nor what
    stands for a plain one that is too large, and its lane alone is held. An event of another catalog than Hive's own gets no
    database, so that it belongs to no policy.

    Args:
        event: the row.
        most: bytes that its message may unpack to, or characters that a plain one may have.
        views: whether materialized views are shown as ordinary ones (:func:`.materialized_views.of_view`).
    """
    text = event.message or ""
    if (event.messageFormat or "").startswith("gzip"):
        with suppress(ValueError):
            text = unpack.unpacked(text, most)
    elif len(text) > most:
        text = unpack.UNREADABLE
    catalog = (event.catName or "").lower()
    # Hive 3.1.3 writes transactions with the database "null" and the table " ".
    nowhere = event.eventType in transactions.TYPES or catalog not in ("", CATALOG)
    database = "" if nowhere else (event.dbName or "").lower()
    table = (event.tableName or "").strip().lower()
    row = r.Notification(event.eventId, event.eventTime, event.eventType, database, table, text, catalog)
    return of_view(row) if views else row


def decode(row: r.Notification) -> r.Event:
    """Decodes a message into the record of its event type.

    Raises:
        UnreadableMessage: the message is not JSON, lacks what its type needs, or is not of the row's object.
    """
    head = (row.evid, row.time, row.type, row.database, row.table)
    decoder = DECODERS.get(row.type)
    if decoder is None:
        return r.OtherEvent(*head, known=row.type in KNOWN_NOT_APPLIED)
    try:
        message = unpack.fields(row.message)
        event = decoder(head, message)
        other = elsewhere(event)
        if other and (not row.catalog or isinstance(event, r.AddConstraints)):
            return event  # and whoever reads it passes over it
        problem = f"its message is of {other}" if other else mismatch(row, message, event)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise UnreadableMessage(f"{_about(row)}: {printable(repr(error)[:_LONGEST])}") from error
    if problem:
        raise UnreadableMessage(f"{_about(row)}: {printable(problem[:_LONGEST])}")
    return event


def _about(row: r.Notification) -> str:
    return f"event {row.evid} ({row.type}) of {row.database}.{row.table}"


def _create_database(head: Head, message: Message) -> r.Event:
    text = message.get("dbJson")
    return r.CreateDatabase(*head, after=tjson.loads(Database, text) if text else None)


def _alter_database(head: Head, message: Message) -> r.Event:
    before, after = (tjson.loads(Database, message[key]) for key in ("dbObjBeforeJson", "dbObjAfterJson"))
    return r.AlterDatabase(*head, before=before, after=after)


def _drop_database(head: Head, message: Message) -> r.Event:  # noqa: ARG001 - one signature for all decoders
    return r.DropDatabase(*head)


def _create_table(head: Head, message: Message) -> r.Event:
    return r.CreateTable(*head, after=_table(message), files=_files(message.get("files")))


def _alter_table(head: Head, message: Message) -> r.Event:
    before, after = (_table(message, key) for key in ("tableObjBeforeJson", "tableObjAfterJson"))
    truncate = _flag(message.get("isTruncateOp"))
    event = r.AlterTable(*head, before=before, after=after, truncate=truncate, write_id=_write_id(message))
    unsaid = has_files(after) and not event.rename and untold.may_change_data(message, before.parameters, after.parameters)
    return replace(event, untold=unsaid)


def _drop_table(head: Head, message: Message) -> r.Event:
    return r.DropTable(*head, before=_table(message) if message.get("tableObjJson") else None)


def _add_partition(head: Head, message: Message) -> r.Event:
    table = _table(message)
    listed = {entry["partitionName"]: _files(entry.get("files")) for entry in message.get("partitionFiles") or ()}
    parts = [] if is_view(table) else [_partition(text) for text in unpack.texts_of(message.get("partitionListJson"))]
    added = tuple(r.AddedPartition(name, part, listed.get(name)) for part in parts for name in [_partition_name(table, part)])
    return r.AddPartition(*head, table_object=table, partitions=added)


def _alter_partition(head: Head, message: Message) -> r.Event:
    table = _table(message)
    if is_view(table):
        return _altered(head, message, table, ())
    before, after = (_partition(message[key]) for key in ("partitionObjBeforeJson", "partitionObjAfterJson"))
    change = r.ChangedPartition(_partition_name(table, before), _partition_name(table, after), before, after)
    unsaid = not change.rename and untold.may_change_data(message, before.parameters, after.parameters)
    return replace(_altered(head, message, table, (change,)), untold=unsaid)


def _alter_partitions(head: Head, message: Message) -> r.Event:
    table = _table(message)
    changes: list[r.ChangedPartition] = []
    for text in () if is_view(table) else unpack.texts_of(message["partitionListJson"]):
        part = _partition(text)
        name = _partition_name(table, part)
        changes.append(r.ChangedPartition(name, name, None, part))
    return _altered(head, message, table, tuple(changes))


def _altered(head: Head, message: Message, table: Table, changes: tuple[r.ChangedPartition, ...]) -> r.AlterPartition:
    truncate = _flag(message.get("isTruncateOp"))
    return r.AlterPartition(*head, table_object=table, changes=changes, truncate=truncate, write_id=_write_id(message))


def _drop_partition(head: Head, message: Message) -> r.Event:
    table = _table(message) if message.get("tableObjJson") else None
    names: list[str] = []
    for values in () if table and is_view(table) else message["partitions"]:
        keys = [key.name for key in table.partitionKeys] if table else list(values)
        names.append(partition_name(keys, [unpack.text_of(values[key]) for key in keys]))
    return r.DropPartition(*head, table_object=table, partitions=tuple(names))


def _insert(head: Head, message: Message) -> r.Event:
    if untold.is_insert_of_hive2(message):
        return untold.UntoldInsert(*head, files=_files(message.get("files")))
    table = _table(message)
    text = message.get("ptnObjJson")
    part = _partition(text) if text else None
    name = _partition_name(table, part) if part else ""
    replace, files = _flag(message.get("replace")), _files(message.get("files"))
    if not is_transactional(table):
        if files and not any(file.names_store for file in files):  # by a client of Hive 2: what it holds now is listed
            replace, files = False, ()
        files = tuple(file.below((part or table).sd.location) for file in files)
    return r.Insert(*head, table_object=table, partition=part, partition_name=name, replace=replace, files=files)


def _add_constraints(kind: str, head: Head, message: Message) -> r.Event:
    rows = [tjson.loads(KINDS[kind].row, text) for text in unpack.texts_of(message[KINDS[kind].message])]
    constraints = grouped(kind, rows)
    evid, time, event_type, database, _ = head
    return r.AddConstraints(evid, time, event_type, database, constraints[0].table, constraints)


def _drop_constraint(head: Head, message: Message) -> r.Event:
    return r.DropConstraint(*head, constraint=message["constraintName"].lower())


def _create_function(head: Head, message: Message) -> r.Event:
    function = tjson.loads(Function, message["functionObjJson"])
    if not all(resource.uri for resource in function.resourceUris or ()):
        raise ValueError("a resource of the function has no path")
    return r.CreateFunction(*head, function=function.functionName.lower(), after=function)


def _drop_function(head: Head, message: Message) -> r.Event:
    return r.DropFunction(*head, function=message["functionName"].lower())


DECODERS: Mapping[str, Callable[[Head, Message], r.Event]] = {
    "CREATE_DATABASE": _create_database,
    "ALTER_DATABASE": _alter_database,
    "DROP_DATABASE": _drop_database,
    "CREATE_TABLE": _create_table,
    "ALTER_TABLE": _alter_table,
    "DROP_TABLE": _drop_table,
    "ADD_PARTITION": _add_partition,
    "ALTER_PARTITION": _alter_partition,
    "ALTER_PARTITIONS": _alter_partitions,
    "DROP_PARTITION": _drop_partition,
    "INSERT": _insert,
    **{kind.event: partial(_add_constraints, name) for name, kind in KINDS.items()},
    "DROP_CONSTRAINT": _drop_constraint,
    "CREATE_FUNCTION": _create_function,
    "DROP_FUNCTION": _drop_function,
    **statistics.DECODERS,
    **transactions.DECODERS,
}


def _table(message: Message, key: str = "tableObjJson") -> Table:
    table = tjson.loads(Table, message[key])
    if not (table.tableName and table.dbName and table.sd):
        raise ValueError(f"{key} is no whole table")
    return restored(at_its_data(as_stored(table)))


def _partition(text: str) -> Partition:
    part = tjson.loads(Partition, text)
    if not (part.values and part.sd):
        raise ValueError("not a whole partition")
    return part


def _partition_name(table: Table, part: Partition) -> str:
    return partition_name([key.name for key in table.partitionKeys], part.values)


def _files(texts: Any) -> tuple[FileRef, ...]:
    return tuple(map(FileRef.from_message, unpack.texts_of(texts)))


def _write_id(message: Message) -> int:
    return max(unpack.whole(message.get("writeId") or 0), 0)


def _flag(value: Any) -> bool:
    """Hive writes booleans of messages as strings."""
    return str(value).lower() == "true"
