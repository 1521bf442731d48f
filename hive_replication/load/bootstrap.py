"""Loading a dump of objects: a bootstrap, its continuation, a table alone, or a repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.errors import Refused
from hive_replication.load.apply.lane_run import MissingFiles
from hive_replication.load.checked_objects import (
    described_tables,
    validated_function,
    validated_tables,
    why_not_read,
)
from hive_replication.load.foreign_key_lanes import foreign_key_lanes
from hive_replication.load.journal.restored import forgotten, without_lost
from hive_replication.load.kept_with_rebuilt import KeptWithRebuilt
from hive_replication.load.moved_files import following
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.functions import differing_copies, given_up_functions
from hive_replication.load.operations.left_open import end_left, end_snapshots
from hive_replication.load.operations.transactions import replay_policy, why_unable
from hive_replication.load.parts_of_load import PartsOfLoad
from hive_replication.load.plan import gate
from hive_replication.load.plan.bootstrap_functions import plan_functions
from hive_replication.load.plan.lane_batches import in_batches
from hive_replication.load.plan.load_plan import LanePlan, SegmentPlan, Stop
from hive_replication.load.policy_change import refuse_left_out, with_scope
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.fingerprint import changed_on_target
from hive_replication.load.replica.held_lanes import with_held
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import ReplicaState, is_ours, object_id
from hive_replication.load.replica.target_view import KnownObjects, TargetView
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.load.source_history import begin_recovery, left_undone, recovered_state, require_recovery, without_mark
from hive_replication.load.surplus_tables import left_out_lanes, surplus_lanes, surplus_names, unshown_lanes, with_followed
from hive_replication.load.table_lanes import table_lanes
from hive_replication.load.window import database_image

_MOST = 20_000  # tables, partitions and files of a batch


def load_objects(session: Session, *, repair: bool) -> None:
    """Brings the target's objects to the state of the dump.

    Args:
        session: the load.
        repair: compare and replace also what stands at the dump's event id already.

    Raises:
        Refused: the target is no replica of this source, a table in the way is not, or the policy leaves out the dump's table.
    """
    session.require_ours()
    if not repair:  # windows load tables that they take in as repairs
        refuse_left_out(session)
    header = session.reader.header
    if _recovered(session):
        if not session.dry:  # it may have been killed before it did so
            without_lost(session.replica.journal, session.state)
        session.skipped.append(Skipped(header.to_evid, session.database, "the recovery that the dump is for is done"))
        return
    require_recovery(session)
    repair = repair or bool(header.recovery)
    records = described_tables(session)
    whole_database = header.scope.table is None
    if whole_database and not repair and _stands_at(session, header.to_evid):
        session.skipped.append(Skipped(header.to_evid, session.database, f"the target stands at {session.state.applied} already"))
        return
    session.skipped += [Skipped(header.to_evid, name, reason) for name, reason in header.skipped.items()]
    _require_transactions(session, records)
    if not header.recovery:  # which holds only the lane of a foreign table
        _refuse_foreign_tables(session, records)
    alters = _alters(session) if session.exists else ()  # one that is made now has the dump's properties
    stood, resumed = _table_id(session), bool(session.state.checkpoint)
    _begin(session, whole_database=whole_database)
    begin_recovery(session, {session.mapping.table(one.name) for one in records if one.write_ids is not None})
    known = KnownObjects(session.target.metastore, session.database, session.state)
    session.progress = parts = PartsOfLoad(session.progress, session.reader.number_of_objects)
    kept = KeptWithRebuilt(session)
    lanes = kept.watched(_lanes(session, records, known, parts, repair=repair, whole_database=whole_database))
    batches = in_batches(lanes, None if session.dry else _MOST)
    parts.carry_out(batches, lambda batch: _carry_out(session, SegmentPlan(tuple(batch)), known))
    _carry_out(session, SegmentPlan(tuple(keys := foreign_key_lanes(session, records)), alters), known)
    first = _wanted(session, records) if session.state.applied is None else set[str]()  # whose foreign keys are all of the dump
    kept.give_back(first.union(lane.names[0] for lane in keys))
    if header.acid and not (session.dry or session.held):  # a lane that is held may have to go on with its own
        end_snapshots(session.target, session.database, replay_policy(session.mapping), session.replica.check)
    state = _with_lost(session, stood, resumed=resumed)
    _finish(session, state, records, repair=repair, whole_database=whole_database)


def _carry_out(session: Session, plan: SegmentPlan, known: KnownObjects) -> None:
    session.carry_out(plan, lambda lane, gone: _without(session, lane, gone), known)
    known.forget()


def _stands_at(session: Session, evid: int) -> bool:
    """Whether the target has a bootstrap already, or is beyond it; one that failed for some tables is gone on with."""
    return gate.bootstrapped(session.state.applied, evid, failed=bool(session.state.unfinished))


def _refuse_foreign_tables(session: Session, records: list[TableRecord]) -> None:
    """A bootstrap is refused as a whole, before anything is written, where it would meet a foreign table."""
    mapping = session.mapping
    if not session.exists:
        return
    wanted = {mapping.table(record.name): record.table for record in records}
    for table in session.target.metastore.tables(session.database, wanted):
        if not is_ours(table, session.identity):
            adopting = mapping.with_view_text(wanted[table.tableName.lower()])
            session.conflicts.table(session.reader.header.to_evid, table, adopting)


def _require_transactions(session: Session, records: list[TableRecord]) -> None:
    """Refuses transactional tables, before anything is written, where the target cannot hold them."""
    names = [record.name for record in records if record.write_ids is not None]
    unable = why_unable(session.target.metastore) if names else ""
    if unable:
        raise Refused(f"the dump has transactional tables ({', '.join(names)}): {unable}")


def _begin(session: Session, *, whole_database: bool) -> None:
    """The target database exists, and says that a bootstrap is under way where it is one."""
    checkpoint = session.reader.directory if whole_database else ""
    if not session.exists:
        session.create_database(database_image(session, session.reader.header.source_database), None, checkpoint)
    elif whole_database and session.state.applied is None:
        if not session.dry:
            session.replica.journal.end()  # it tells of an earlier database of the name, if of any
            if not session.target.metastore.table_names(session.database):  # it was dropped, and made by hand
                end_left(session.target, session.database, replay_policy(session.mapping), session.replica.check)
        session.replica.write_state(session.taken_over(session.state, checkpoint))
    elif _is_marked(session):
        session.replica.write_state(replace(session.state, checkpoint=session.reader.directory, obstacle=""))


def _is_marked(session: Session) -> bool:
    """Whether the database's state names the dump until the load is done: what else is loaded does it first if it is killed.

    A recovery has a token of its own. Partitions alone change nothing that has no state id.
    """
    header, scope = session.reader.header, session.reader.header.scope
    over = session.state.applied is not None and not header.recovery and not session.dry
    return over and scope.partitions is None and session.table in (None, scope.table)


def _lanes(
    session: Session, records: list[TableRecord], known: KnownObjects, parts: PartsOfLoad, *, repair: bool, whole_database: bool
) -> Iterator[LanePlan]:
    """All lanes, each planned when it is asked for."""
    header, mapping = session.reader.header, session.mapping
    other_history = _other_history(session, repair=repair)
    exists = session.replica.there  # a plan does not create the database
    settled = _wanted(session, records) | left_undone(session)
    surplus = surplus_names(session, settled) if whole_database else []
    known.announce(mapping.table(record.name) for record in records)
    for record in parts.reading(validated_tables(session)):
        name = mapping.table(record.name)
        if reason := why_not_read(session, record.table, record.files, record.name):
            yield LanePlan((name,), session.state.position(name), (), Stop(header.to_evid, reason, refused=True))
            continue
        view = known.view({name: ()}) if exists else TargetView(session.state)
        session.tally.found_changed(changed_on_target(view, session.database))
        most = None if session.dry else _MOST
        for lane, skipped in table_lanes(session, record, view, parts, repair=repair, other_history=other_history, most=most):
            session.skipped += skipped
            yield lane
            if any(name in held.tables for held in session.held):
                break  # what is left of it comes with the next load of the dump
    if whole_database:
        yield from unshown_lanes(session, settled)
        yield from surplus_lanes(session, surplus, other_history=other_history)
        yield from _functions(session, repair=repair)
    else:
        yield from left_out_lanes(session, _wanted(session, records))


def _wanted(session: Session, records: list[TableRecord]) -> set[str]:
    """Target tables that a dump has, or leaves out since they are equal."""
    return {session.mapping.table(name) for name in (*session.reader.header.equal, *(record.name for record in records))}


def _functions(session: Session, *, repair: bool) -> list[LanePlan]:
    records = [validated_function(record) for record in session.reader.functions()]
    found = session.target.metastore.functions(session.database) if session.replica.there else []
    there = {function.functionName.lower(): function for function in found}
    evid, other = session.reader.header.to_evid, _other_history(session, repair=repair)
    held = {one.name: reason for one in records if (reason := why_not_read(session, one.function, one.files, one.name))}
    view, mapping = TargetView(session.state), session.mapping
    gone = given_up_functions(session.target, session.database, found)
    again = differing_copies(session.target.storage, mapping, records, there, evid) if repair else frozenset[str]()
    lanes = plan_functions(mapping, view, records, there, evid, other_history=other, outside=held, given_up=gone, differing=again)
    return [lane for lane in lanes if lane.names[0] not in left_undone(session)]


def _without(session: Session, lane: LanePlan, gone: list[MissingFiles]) -> LanePlan | None:
    """A lane without files that are nowhere, where later events supersede them: the next window has those."""
    evid, table = session.reader.header.to_evid, lane.names[0]
    source_table = session.reader.header.scope.table or table
    found = {name: session.lookahead.superseded(source_table, name, evid) for _, name in gone}
    superseded = {name: later for name, later in found.items() if later is not None}
    for name, later in superseded.items():
        reason = f"superseded: its files are gone, and event {later} drops, replaces or moves the object away"
        session.skipped.append(Skipped(evid, object_name(session.database, table, name), reason))
    if not superseded:
        return following(session, lane, {(one.evid, name): (source_table, name) for one, name in gone})
    kept = tuple(filter(None, (one.without(superseded) for one in lane.operations)))
    return replace(lane, operations=kept)


def _other_history(session: Session, *, repair: bool) -> bool:
    """Whether the target's state ids say nothing: in a recovery, and where the source's log ends before what was applied."""
    header, applied = session.reader.header, session.state.applied
    if header.recovery:
        return True
    return repair and header.scope.table is None and applied is not None and not covers(header.to_evid, applied)


def _recovered(session: Session) -> bool:
    """Whether the dump is of a recovery that is done."""
    header, state = session.reader.header, session.state
    return (
        bool(header.recovery) and not state.recovery and (state.applied, state.applied_hash) == (header.to_evid, header.to_hash)
    )


def _alters(session: Session) -> tuple[op.AlterDatabase, ...]:
    """A load of a whole database sets its own properties, too: it may have those of an earlier dump, or lack what events said."""
    header = session.reader.header
    if header.scope.table is not None:
        return ()
    return (op.AlterDatabase(header.to_evid, "", database_image(session, header.source_database)),)


def _finish(session: Session, state: ReplicaState, records: list[TableRecord], *, repair: bool, whole_database: bool) -> None:
    """The state after the load. Tables for which a bootstrap failed are held; loading it again does what is missing."""
    header, held = session.reader.header, {name for lane in session.held for name in lane.tables}
    made = _wanted(session, records) if whole_database else set[str]()
    left = {name: evid for name, evid in state.left.items() if name not in made}
    if header.recovery:
        state = with_scope(session, replace(recovered_state(session), left=left))
    elif whole_database:
        if _other_history(session, repair=repair):
            state = replace(state, applied=None, at={})
        state = state.advanced(header.to_evid, header.to_time, header.to_hash)
        quarantines = {name: one for name, one in state.quarantines.items() if name in held}
        at = gate.ahead(state.at, header.to_evid)
        state = replace(state, at=at, held={}, quarantines=quarantines, left=left, undone=None, checkpoint="")
        state = with_scope(session, state)
        state = with_followed(session, with_held(state, session.held, lost=True))
    elif state.applied is not None and header.scope.partitions is None:
        # What a dump leaves out and the target does not have is no more to wait for than what it brings.
        for name in sorted(set(map(session.mapping.table, (*header.skipped, *(record.name for record in records)))) - held):
            state = state.at_position(name, max(header.to_evid, state.position(name)))
        state = without_mark(state, session.reader.directory)
    before, replica = session.state.applied, session.replica
    restored = whole_database and not session.dry and forgotten(session.target.storage, replica.location, before) is not None
    if restored:
        session.journal().makes_good()
    session.finish(state, whole=whole_database)
    if restored:
        without_lost(replica.journal, session.state)


def _table_id(session: Session) -> int | None:
    """State id of the table that a load is of; None where it is not there, or the load is of a database."""
    table = session.table and session.target.metastore.table(session.database, session.table)
    return object_id(table) if table else None


def _with_lost(session: Session, stood: int | None, *, resumed: bool) -> ReplicaState:
    """The state after the load of a table that failed: what is between two states is nowhere that events could go on from.

    It was being made anew, or was dropped for that; or it has the dump's data, and lacks what comes after them. What a load that
    was killed has left of it before this one, nobody knows.
    """
    if session.state.applied is None or session.table is None or session.dry or not session.held:
        return session.state
    stands, evid = _table_id(session), session.reader.header.to_evid
    lost = resumed or stands == 0 or (stands != stood and stands in (None, evid))
    return with_held(session.state, session.held, lost=True) if lost else session.state
