"""Loading a dump of objects: a bootstrap, its continuation, a table alone, or a repair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.records import FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import Refused
from hive_replication.load import operations as op
from hive_replication.load.constraints import FOREIGN, SetConstraints, on_target
from hive_replication.load.execute import Gone
from hive_replication.load.functions import plan_functions
from hive_replication.load.holding import with_held
from hive_replication.load.plan import LanePlan, SegmentPlan
from hive_replication.load.plan_objects import ObjectPlanner
from hive_replication.load.recovery import recovered_state, require_recovery
from hive_replication.load.report import Skipped
from hive_replication.load.screen import screen_files, screen_location, screen_name, screen_partition
from hive_replication.load.session import Session
from hive_replication.load.stamp import changed_on_target
from hive_replication.load.state import is_ours, object_id
from hive_replication.load.transactions import why_unable
from hive_replication.load.view import TargetView, read_view
from hive_replication.load.window import database_image


def load_objects(session: Session, *, repair: bool) -> None:
    """Brings the target's objects to the state of the dump.

    Args:
        session: the load.
        repair: compare and replace also what stands at the dump's event id already.

    Raises:
        Refused: the target is no replica of this source, or a table in the way is not.
    """
    session.require_ours()
    header = session.reader.header
    if _recovered(session):
        session.skipped.append(Skipped(header.to_evid, session.database, "the recovery that the dump is for is done"))
        return
    require_recovery(session)
    repair = repair or bool(header.recovery)
    records = [_screened(session, record) for record in session.reader.tables()]
    whole_database = header.scope.table is None
    if whole_database and not repair and _stands_at(session, header.to_evid):
        session.skipped.append(Skipped(header.to_evid, session.database, f"the target stands at {session.state.applied} already"))
        return
    session.skipped += [Skipped(header.to_evid, name, reason) for name, reason in header.skipped.items()]
    _require_transactions(session, records)
    if not header.recovery:  # which holds a stranger's lane only
        _refuse_strangers(session, records)
    _begin(session, whole_database=whole_database)
    lanes = _lanes(session, records, repair=repair, whole_database=whole_database)
    if whole_database:
        lanes += _functions(session, repair=repair)
    session.carry_out(SegmentPlan(tuple(lanes), _alters(session)), lambda lane, gone: _without(session, lane, gone))
    session.carry_out(SegmentPlan(tuple(_foreign_keys(session, records))), lambda lane, gone: _without(session, lane, gone))
    _finish(session, records, repair=repair, whole_database=whole_database)


def _stands_at(session: Session, evid: int) -> bool:
    """Whether the target has a bootstrap already, or is beyond it; one that failed for some tables is gone on with."""
    state = session.state
    return state.applied is not None and (state.applied > evid or (state.applied == evid and not state.lost))


def _screened(session: Session, record: TableRecord) -> TableRecord:
    screen_name(record.name, "a table")
    screen_location(record.table.sd.location, record.name)
    screen_files(session.target, record.files, record.name)
    return record


def _screened_partition(session: Session, record: PartitionRecord) -> PartitionRecord:
    screen_partition(record.name)
    screen_location(record.partition.sd.location, f"{record.table}/{record.name}")
    screen_files(session.target, record.files, f"{record.table}/{record.name}")
    return record


def _refuse_strangers(session: Session, records: list[TableRecord]) -> None:
    """A bootstrap is refused as a whole, before anything is written, where it would meet a stranger."""
    mapping = session.mapping()
    if not session.exists:
        return
    wanted = {mapping.table(record.name): record.table for record in records}
    for table in session.target.metastore.tables(session.database, wanted):
        if not is_ours(table, session.identity):
            session.conflicts.table(session.reader.header.to_evid, table, wanted[table.tableName.lower()])


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
        image = database_image(session, session.reader.header.source_database)
        if whole_database:
            session.create_database(image, None, checkpoint)
        else:
            session.create_plain_database(image)
    elif whole_database and session.state.applied is None:
        session.write_state(session.taken_over(checkpoint))


def _lanes(session: Session, records: list[TableRecord], *, repair: bool, whole_database: bool) -> list[LanePlan]:
    header, mapping = session.reader.header, session.mapping()
    names = [mapping.table(record.name) for record in records]
    equal = [mapping.table(name) for name in header.equal]
    other_history = _other_history(session, repair=repair)
    exists = _exists_now(session)  # a plan does not create the database
    others = session.target.metastore.table_names(session.database) if whole_database and exists else []
    surplus = [name for name in others if name not in {*names, *equal} and session.target.policy.includes(name)]
    lanes: list[LanePlan] = []
    for record in records:
        name = mapping.table(record.name)
        view = TargetView(session.state)
        if exists:
            view = read_view(session.target.metastore, session.database, session.state, [name], {name: header.scope.partitions})
        session.work.changed += changed_on_target(view, session.database)
        planner = ObjectPlanner(
            mapping,
            view,
            header.to_evid,
            session.reader.directory,
            repair=repair,
            whole=header.scope.partitions is None,
            other_history=other_history,
            conflicts=session.conflicts.policy,
            metadata_only=header.metadata_only,
        )
        partitions = (_screened_partition(session, part) for part in session.reader.partitions(record.name))
        lane, skipped = planner.plan(record, partitions)
        lanes.append(lane)
        session.skipped += skipped
    if whole_database and session.state.applied is None:
        lanes += _aside(session, surplus)
    return lanes + [
        LanePlan(
            (table.tableName.lower(),), session.state.position(table.tableName), (op.DropTable(header.to_evid, table.tableName),)
        )
        for table in session.target.metastore.tables(session.database, surplus)
        if is_ours(table, session.identity) and (object_id(table) <= header.to_evid or other_history)
    ]


def _aside(session: Session, surplus: list[str]) -> Iterator[LanePlan]:
    """What becomes of tables that the source does not have when their database becomes a replica."""
    evid = session.reader.header.to_evid
    for table in session.target.metastore.tables(session.database, surplus):
        if not is_ours(table, session.identity):
            first = session.conflicts.surplus(evid, table)
            if first is not None:
                yield LanePlan((first.table,), 0, (first,))


def _functions(session: Session, *, repair: bool) -> list[LanePlan]:
    records = [_screened_function(session, record) for record in session.reader.functions()]
    found = session.target.metastore.functions(session.database) if _exists_now(session) else []
    by_name = {function.functionName.lower(): function for function in found}
    evid, other = session.reader.header.to_evid, _other_history(session, repair=repair)
    return plan_functions(session.mapping(), TargetView(session.state), records, by_name, evid, other_history=other)


def _screened_function(session: Session, record: FunctionRecord) -> FunctionRecord:
    screen_name(record.name, "a function")
    screen_files(session.target, record.files, record.name)
    return record


def _foreign_keys(session: Session, records: list[TableRecord]) -> list[LanePlan]:
    """Foreign keys, after the tables of both their ends; of tables that stand where the dump does."""
    evid, scope, mapping = session.reader.header.to_evid, session.reader.header.scope, session.mapping()
    dumped = {record.name for record in records}.union(session.reader.header.equal)
    held = {name for one in session.held for name in one.tables}
    names = [mapping.table(record.name) for record in records]
    stand = {} if session.dry else {t.tableName: object_id(t) for t in session.target.metastore.tables(session.database, names)}
    others = session.target.metastore.table_names(session.database) if scope.table and _exists_now(session) else []
    lanes: list[LanePlan] = []
    for name, record in zip(names, records, strict=True):
        wanted = [one for one in record.constraints if one.kind in FOREIGN]
        old = session.state.applied is not None  # then the table may have foreign keys that the source has no longer
        if name in held or not (wanted or old) or not (session.dry or stand.get(name) == evid) or scope.partitions is not None:
            continue
        kept, left = on_target(wanted, mapping, name, lambda parent: parent in dumped or mapping.table(parent) in others)
        session.skipped += [Skipped(evid, op.object_name(session.database, name), reason) for reason in left]
        lanes.append(LanePlan((name,), session.state.position(name), (SetConstraints(evid, name, kept, whole=FOREIGN),)))
    return lanes


def _without(session: Session, lane: LanePlan, gone: list[Gone]) -> LanePlan | None:
    """A lane without files that are nowhere, where later events supersede them: the next window has those."""
    evid, table = session.reader.header.to_evid, lane.names[0]
    source_table = session.reader.header.scope.table or table
    found = {name: session.lookahead.superseded(source_table, name, evid) for _, name in gone}
    superseded = {name: later for name, later in found.items() if later is not None}
    for name, later in superseded.items():
        reason = f"superseded: its files are gone, and event {later} drops, replaces or moves the object away"
        session.skipped.append(Skipped(evid, op.object_name(session.database, table, name), reason))
    if not superseded:
        return None
    kept = tuple(filter(None, (op.without(one, superseded) for one in lane.operations)))
    return LanePlan(lane.names, lane.base, kept, lane.obstacle)


def _other_history(session: Session, *, repair: bool) -> bool:
    """Whether the target's state ids say nothing: in a recovery, and where the source's log ends before what was applied."""
    header, applied = session.reader.header, session.state.applied
    if header.recovery:
        return True
    return repair and header.scope.table is None and applied is not None and applied > header.to_evid


def _recovered(session: Session) -> bool:
    """Whether the dump is of a recovery that is done."""
    header, state = session.reader.header, session.state
    return (
        bool(header.recovery) and not state.recovery and (state.applied, state.applied_hash) == (header.to_evid, header.to_hash)
    )


def _alters(session: Session) -> tuple[op.AlterDatabase, ...]:
    """A recovery sets the database's own properties, too: no event can be relied on to do it."""
    header = session.reader.header
    if not header.recovery:
        return ()
    return (op.AlterDatabase(header.to_evid, "", database_image(session, header.source_database)),)


def _exists_now(session: Session) -> bool:
    return session.exists and session.target.metastore.database(session.database) is not None


def _finish(session: Session, records: list[TableRecord], *, repair: bool, whole_database: bool) -> None:
    """The state after the load. Tables for which a bootstrap failed are held; loading it again does what is missing."""
    header, held = session.reader.header, {name for lane in session.held for name in lane.tables}
    state = session.state
    if header.recovery:
        state = recovered_state(session)
    elif whole_database:
        if _other_history(session, repair=repair):
            state = replace(state, applied=None)
        state = state.raised(header.to_evid, header.to_time, header.to_hash)
        at = {name: there for name, there in state.at.items() if there > header.to_evid}
        holds = {name: hold for name, hold in state.holds.items() if name in held}
        state = with_held(replace(state, at=at, held={}, holds=holds), session.held, nowhere=True)
    elif state.applied is not None and header.scope.partitions is None:
        for name in sorted(set(map(session.mapping().table, (record.name for record in records))) - held):
            state = state.moved(name, max(header.to_evid, state.position(name)))
    session.finish(state, whole=whole_database)
