"""What becomes of an object after an event: whether it goes away later anyway, so that a load can do without it (pure).

Files can be gone from the source and from cmroot although nothing is wrong: EXCHANGE PARTITION moves files without keeping
them. If a later event, up to the source's present one, drops, replaces or moves the object away, the event is superseded. If it
renames the object, the files lie in another directory since; what Hive copies to cmroot before has the name of the file that was
there, but not always its checksum, which depends on blocks, and in encryption zones on the file's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from hive_replication.events import event_records as r
from hive_replication.events.name_changes import NameChange, ObjectName, name_after
from hive_replication.events.untold import is_untold
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.storage.boundary import is_archive

#: Types of the events that can drop, replace or move an object away, or rename its table.
TYPES = frozenset(
    {
        "ALTER_PARTITION",
        "ALTER_PARTITIONS",
        "ALTER_TABLE",
        "DROP_DATABASE",
        "DROP_FUNCTION",
        "DROP_PARTITION",
        "DROP_TABLE",
        "INSERT",
    }
)


#: A directory before a rename and after it.
Move = tuple[str, str]


class Lookahead(Protocol):
    """Answers what becomes of an object after an event."""

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        """Event id after ``evid`` that drops, replaces or moves the object away; None where there is none, or nobody knows.

        Args:
            table: source table name at the event.
            partition: partition name, or "" for the table.
            evid: the event.
        """
        ...

    def moves(self, table: str, partition: str, evid: int) -> tuple[Move, ...]:
        """How renames after ``evid`` move the object's directory, in order, as far as they are known.

        Args:
            table: source table name at the event.
            partition: partition name, or "" for the table.
            evid: the event.
        """
        ...


class NoLookahead:
    """Where the source's metastore is not asked."""

    def superseded(self, table: str, partition: str, evid: int) -> int | None:  # noqa: ARG002
        """See :class:`Lookahead`."""
        return None

    def moves(self, table: str, partition: str, evid: int) -> tuple[Move, ...]:  # noqa: ARG002
        """See :class:`Lookahead`."""
        return ()


@dataclass(frozen=True, slots=True)
class Ending:
    """What is kept of an event that ends something.

    Args:
        evid: event id.
        table: table or function that it is about; "" for the whole database.
        partitions: those whose content it drops, replaces or moves away, "" for the table's own; None for all there is.
        renames: tables and partitions that get another name.
        unknown: whether its message cannot be read, so that nobody knows what became of the table from here on.
        moves: how the directories of what it renames move, by the names before.
    """

    evid: int
    table: str
    partitions: frozenset[str] | None = frozenset()
    renames: tuple[NameChange, ...] = ()
    unknown: bool = False
    moves: tuple[tuple[ObjectName, Move], ...] = ()


def ending(event: r.Event) -> Ending | None:
    """What an event ends, if anything."""
    renames = tuple(change for change in event.name_changes if change.renames)
    match event:
        case r.DropDatabase():
            return Ending(event.evid, "", None)
        case _ if is_untold(event):  # the table is rebuilt there
            return Ending(event.evid, event.names[0], None)
        case r.DropTable() | r.DropFunction() | r.AlterTable(leaves=True):
            return Ending(event.evid, event.names[0], None)
        case r.AlterTable():
            content = frozenset({""}) if event.truncate or event.relocated else frozenset[str]()
            found = Ending(event.evid, event.names[0], content, renames, moves=tuple(_moves(event)))
        case r.DropPartition():
            found = Ending(event.evid, event.table, frozenset(event.partitions))
        case r.AlterPartition():
            # What may have another location is listed as a whole, save that of transactional tables.
            listed = not is_transactional(event.table_object)
            changed = (
                one.before_name for one in event.changes if event.truncate or one.relocated or (listed and one.may_be_relocated)
            )
            found = Ending(event.evid, event.table, frozenset(changed), renames, moves=tuple(_moves(event)))
        case r.Insert() if event.replace or not (event.files or is_transactional(event.table_object)):
            # What names no files is listed: it brings the whole content, as INSERTs of clients of Hive 2 do.
            found = Ending(event.evid, event.table, frozenset({event.partition_name}))
        case _:
            return None
    return found if found.partitions or found.renames else None


def _moves(event: r.AlterTable | r.AlterPartition) -> Iterator[tuple[ObjectName, Move]]:
    """The directories that a rename of a managed table or partition moves; a table's are below its own, too."""
    if isinstance(event, r.AlterTable):
        images = [((event.names[0], ""), event.before, event.after)] if event.rename else []
    else:
        images = [((event.table, one.before_name), one.before, one.after) for one in event.changes if one.rename]
    for name, before, after in images:
        places = (before.sd.location or "") if before else "", after.sd.location or ""
        if all(places) and places[0] != places[1]:
            yield name, places


def why_superseded(event: r.Event | None, lookahead: Lookahead, *, outside: bool = False) -> str:
    """Why an event need not apply that leaves objects where they are not read: they are back later; "" where it has to.

    Args:
        event: any event; None for one that cannot be read.
        lookahead: what becomes of objects later.
        outside: whether its objects may not be read; archived partitions never are.
    """
    why = "they may not be read where it leaves them" if outside else ""
    match event:
        case r.AlterPartition() if not any(one.rename for one in event.changes):
            names = [one.after_name for one in event.changes]
            if all(is_archive(one.after.sd.location or "") for one in event.changes):
                why = "its partitions are archived"
        case r.Insert():
            names = [event.partition_name]
        case r.AlterTable(rename=False):
            names = [""]
        case _:
            return ""
    ends = [lookahead.superseded(event.table, name, event.evid) for name in names] if why else []
    until = max((one for one in ends if one is not None), default=0)
    return f"superseded: {why}, and event {until} brings them back, or drops them" if until and None not in ends else ""


def superseding(endings: Iterable[Ending], table: str, partition: str) -> int | None:
    """The first event that drops, replaces or moves an object away; None where there is none, or nobody knows.

    Args:
        endings: of events after the one in question, in order.
        table: source table name at the first of them.
        partition: partition name at the first of them, or "" for the table.
    """
    for one in endings:
        if one.table not in (table, ""):
            continue
        if one.unknown:
            return None
        if one.partitions is None or partition in one.partitions:
            return one.evid
        table, partition = name_after((table, partition), one.renames)
    return None


def moves_after(endings: Iterable[Ending], table: str, partition: str) -> tuple[Move, ...]:
    """How renames move an object's directory, in order, up to where nobody knows.

    Args:
        endings: of events after the one in question, in order.
        table: source table name at the first of them.
        partition: partition name at the first of them, or "" for the table.
    """
    found: list[Move] = []
    for one in endings:
        if one.table not in (table, ""):
            continue
        if one.unknown or one.partitions is None or partition in one.partitions:
            break
        found += [move for name, move in one.moves if name in ((table, ""), (table, partition))]
        table, partition = name_after((table, partition), one.renames)
    return tuple(found)
