"""Repair: brings a table, or some of its partitions, to the present state of the source, whatever happened to the replica.

The object is dumped from the present source state, at one event id. The table's lane is brought up to that id first, so that no
rename or drop of the past is skipped; then the object is compared, and what differs is replaced (design: load, one at a time).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest, Outdated
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.event_records import Notification
from hive_replication.events.events_of_policy import notifications
from hive_replication.events.name_changes import ObjectName
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import state_of
from hive_replication.load.report import LoadReport
from hive_replication.load.source_history import is_purged
from hive_replication.load.undo.undo import release
from hive_replication.logs import about
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.progress import Progress
from hive_replication.statements import ReplDump, ReplLoad

_LOG = logging.getLogger(__name__)

#: How often a table or database is dumped that windows pass before its dump is loaded.
DUMPS = 3


@dataclass(frozen=True, slots=True)
class Repair:
    """What a repair did.

    Args:
        directory: of the dump that was loaded.
        load: what its load did.
        events: what the loads of the lane's events before it did, also those before dumps that windows passed.
    """

    directory: str
    load: LoadReport
    events: tuple[LoadReport, ...] = ()


def repair(
    connection: Connection,
    database: str,
    table: str | None = None,
    partitions: tuple[str, ...] | None = None,
    *,
    stood: ReplicaState | None = None,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Repairs partitions, a table, or all tables of a database.

    Args:
        connection: both sides.
        database: source database; the policy names its replica.
        table: one table, or None for the whole database.
        partitions: names of partitions of the table, or None for all.
        stood: where the target stood when the repair was asked for, if that was before now.
        copier: copies files; threads of this process where None.
        progress: shows the progress.

    Raises:
        BadRequest: the source does not have the object, the policy leaves it out, or the target database is no replica yet.
        Refused: another load runs, the target's object is not our replica, or somebody has undone it meanwhile.
        Outdated: windows were loaded after each dump.
    """
    if table is not None:
        connection.source.require_included(database, table)
    stood = stood or state_of(connection.target, database)

    def dump() -> str:
        some = to_dump(connection, database, table, partitions)
        statement = ReplDump(database, table)
        return repl_dump(connection.source, statement, connection.store, partitions=some, progress=progress).directory

    return load_repair(connection, database, table, dump(), dump, stood, copier=copier, progress=progress)


