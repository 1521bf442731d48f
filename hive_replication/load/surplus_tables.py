"""Tables of the target that a dump does not have: of a whole database most of them go, some were promised to stay.

What has left the policy stays or goes at the end of the load (:mod:`hive_replication.load.newly_included_tables`).
Where the source has the table, of a kind that is left out by now, or hides it, nobody dropped it: the replica stays as it is, and
is held.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from hive_replication.dump.source import message_hash
from hive_replication.errors import ReplicationError
from hive_replication.load.hidden_tables import Hidden, Shown, at_source
from hive_replication.load.journal.restored import forgotten
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan import gate
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.policy_change import leaving
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON, is_hidden
from hive_replication.load.replica.state import ReplicaState, is_ours, object_id
from hive_replication.load.session import Session
from hive_replication.metastore.table_kinds import is_transactional


def surplus_names(session: Session, wanted: Container[str]) -> list[str]:
    """Tables of the policy that the target has before the load, without those that are wanted or may be."""
    unshown = set(map(session.mapping.table, session.reader.header.unshown))
    names = session.target.metastore.table_names(session.database) if session.replica.there else []
    return [name for name in names if name not in wanted and name not in unshown and session.includes(name)]


def surplus_lanes(session: Session, names: Sequence[str], *, other_history: bool) -> Iterator[LanePlan]:
    """What becomes of surplus tables.

    Args:
        session: the load of a dump of a whole database.
        names: the tables.
        other_history: whether their state ids are of another history of the source, and say nothing.
    """
    header, begins = session.reader.header, session.state.applied is None
    if begins:
        yield from _aside(session, names)
    left_out = {} if begins else {session.mapping.table(name): reason for name, reason in header.skipped.items()}
    left = leaving(session)
    for table in session.target.metastore.tables(session.database, names):
        name = table.tableName.lower()
        due = gate.due(header.to_evid, object_id(table), again=True, other_history=other_history)
        if not (due and is_ours(table, session.identity)) or name in left or session.state.is_stale(table):
            continue
        if name in left_out:
            yield _left_out(header.to_evid, name, left_out[name])
        elif name not in header.skipped and (reason := _why_kept(session, name)):
            yield LanePlan((name,), session.state.position(name), (), Stop(header.to_evid, reason, refused=True))
        else:
            drop = op.DropTable(header.to_evid, table.tableName, ends=is_transactional(table))
            yield LanePlan((name,), session.state.position(name), (drop,))


def _why_kept(session: Session, name: str) -> str:
    """Why a replica stays whose table was in none of the source's lists, or "" where that is gone; one made since comes anew."""
    match at_source(session, name):
        case Hidden(reason):
            return reason
        case Shown(created) if not 0 < session.reader.header.to_time < created:
            return "the source shows the table to replication since the dump was made: the catch-up that is due brings it"
        case _:
            return ""


def unshown_lanes(session: Session, settled: Container[str]) -> Iterator[LanePlan]:
    """Holds tables that the source's metastore did not show, whether they have replicas or not: these stay as they are.

    Args:
        session: the load of a dump of a whole database.
        settled: target tables that it has nevertheless, or that are left as they are.
    """
    header = session.reader.header
    for source_name, words in sorted(header.unshown.items()):
        if (name := session.mapping.table(source_name)) not in settled:
            reason = f"the source's metastore did not show it to the account of the dump: {words}"
            yield LanePlan((name,), session.state.position(name), (), Stop(header.to_evid, reason, refused=True))


def with_followed(session: Session, after: ReplicaState) -> ReplicaState:
    """A state in which replicas of tables that the source hides go on by its events: the log is not hidden with them.

    Args:
        session: the load of a dump of a whole database that is no recovery's.
        after: the state after it, in which they are lost.
    """
    header, state = session.reader.header, session.state
    hidden = sorted({name for lane in session.held if is_hidden(lane.reason) for name in lane.tables})
    if not hidden or state.applied is None or not covers(header.to_evid, state.applied) or header.taken != state.scope:
        return after
    if forgotten(session.target.storage, session.replica.location, state.applied) is not None or not _is_of_source(session):
        return after  # replicas are not what the restored metastore says, or of another history than the events that come
    found = session.target.metastore.tables(session.database, hidden)
    names = {one.tableName.lower() for one in found if is_ours(one, session.identity) and not state.is_stale(one)}
    for name in sorted(names - {*state.lost, *state.coming, *filter(state.why_left_out, names)}):
        position = state.position(name)
        after = after.at_position(name, position) if covers(header.to_evid, position) else after
    return after


def _is_of_source(session: Session) -> bool:
    """Whether the source's log proves to have the very event that was applied last."""
    source, state = session.target.source_metastore, session.state
    try:
        event = source.event(state.applied) if source and state.applied else None
    except ReplicationError:
        return False
    return event is not None and (event.eventTime, message_hash(event.message)) == (state.applied_time, state.applied_hash)


def left_out_lanes(session: Session, made: Container[str]) -> Iterator[LanePlan]:
    """Holds the replica of a table that its own dump leaves out, also one that has left the policy and is taken in again.

    Args:
        session: the load of a dump of a table.
        made: target tables that the dump has: it may leave out partitions of one, which concerns no other of them.
    """
    header = session.reader.header
    skipped = header.skipped.items() if header.scope.partitions is None else ()  # else it is of partitions, and has the table
    named = {session.mapping.table(name): reason for name, reason in skipped}
    reasons = {name: reason for name, reason in named.items() if name not in made}
    for table in session.target.metastore.tables(session.database, reasons) if reasons and session.replica.there else ():
        name = table.tableName.lower()
        if is_ours(table, session.identity) and gate.due(header.to_evid, object_id(table), again=True):
            yield _left_out(header.to_evid, name, reasons[name])


def _left_out(evid: int, name: str, reason: str) -> LanePlan:
    return LanePlan((name,), evid, (), Stop(evid, f"{LEFT_OUT_REASON}{reason}", refused=True))


def _aside(session: Session, names: Sequence[str]) -> Iterator[LanePlan]:
    """What becomes of tables that the source does not have when their database becomes a replica."""
    evid = session.reader.header.to_evid
    for table in session.target.metastore.tables(session.database, names):
        if not is_ours(table, session.identity):
            first = session.conflicts.surplus(evid, table)
            if first is not None:
                yield LanePlan((first.table,), 0, (first,))
