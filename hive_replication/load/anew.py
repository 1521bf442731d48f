"""Tables that a window makes anew (:mod:`hive_replication.dump.anew`): a lane waits at an event, whose dump is loaded.

It is what a repair does: the lane is brought up to the event first, so that no rename or drop of the past is lost, then the table
is dropped and made from the dump. After it the table stands ahead of the window, whose other events go on.
"""

from __future__ import annotations

from dataclasses import replace

from hive_replication.dump.anew import dump_of
from hive_replication.dump.store import DumpStore
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.objects import load_objects
from hive_replication.load.session import Session
from hive_replication.load.window import load_window


def with_tables_anew(session: Session, store: DumpStore) -> Session:
    """Makes tables anew for which lanes of a window wait, and goes on with these lanes.

    Args:
        session: a load of events that came as far as it could.
        store: where the dumps of these tables are.

    Returns:
        The load as it goes on; the same one where no lane waits.

    Raises:
        Unreachable: a metastore or storage does not answer.
    """
    waiting = {lane.evid for lane in session.held if lane.tried}
    if session.dry or not waiting:
        return session
    rows = [one.notification for one in session.reader.events() if one.notification.evid in waiting]
    found = {row.table: directory for row in rows if row.table and (directory := dump_of(row))}
    failed: dict[str, str] = {}
    made = [table for table, directory in found.items() if _made(session, store, table, directory, failed)]
    if not found:
        return session
    again = replace(session, held=[], skipped=[], anew=session.anew.union(made))
    load_window(again)
    again.skipped = session.skipped
    _tell(again, failed)
    # Another table of a lane may wait for its own dump: each time there is one less.
    return with_tables_anew(again, store) if made else again


def _made(session: Session, store: DumpStore, table: str, directory: str, failed: dict[str, str]) -> bool:
    """Loads the dump of a table; where that fails, why is in ``failed``."""
    name = session.mapping().table(table)
    try:
        reader = store.open(directory)
        scope, header = reader.header.scope, session.reader.header
        if (reader.header.source, scope.database, scope.table) != (header.source, header.scope.database, table):
            raise BadRequest(f"{directory} is not a dump of the source table {header.scope.database}.{table}")
        load = replace(session, reader=reader, table=name, held=[])
        load_objects(load, repair=True)
    except Unreachable:
        raise
    except ReplicationError as error:
        failed[name] = str(error)
        return False
    failed |= {name: load.held[0].reason} if load.held else {}
    return not load.held


def _tell(session: Session, failed: dict[str, str]) -> None:
    """Tells for tables that could not be made anew why."""
    for number, lane in enumerate(session.held):
        reason = next((failed[name] for name in lane.tables if name in failed), "")
        if reason:
            session.held[number] = replace(lane, reason=reason)
            session.write_state(replace(session.state, held={**session.state.held, **dict.fromkeys(lane.tables, reason)}))
