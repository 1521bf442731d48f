"""An event that may wait, and the data that it brings as far as its message tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_replication.dump.source import has_files
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode
from hive_replication.events.files import FileRef

_BRINGING = ("INSERT", "ADD_PARTITION", "CREATE_TABLE")


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """What is kept of an event.

    Args:
        evid: event id.
        time: commit time at the source, seconds since the epoch.
        database: source database.
        name: its table, or function as ``f()``; "" for the database's own events.
        size: bytes that the message tells of, beside ``files``; None where it does not tell them.
        files: data files that the message names without their sizes.
    """

    evid: int
    time: int
    database: str
    name: str
    size: int | None = 0
    files: tuple[FileRef, ...] = ()


def waiting_event(row: r.Notification, *, data: bool = True) -> WaitingEvent:
    """Reads a row of the log.

    Args:
        row: the row.
        data: whether the policy replicates data.
    """
    head = row.evid, row.time, row.database
    try:
        if row.type in ("CREATE_FUNCTION", "DROP_FUNCTION"):
            return WaitingEvent(*head, decode(row).names[0])
        if data and row.type in _BRINGING:
            return WaitingEvent(*head, row.table, *_brought(decode(row)))
    except UnreadableMessage:
        return WaitingEvent(*head, row.table, None)
    return WaitingEvent(*head, row.table)


def _brought(event: r.Event) -> tuple[int | None, tuple[FileRef, ...]]:
    """Bytes and files of an event. The metastore counts those of a new table or partition itself, and writes them into it."""
    match event:
        case r.Insert():
            return 0, event.files
        case r.CreateTable() if has_files(event.after):
            return _new(event.after.parameters, event.files or None)
        case r.AddPartition():
            found = [_new(one.partition.parameters, one.files) for one in event.partitions]
            sizes = [size for size, _ in found if size is not None]
            return (sum(sizes) if len(sizes) == len(found) else None), tuple(file for _, files in found for file in files)
        case _:
            return 0, ()


def _new(parameters: Mapping[str, str] | None, files: tuple[FileRef, ...] | None) -> tuple[int | None, tuple[FileRef, ...]]:
    total = (parameters or {}).get("totalSize", "")
    if total.isdigit():
        return int(total), ()
    return (None, ()) if files is None else (0, files)
