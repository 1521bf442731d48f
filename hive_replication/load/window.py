"""Loading an incremental dump: its events, segment by segment, then the state of the target's database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import filterfalse

from hive_replication.dump.records import EventRecord
from hive_replication.errors import BadRequest, Refused
from hive_replication.events import records as r
from hive_replication.load import operations as op
from hive_replication.load.collapse import collapsed
from hive_replication.load.execute import Gone
from hive_replication.load.hold import UNKNOWN
from hive_replication.load.holding import with_held
from hive_replication.load.lanes import Lane, Segment, WindowEvent, partitions_of, segments, window_event, with_tables
from hive_replication.load.mapping import NameMapping
from hive_replication.load.plan import LanePlan, SegmentPlan
from hive_replication.load.plan_lane import LanePlanner
from hive_replication.load.recovery import require_same_history
from hive_replication.load.renames import settle
from hive_replication.load.report import Held, Skipped
from hive_replication.load.resolutions import adopted_at
from hive_replication.load.screen import screen_files, screen_name, screen_partition
from hive_replication.load.session import Session
from hive_replication.load.stamp import changed_on_target
from hive_replication.load.state import LAST_ID, ReplicaState, is_ours, is_state, object_id
from hive_replication.load.transactions import object_of, why_unable
from hive_replication.load.view import TargetView, read_view
from hive_replication.metastore.types import Database, copy_of


def load_window(session: Session, only: str | None = None) -> None:
    """Applies the events of a dump that the target does not have yet.

    Args:
        session: the load.
        only: bring only the lane of this target table up to the dump's end (before a repair), or None for all.

    Raises:
        BadRequest: the target is no replica, or events between its state and the dump are missing.
        Refused: the target is a replica of another source.
    """
    session.require_ours()
    session.require_released()
    events = [window_event(_screened(session, record)) for record in session.reader.events()]
    events = _since_creation(session, with_tables(events))
    if events is None:
        return
    require_same_history(session)
    _require_reach(session, only)
    untouched: set[str] = set()
    for segment in segments(events):
        _load_segment(session, segment, only, untouched)
    for event in events:
        if not event.row.table and isinstance(event.event, r.OtherEvent):
            _skip(
                session, event, "recorded, not applied by this version" if event.event.known else "unknown event type: recorded"
            )
    if session.table is not None:
        _raise_table(session)
    session.finish(_state_after(session, events, only, untouched), whole=only is None and session.table is None)


def _screened(session: Session, record: EventRecord) -> EventRecord:
    what = f"event {record.notification.evid}"
    if record.notification.table:
        screen_name(record.notification.table, what)
    for group in record.groups:
        if group.table:
            screen_name(group.table, what)
        if group.partition:
            screen_partition(group.partition)
        screen_files(session.target, group.files, what)
    return record


def _since_creation(session: Session, events: list[WindowEvent]) -> list[WindowEvent] | None:
    """Of a target that does not exist: the events from the database's last creation on; None if it is dropped at the end."""
    if session.exists:
        return events
    marks = [n for n, event in enumerate(events) if isinstance(event.event, r.CreateDatabase | r.DropDatabase)]
    if not marks:
        raise BadRequest(f"the target has no database {session.database!r} to apply events to: load a bootstrap dump of it first")
    if isinstance(events[marks[-1]].event, r.DropDatabase):
        _skip(session, events[marks[-1]], "the target does not have the database any more")
        return None
    return events[marks[-1] :]


def _require_reach(session: Session, only: str | None) -> None:
    """Makes sure that no event lies between where the target stands and where the dump begins."""
    header, state = session.reader.header, session.state
    if not session.exists:
        return
    if session.table is not None:
        table = session.target.metastore.table(session.database, session.table)
        if table is None and state.applied is None:
            return  # a table of this name may be created in the window
        stands: int | None = max(object_id(table), state.position(session.table))
    else:
        stands = state.applied if only is None else state.position(only)
    if stands is None:
        raise BadRequest(f"the bootstrap of the target database {session.database!r} is not finished: load its dump again first")
    if header.from_evid > stands:
        raise Refused(
            f"the target {session.database!r} stands at event {stands} and the dump begins after {header.from_evid}: "
            f"the events between are missing; dump FROM {stands}"
        )


