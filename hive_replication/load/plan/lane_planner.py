"""One lane of a window against the target's state: which of its events apply, by the rule of the gate (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field, replace

from hive_replication.dump.source import why_skipped
from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.events.redumps import why_redump
from hive_replication.load.plan import gate
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.plan.event_traits import needs_transactions, of_no_type, of_no_view, renames, table_of, why_passed_over
from hive_replication.load.plan.function_events import GONE, plan_function
from hive_replication.load.plan.handlers import tables
from hive_replication.load.plan.handlers.by_event_type import handlers
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica, require_within
from hive_replication.load.plan.lane_incarnations import LaneIncarnations
from hive_replication.load.plan.lane_views import with_later_texts
from hive_replication.load.plan.lanes import Lane, WindowEvent
from hive_replication.load.plan.load_plan import LanePlan, planned_stop
from hive_replication.load.plan.superseded import Lookahead, NoLookahead
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.state import is_ours, object_id
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import Skipped
from hive_replication.metastore.partition_filters import why_unfit
from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Table
from hive_replication.policy.model import ConflictPolicy
from hive_replication.policy.scope import PartitionFilters

_NO_ACID = "transactional tables are not in the dump"
_ATTACHED = (r.AddConstraints, r.DropConstraint, r.UpdateStatistics, r.DeleteStatistics, tx.Compaction)
_WITH_TABLE = "the target does not have the table, with which its constraints and statistics come"
_GONE = "the table is gone at event {}"
_COMES = "the table was taken into the policy, and comes whole after the window's events"


@dataclass(frozen=True)
class LaneSettings:
    """What the plans of all lanes of a segment have in common.

    Args:
        view: the target's objects.
        mapping: names and paths.
        includes: whether a source table's name belongs to the dump's scope.
        ended: event id of the database's drop at the end of the segment, which ends all incarnations; None without one.
        lookahead: what becomes of objects after the window.
        conflicts: the policy's setting.
        metadata_only: whether the dump has neither data nor partitions.
        acid: whether it has transactional tables and transactions.
        unable: why the target cannot hold such, or "".
        rebuilt: target tables that this load has rebuilt, so that they stand ahead of the window.
        newcomer: whether a source table's name belongs to the dump's scope, and was not of what the replica was made with.
        undumped: whether a table that has to come whole, under one of these source names, has no dump beside the window.
        leaving: target tables that the policy includes no longer from the dump on, which are marked at its end.
        filters: which partitions belong to the dump's scope.
    """

    view: TargetView
    mapping: NameMapping
    includes: Callable[[str], bool]
    ended: int | None = None
    lookahead: Lookahead = field(default_factory=NoLookahead)
    conflicts: ConflictPolicy = "refuse"
    metadata_only: bool = False
    acid: bool = False
    unable: str = ""
    rebuilt: Container[str] = ()
    newcomer: Callable[[str], bool] = lambda _: False
    undumped: Callable[[Collection[str]], bool] = lambda _: False
    leaving: Container[str] = ()
    filters: PartitionFilters = field(default_factory=PartitionFilters)


class LanePlanner:
    """Plans one lane.

    Args:
        lane: its events.
        settings: those of its segment.
        gone: events (with partition name or "") whose files are nowhere or have no place, each with the one that supersedes it.
        early: whether tables that go away in the window stay as they are until then, so that nothing is asked of their events.
            It is always so of a held lane: nothing matters any more of why it was held.
    """

    def __init__(
        self, lane: Lane, settings: LaneSettings, gone: Mapping[tuple[int, str], int] | None = None, *, early: bool = False
    ) -> None:
        lane = with_later_texts(lane, settings.mapping.why_held)
        self._lane, self._settings, self._gone = lane, settings, gone or {}
        self._early = early or any(settings.mapping.table(name) in settings.view.state.held for name in lane.names)
        self._view, self._mapping, self._includes = settings.view, settings.mapping, settings.includes
        self._incarnations = LaneIncarnations(
            lane,
            settings.mapping,
            settings.includes,
            settings.view.state.coming,
            settings.ended,
            settings.filters,
            acid=settings.acid,
            left_out=self._why_skipped,
            state_id=self._state_id,
            undumped=settings.undumped,
        )
        self._replicas: dict[int, Replica] = {}
        self._planning = LanePlanning(
            settings.view,
            settings.mapping,
            settings.lookahead,
            any(change.renames for event in lane.events if event.event for change in event.event.name_changes),
            self._gone,
            Conflicts(settings.conflicts, settings.mapping.source, settings.mapping.target_database),
            settings.metadata_only,
            includes=settings.includes,
            brought=self._incarnations.brought,
        )
        self._planning.partition_incarnations.update(self._incarnations.partitions)

    def plan(self) -> tuple[LanePlan, list[Skipped]]:
        """The lane's operations, and what is skipped."""
        plan, skipped = self._planned()
        if plan.stop is None or self._early or all(one.dropped is None for one in self._incarnations.all()):
            return plan, skipped
        early = LanePlanner(self._lane, self._settings, self._gone, early=True).plan()
        evids = [plan.stop.evid, *(one.dropped for one in self._incarnations.all() if one.dropped)]
        return early if early[0].stop is None or early[0].stop.evid > max(evids) else (plan, skipped)

    def _planned(self) -> tuple[LanePlan, list[Skipped]]:
        stop = None
        for event in self._lane.events:
            try:
                self._plan_event(event)
            except Exception as error:  # noqa: BLE001 - raised again, or told as the reason of the lane
                stop = planned_stop(event.evid, error)
                break
        names = tuple(sorted({self._mapping.table(name) for name in self._lane.names if self._includes(name)}))
        base = min((self._view.state.position(name) for name in names), default=self._view.state.applied or 0)
        coming = tuple(sorted({self._mapping.table(one.names[-1][0]) for one in self._incarnations.all() if self._comes(one)}))
        return LanePlan(names, base, tuple(self._planning.operations), stop, coming=coming), self._planning.skipped

    def _plan_event(self, event: WindowEvent) -> None:
        if event.event is None:
            self._plan_unreadable(event)
            return
        if self._settings.unable and needs_transactions(event.event):
            raise LaneStopped(self._settings.unable, refused=True)
        what = f"{event.row.type} {event.event.names[0]}"
        if isinstance(event.event, r.FunctionEvent):
            plan_function(self._planning, event, self._incarnations.tables[event.evid].dropped, early=self._early)
            return
        if isinstance(event.event, tx.TransactionEvent):
            self._plan_transaction(event, event.event)
            return
        incarnation = self._incarnations.tables[event.evid]
        replica = self._replica(incarnation)
        reason = of_no_type(event) or self._left_out(event, replica, incarnation)
        reason = reason or (_COMES if self._comes(incarnation) else self._gated(event, replica, incarnation))
        reason = reason or of_no_view(event.event, replica)
        reason = reason or why_passed_over(event, self._incarnations.partitions, self._settings.lookahead, self._settings.filters)
        if reason:
            self._planning.skip(event.evid, what, reason)
            self._drop_former(event, replica)
        elif not replica.present and incarnation.dropped is not None:
            self._planning.skip(event.evid, what, f"{_GONE.format(incarnation.dropped)}, and the target does not have it")
        elif replica.present or isinstance(event.event, r.CreateTable):
            self._handle(event, replica, incarnation)
        elif isinstance(event.event, tx.AllocateWriteIds):
            reason = "the target does not have the table; where the transaction creates it, its commit gives the write id"
            self._planning.skip(event.evid, what, reason)
        elif isinstance(event.event, _ATTACHED):
            self._planning.skip(event.evid, what, _WITH_TABLE)
        else:
            self._lacking(event, replica)

    def _plan_unreadable(self, event: WindowEvent) -> None:
        """Nobody knows what an event did; it does not matter where its table or function is dropped in the window.

        Raises:
            LaneStopped: it matters. One that may have been a rename always does: it names one of two tables only.
        """
        dropped = self._incarnations.tables[event.evid].dropped
        if not event.row.table or dropped is None or (event.row.type == "ALTER_TABLE" and not event.stays):
            raise LaneStopped(event.error)
        gone = GONE if r.is_function(event.row.table) else _GONE
        self._planning.skip(event.evid, f"{event.row.type} {event.row.table}", gone.format(dropped))

    def _gated(self, event: WindowEvent, replica: Replica, incarnation: Incarnation) -> str:
        """Why an event of a table does not apply, or "".

        A rename is applied where both of its names stand beyond it, as far as they are of the policy: the table that leaves the
        one comes back under the other. What is there of a table when it goes, goes, wherever its name stands: it may have come
        under it by such a rename, after another replica of it, which a repair had made there, went.
        """
        if replica.present and incarnation.dropped == event.evid:
            return ""
        names = [name for name in event.names if self._includes(name)] if renames(event) else event.names[:1]
        position = min(self._view.state.position(self._mapping.table(name)) for name in names or event.names)
        return gate.applied(event.evid, table_id=replica.state_id, position=position)

    def _comes(self, incarnation: Incarnation) -> bool:
        """Whether a table was taken into the policy, and comes whole: the log does not tell what it holds."""
        if incarnation.dropped is not None or incarnation.created is not None or self._replica(incarnation).found_as:
            return False
        state, names = self._view.state, [name for name, _ in incarnation.names]
        awaited = state.coming.union(state.released_names())  # an undo may have taken back what came whole
        if any(self._mapping.table(name) in awaited for name in names):
            return True
        if incarnation.entered is None:
            return self._settings.newcomer(names[0])
        return not gate.applied(incarnation.entered, position=state.position(self._mapping.table(names[0])))

    def _left_out(self, event: WindowEvent, replica: Replica, incarnation: Incarnation) -> str:
        """Why an event is of a table that is not replicated, or "" also where its replica goes with it.

        Raises:
            LaneStopped: the target has a replica of the time when the table could be, which would stay as it was.
        """
        table = table_of(event.event)
        reason = _NO_ACID if isinstance(event.event, tx.AllocateWriteIds) and not self._settings.acid else ""
        reason = reason or (self._why_skipped(table) if table else "") or self._view.state.why_left_out(replica.found_as)
        if replica.present and incarnation.dropped == event.evid:
            return ""
        if not (reason and replica.present) or replica.view or self._gated(event, replica, incarnation):
            return reason  # a view, which has no data, is of a materialized one, which the policy does not take any more
        if incarnation.dropped is None and replica.name not in self._settings.leaving:
            raise LaneStopped(f"{LEFT_OUT_REASON}{reason}", refused=True, table=replica.name)
        return reason

    def _why_skipped(self, table: Table) -> str:
        return why_skipped(table, metadata_only=self._settings.metadata_only, acid=self._settings.acid)

    def _plan_transaction(self, event: WindowEvent, ended: tx.TransactionEvent) -> None:
        """The end of a transaction: of each table that it wrote to it is due or not, and it ends where it is due at all."""
        lane, first = self._planning, event.names[0]
        due = not ended.tables and not gate.applied(event.evid, position=self._view.state.position(first))
        later = not gate.applied(event.evid, position=self._view.state.applied or 0)
        for name in ended.tables:
            incarnation = self._incarnations.written[event.evid, name]
            replica = self._replica(incarnation)
            reason = lane.applied(event.evid, name, replica) if self._settings.acid else _NO_ACID
            reason = reason or (_COMES if self._comes(incarnation) else "")
            # A table that stands ahead of the window was rebuilt: what wrote to it before has to end on the target, too.
            due |= self._settings.acid and (later or self._mapping.table(name) in self._settings.rebuilt)
            if reason:
                lane.skip(event.evid, f"{event.row.type} {name}", reason)
                continue
            due = True
            if incarnation.dropped and (self._early or replica.passed or not replica.present or incarnation.gone_by(event.evid)):
                lane.skip(event.evid, f"{event.row.type} {name}", _GONE.format(incarnation.dropped))
                continue
            if event.error and incarnation.dropped is None:
                raise LaneStopped(event.error)
            require_within(event)
            if replica.present:
                lane.written[event.evid, name] = replica
                lane.going |= {(event.evid, name)} if incarnation.dropped is not None else set()
            elif isinstance(ended, tx.CommitTransaction) and any(one.table == name for one in ended.writes):
                lane.lacking(event, replica, name)
        if due and self._settings.acid:
            shown = lane.written.get((event.evid, first)) or Replica(self._mapping.table(first), False, 0, "")
            handlers()[event.row.type](lane, event, shown)

    def _handle(self, event: WindowEvent, replica: Replica, incarnation: Incarnation) -> None:
        change, dropped = event.event, incarnation.dropped
        # A table that would have to be rebuilt, and goes away in this window: nothing tells what it held in between.
        untold = change is not None and (event.obstacle or why_redump(change))
        replica.passed |= dropped is not None and (self._early or bool(untold))
        leaves = event.evid == dropped or renames(event) or incarnation.unknown_from(event.evid)
        if leaves and (replica.passed or (renames(event) and event.evid == dropped)):
            tables.drop_table(self._planning, event, replica)
        elif replica.passed and dropped is not None:
            # It has its name yet, so readers keep it: another table of the lane may fail before it leaves.
            self._planning.skip(event.evid, f"{event.row.type} {event.names[0]}", _GONE.format(dropped))
        else:
            require_within(event)
            table = table_of(change)
            if table and (reason := why_unfit(self._settings.filters.of(event.names[-1]), table)):
                raise LaneStopped(reason, refused=True)
            self._planning.handle(handlers()[event.row.type], event, replica)

    def _lacking(self, event: WindowEvent, replica: Replica) -> None:
        """An event of a table that the target does not have."""
        if renames(event) and self._taken_over(event):
            replica = replace(replica, name=self._mapping.table(event.names[1]))
        else:
            self._planning.require_free(replica.name)
        self._planning.lacking(event, replica, event.names[0])

    def _taken_over(self, event: WindowEvent) -> bool:
        """Whether the name that a rename leaves is another table's by now, which was rebuilt beyond the event."""
        name = event.names[0]
        position = self._view.state.position(self._mapping.table(name))
        return bool(gate.applied(event.evid, table_id=self._state_id(name) or 0, position=position))

    def _drop_former(self, event: WindowEvent, replica: Replica) -> None:
        """Of a table that was made anew under a later name: drops what the target still has of it under the one before."""
        name = self._mapping.table(event.names[0])
        former = renames(event) and replica.found_as not in ("", name) and self._state_id(event.names[0]) is not None
        if former and self._planning.has(name) and not self._taken_over(event):
            tables.drop_table(self._planning, event, replace(replica, name=name))

    def _replica(self, incarnation: Incarnation) -> Replica:
        if id(incarnation) not in self._replicas:
            found = incarnation.located(self._state_id)
            name = self._mapping.table(found or incarnation.names[0][0])
            there = self._view.tables[name] if found else None
            view = there is not None and is_view(there)
            self._replicas[id(incarnation)] = Replica(name, bool(found), object_id(there), name if found else "", view)
        return self._replicas[id(incarnation)]

    def _state_id(self, source_name: str) -> int | None:
        """State id of the target's replica; None where there is none, or it is of no use: it left the policy once."""
        table = self._view.tables.get(self._mapping.table(source_name)) if self._includes(source_name) else None
        table = None if table is None or self._view.state.is_stale(table) else table
        return object_id(table) if table is not None and is_ours(table, self._mapping.source) else None
