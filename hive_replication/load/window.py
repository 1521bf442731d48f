"""Loading an incremental dump: its events, segment by segment, then the state of the target's database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse

from hive_replication.dump.source import REMOTE
from hive_replication.errors import BadRequest, Refused
from hive_replication.events import event_records as r
from hive_replication.events.partition_filters import partitions_of
from hive_replication.load.apply.lane_run import MissingFiles
from hive_replication.load.apply.renames import mended
from hive_replication.load.moved_files import following
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import adopted_at
from hive_replication.load.operations.transactions import object_of, why_unable
from hive_replication.load.plan import gate
from hive_replication.load.plan.collapse import collapsed
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import Lane, Segment, WindowEvent, segments, with_tables
from hive_replication.load.plan.load_plan import LanePlan, SegmentPlan
from hive_replication.load.policy_change import awaited, leaving, newcomer, with_scope
from hive_replication.load.replica.drops import is_placeholder
from hive_replication.load.replica.failover_marks import READ_ONLY
from hive_replication.load.replica.fingerprint import changed_on_target
from hive_replication.load.replica.held_lanes import looked_for, with_held
from hive_replication.load.replica.held_retries import NO_HISTORY
from hive_replication.load.replica.state import ReplicaState, is_state, object_id
from hive_replication.load.replica.target_view import KnownObjects, TargetView
from hive_replication.load.report import Held, Skipped
from hive_replication.load.session import Session
from hive_replication.load.source_history import require_same_history
from hive_replication.load.window_events import decoded_events, without_late
from hive_replication.metastore.types import Database, Table, copy_of, is_remote


def load_window(session: Session, only: str | None = None, events: Sequence[WindowEvent] | None = None) -> Sequence[WindowEvent]:
    """Applies the events of a dump that the target does not have yet.

    Args:
        session: the load.
        only: bring only the lane of this target table up to the dump's end (before a repair), or None for all.
        events: those of the dump, where an earlier pass of this load has decoded them.

    Returns:
        The events of the dump.

    Raises:
        BadRequest: the target is no replica, or events between its state and the dump are missing.
        Refused: the target is a replica of another source.
    """
    session.require_ours()
    session.require_released()
    decoded = list(decoded_events(session)) if events is None else events
    header = session.reader.header
    session.skipped += [Skipped(header.to_evid, name, reason) for name, reason in header.skipped.items()]
    events = _since_creation(session, with_tables(decoded, session.begun))
    if events is None:
        return decoded
    require_same_history(session)
    _require_reach(session, only)
    untouched: set[str] = set()
    plans: list[LanePlan] = []
    for segment in segments(events):
        plans += _load_segment(session, without_late(session, segment), only, untouched)
    session.held.extend(awaited(session, plans, whole=only is None and session.table is None))
    for event in events:
        if not event.row.table and isinstance(event.event, r.OtherEvent):
            known = event.event.known
            _skip(session, event, "recorded, not applied by this version" if known else "unknown event type: recorded")
    if session.table is not None and not session.held:  # a table-level load raises that table's id, never the database's
        session.replica.raise_table(session.table, header.to_evid, session.identity)
    session.finish(_state_after(session, events, only, untouched, plans), whole=only is None and session.table is None)
    return decoded


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
    if not gate.applied(header.from_evid, position=stands):
        raise Refused(
            f"the target {session.database!r} stands at event {stands} and the dump begins after {header.from_evid}: "
            f"the events between are missing; dump FROM {stands}"
        )


def _load_segment(session: Session, segment: Segment, only: str | None, untouched: set[str]) -> list[LanePlan]:
    """Loads a segment; its lanes but for those that are left alone."""
    ended = segment.barrier.evid if segment.barrier and isinstance(segment.barrier.event, r.DropDatabase) else None
    if ended is not None and only is not None:
        raise BadRequest(f"the source database was dropped at event {ended}: load the next window before repairing {only!r}")
    known = KnownObjects(session.target.metastore, session.database, session.state, _restored(session))
    view = _view(session, known, segment.lanes)
    session.tally.found_changed(changed_on_target(view, session.database))
    planner = _Planner(session, _settings(session, segment, view, only, ended))
    lanes: list[LanePlan] = []
    for lane in segment.lanes:
        plan, skipped = planner.plan(lane)
        if _left(session, plan, only, ended):
            untouched.update(plan.names)
            continue
        lanes.append(_collapsed(session, plan))
        session.skipped.extend(skipped)
    plan = SegmentPlan(tuple(lanes), _alters(session, segment.alters, only), _barrier(session, segment.barrier))
    session.carry_out(plan, planner.replan, known)
    return lanes


def _collapsed(session: Session, plan: LanePlan) -> LanePlan:
    """A lane with fewer operations, unless the policy says no, or it is held: then it is brought as far as it goes.

    A held one of which drops alone are left is dropped: nothing matters any more of why it was held.
    """
    if not session.target.policy.collapse:
        return plan
    held, made = any(name in session.state.held for name in plan.names), collapsed(plan)
    return plan if held and not all(isinstance(one, op.DropTable) for one in made.operations) else made


def _settings(session: Session, segment: Segment, view: TargetView, only: str | None, ended: int | None) -> LaneSettings:
    header, whole = session.reader.header, session.table is None and only is None
    return LaneSettings(
        view,
        session.mapping,
        session.includes,
        ended,
        session.lookahead,
        session.target.policy.conflicts,
        metadata_only=header.metadata_only,
        acid=header.acid,
        unable=why_unable(session.target.metastore) if header.acid and segment.lanes else "",
        rebuilt=session.rebuilt,
        newcomer=newcomer(session),
        undumped=lambda names: "" in (found := [header.joined[name] for name in names if name in header.joined]) or not found,
        leaving=leaving(session) if whole and segment.lanes else (),
        filters=header.filters,
    )


@dataclass
class _Planner:
    """Plans the lanes of a segment, and plans them again where files are gone."""

    session: Session
    settings: LaneSettings
    lanes: dict[tuple[str, ...], Lane] = field(default_factory=dict[tuple[str, ...], Lane])
    gone: dict[tuple[int, str], int] = field(default_factory=dict[tuple[int, str], int])

    def plan(self, lane: Lane) -> tuple[LanePlan, list[Skipped]]:
        plan, skipped = LanePlanner(lane, self.settings, self.gone).plan()
        self.lanes[plan.names] = lane
        return plan, skipped

    def replan(self, plan: LanePlan, gone: list[MissingFiles]) -> LanePlan | None:
        lane = self.lanes[plan.names]
        tables = {event.evid: event.names[0] for event in lane.events}
        asked = {(one.evid, key): object_of(one, key, tables[one.evid]) for one, key in gone}
        found = {key: self.session.lookahead.superseded(*asked[key], key[0]) for key in asked.keys() - self.gone.keys()}
        superseded = {key: later for key, later in found.items() if later is not None}
        if not superseded:
            return following(self.session, plan, asked)
        self.gone |= superseded
        again, skipped = self.plan(lane)
        known = set(self.session.skipped)
        self.session.skipped.extend(one for one in dict.fromkeys(skipped) if one not in known)
        return replace(again, moves=plan.moves)


def _left(session: Session, plan: LanePlan, only: str | None, ended: int | None) -> bool:
    """Whether a lane is left alone: not the one that a repair needs, or held from before the dump's begin."""
    if only is not None and only not in plan.names:
        return True
    if ended is None and any(set(held.tables) & set(plan.names) for held in session.held):
        return True
    # A repair ends the hold of its table, and of those that were undone with it.
    waits = ended is None and any(map(session.state.waits, plan.names)) and not (only and session.state.waits(only))
    reached = bool(gate.applied(session.reader.header.from_evid, position=plan.base))
    if not waits and (reached or session.table is not None or ended is not None):
        return False
    told = session.state.held.keys() - session.state.coming  # why a table is awaited is of that one alone
    first = min(told.intersection(plan.names), key=lambda name: (not session.state.waits(name), name), default="")
    reason = session.state.held.get(first, "held before this window")
    # Where it does nothing, too: a name that it joins to one that stands behind is not to be taken for level.
    if plan.operations or plan.stop or not gate.applied(session.reader.header.to_evid, position=plan.base):
        failed = max(session.state.quarantines.get(name, NO_HISTORY).evid for name in plan.names) or plan.base + 1
        session.held.append(Held(plan.names, plan.base, failed, reason, tried=False, table=first))
    return True