def _load_segment(session: Session, segment: Segment, only: str | None, untouched: set[str]) -> None:
    ended = segment.barrier.evid if segment.barrier and isinstance(segment.barrier.event, r.DropDatabase) else None
    if ended is not None and only is not None:
        raise BadRequest(f"the source database was dropped at event {ended}: load the next window before repairing {only!r}")
    view = _view(session, segment.lanes)
    session.work.changed += changed_on_target(view, session.database)
    planner = _Planner(session, view, session.mapping(), ended)
    lanes: list[LanePlan] = []
    for lane in segment.lanes:
        plan, skipped = planner.plan(lane)
        if _left(session, plan, only, ended):
            untouched.update(plan.names)
            continue
        lanes.append(_collapsed(session, plan))
        session.skipped.extend(skipped)
    plan = SegmentPlan(tuple(lanes), _alters(session, segment.alters, only), _barrier(session, segment.barrier))
    session.carry_out(plan, planner.replan)


def _collapsed(session: Session, plan: LanePlan) -> LanePlan:
    """A lane with fewer operations, unless the policy says no, or it is held: then it is brought as far as it goes."""
    held = any(name in session.state.held for name in plan.names)
    return plan if held or not session.target.policy.collapse else collapsed(plan)


@dataclass
class _Planner:
    """Plans the lanes of a segment, and plans them anew where files are gone."""

    session: Session
    view: TargetView
    mapping: NameMapping
    ended: int | None
    lanes: dict[tuple[str, ...], Lane] = field(default_factory=dict[tuple[str, ...], Lane])
    gone: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])

    @cached_property
    def unable(self) -> str:
        """Why the target cannot hold the dump's transactional tables, or ""."""
        return why_unable(self.session.target.metastore) if self.session.reader.header.acid else ""

    def plan(self, lane: Lane) -> tuple[LanePlan, list[Skipped]]:
        session = self.session
        args = lane, self.view, self.mapping, session.includes, self.ended, session.lookahead, self.gone
        header, conflicts = session.reader.header, session.target.policy.conflicts
        settings = {"metadata_only": header.metadata_only, "acid": header.acid}
        planner = LanePlanner(*args, conflicts=conflicts, **settings, unable=self.unable, anew=session.anew)
        plan, skipped = planner.plan()
        self.lanes[plan.names] = lane
        return plan, skipped

    def replan(self, plan: LanePlan, gone: list[Gone]) -> LanePlan | None:
        lane = self.lanes[plan.names]
        tables = {event.evid: event.names[0] for event in lane.events}
        asked = {(one.evid, key): object_of(one, key, tables[one.evid]) for one, key in gone}
        found = {key: self.session.lookahead.superseded(*asked[key], key[0]) for key in asked.keys() - self.gone.keys()}
        superseded = {key: later for key, later in found.items() if later is not None}
        if not superseded:
            return None
        self.gone |= superseded
        again, skipped = self.plan(lane)
        self.session.skipped.extend(one for one in skipped if one not in self.session.skipped)
        return again


def _left(session: Session, plan: LanePlan, only: str | None, ended: int | None) -> bool:
    """Whether a lane is left alone: not the one that a repair needs, or held from before the dump's begin."""
    if only is not None:
        return only not in plan.names
    held = [held for held in session.held if set(held.tables) & set(plan.names)]
    if held and ended is None:
        return True
    waits = ended is None and any(map(session.state.waits, plan.names))
    if not waits and (plan.base >= session.reader.header.from_evid or session.table is not None or ended is not None):
        return False
    reason = next((session.state.held[name] for name in plan.names if name in session.state.held), "held before this window")
    if plan.operations or plan.obstacle:
        failed = max(session.state.holds.get(name, UNKNOWN).evid for name in plan.names) or plan.base + 1
        session.held.append(Held(plan.names, plan.base, failed, reason, tried=False))
    return True


