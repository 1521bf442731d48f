"""Lanes: which events of a window depend on one another (pure).

The unit of order, parallelism and quarantine is the lane: all table names that are joined by a rename or by a transaction that
wrote to them. The creation and the drop of the database are barriers between segments, inside which lanes run in parallel; a
change of its properties touches no table and is carried out at the end of its segment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.event_records import Notification

#: Names of functions that a metastore accepts.
FUNCTION = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True)
class WindowEvent:
    """An event of a window: decoded, or why it cannot be. A commit may be both: its tables are held until they are repaired.

    ``redump`` is the dump that its table is rebuilt from, if any; ``outside`` why its object or files may not be read, or "";
    ``shared`` are other partitions at the directories of its own at the source; ``stays`` is said of one that was read before it
    was refused, and is no rename.
    """

    row: Notification
    event: r.Event | None
    groups: tuple[FileGroup, ...]
    error: str = ""
    redump: str = ""
    outside: str = ""
    shared: str = ""
    stays: bool = False

    @property
    def obstacle(self) -> str:
        """Why the event alone does not tell what its object holds afterwards, or "": of no concern if the object goes away."""
        return self.outside or self.shared

    @property
    def why_shared(self) -> str:
        """Why more partitions than it names read what it brings or takes away, and what becomes of that; or ""."""
        advice = "it is rebuilt from a dump" if self.redump else "repair it, or give each partition a directory of its own"
        reason = f"at the source, {self.shared} shares the directory of a partition of event {self.evid}: {advice}"
        return reason if self.shared else ""

    @property
    def evid(self) -> int:
        """Event id."""
        return self.row.evid

    @property
    def names(self) -> tuple[str, ...]:
        """Source names of tables and functions; what is of no table and cannot be read has a name of its own, to be held."""
        if self.event:
            return self.event.names
        return self.written or (self.row.table or r.function_name(self.row.type),)

    @property
    def written(self) -> tuple[str, ...]:
        """Source tables of a commit that the dump has files of, or names without them."""
        return tuple(sorted({group.table for group in self.groups if group.table}))

    def files(self, partition: str = "", table: str = "") -> FileGroup:
        """The files of one object of the event; ``table`` where the event is of several."""
        return self._groups.get((partition, table), FileGroup(partition, ()))

    @cached_property
    def _groups(self) -> Mapping[tuple[str, str], FileGroup]:
        return {(group.partition, group.table): group for group in reversed(self.groups)}  # the first counts


@dataclass(frozen=True, slots=True)
class Lane:
    """Source table names joined by renames or transactions, with their events in order."""

    names: frozenset[str]
    events: tuple[WindowEvent, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """Lanes that may run in parallel, changes of the database's properties, and the database's creation or drop at its end."""

    lanes: tuple[Lane, ...]
    alters: tuple[WindowEvent, ...]
    barrier: WindowEvent | None


def window_event(record: EventRecord) -> WindowEvent:
    """Decodes one event; an unreadable message holds back its lane only."""
    try:
        event = decode(record.notification)
    except UnreadableMessage as error:
        return WindowEvent(record.notification, None, record.groups, str(error), record.redump)
    if isinstance(event, tx.CommitTransaction):
        event = tx.with_writes(event, record.writes)
    return WindowEvent(record.notification, event, record.groups, redump=record.redump, shared=record.shared)


def refused(event: WindowEvent, why: str) -> WindowEvent:
    """An event that is not to be followed, as one that cannot be read: of what it says only its own names count.

    A drop stays what it is, so that whatever else was wrong with the object ends with it. So does a commit, without its writes:
    what stands for the transaction has to end when its tables are repaired.
    """
    row = event.row
    if r.is_function(row.table):
        row = replace(row, table=f"{row.table} (table)")  # a name that no function has
    elif isinstance(event.event, r.FunctionEvent) and FUNCTION.fullmatch(event.event.function):
        row = replace(row, table=event.names[0])  # by which its drop ends what was wrong with it
    if isinstance(event.event, r.DropTable):
        return WindowEvent(row, replace(event.event, table=row.table, before=None), ())
    if isinstance(event.event, tx.CommitTransaction) and event.written:
        return WindowEvent(row, replace(event.event, writes=(), tables=event.written), (), why)
    groups, change = tuple(replace(one, files=()) for one in event.groups), event.event
    stays = isinstance(change, r.AlterTable) and not change.rename and change.after.tableName.lower() == row.table
    return replace(event, row=row, event=None, groups=groups, error=why, stays=stays)


def with_tables(events: Sequence[WindowEvent], tables: dict[int, set[str]] | None = None) -> list[WindowEvent]:
    """Events of transactions with all tables of the window that these transactions wrote to.

    Args:
        events: of the window, or of a part of it.
        tables: those tables by transaction, as far as earlier parts say; what these events say is added.
    """
    tables = {} if tables is None else tables
    for event in events:
        match event.event:
            case tx.AllocateWriteIds():
                for transaction, _ in event.event.write_ids:
                    tables.setdefault(transaction, set()).add(event.row.table)
            case tx.TransactionEvent():
                tables.setdefault(event.event.transaction, set()).update(event.event.tables)
            case _:
                pass
    return [_with_tables(event, tables) for event in events]


def _with_tables(event: WindowEvent, tables: Mapping[int, set[str]]) -> WindowEvent:
    match event.event:
        case tx.AllocateWriteIds():
            found = set[str]().union(*(tables[transaction] for transaction, _ in event.event.write_ids))
            return replace(event, event=replace(event.event, others=tuple(sorted(found - {event.row.table}))))
        case tx.TransactionEvent():
            return replace(event, event=replace(event.event, tables=tuple(sorted(tables[event.event.transaction]))))
        case _:
            return event


def segments(events: Iterable[WindowEvent]) -> list[Segment]:
    """Cuts a window into segments of lanes.

    Names joined anywhere in the window are one lane in all its segments, so that a lane held in one is held in the next.
    """
    events = list(events)
    groups = _joined(events)
    result: list[Segment] = []
    part: dict[frozenset[str], list[WindowEvent]] = {}
    alters: list[WindowEvent] = []
    for event in events:
        match event.event:
            case r.CreateDatabase() | r.DropDatabase():
                result.append(_segment(part, alters, event))
                part, alters = {}, []
            case r.AlterDatabase():
                alters.append(event)
            case _ if event.names:
                part.setdefault(groups[event.names[0]], []).append(event)
            case _:
                pass  # of the whole database, and of no kind that is applied: the caller reports it
    return [*result, _segment(part, alters, None)]


def _segment(part: dict[frozenset[str], list[WindowEvent]], alters: list[WindowEvent], barrier: WindowEvent | None) -> Segment:
    lanes = tuple(Lane(names, tuple(events)) for names, events in part.items())
    return Segment(lanes, tuple(alters), barrier)


def _joined(events: Iterable[WindowEvent]) -> dict[str, frozenset[str]]:
    groups: dict[str, frozenset[str]] = {}
    for event in events:
        union = frozenset(event.names).union(*(groups.get(name, frozenset()) for name in event.names))
        groups |= dict.fromkeys(union, union)
    return groups
