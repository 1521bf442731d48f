"""What a load does where the policy has changed since the replica was made: who comes, who is awaited, and who has left it.

The database's state keeps, in one write with the window's end, which tables the replica was made with, which are awaited (they
are held, and come whole) and which left the policy. So a load that is killed anywhere leaves nothing that is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hive_replication.dump.format.record_types import GONE
from hive_replication.errors import Refused
from hive_replication.events.event_records import is_function
from hive_replication.load.plan import gate
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.state import ReplicaState, is_ours, object_id
from hive_replication.load.report import Held, Skipped
from hive_replication.load.session import Session
from hive_replication.metastore.materialized_views import is_replica_of_materialized
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table
from hive_replication.policy import PolicyScope

_WAITS = "and comes whole with the next load: its dump could not be made in time, since its name or its transactions moved on"


def newcomer(session: Session) -> Callable[[str], bool]:
    """Tells of a source table's name whether the dump's policy takes it in, and the replica was not made with it."""
    header, scope = session.reader.header, session.state.scope
    if not header.taken or scope == header.taken or session.table is not None:
        return lambda _: False
    if not scope:  # made by an earlier version: the dump has found what the replica lacks
        return header.joined.__contains__
    before, now = PolicyScope.parse(scope), PolicyScope.parse(header.taken)
    return lambda name: name in header.joined or now.takes_in(name, before)


def awaited(session: Session, plans: Iterable[LanePlan], *, whole: bool) -> Iterator[Held]:
    """The tables that a window takes into the policy, held until their dumps are loaded.

    Args:
        session: the load, whose lanes are carried out.
        plans: those lanes that it did not leave alone.
        whole: whether the load is of all lanes.
    """
    header, state, is_new = session.reader.header, session.state, newcomer(session)
    plans = list(plans)
    planned = {name for plan in plans for name in plan.names}
    names = {name for plan in plans for name in plan.coming} | (state.coming - planned)
    if whole:
        names |= {session.mapping.table(name) for name in header.joined if is_new(name)} | _lost(session, planned)
    if session.table is None:
        gone = {name for name, directory in header.joined.items() if directory == GONE}
        names = {name for name in names - gone if session.includes(name)}
    stands = header.to_evid if whole else min(header.to_evid, state.applied or header.to_evid)
    behind = {name: lane.after for lane in reversed(session.held) for name in lane.tables}
    for name in sorted(names):
        position = state.position(name)
        reached = name in planned or (whole and gate.applied(header.from_evid, position=position))
        after = stands if name not in state.coming else max(position, stands) if reached else position
        # What had the name before may be of a lane that stands behind, whose catch-up is not to take its events for applied.
        yield Held((name,), min(after, behind.get(name, after)), header.to_evid, _reason(state, name))


def _lost(session: Session, planned: set[str]) -> set[str]:
    """Held names that a window would bring up to its end although it says nothing of them, and the target has no such table.

    A table that came whole was taken back by an undo, for example: no event brings it.
    """
    header, state = session.reader.header, session.state
    reached = gate.reached(state.at, header.from_evid, header.to_evid) & state.held.keys()
    names = {name for name in reached - planned if not (is_function(name) or state.waits(name))}
    found = session.target.metastore.tables(session.database, sorted(names)) if names else iter(())
    return names - {table.tableName.lower() for table in found}


def _reason(state: ReplicaState, name: str) -> str:
    return state.held[name] if name in state.coming else TAKEN_IN_REASON + _WAITS


def refuse_left_out(session: Session) -> None:
    """Makes sure that windows of a replica go on with a table that is loaded alone.

    Raises:
        Refused: neither the replica was made with it, nor does the policy take it: it would become stale without a word.
    """
    scope, made_with = session.reader.header.scope, session.state.scope
    name = scope.table  # as at the source, whatever the target's is to be: both scopes are of those
    if name is None or session.state.applied is None or not made_with:
        return
    if not (PolicyScope.parse(made_with).includes(name) or session.target.policy.includes(name)):
        raise Refused(
            f"tables and exclude of the policy leave out {scope.database}.{name}: its replica would become stale; take it into "
            "the policy, and it comes with the next window"
        )


def functions_to_repair(session: Session) -> list[Skipped]:
    """Tells that functions do not come where a policy replicates data again: windows had no events of them."""
    header = session.reader.header
    had, has = (PolicyScope.parse(one) if one else PolicyScope() for one in (header.before, header.taken))
    if not had.metadata_only or has.metadata_only:
        return []
    reason = f"they do not come with data; if the source has any, repair the database: hive-repl repair {header.scope.database}"
    return [Skipped(header.to_evid, f"functions of {session.database}", reason)]


def with_scope(session: Session, state: ReplicaState) -> ReplicaState:
    """The state with which tables the replica is made from here on, and whom the policy no longer includes."""
    if not _changes_scope(session):
        return state
    scope, before = PolicyScope.parse(session.reader.header.taken), session.state
    for name in [name for name in state.held if not (is_function(name) or scope.includes(name))]:
        state = _released(state, name)
    left = {name: max(before.position(name), object_id(table)) for name, table in leaving(session).items()}
    return replace(state, scope=session.reader.header.taken, left=left | dict(state.left))


def leaving(session: Session) -> dict[str, Table]:
    """The replicas, as they are now, that the policy no longer includes from this dump on, by name."""
    if not (_changes_scope(session) and session.replica.there):
        return {}
    scope, before = PolicyScope.parse(session.reader.header.taken), session.state.scope
    leaves = _kinds_that_leave(PolicyScope.parse(before) if before else scope, scope)
    names = session.target.metastore.table_names(session.database)
    asked = [name for name in names if not scope.includes(name) or leaves]
    found = ((table.tableName.lower(), table) for table in session.target.metastore.tables(session.database, asked))
    return {
        name: table
        for name, table in found
        if (not scope.includes(name) or any(is_of_kind(table) for is_of_kind in leaves)) and is_ours(table, session.identity)
    }


def _changes_scope(session: Session) -> bool:
    """Whether a replica is made with other tables from this dump on, and whether that is known of what it was made with."""
    header, before = session.reader.header, session.state.scope
    unknown = header.kind == "incremental" and before not in ("", header.taken, header.before)
    return bool(header.taken) and header.taken != before and not unknown


def _kinds_that_leave(before: PolicyScope, now: PolicyScope) -> list[Callable[[Table], bool]]:
    """Kinds of replicas that a policy includes no longer, whatever their names."""
    acid, views = before.transactions and not now.transactions, before.materialized_views and not now.materialized_views
    return [*([is_transactional] if acid else []), *([is_replica_of_materialized] if views else [])]


def _released(state: ReplicaState, name: str) -> ReplicaState:
    """Without a hold of a table that the policy no longer includes."""
    return state.at_position(name, state.applied or 0)
