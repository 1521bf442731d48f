"""Tables that a window rebuilds (``dump.incremental.table_redumps``): a lane waits at an event, whose dump is loaded.

It is what a repair does: the lane is brought up to the event first, so that no rename or drop of the past is lost, then the table
is dropped and made from the dump. After it the table stands ahead of the window, whose other events go on.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from hive_replication.dump.format.interface import DumpStore
from hive_replication.errors import BadRequest, LockLost, ReplicationError, Unreachable
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.held_lanes import held_reason
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.session import Session
from hive_replication.load.untrusted_dump import opened
from hive_replication.load.window import load_window
from hive_replication.logs import about

_LOG = logging.getLogger(__name__)


def with_rebuilt_tables(session: Session, events: Sequence[WindowEvent], store: DumpStore) -> Session:
    """Rebuilds tables for which lanes of a window wait, and goes on with these lanes.

    Args:
        session: a load of events that came as far as it could.
        events: those of its dump.
        store: where the dumps of these tables are.

    Returns:
        The load as it goes on; the same one where no lane waits.

    Raises:
        Unreachable: a metastore or storage does not answer.
    """
    waiting = {lane.evid for lane in session.held if lane.tried}
    if session.dry or not waiting:
        return session
    found = {one.row.table: one.redump for one in events if one.evid in waiting and one.row.table and one.redump}
    failed: dict[str, str] = {}
    made = [table for table, directory in found.items() if load_beside(session, store, table, directory, failed)]
    if not found:
        return session
    again = replace(session, held=[], skipped=[], rebuilt=session.rebuilt.union(made))
    load_window(again, events=events)
    again.skipped = session.skipped
    _tell_failed(again, failed)
    # Another table of a lane may wait for its own dump: each time there is one less.
    return with_rebuilt_tables(again, events, store) if made else again


def load_beside(session: Session, store: DumpStore, table: str, directory: str, failed: dict[str, str]) -> bool:
    """Loads the dump of a table that was made beside a window.

    Args:
        session: the load of the window.
        store: where the dump is.
        table: of the source.
        directory: of its dump.
        failed: gets why it could not be loaded, by target table.

    Returns:
        Whether it was loaded.
    """
    name = session.mapping.table(table)
    try:
        reader = opened(store, directory)
        scope, header = reader.header.scope, session.reader.header
        if (reader.header.source, scope.database, scope.table) != (header.source, header.scope.database, table):
            raise BadRequest(f"{directory} is not a dump of the source table {header.scope.database}.{table}")
        load = replace(session, reader=reader, table=name, held=[])
        load_objects(load, repair=True)
    except (Unreachable, LockLost):
        raise
    except ReplicationError as error:
        _LOG.warning("the table is not rebuilt from %s: %s", directory, error, extra=about(session.database, name))
        failed[name] = str(error)
        return False
    failed |= {name: load.held[0].reason} if load.held else {}
    return not load.held


def _tell_failed(session: Session, failed: dict[str, str]) -> None:
    """Tells for tables that could not be rebuilt why."""
    for number, lane in enumerate(session.held):
        name = next((name for name in lane.tables if name in failed), "")
        if name:
            tell(session, number, failed[name], name)


def tell(session: Session, number: int, reason: str, table: str) -> None:
    """Gives a held lane another reason, in the report and in the database's state.

    Args:
        session: the load.
        number: of the lane, among those that it holds.
        reason: one sentence.
        table: of the lane, whose reason it is.
    """
    lane = replace(session.held[number], reason=reason)
    lane = replace(lane, table=table) if reason.startswith(LEFT_OUT_REASON) else lane
    session.held[number] = lane
    told = {name: held_reason(session.state, lane, name) for name in lane.tables}
    session.replica.write_state(replace(session.state, held={**session.state.held, **told}))