def _view(session: Session, lanes: Iterable[Lane]) -> TargetView:
    mapping = session.mapping()
    wanted: dict[str, set[str]] = {}
    for lane in lanes:
        parts = {name for event in lane.events for name in partitions_of(event.event)}
        for name in filterfalse(r.is_function, lane.names):
            wanted[mapping.table(name)] = parts
    if not session.exists:
        return TargetView(session.state)
    view = read_view(session.target.metastore, session.database, session.state, wanted, wanted)
    for table in view.tables.values() if not session.dry else ():
        settle(session.target.metastore, table)
    taken = [name for name, table in view.tables.items() if session.conflicts.compares(table) or adopted_at(table)]
    if not taken:
        return view
    whole = read_view(session.target.metastore, session.database, session.state, taken, dict.fromkeys(taken))
    return replace(view, partitions={**view.partitions, **whole.partitions})


def _alters(session: Session, events: Sequence[WindowEvent], only: str | None) -> tuple[op.AlterDatabase, ...]:
    """Changes of the database's properties that apply; those of replication's own keys are none."""
    found: list[op.AlterDatabase] = []
    for event in events:
        assert isinstance(event.event, r.AlterDatabase)  # noqa: S101 - so sorted by lanes.segments
        if session.table is not None or only is not None or event.evid <= (session.state.applied or 0):
            _skip(session, event, "applied already, or not of this load")
        elif _visible(event.event.before) == _visible(event.event.after):
            _skip(session, event, "changes nothing but replication's own properties")
        else:
            found.append(op.AlterDatabase(event.evid, "", database_image(session, event.event.after)))
    return tuple(found)


def _barrier(session: Session, event: WindowEvent | None) -> op.CreateDatabase | op.DropDatabase | None:
    if event is None:
        return None
    if session.state.applied is not None and event.evid <= session.state.applied:
        _skip(session, event, f"applied already (state id {session.state.applied})")
        return None
    if isinstance(event.event, r.DropDatabase):
        return op.DropDatabase(event.evid, "")
    if session.exists:
        _skip(session, event, "the target has the database")
        return None
    after = event.event.after if isinstance(event.event, r.CreateDatabase) else None
    return op.CreateDatabase(event.evid, "", database_image(session, after or session.reader.header.source_database))


def database_image(session: Session, database: Database) -> Database:
    """The image of a database for the target; its directory is the metastore's choice."""
    image = copy_of(database)
    image.name, image.locationUri, image.managedLocationUri, image.catalogName = session.database, None, None, None
    image.parameters = _visible(database).parameters
    return image


def _visible(database: Database) -> Database:
    """A database without replication's own properties."""
    shown = copy_of(database)
    shown.parameters = {key: value for key, value in (database.parameters or {}).items() if not is_state(key)}
    return shown


def _raise_table(session: Session) -> None:
    """A table-level load ends by raising that table's id, never the database's."""
    name, evid = str(session.table), session.reader.header.to_evid
    table = session.target.metastore.table(session.database, name)
    if session.dry or session.held or table is None or object_id(table) >= evid or not is_ours(table, session.identity):
        return
    raised = copy_of(table)
    raised.parameters = {**(table.parameters or {}), LAST_ID: str(evid)}
    session.check()
    session.target.metastore.alter_table(session.database, name, raised)


def _state_after(session: Session, events: Sequence[WindowEvent], only: str | None, untouched: set[str]) -> ReplicaState:
    """The database's state after the window: held names stay behind, all others stand at its end."""
    header, state = session.reader.header, session.state
    if state.applied is None:
        return state  # dropped, or never replicated as a whole
    mapping, held = session.mapping(), {name for lane in session.held for name in lane.tables}
    names = {mapping.table(name) for event in events for name in event.names if name and session.includes(name)}
    if session.table is not None:
        names = {session.table}
    elif only is not None:
        names.add(only)
    else:
        names |= {name for name, there in state.at.items() if header.from_evid <= there < header.to_evid}
        state = state.raised(header.to_evid, header.to_time, header.to_hash)
    for name in sorted(names - held - untouched):
        if header.to_evid > state.position(name) or name in state.held:
            state = state.moved(name, max(header.to_evid, state.position(name)))
    return with_held(state, session.held)


def _skip(session: Session, event: WindowEvent, reason: str) -> None:
    session.skipped.append(Skipped(event.evid, f"{event.row.type} {event.row.database}", reason))
