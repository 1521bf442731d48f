"""One lane of a window against the target's state: which of its events apply, and as which operations (pure).

The gate: an event applies iff its id is greater than the highest of the object's own id, its table's id and what the database
says of the name. Where the target lacks an object whose life ends inside the window, its whole life is skipped, so that a repeat
does not bring it back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hive_replication.dump.source import has_files, why_skipped
from hive_replication.events import records as r
from hive_replication.load import operations as op
from hive_replication.load.lanes import Lane, WindowEvent
from hive_replication.load.lives import Life, Lives
from hive_replication.load.mapping import NameMapping
from hive_replication.load.plan import LanePlan, Obstacle
from hive_replication.load.report import Skipped
from hive_replication.load.state import is_ours, object_id
from hive_replication.load.view import TargetView
from hive_replication.metastore.types import Partition, Table

PartitionEvent = r.AddPartition | r.AlterPartition | r.DropPartition | r.Insert


class _Stop(Exception):
    """The lane cannot go beyond the event."""

    def __init__(self, reason: str, *, refused: bool = False) -> None:
        super().__init__(reason)
        self.refused = refused


@dataclass
class _Replica:
    """What is known of a table's life on the target, as the plan goes on.

    Args:
        name: target name at this point of the plan.
        present: whether the target has it at this point of the plan.
        state_id: the table's state id before the load.
        found_as: the name under which the target has it before the load, or "".
        partitions: names present at this point, for those the plan has touched.
    """

    name: str
    present: bool
    state_id: int
    found_as: str
    partitions: dict[str, bool] = field(default_factory=dict[str, bool])


class LanePlanner:
    """Plans one lane.

    Args:
        lane: its events.
        view: the target's objects.
        mapping: names and paths.
        includes: whether a source table's name belongs to the dump's scope.
        ended: event id of the database's drop at the end of the lane's segment, which ends all lives; None without one.
    """

    def __init__(
        self, lane: Lane, view: TargetView, mapping: NameMapping, includes: Callable[[str], bool], ended: int | None = None
    ) -> None:
        self._lane, self._view, self._mapping, self._includes, self._ended = lane, view, mapping, includes, ended
        self._lives: dict[int, Life] = {}
        self._partition_lives: dict[tuple[int, str], Life] = {}
        self._replicas: dict[int, _Replica] = {}
        self._vacated: set[str] = set()
        self._taken: set[str] = set()
        self._operations: list[op.Operation] = []
        self._skipped: list[Skipped] = []
        self._renames = any(isinstance(e.event, r.AlterTable) and e.event.rename for e in lane.events)

    def plan(self) -> tuple[LanePlan, list[Skipped]]:
        """The lane's operations, and what is skipped."""
        self._trace()
        obstacle = None
        for event in self._lane.events:
            try:
                self._plan_event(event)
            except _Stop as stop:
                obstacle = Obstacle(event.evid, str(stop), stop.refused)
                break
        names = tuple(sorted({self._mapping.table(name) for name in self._lane.names if self._includes(name)}))
        base = min((self._view.state.position(name) for name in names), default=0)
        return LanePlan(names, base, tuple(self._operations), obstacle), self._skipped

    def _trace(self) -> None:
        """Finds the life that each event is about, looking at the whole window first."""
        tables = Lives()
        partitions: dict[int, Lives] = {}
        for event in self._lane.events:
            life = self._table_life(tables, event)
            self._lives[event.evid] = life
            if isinstance(event.event, r.AddPartition | r.AlterPartition | r.DropPartition | r.Insert):
                of_table = partitions.setdefault(id(life), Lives())
                for name, part in _partition_lives(of_table, event.event):
                    self._partition_lives[event.evid, name] = part
        for life in self._lives.values():
            life.dropped = life.dropped or self._ended

    def _table_life(self, tables: Lives, event: WindowEvent) -> Life:
        match event.event:
            case r.CreateTable():
                return tables.create(event.row.table, event.evid)
            case r.DropTable():
                return tables.drop(event.row.table, event.evid)
            case r.AlterTable(rename=True) as change:
                old, new = change.names
                if self._stays(change):
                    return tables.rename(old, new, event.evid)
                return tables.drop(old, event.evid)
            case _:
                return tables.of(event.row.table)

    def _stays(self, change: r.AlterTable) -> bool:
        """Whether a renamed table still belongs to the dump's scope."""
        return change.after.dbName.lower() == self._mapping.source_database and self._includes(change.names[1])

    def _plan_event(self, event: WindowEvent) -> None:
        if event.event is None:
            raise _Stop(event.error)
        what = f"{event.row.type} {event.event.names[0]}"
        life = self._lives[event.evid]
        replica = self._replica(life)
        passed = max(self._view.state.position(self._mapping.table(event.event.names[0])), replica.state_id)
        reason = _not_applied(event.event)
        if reason:
            self._skip(event, what, reason)
        elif event.evid <= passed:
            self._skip(event, what, f"applied already (state id {passed})")
        elif replica.present:
            self._apply(event, replica)
        elif life.dropped is not None:
            self._skip(event, what, f"the table is gone at event {life.dropped} of this window, and the target does not have it")
        else:
            self._begin(event, replica)

    def _replica(self, life: Life) -> _Replica:
        if id(life) not in self._replicas:
            found = life.located(self._state_id)
            name = self._mapping.table(found or life.names[0][0])
            state_id = object_id(self._view.tables[name]) if found else 0
            self._replicas[id(life)] = _Replica(name, bool(found), state_id, name if found else "")
        return self._replicas[id(life)]

    def _state_id(self, source_name: str) -> int | None:
        table = self._view.tables.get(self._mapping.table(source_name))
        return object_id(table) if table is not None and is_ours(table, self._mapping.source) else None

    def _begin(self, event: WindowEvent, replica: _Replica) -> None:
        """An event of a table that the target does not have."""
        if isinstance(event.event, r.CreateTable):
            self._free(replica.name)
            plain = "" if not event.event.after.sd.location else self._mapping.table_location(event.event.after)
            image = self._mapping.new_table(event.event.after, event.evid)
            self._operations.append(op.CreateTable(event.evid, replica.name, image, self._content(event), plain))
            replica.present = True
            self._taken.add(replica.name)
            return
        name = op.object_name(self._mapping.target_database, replica.name)
        self._free(replica.name)
        if isinstance(event.event, r.AlterTable) and event.event.rename:
            raise _Stop(f"the source table was renamed into the policy at event {event.evid}: REPL DUMP and LOAD it by its name")
        raise _Stop(f"the target lacks {name}, which event {event.evid} ({event.row.type}) changes: rebuild it from the source")

    def _free(self, name: str) -> None:
        """Makes sure that nothing else has the name on the target at this point of the plan."""
        occupant = None if name in self._vacated else self._view.tables.get(name)
        if occupant is None and name not in self._taken:
            return
        shown = op.object_name(self._mapping.target_database, name)
        if occupant is not None and not is_ours(occupant, self._mapping.source):
            raise _Stop(
                f"the target table {shown} exists and is not a replica of this source: rename or drop it there", refused=True
            )
        raise _Stop(f"the target has an older {shown} in the way: rebuild it from the source")

    def _apply(self, event: WindowEvent, replica: _Replica) -> None:
        match event.event:
            case r.AlterTable(rename=True) as change:
                self._rename(event, change, replica)
            case r.AlterTable() as change:
                self._alter(event, change, replica)
            case r.DropTable():
                self._drop(event, replica)
            case r.AddPartition() | r.AlterPartition() | r.DropPartition() | r.Insert() as change:
                self._change_content(event, change, replica)
            case _:
                raise _Stop(f"the target has an older {replica.name} in the way: rebuild it from the source")

    def _rename(self, event: WindowEvent, change: r.AlterTable, replica: _Replica) -> None:
        if not self._stays(change):
            self._drop(event, replica)
            return
        new = self._mapping.table(change.names[1])
        self._free(new)
        image = self._mapping.new_table(change.after, event.evid)
        self._operations.append(op.RenameTable(event.evid, replica.name, image))
        self._vacated.add(replica.name)
        self._taken.discard(replica.name)
        self._taken.add(new)
        replica.name = new

    def _alter(self, event: WindowEvent, change: r.AlterTable, replica: _Replica) -> None:
        image = self._mapping.new_table(change.after, event.evid)
        if (change.truncate or change.relocated) and has_files(change.after):
            self._operations.append(op.ReplaceData(event.evid, replica.name, "", image, self._content(event)))
        else:
            self._operations.append(op.AlterTable(event.evid, replica.name, image))

    def _drop(self, event: WindowEvent, replica: _Replica) -> None:
        self._operations.append(op.DropTable(event.evid, replica.name))
        replica.present = False
        self._vacated.add(replica.name)
        self._taken.discard(replica.name)

    def _change_content(self, event: WindowEvent, change: PartitionEvent, replica: _Replica) -> None:
        match change:
            case r.AddPartition():
                self._add_partitions(event, change, replica)
            case r.AlterPartition():
                for one in change.changes:
                    self._change_partition(event, one, replica, truncate=change.truncate)
            case r.DropPartition():
                names = tuple(name for name in change.partitions if self._passes(event, name, replica, needed=False))
                if names:
                    self._operations.append(op.DropPartitions(event.evid, replica.name, names))
                replica.partitions |= dict.fromkeys(names, False)
            case r.Insert():
                self._insert(event, change, replica)

    def _add_partitions(self, event: WindowEvent, change: r.AddPartition, replica: _Replica) -> None:
        new: list[op.NewPartition] = []
        for added in change.partitions:
            image = self._mapping.new_partition(added.partition, replica.name, event.evid)
            content = self._content(event, added.name)
            life = self._partition_lives[event.evid, added.name]
            found = self._found(replica, life, added.name)
            if found is not None and found >= event.evid:
                self._skip(event, f"ADD_PARTITION {replica.name}/{added.name}", f"applied already (state id {found})")
            elif found is not None:
                self._operations.append(op.ReplaceData(event.evid, replica.name, added.name, image, content))
            elif life.dropped is not None and not replica.partitions.get(added.name):
                self._skip(event, f"ADD_PARTITION {replica.name}/{added.name}", f"dropped at event {life.dropped} of this window")
            else:
                new.append(op.NewPartition(added.name, image, content))
                replica.partitions[added.name] = True
        if new:
            self._operations.append(op.AddPartitions(event.evid, replica.name, tuple(new)))

    def _change_partition(self, event: WindowEvent, change: r.ChangedPartition, replica: _Replica, *, truncate: bool) -> None:
        if not self._passes(event, change.before_name, replica):
            return
        image = self._mapping.new_partition(change.after, replica.name, event.evid)
        if change.rename:
            names = change.before_name, change.after_name
            self._operations.append(op.RenamePartition(event.evid, replica.name, *names, image))
            replica.partitions |= {change.before_name: False, change.after_name: True}
        elif truncate or change.relocated:
            content = self._content(event, change.after_name)
            self._operations.append(op.ReplaceData(event.evid, replica.name, change.after_name, image, content))
        else:
            self._operations.append(op.AlterPartitions(event.evid, replica.name, ((change.after_name, image),)))

    def _insert(self, event: WindowEvent, change: r.Insert, replica: _Replica) -> None:
        name = change.partition_name
        if name and not self._passes(event, name, replica):
            return
        image: Table | Partition = (
            self._mapping.new_partition(change.partition, replica.name, event.evid)
            if change.partition is not None
            else self._mapping.new_table(change.table_object, event.evid)
        )
        group, content = event.files(name), self._content(event, name)
        if change.replace or group.listed:
            self._operations.append(op.ReplaceData(event.evid, replica.name, name, image, content, compare=group.listed))
        else:
            self._operations.append(op.AppendData(event.evid, replica.name, name, image, content))

    def _passes(self, event: WindowEvent, partition: str, replica: _Replica, *, needed: bool = True) -> bool:
        """Whether an event of an existing partition applies.

        Args:
            event: the event.
            partition: the partition's name before the event.
            replica: its table.
            needed: whether a partition that the target lacks holds the lane (unless its life ends in the window).
        """
        life = self._partition_lives[event.evid, partition]
        found = self._found(replica, life, partition)
        what = f"{event.row.type} {replica.name}/{partition}"
        if found is not None and found < event.evid:
            return True
        if found is not None:
            self._skip(event, what, f"applied already (state id {found})")
        elif life.dropped is not None or self._renamed_already(replica, life, event.evid):
            self._skip(event, what, "the target does not have the partition any more")
        elif needed:
            name = op.object_name(self._mapping.target_database, replica.name, partition)
            raise _Stop(
                f"the target lacks {name}, which event {event.evid} ({event.row.type}) changes: rebuild it from the source"
            )
        return False

    def _found(self, replica: _Replica, life: Life, partition: str) -> int | None:
        """State id of a partition that exists at this point of the plan, None where it does not."""
        if partition in replica.partitions:
            return 0 if replica.partitions[partition] else None
        name = life.located(lambda name: self._partition_id(replica, name))
        return self._partition_id(replica, partition) if name == partition else None

    def _renamed_already(self, replica: _Replica, life: Life, evid: int) -> bool:
        name = life.located(lambda name: self._partition_id(replica, name))
        return name is not None and (self._partition_id(replica, name) or 0) >= evid

    def _partition_id(self, replica: _Replica, name: str) -> int | None:
        part = self._view.partitions.get((replica.found_as, name))
        return None if part is None else object_id(part)

    def _content(self, event: WindowEvent, partition: str = "") -> op.Content:
        return op.Content(event.files(partition).files, f"{event.evid}-0", plain=not self._renames)

    def _skip(self, event: WindowEvent, what: str, reason: str) -> None:
        self._skipped.append(Skipped(event.evid, what, reason))


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
        case r.Insert():
            return [(event.partition_name, lives.of(event.partition_name))] if event.partition_name else []


def _not_applied(event: r.Event) -> str:
    """Why an event is of no kind or of no table that this version applies, or ""."""
    if isinstance(event, r.OtherEvent):
        return "recorded, not applied by this version" if event.known else "unknown event type: recorded, not applied"
    table = getattr(event, "after", None) or getattr(event, "table_object", None)
    return why_skipped(table) if isinstance(table, Table) else ""
