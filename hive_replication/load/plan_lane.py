"""One lane of a window against the target's state: which of its events apply (pure).

The gate: an event applies iff its id is greater than the highest of the object's own id, its table's id and what the database
says of the name. Where the target lacks an object whose life ends inside the window, its whole life is skipped, so that a repeat
does not bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from hive_replication.dump.anew import why_anew
from hive_replication.dump.source import is_transactional, why_skipped
from hive_replication.events import records as r
from hive_replication.events import transactions as tx
from hive_replication.load.conflicts import Conflicts
from hive_replication.load.handlers import handlers, tables
from hive_replication.load.lane import LanePlanning, Replica, Stop
from hive_replication.load.lanes import Lane, WindowEvent
from hive_replication.load.lives import Life, Lives
from hive_replication.load.lookahead import Lookahead, NoLookahead
from hive_replication.load.mapping import NameMapping
from hive_replication.load.plan import LanePlan, Obstacle
from hive_replication.load.report import Skipped
from hive_replication.load.state import is_ours, object_id
from hive_replication.load.view import TargetView
from hive_replication.metastore.types import Table
from hive_replication.policy import ConflictPolicy

_NO_ACID = "transactional tables are not in the dump"
PartitionEvent = r.AddPartition | r.AlterPartition | r.DropPartition | r.Insert | r.UpdateStatistics | r.DeleteStatistics


class LanePlanner:
    """Plans one lane.

    Args:
        lane: its events.
        view: the target's objects.
        mapping: names and paths.
        includes: whether a source table's name belongs to the dump's scope.
        ended: event id of the database's drop at the end of the lane's segment, which ends all lives; None without one.
        lookahead: what becomes of objects after the window.
        gone: events (with partition name or "") whose files are nowhere, each with the event that supersedes it.
        conflicts: the policy's setting.
        metadata_only: whether the dump has neither data nor partitions.
        acid: whether it has transactional tables and transactions.
        unable: why the target cannot hold such, or "".
        anew: target tables that this load made anew, so that they stand ahead of the window.
    """

    def __init__(
        self,
        lane: Lane,
        view: TargetView,
        mapping: NameMapping,
        includes: Callable[[str], bool],
        ended: int | None = None,
        lookahead: Lookahead | None = None,
        gone: Mapping[tuple[int, str], int] | None = None,
        conflicts: ConflictPolicy = "refuse",
        *,
        metadata_only: bool = False,
        acid: bool = False,
        unable: str = "",
        anew: Container[str] = (),
    ) -> None:
        self._lane, self._view, self._mapping, self._includes, self._ended = lane, view, mapping, includes, ended
        self._lives: dict[int, Life] = {}
        self._written: dict[tuple[int, str], Life] = {}
        self._acid, self._unable, self._anew = acid, unable, anew
        self._replicas: dict[int, Replica] = {}
        renames = any(_renames(event.event) for event in lane.events)
        settling = Conflicts(conflicts, mapping.source, mapping.target_database)
        self._planning = LanePlanning(
            view, mapping, lookahead or NoLookahead(), renames, gone or {}, settling, metadata_only, includes=includes
        )

    def plan(self) -> tuple[LanePlan, list[Skipped]]:
        """The lane's operations, and what is skipped."""
        self._trace()
        obstacle = None
        for event in self._lane.events:
            try:
                self._plan_event(event)
            except Stop as stop:
                obstacle = Obstacle(event.evid, str(stop), stop.refused)
                break
        names = tuple(sorted({self._mapping.table(name) for name in self._lane.names if self._includes(name)}))
        base = min((self._view.state.position(name) for name in names), default=self._view.state.applied or 0)
        return LanePlan(names, base, tuple(self._planning.operations), obstacle), self._planning.skipped

    def _trace(self) -> None:
        """Finds the life that each event is about, looking at the whole window first."""
        lives = Lives()
        partitions: dict[int, Lives] = {}
        for event in self._lane.events:
            life = self._table_life(lives, event)
            self._lives[event.evid] = life
            if isinstance(event.event, PartitionEvent):
                of_table = partitions.setdefault(id(life), Lives())
                for name, part in _partition_lives(of_table, event.event):
                    self._planning.partition_lives[event.evid, name] = part
            elif isinstance(event.event, tx.TransactionEvent):
                self._trace_transaction(event, event.event, lives, partitions)
        for life in self._lives.values():
            life.dropped = life.dropped or self._ended

    def _trace_transaction(
        self, event: WindowEvent, ended: tx.TransactionEvent, lives: Lives, partitions: dict[int, Lives]
    ) -> None:
        for table in ended.tables:
            self._written[event.evid, table] = lives.of(table)
        for one in ended.writes if isinstance(ended, tx.CommitTransaction) else ():
            of_table = partitions.setdefault(id(self._written[event.evid, one.table]), Lives())
            self._planning.partition_lives[event.evid, f"{one.table}/{one.partition}"] = of_table.of(one.partition)

    def _table_life(self, lives: Lives, event: WindowEvent) -> Life:
        match event.event:
            case r.CreateTable():
                return lives.create(event.row.table, event.evid)
            case r.DropTable():
                return lives.drop(event.row.table, event.evid)
            case r.AlterTable(rename=True) as change:
                old, new = change.names
                return lives.rename(old, new, event.evid) if self._stays(change) else lives.drop(old, event.evid)
            case _:
                return lives.of(event.names[0])

    def _stays(self, change: r.AlterTable) -> bool:
        """Whether a renamed table still belongs to the dump's scope."""
        return change.after.dbName.lower() == self._mapping.source_database and self._includes(change.names[1])

    def _plan_event(self, event: WindowEvent) -> None:
        if event.event is None:
            raise Stop(event.error)
        if self._unable and _is_transactional(event.event):
            raise Stop(self._unable, refused=True)
        name = event.event.names[0]
        what = f"{event.row.type} {name}"
        if isinstance(event.event, r.FunctionEvent):
            self._plan_function(event, name, what)
            return
        if isinstance(event.event, tx.TransactionEvent):
            self._plan_transaction(event, event.event)
            return
        life = self._lives[event.evid]
        replica = self._replica(life)
        passed = max(self._view.state.position(self._mapping.table(name)), replica.state_id)
        reason = self._not_applied(event)
        if reason:
            self._planning.skip(event.evid, what, reason)
        elif event.evid <= passed:
            self._planning.skip(event.evid, what, f"applied already (state id {passed})")
        elif not replica.present and life.dropped is not None:
            reason = f"the table is gone at event {life.dropped}, and the target does not have it"
            self._planning.skip(event.evid, what, reason)
        elif replica.present or isinstance(event.event, r.CreateTable):
            self._handle(event, replica, life)
        elif isinstance(event.event, tx.AllocateWriteIds):
            reason = "the target does not have the table; where the transaction creates it, its commit gives the write id"
            self._planning.skip(event.evid, what, reason)
        else:
            self._lacking(event, replica)

    def _not_applied(self, event: WindowEvent) -> str:
        """Why an event is of no kind or of no table that is applied, or ""."""
        if event.row.type not in handlers():
            known = isinstance(event.event, r.OtherEvent) and event.event.known
            return "recorded, not applied by this version" if known else "unknown event type: recorded, not applied"
        if isinstance(event.event, tx.AllocateWriteIds) and not self._acid:
            return _NO_ACID
        table = _table_of(event.event)
        return why_skipped(table, metadata_only=self._planning.metadata_only, acid=self._acid) if table else ""

    def _plan_function(self, event: WindowEvent, name: str, what: str) -> None:
        passed = self._view.state.position(name)
        if event.evid <= passed:
            self._planning.skip(event.evid, what, f"applied already (state id {passed})")
        else:
            handlers()[event.row.type](self._planning, event, Replica(name, present=False, state_id=0, found_as=""))

    def _plan_transaction(self, event: WindowEvent, ended: tx.TransactionEvent) -> None:
        """The end of a transaction: of each table that it wrote to it is due or not, and it ends where it is due at all."""
        lane, first = self._planning, event.names[0]
        due = not ended.tables and event.evid > self._view.state.position(first)
        for name in ended.tables:
            replica = self._replica(self._written[event.evid, name])
            passed = max(self._view.state.position(self._mapping.table(name)), replica.state_id)
            # A table that stands ahead of the window was made anew: what wrote to it before has to end on the target, too.
            due |= self._acid and (self._mapping.table(name) in self._anew or event.evid > (self._view.state.applied or 0))
            if not self._acid or event.evid <= passed:
                reason = f"applied already (state id {passed})" if self._acid else _NO_ACID
                lane.skip(event.evid, f"{event.row.type} {name}", reason)
                continue
            due = True
            if replica.present:
                lane.written[event.evid, name] = replica
            elif isinstance(ended, tx.CommitTransaction) and any(one.table == name for one in ended.writes):
                self._missing(event, name, replica)
        if due and self._acid:
            shown = lane.written.get((event.evid, first)) or Replica(self._mapping.table(first), False, 0, "")
            handlers()[event.row.type](lane, event, shown)

    def _missing(self, event: WindowEvent, table: str, replica: Replica) -> None:
        """A transaction wrote to a table that the target does not have."""
        dropped = self._written[event.evid, table].dropped
        if dropped is None:
            self._planning.lacking(event, replica, table)
        else:
            reason = f"the table is gone at event {dropped}, and the target does not have it"
            self._planning.skip(event.evid, f"{event.row.type} {table}", reason)

    def _handle(self, event: WindowEvent, replica: Replica, life: Life) -> None:
        change = event.event
        leaves = isinstance(change, r.AlterTable) and change.rename and not self._stays(change)
        # A table that would have to be made anew, and goes away in this window: nothing tells what it held in between.
        if leaves or (life.dropped is not None and change is not None and why_anew(change)):
            tables.drop_table(self._planning, event, replica)
        else:
            handlers()[event.row.type](self._planning, event, replica)

    def _lacking(self, event: WindowEvent, replica: Replica) -> None:
        """An event of a table that the target does not have."""
        self._planning.require_free(replica.name)
        change = event.event
        if isinstance(change, r.AlterTable) and change.rename and self._stays(change) and not self._includes(change.names[0]):
            raise Stop(f"the source table was renamed into the policy at event {event.evid}: REPL DUMP and LOAD it by its name")
        self._planning.lacking(event, replica, event.names[0])

    def _replica(self, life: Life) -> Replica:
        if id(life) not in self._replicas:
            found = life.located(self._state_id)
            name = self._mapping.table(found or life.names[0][0])
            state_id = object_id(self._view.tables[name]) if found else 0
            self._replicas[id(life)] = Replica(name, bool(found), state_id, name if found else "")
        return self._replicas[id(life)]

    def _state_id(self, source_name: str) -> int | None:
        table = self._view.tables.get(self._mapping.table(source_name))
        return object_id(table) if table is not None and is_ours(table, self._mapping.source) else None


