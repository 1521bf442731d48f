"""What happened to a replica: loads with their windows, and what operators did, from kept records and from journals."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hive_replication.connect import Connection
from hive_replication.connect.hanging_storage import PATIENCE, require_answers
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.load.journal.journal import Entry, Journal
from hive_replication.load.layout.directories import token_time
from hive_replication.load.records import Record, RecordStore
from hive_replication.logs import about
from hive_replication.storage import paths

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened.

    Args:
        record: what was recorded. Of a load of an earlier version, which left none, it has what the journal says.
        undone: whether an undo took the load back since.
    """

    record: Record
    undone: bool = False


def history(connection: Connection, target_database: str, most: int | None = None) -> tuple[HistoryEntry, ...]:
    """The history of a replica, the newest first; of days whose records this account may not read, an entry that says so.

    Args:
        connection: both sides; only the target and the dump root are called.
        target_database: its name on the target.
        most: how many entries; all that are kept where None.

    Raises:
        BadRequest: nothing is known of such a replica.
        Unreachable: the target or the dump root does not answer.
    """
    store = connection.store
    require_answers(store.storage, PATIENCE)
    kept = RecordStore.of(connection.target.policy, store, target_database)
    records = kept.newest(most)
    records += [_unread(directory, why, target_database) for directory, why in kept.closed.items()]
    found = connection.target.metastore.database(target_database)
    if found is None and not records:
        raise BadRequest(f"the target has no replica {target_database!r}, and no record of one is kept")
    entries = _entries(connection, target_database, found.locationUri if found else None)
    return tuple(merged(records, entries, target_database)[:most])


def _entries(connection: Connection, database: str, location: str | None) -> Sequence[Entry]:
    try:
        return Journal(connection.target.storage, location).entries() if location else []
    except ReplicationError as error:
        _LOG.warning("the journal cannot be read: %s", error, extra=about(database))
        return []


def _unread(directory: str, why: str, database: str) -> Record:
    try:
        time = datetime.fromisoformat(f"{paths.name(directory)}T23:59:59Z").timestamp()
    except ValueError:  # an earlier version had one directory for all days
        time = 0.0
    return Record(directory, "not readable", database, "", time, "failed", text=why)


def merged(records: Iterable[Record], entries: Iterable[Entry], database: str) -> list[HistoryEntry]:
    """Records, with those loads of the journal that left none; the newest first (pure)."""
    known = list(records)
    by_token = {entry.token: entry for entry in entries}
    recorded = {record.journal for record in known}
    ending: defaultdict[int, list[Entry]] = defaultdict(list)
    for entry in by_token.values():
        if entry.token not in recorded:
            ending[entry.to_evid].append(entry)
    parts = {record.id: _parts(record, by_token, ending) for record in known}
    found = [HistoryEntry(one, bool(parts[one.id]) and all(part.status == "undone" for part in parts[one.id])) for one in known]
    recorded.update(part.token for of_record in parts.values() for part in of_record)
    windows = {record.window: record.time for record in reversed(known)}  # a load may have a second journal of its window
    for entry in by_token.values():
        if entry.status == "part" and not entry.to_evid:
            continue  # what the undo of a table left, which has a record of its own
        made = _of(entry, database)
        if entry.token not in recorded and windows.get(made.window, 0.0) < made.time:
            found.append(HistoryEntry(made, entry.status == "undone"))
    return sorted(found, key=lambda one: (one.record.time, one.record.id), reverse=True)


def _parts(record: Record, entries: Mapping[str, Entry], ending: Mapping[int, Sequence[Entry]]) -> list[Entry]:
    """The journals of a recorded load, the newest first: several where it was loaded in parts, one after another.

    The record names the last. The first parts may have changed nothing, and have none. Only windows are loaded so, not dumps of
    objects, whose journals begin at any event, 0 included.

    Args:
        record: of the load.
        entries: of the journal, by their tokens.
        ending: those that no record names, by the event that they end with.
    """
    begin, found = record.window.partition("-")[0], list[Entry]()
    part = entries.get(record.journal)
    while part is not None:
        found.append(part)
        before = ending.get(part.from_evid, ()) if begin.isdigit() and part.from_evid > int(begin) else ()
        part = max((one for one in before if one.token < found[-1].token), key=lambda one: one.token, default=None)
    return found


def _of(entry: Entry, database: str) -> Record:
    """What a journal says, by the time at which its load began: that of its last write is an undo's, where one took it back."""
    text = {"open": "runs, or was killed", "part": "of some tables only"}.get(entry.status, "")
    return Record(
        id=entry.token,
        action="window",
        database=database,
        by="",
        time=token_time(entry.token),
        outcome="failed" if entry.status == "open" else "done",
        window=f"{entry.from_evid}-{entry.to_evid}",
        to_evid=entry.to_evid,
        text=text,
        journal=entry.token,
    )
