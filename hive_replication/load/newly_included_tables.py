"""Tables that a window takes into the policy, and those that have left it, after the window's events.

The window's state says already who is awaited and who has left (:mod:`hive_replication.load.policy_change`), so that nothing is
forgotten where a load is killed in between. What is loaded here is held no longer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from hive_replication.dump.format.interface import DumpStore
from hive_replication.dump.format.record_types import GONE
from hive_replication.events import event_records as r
from hive_replication.load.foreign_key_lanes import add_late_key
from hive_replication.load.hidden_tables import Hidden, Shown, at_source
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.constraints import on_target
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.plan import gate
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.load_plan import LanePlan, SegmentPlan
from hive_replication.load.policy_change import functions_to_repair
from hive_replication.load.rebuilt_tables import load_beside, tell
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON, TAKEN_IN_REASON
from hive_replication.load.replica.state import LEFT_MARK, is_ours, object_id
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.load.report import Held
from hive_replication.load.session import Session
from hive_replication.logs import about
from hive_replication.metastore.materialized_views import is_replica_of_materialized
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table
from hive_replication.policy import PolicyScope

_LOG = logging.getLogger(__name__)


def with_joined_tables(session: Session, store: DumpStore, events: Sequence[WindowEvent] = ()) -> Session:
    """Loads the tables that a window takes into the policy, and does what the policy says with those that have left it.

    Args:
        session: a load of a whole database's events, which came as far as it could.
        store: where the dumps of the tables are.
        events: those of the window; of foreign keys among them some point at these tables, which were not there yet.

    Returns:
        The load, in which what was loaded is held no longer.

    Raises:
        Unreachable: a metastore or storage does not answer.
    """
    failed: dict[str, str] = {}
    end = session.reader.header.to_evid
    level = [held for held in session.held if _is_awaited(held) and gate.applied(end, position=held.after)]
    others = {name for held in session.held if held not in level for name in held.tables}
    awaited = {name for held in level for name in held.tables} - others
    for source_table, directory in session.reader.header.joined.items():
        name = session.mapping.table(source_table)
        if name in awaited and directory not in ("", GONE) and load_beside(session, store, source_table, directory, failed):
            session.held[:] = [held for held in session.held if held.tables != (name,)]
            _add_keys_to(session, source_table, events)
    for number, held in enumerate(session.held):
        name = held.tables[0]
        if name in failed and _is_awaited(held):
            left_out = failed[name].startswith(LEFT_OUT_REASON)  # it will not come with another load either
            tell(session, number, failed[name] if left_out else f"{TAKEN_IN_REASON}and could not be loaded: {failed[name]}", name)
    _settle_left(session)
    session.skipped += functions_to_repair(session)
    return session


def _add_keys_to(session: Session, parent: str, events: Sequence[WindowEvent]) -> None:
    """Adds the window's foreign keys to a table that came with it, where nothing later drops them or changes a name of theirs."""
    mapping, held = session.mapping, {name for one in session.held for name in one.tables}
    if not session.dry and session.target.metastore.table(session.database, mapping.table(parent)) is None:
        return  # it is one that is left out
    for number, one in enumerate(events):
        change = one.event
        if not isinstance(change, r.AddConstraints) or not session.includes(change.table):
            continue
        child, later = mapping.table(change.table), events[number + 1 :]
        for key in change.constraints:
            left = key.parent != (mapping.source_database, parent) or child in held
            if left or any(_ends(event, (change.table, parent), key.name) for event in later):
                continue
            kept, _ = on_target((key,), mapping, child, lambda _: True)
            _, told = on_target((key,), mapping, child, lambda _: False)
            if _takes_keys(session, child):
                session.skipped[:] = [it for it in session.skipped if it.evid != change.evid or it.reason not in told]
                for late in () if session.dry else kept:
                    add_late_key(session, change.evid, late)