def _renames(event: r.Event | None) -> bool:
    match event:
        case r.AlterTable():
            return event.rename
        case r.AlterPartition():
            return any(change.rename for change in event.changes)
        case _:
            return False


def _partition_lives(lives: Lives, event: PartitionEvent) -> list[tuple[str, Life]]:
    match event:
        case r.AddPartition():
            return [(added.name, lives.create(added.name, event.evid)) for added in event.partitions]
        case r.DropPartition():
            return [(name, lives.drop(name, event.evid)) for name in event.partitions]
        case r.AlterPartition():
            return [
                (c.before_name, lives.rename(c.before_name, c.after_name, event.evid) if c.rename else lives.of(c.before_name))
                for c in event.changes
            ]
        case r.Insert() | r.UpdateStatistics() | r.DeleteStatistics():
            return [(event.partition_name, lives.of(event.partition_name))] if event.partition_name else []


def _table_of(event: r.Event | None) -> Table | None:
    """The table that an event describes, or the table of its partitions."""
    table = getattr(event, "after", None) or getattr(event, "table_object", None)
    return table if isinstance(table, Table) else None


def _is_transactional(event: r.Event) -> bool:
    table = _table_of(event)
    return isinstance(event, tx.AllocateWriteIds | tx.TransactionEvent) or (table is not None and is_transactional(table))
