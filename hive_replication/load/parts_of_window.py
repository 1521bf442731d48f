"""A window with more events than memory is to hold, loaded as several that follow each other.

Each part is planned, carried out and finished as a window of its own, so that a load that is killed goes on with the part that it
was in. Some windows stay whole, and their load takes the memory that it takes:

- up to where the replica stands, since tables that are held behind it are brought up to there together;
- up to where an interrupted load may have brought objects: the window of a retry is never shorter (``load.plan.gate``);
- from a drop of the database to its creation: between the two there is no replica to go on from;
- loads of one table, plans and what was approved by them, and windows with which the policy changes, whose newly included tables
  come at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from hive_replication.dump.format.record_types import DumpHeader, EventRecord
from hive_replication.load.dump_prefix import EventsOf, interrupted_until
from hive_replication.load.replica.covers import covers
from hive_replication.load.report import Held, Skipped
from hive_replication.load.session import Session
from hive_replication.logs import about

#: Bytes of the messages of a part, or of the files that its events list; a load takes some 18 times as much memory.
PART = 32 << 20
_MUCH = 4 * PART  # of which is told
_FILE = 200  # that count for a file which is not in the message, but was listed by the dump
_LOG = logging.getLogger(__name__)


def parts_of_window(session: Session) -> Iterator[Session]:
    """The load of each part of a window, in order: each is to be carried out before the next is asked for.

    Args:
        session: a load; the only part of itself where it is not of a large window.
    """
    if not _may_be_cut(session):
        yield session
        return
    header, records, size, dropped, cuts = session.reader.header, list[EventRecord](), 0, False, _Cuts(session)
    for record in session.reader.events():
        kind = cuts.after(records[-1].notification.evid) if size >= PART and not dropped else None
        if kind is not None:
            ended = _until(header, records[-1])
            if kind == "applied":
                what = f"{len(records)} events after {ended.from_evid}"
                session.skipped.append(Skipped(ended.to_evid, what, "applied already"))
            else:
                yield _part(session, ended, records, size)
            header = replace(header, from_evid=ended.to_evid, from_hash=ended.to_hash)
            records, size = [], 0
        records.append(record)
        size += max(len(record.notification.message), _FILE * sum(len(group.files) for group in record.groups))
        dropped = record.notification.type == "DROP_DATABASE" or (dropped and record.notification.type != "CREATE_DATABASE")
    yield _part(session, header, records, size)


def held_after(session: Session, earlier: Iterable[Held]) -> list[Held]:
    """The lanes that a load holds after one of its parts.

    Args:
        session: of the part.
        earlier: those that it held before.
    """
    found = list(session.held)
    for lane in earlier:
        again = next((n for n, one in enumerate(found) if set(one.tables) & set(lane.tables)), None)
        if again is not None:  # the later part has left it alone, since it is held
            found[again] = replace(lane, tables=found[again].tables)
        elif any(name in session.state.held for name in lane.tables):
            found.append(lane)
    return found


def _may_be_cut(session: Session) -> bool:
    header, state = session.reader.header, session.state
    if header.kind != "incremental" or session.table is not None or session.dry or session.target.policy.approval:
        return False
    return not header.joined and not state.coming and header.taken in ("", state.scope)


@dataclass
class _Cuts:
    """Where a window may be cut; ``until``: an interrupted load may have brought objects up to there."""

    session: Session
    until: int = 0

    def after(self, evid: int) -> Literal["applied", "due"] | None:
        """Whether the window may be cut after an event, and whether there is something to be done up to there."""
        state, replica = self.session.state, self.session.replica
        if covers(state.last_id, evid):
            return "applied"
        if state.applied is None or covers(state.applied, evid) or not covers(evid, self.until):
            return None
        self.until = interrupted_until(replica.target.storage, replica.location, state, evid)
        return None if self.until else "due"


def _until(header: DumpHeader, last: EventRecord) -> DumpHeader:
    """The header of a part that ends with an event."""
    row = last.notification
    return replace(header, to_evid=row.evid, to_time=row.time, to_hash=last.hash, skipped={})


def _part(session: Session, header: DumpHeader, records: list[EventRecord], size: int) -> Session:
    if size >= _MUCH:
        text = "messages of %d MB are loaded together, which may take %.1f GB of memory: the window cannot be loaded in parts"
        _LOG.warning(text, size >> 20, 18 * size / 2**30, extra=about(session.database))
    return replace(session, reader=EventsOf(session.reader, header, lambda: records), held=[])