def load_repair(
    connection: Connection,
    database: str,
    table: str | None,
    directory: str,
    again: Callable[[], str],
    stood: ReplicaState,
    *,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> Repair:
    """Loads a dump of a table or database as a repair, after the events before it.

    Args:
        connection: both sides.
        database: source database.
        table: its table, or None for all.
        directory: of the dump.
        again: makes another dump, where a window was loaded since the one before; returns its directory.
        stood: where the target stood when the repair was asked for: what is undone since then stays so.
        copier: copies files; threads of this process where None.
        progress: shows the progress.

    Raises:
        BadRequest: the target database is no finished replica, or the dump is of something else.
        Refused: another load runs, the target's object is not our replica, or somebody has undone it meanwhile.
        Outdated: windows were loaded after each dump.
    """
    events: list[LoadReport] = []
    once = partial(_load, connection, database, table, events, stood, copier, progress)
    for _ in range(DUMPS - 1):
        try:
            return once(directory)
        except Outdated as error:
            name = connection.target.policy.target_of(database)
            _LOG.info("a window was loaded since the dump, which is made again: %s", error, extra=about(name, table))
        directory = again()
    return once(directory)


def _load(
    connection: Connection,
    database: str,
    table: str | None,
    events: list[LoadReport],
    stood: ReplicaState,
    copier: Copier | None,
    progress: Progress | None,
    directory: str,
) -> Repair:
    header, name = connection.store.header(directory), connection.target.policy.target_of(database)
    if header.kind != "bootstrap" or (header.scope.database, header.scope.table) != (database, table):
        what = f"{database}.{table}" if table else database
        raise BadRequest(
            f"the dump {directory} is none of {what} as it was at the source, by which it is repaired: dump it again"
        )
    evid = header.to_evid
    if table is None:
        release(connection.target, name, stood=stood)  # not where nothing is repaired
        stood = stood.released()
    before = bring_up(connection, database, table, evid, stood, copier=copier, progress=progress)
    if before is not None:
        events.append(before)
        if before.held:
            _LOG.warning("events before the repair are held: %s", before.held[0].reason, extra=about(name, table))
            some = header.scope.partitions
            if some is not None and to_dump(connection, database, table, some) is None:
                raise Outdated(f"the events before the partitions are held: all of {table} is to be dumped")
    load = repl_load(
        connection.target,
        ReplLoad(directory, name),
        connection.store,
        copier or connection.copier,
        repair=True,
        source=connection.source.metastore,
        stood=stood,
        progress=progress,
    )
    return Repair(directory, load, tuple(events))


def to_dump(
    connection: Connection, database: str, table: str | None, partitions: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """The partitions to dump for a repair; None, for all of a table, also where they cannot be ahead of the rest of it."""
    if partitions is None or table is None:
        return partitions
    source, state = connection.source, state_of(connection.target, database)
    why = _why_as_it_is(source, state, table) or _why_not_ahead(source, state, database, table, partitions)
    if not why:
        return partitions
    _LOG.info("all of the table is repaired: %s", why, extra=about(database, table))
    return None


def bring_up(
    connection: Connection,
    database: str,
    table: str | None,
    evid: int,
    stood: ReplicaState,
    *,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> LoadReport | None:
    """Brings a table's lane (or a whole database) up to an event id, so that an object of that moment can be loaded.

    Args:
        connection: both sides.
        database: source database.
        table: its table, or None for all.
        evid: where to.
        stood: where the target stood when its repair was asked for.
        copier: copies files; threads of this process where None.
        progress: shows the progress.

    Returns:
        What the load did; None if all of the lane is at this event id already, or no events can bring the table there.

    Raises:
        BadRequest: the target database is no finished replica.
        Refused: it was undone since.
    """
    source, target = connection.source, connection.target
    name = target.policy.target_of(database)
    state = replica_state(target.metastore.database(name))
    if state.applied is None:
        raise BadRequest(f"the target database {name!r} is no finished replica: load a bootstrap dump of {database!r} first")
    if table is not None and (why := _why_as_it_is(source, state, table)):
        _LOG.info("the table is dumped as it is: %s", why, extra=about(name, table, evid))
        return None
    position = min(state.applied, state.position(table or ""))
    while position < evid:
        _LOG.info("events after %d are loaded before the repair", position, extra=about(name, table, evid))
        window = repl_dump(source, ReplDump(database, None, position, evid), connection.store, progress=progress)
        load = repl_load(
            target,
            ReplLoad(window.directory, name),
            connection.store,
            copier or connection.copier,
            only=table,
            source=source.metastore,
            stood=stood,
            progress=progress,
        )
        # A rename or a transaction may join others to it that are further behind: their events are not to be passed over.
        lane = next((held for held in load.held if table in held.tables and not held.tried), None)
        if lane is None or not 0 < lane.after < position or is_purged(source.metastore, state, lane.after):
            return load
        position = lane.after
    return None


def _why_as_it_is(source: Source, state: ReplicaState, table: str) -> str:
    """Why events cannot be applied to a table, so that a dump of all of it alone brings it anywhere; "" where they can."""
    if table in state.lost:
        return "a dump of it failed before"
    position = state.position(table)
    purged = is_purged(source.metastore, state, position)
    return f"the source's log lacks the events after {position}, where it stands" if purged else ""


def _why_not_ahead(source: Source, state: ReplicaState, database: str, table: str, partitions: tuple[str, ...]) -> str:
    """Why partitions of a held table cannot stand at a later event than the rest of it; "" where they can.

    What a rename brings under the name of one that stands ahead would stay under the former name, too; what it takes away from
    there would be lost. Files of a transactional table are read by write ids, which are the whole table's.
    """
    if table not in state.held:
        return ""
    metastore = source.metastore
    found = metastore.table(database, table)
    if found is not None and is_transactional(found):
        return "the write ids of its files are those of all its partitions"
    names = {(table, ""), *((table, one) for one in partitions)}
    rows = notifications(
        metastore, state.position(table), metastore.current_event_id(), source.policy.max_message_bytes, database
    )
    renamed = next((row.evid for row in rows if row.database == database and _may_rename(row, names)), None)
    return "" if renamed is None else f"event {renamed}, which is held, renames what is to be repaired"


def _may_rename(row: Notification, names: Collection[ObjectName]) -> bool:
    try:
        changes = decode(row).name_changes
    except UnreadableMessage:
        return (row.table, "") in names
    return any(change.renames and (change.before in names or change.after in names) for change in changes)