def _restored(session: Session) -> Callable[[Table], Table | None]:
    """Ends renames and drops in the middle of which a load was killed."""
    return (lambda table: None if is_placeholder(table) else table) if session.dry else partial(mended, session.target.metastore)


def _view(session: Session, known: KnownObjects, lanes: Iterable[Lane]) -> TargetView:
    mapping = session.mapping
    wanted: dict[str, set[str] | None] = {}
    for lane in lanes:
        parts = {name for event in lane.events for name in partitions_of(event.event)}
        for name in filterfalse(r.is_function, lane.names):
            wanted[mapping.table(name)] = parts
    if not session.exists:
        return TargetView(session.state)
    view = known.view(wanted)
    taken = [name for name, table in view.tables.items() if session.conflicts.compares(table) or adopted_at(table)]
    return known.view({**wanted, **dict.fromkeys(taken)}) if taken else view


def _alters(session: Session, events: Sequence[WindowEvent], only: str | None) -> tuple[op.AlterDatabase, ...]:
    """The last change of the database's properties that applies: it tells them all. Those of replication's own keys are none."""
    found: list[tuple[WindowEvent, Database]] = []
    for event in events:
        assert isinstance(event.event, r.AlterDatabase)  # noqa: S101 - so sorted by lanes.segments
        if session.table is not None or only is not None or gate.applied(event.evid, position=session.state.applied or 0):
            _skip(session, event, "applied already, or not of this load")
        elif visible(event.event.before) == visible(event.event.after):
            _skip(session, event, "changes nothing but replication's own properties")
        else:
            found.append((event, event.event.after))
    for event, _ in found[:-1]:
        _skip(session, event, f"event {found[-1][0].evid} sets all properties of the database again")
    return tuple(op.AlterDatabase(event.evid, "", database_image(session, after)) for event, after in found[-1:])


