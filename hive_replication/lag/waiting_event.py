"""An event that may wait, with the bytes and files that its message names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.files import FileRef
from hive_replication.events.untold import UntoldInsert
from hive_replication.load.replica.parameters import number_of
from hive_replication.logs import about
from hive_replication.metastore.table_kinds import has_files

_LOG = logging.getLogger(__name__)

_WITH_DATA = ("INSERT", "ADD_PARTITION", "CREATE_TABLE")


@dataclass(frozen=True, slots=True)
class WaitingEvent:
    """The part of an event that figures of lag need.

    Args:
        evid: event id.
        time: commit time at the source, seconds since the epoch.
        database: source database.
        name: its table, or function as ``f()``; "" for the database's own events.
        size: bytes by the message, without those of ``files``; None if the message has no size.
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
        if data and row.type in _WITH_DATA:
            return WaitingEvent(*head, row.table, *_data_of(decode(row)))
    except UnreadableMessage as error:
        _LOG.info("the event counts for the lag without its files: %s", error, extra=about(row.database, row.table, row.evid))
        return WaitingEvent(*head, row.table, None)
    return WaitingEvent(*head, row.table)


def _data_of(event: r.Event) -> tuple[int | None, tuple[FileRef, ...]]:
    """Bytes and files of an event. For new tables and partitions the metastore writes their size into their parameters."""
    match event:
        case r.Insert() | UntoldInsert():
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
    total = number_of((parameters or {}).get("totalSize") or "")
    if total is not None:
        return total, ()
    return (None, ()) if files is None else (0, files)