def _ends(event: WindowEvent, tables: tuple[str, str], key: str) -> bool:
    """Whether an event drops a foreign key, or changes a name of its tables, or nobody knows."""
    change = event.event
    if change is None:
        return event.row.table in tables
    if isinstance(change, r.DropConstraint):
        return change.table == tables[0] and change.constraint == key
    return any(name in tables for one in change.name_changes for name in one.tables)


def _takes_keys(session: Session, name: str) -> bool:
    """Whether a table gets foreign keys of the window; not one that stands further on, and so has what the source has then."""
    if session.dry:
        return True
    child = session.target.metastore.table(session.database, name)
    ours = child is not None and is_ours(child, session.identity)
    return ours and not gate.ahead({name: object_id(child)}, session.reader.header.to_evid)


def _never(_lane: LanePlan, _gone: object) -> None:
    """Such a lane has no files that could be missing."""


def _is_awaited(held: Held) -> bool:
    return held.reason.startswith(TAKEN_IN_REASON)


def _settle_left(session: Session) -> None:
    """Marks or drops the replicas that have left the policy; those that are gone are left out of the state.

    What was taken in again is held, or made anew by now; the rest of such names are tables that the source does not have,
    or that it has hidden.
    """
    left = dict(session.state.left)
    if not left or not session.replica.there:
        return
    found = {one.tableName.lower(): one for one in session.target.metastore.tables(session.database, sorted(left))}
    ours = {name: table for name, table in found.items() if is_ours(table, session.identity)}
    taken = {name for name, table in ours.items() if _is_taken(session, table)}
    stale = {name: max(left[name], object_id(table)) for name, table in ours.items() if name not in taken}
    held = session.state.why_left_out  # such a replica is of the policy again, and stays
    stale |= {name: left[name] for name in taken if session.state.is_stale(ours[name]) and not held(name)}
    all_go, evid = session.target.policy.excluded == "drop", session.reader.header.to_evid
    going = {name for name in stale if name not in session.state.held and (all_go or name in taken)}
    kept = _hidden_or_awaited(session, going & taken)
    going -= kept
    marks = {name: stale.get(name, 0) for name in ours}
    lanes = [
        LanePlan((name,), at, (op.DropTable(evid, name) if name in going else MarkLeft(evid, name, at),))
        for name, at in sorted(marks.items())
        if name in going or (ours[name].parameters or {}).get(LEFT_MARK, "0") != str(at)
    ]
    rest = replace(session, held=[])
    if lanes:
        known = KnownObjects(session.target.metastore, session.database, session.state)
        rest.carry_out(SegmentPlan(tuple(lanes)), _never, known)
    gone = going - {name for held in rest.held for name in held.tables}
    if lanes or stale != left:
        rest.finish(replace(session.state, left={name: at for name, at in stale.items() if name not in gone}), whole=False)


def _hidden_or_awaited(session: Session, names: Iterable[str]) -> set[str]:
    """Those of the replicas that the policy takes in again that stay: their tables are hidden, or are awaited from here on."""
    kept = set[str]()
    for name in sorted(names):
        match at_source(session, name):
            case Hidden(reason):
                _LOG.warning("the replica is not brought up to date: %s", reason, extra=about(session.database, name))
            case Shown():
                _await(session, name)
            case _:
                continue
        kept.add(name)
    return kept


def _await(session: Session, name: str) -> None:
    """Holds a table that the source shows by now, so that the next dump has it."""
    evid, state = session.reader.header.to_evid, session.state
    held = Held((name,), max(evid, state.position(name)), evid, f"{TAKEN_IN_REASON}and comes whole with the next load")
    session.held.append(held)
    session.replica.write_state(state.quarantine(name, held.after, held.reason))


def _is_taken(session: Session, table: Table) -> bool:
    """Whether the policy takes a table in again."""
    taken = session.reader.header.taken
    if not taken or taken != session.state.scope:
        return False
    scope = PolicyScope.parse(taken)
    left_out = (is_transactional(table) and not scope.transactions) or (
        is_replica_of_materialized(table) and not scope.materialized_views
    )
    return scope.includes(table.tableName) and not left_out