def _barrier(session: Session, event: WindowEvent | None) -> op.CreateDatabase | op.DropDatabase | None:
    if event is None:
        return None
    drop = isinstance(event.event, r.DropDatabase)  # in a load of one table, its drop is an event of its own
    not_due = session.table is not None and "not of this load" if drop else session.exists and "the target has the database"
    if reason := gate.applied(event.evid, position=session.state.applied or 0) or not_due:
        _skip(session, event, reason)
        return None
    if drop:
        return op.DropDatabase(event.evid, "")
    after = (event.event.after if isinstance(event.event, r.CreateDatabase) else None) or session.reader.header.source_database
    if is_remote(after):
        _skip(session, event, f"not replicated: {REMOTE}")
        return None
    return op.CreateDatabase(event.evid, "", database_image(session, after))


def database_image(session: Session, database: Database) -> Database:
    """The image of a database for the target; its directory is the metastore's choice."""
    image = copy_of(database)
    image.name, image.locationUri, image.managedLocationUri, image.catalogName = session.database, None, None, None
    image.parameters = visible(database).parameters
    return image


def visible(database: Database) -> Database:
    """A database without the properties that each side has for itself."""
    shown = copy_of(database)
    shown.parameters = {
        key: value for key, value in (database.parameters or {}).items() if not (is_state(key) or key == READ_ONLY)
    }
    return shown


def _state_after(
    session: Session, events: Sequence[WindowEvent], only: str | None, untouched: set[str], plans: Iterable[LanePlan]
) -> ReplicaState:
    """The database's state after the window: held names stay behind, all others stand at its end.

    A replica whose table is left out is held as long as it is there, also where the window has nothing of it.
    """
    header, state = session.reader.header, session.state
    if state.applied is None:
        return state  # dropped, or never replicated as a whole
    mapping, held = session.mapping, {name for lane in session.held for name in lane.tables}
    names = {mapping.table(name) for event in events for name in event.names if name and session.includes(name)}
    if session.table is not None:
        names = {session.table}
    elif only is not None:
        names.add(only)
    else:
        names |= gate.reached(state.at, header.from_evid, header.to_evid)
        state = state.advanced(header.to_evid, header.to_time, header.to_hash)
    changed = {name for plan in plans if plan.operations for name in plan.names}
    for name in sorted(names - held - untouched):
        position = state.position(name)
        if gate.ahead({name: position}, header.to_evid):
            continue  # the window, which is loaded once more, says nothing new of it
        if state.why_left_out(name) and name not in changed:
            state = state.quarantine(name, max(header.to_evid, position), state.held[name])
        elif name in state.held or not gate.applied(header.to_evid, position=position):
            state = state.at_position(name, max(header.to_evid, position))
    if session.table is None and only is None:
        state = with_scope(session, looked_for(state, session.state.applied, header.to_evid))
    return with_held(state, session.held, window=header.to_evid)


def _skip(session: Session, event: WindowEvent, reason: str) -> None:
    session.skipped.append(Skipped(event.evid, f"{event.row.type} {event.row.database}", reason))
