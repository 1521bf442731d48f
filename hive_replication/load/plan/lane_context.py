"""What handlers see of a lane while it is planned: the target's state as the plan goes on, and where operations go (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hive_replication.dump.source_boundary import images_after
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import name_after
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.avro_schemas import copied_schemas
from hive_replication.load.operations.conflict_resolutions import adopted_at
from hive_replication.load.plan import gate
from hive_replication.load.plan.conflicts import Conflicts, is_foreign
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.load_plan import LaneStopped
from hive_replication.load.plan.superseded import Lookahead
from hive_replication.load.replica.name_mapping import NameMapping, object_name
from hive_replication.load.replica.state import object_id
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import Skipped
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Function, Partition, Table


def require_within(event: WindowEvent) -> None:
    """Makes sure that the data of an event may be read.

    Raises:
        LaneStopped: it may not.
    """
    if event.outside:
        raise LaneStopped(event.outside, refused=True)


@dataclass
class Replica:
    """What is known of a table's incarnation on the target, as the plan goes on.

    Args:
        name: target name at this point of the plan.
        present: whether the target has it at this point of the plan.
        state_id: the table's state id before the load.
        found_as: the name under which the target has it before the load, or "".
        view: whether it is a view at this point of the plan.
        passed: whether it stays as it is until it leaves its name, since it goes away in the window.
        partitions: whether a partition is there at this point, for those the plan has touched.
    """

    name: str
    present: bool
    state_id: int
    found_as: str
    view: bool = False
    passed: bool = False
    partitions: dict[str, bool] = field(default_factory=dict[str, bool])


@dataclass
class LanePlanning:
    """A lane being planned.

    Args:
        view: the target's objects before the load.
        mapping: names and paths.
        lookahead: what becomes of objects later.
        renames: whether the lane renames tables or partitions.
        gone: events (with partition name or "") whose files are nowhere or have no place, each with the one that supersedes it.
        conflicts: how they are settled.
        metadata_only: the dump has neither data nor partitions; what the target has of them stays.
        includes: whether a source table's name belongs to the dump's scope.
        written: for ends of transactions (event, source table) the replica of each table for which it is due.
        going: those of them (event, source table) that are dropped later in the window.
        brought: names of partitions that the window brings to the table of an event, and does not drop.
    """

    view: TargetView
    mapping: NameMapping
    lookahead: Lookahead
    renames: bool
    gone: Mapping[tuple[int, str], int]
    conflicts: Conflicts
    metadata_only: bool = False
    partition_incarnations: dict[tuple[int, str], Incarnation] = field(default_factory=dict[tuple[int, str], Incarnation])
    operations: list[op.Operation] = field(default_factory=list[op.Operation])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    includes: Callable[[str], bool] = lambda _: True
    written: dict[tuple[int, str], Replica] = field(default_factory=dict[tuple[int, str], Replica])
    going: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    brought: Callable[[int], Collection[str]] = lambda _: ()
    _schemas: set[tuple[tuple[str, str], ...]] = field(default_factory=set[tuple[tuple[str, str], ...]])
    _vacated: set[str] = field(default_factory=set[str])
    _taken: set[str] = field(default_factory=set[str])

    def add(self, operation: op.Operation) -> None:
        """Plans an operation."""
        self.operations.append(operation)

    def handle(self, handler: Callable[[LanePlanning, WindowEvent, Replica], None], event: WindowEvent, replica: Replica) -> None:
        """Plans an event of a table by its handler; what its objects name of schemas in files comes before."""
        name, began = replica.name, len(self.operations)
        handler(self, event, replica)
        if len(self.operations) > began:
            things = [image for image in images_after(event.event) if not isinstance(image, Function)]
            new = [one for one in copied_schemas(self.mapping, event.evid, name, things) if one.files not in self._schemas]
            self._schemas.update(one.files for one in new)
            self.operations[began:began] = new

    def skip(self, evid: int, what: str, reason: str) -> None:
        """Leaves an event, or its part about one object, alone."""
        self.skipped.append(Skipped(evid, what, reason))

    def applied(self, evid: int, table: str, replica: Replica, found: int = 0) -> str:
        """Why an event does not apply to a table or an object of it, "" where it does (:mod:`hive_replication.load.plan.gate`).

        Args:
            evid: event id.
            table: name of the source's table at the event.
            replica: of the table.
            found: state id of the object.
        """
        position = self.view.state.position(self.mapping.table(table))
        return gate.applied(evid, object_id=found, table_id=replica.state_id, position=position)

    def content(self, event: WindowEvent, partition: str = "") -> op.Content:
        """The files of an event for one object.

        Raises:
            LaneStopped: two of them would have one place.
        """
        files = event.files(partition).files
        if len({file.relative for file in files}) < len({file.uri for file in files}):
            raise LaneStopped(_one_place(event, files))
        table = getattr(event.event, "after", None) or getattr(event.event, "table_object", None)
        transactional = isinstance(table, Table) and is_transactional(table)
        staging = staging_name(event.evid, 0, transactional=transactional)
        origin = (table.sd.location or "") if isinstance(table, Table) and not partition else ""
        return op.Content(files, staging, plain=not self.renames, origin=origin)

    def new_content(self, event: WindowEvent, partition: str, what: str) -> op.Content:
        """The files of an object that an event creates: none where they are superseded, so that later events find the object."""
        content = self.content(event, partition)
        return replace(content, files=()) if self.superseded(event, partition, what) else content

    def superseded(self, event: WindowEvent, partition: str, what: str) -> bool:
        """Whether the files of an event are nowhere or have no place, and a later event supersedes it; if so it is skipped."""
        later = self.gone.get((event.evid, partition))
        if later is not None:
            why = "its files are gone, or the target has others of their names"
            self.skip(event.evid, what, f"superseded: {why}, and event {later} drops, replaces or moves the object away")
        return later is not None

    def require_free(self, name: str, evid: int | None = None, wanted: Table | None = None) -> op.Operation | None:
        """Makes sure that nothing else has a table's name on the target at this point of the plan.

        Args:
            name: on the target.
            evid: event that needs it, and may settle a conflict about it; None for one that needs the table itself.
            wanted: the source's table, if it is a new one.

        Returns:
            What settles the conflict, planned already; None where there is none.

        Raises:
            LaneStopped: something has it.
        """
        occupant = None if name in self._vacated else self.view.tables.get(name)
        if occupant is None and name not in self._taken:
            return None
        shown = object_name(self.mapping.target_database, name)
        if occupant is not None and self.view.state.is_stale(occupant) and not is_foreign(occupant, self.mapping.source):
            return self._make_room(name, evid)
        if occupant is not None and is_foreign(occupant, self.mapping.source):
            if evid is None:
                raise LaneStopped(
                    f"the target table {shown} exists and is not a replica of this source: rebuild it", refused=True
                )
            self._vacated.add(name)
            return self.resolve(lambda conflicts: conflicts.table(evid, occupant, wanted and self.mapping.with_view_text(wanted)))
        raise LaneStopped(f"the target has an older {shown} in the way: rebuild it from the source")

    def _make_room(self, name: str, evid: int | None) -> op.Operation | None:
        """Drops a replica that left the policy, for a table that takes its name; None where no event needs it."""
        if evid is None:
            return None
        self._vacated.add(name)
        self.add(op.DropTable(evid, name))
        return self.operations[-1]

    def require_readable(self, table: Table) -> None:
        """Makes sure that a view can be read on the target, where the policy asks for that.

        Raises:
            LaneStopped: it cannot.
        """
        if reason := self.mapping.why_held(table):
            raise LaneStopped(reason, refused=True)

    def resolve(self, how: Callable[[Conflicts], op.Operation | None]) -> op.Operation | None:
        """Plans what the policy does about a conflict, and returns it; None where that is nothing.

        Raises:
            LaneStopped: the policy refuses.
        """
        try:
            first = how(self.conflicts)
        except Refused as error:
            raise LaneStopped(str(error), refused=True) from error
        if first is not None:
            self.add(first)
        return first

    def adopted(self, replica: Replica, evid: int) -> bool:
        """Whether an earlier load took a table over at this event, and came no further."""
        table = self.view.tables.get(replica.name)
        return table is not None and not is_foreign(table, self.mapping.source) and adopted_at(table) == evid

    def foreign_partition(self, replica: Replica, partition: str) -> Partition | None:
        """The target's partition of a name that is not our replica, if it is still there at this point of the plan."""
        part = None if partition in replica.partitions else self.view.partitions.get((replica.found_as, partition))
        return part if part is not None and is_foreign(part, self.mapping.source) else None

    def take(self, name: str) -> None:
        """From here on a replica has the name."""
        self._taken.add(name)

    def has(self, name: str) -> bool:
        """Whether the target has a table of a name at this point of the plan."""
        return name in self._taken or (name in self.view.tables and name not in self._vacated)

    def leave(self, name: str) -> None:
        """From here on nothing has the name."""
        self._vacated.add(name)
        self._taken.discard(name)

    def lacking(self, event: WindowEvent, replica: Replica, source_table: str, partition: str = "") -> None:
        """The target lacks an object that an event changes: skipped if it goes away later anyway.

        What an event renames is looked for by its new name: the former may be another object's from there on.

        Raises:
            LaneStopped: it does not go away, or nobody knows.
        """
        renames = (change for change in (event.event.name_changes if event.event else ()) if change.renames)
        later = self.lookahead.superseded(*name_after((source_table, partition), renames), event.evid)
        shown = object_name(self.mapping.target_database, replica.name, partition)
        if later is None:
            raise LaneStopped(
                f"the target lacks {shown}, which event {event.evid} ({event.row.type}) changes: rebuild it from the source"
            )
        self.skip(
            event.evid, f"{event.row.type} {shown}", f"the target lacks it, and event {later} drops, replaces or moves it away"
        )

    def passes(self, event: WindowEvent, partition: str, replica: Replica, *, needed: bool = True) -> bool:
        """The gate for an event of an existing partition.

        Args:
            event: the event.
            partition: the partition's name before the event.
            replica: its table.
            needed: whether a partition that the target lacks is missed (unless its incarnation ends in the window).

        Raises:
            LaneStopped: the partition is missed.
        """
        incarnation = self.partition_incarnations[event.evid, partition]
        found = self.found(replica, incarnation, partition)
        what = f"{event.row.type} {replica.name}/{partition}"
        if found is not None:
            if reason := self.applied(event.evid, event.names[0], replica, found):
                self.skip(event.evid, what, reason)
                return False
            foreign = self.foreign_partition(replica, partition)
            return foreign is None or self._resolved(event, partition, replica, foreign, needed=needed)
        if incarnation.dropped is not None:
            self.skip(event.evid, what, "the target does not have the partition any more")
        elif needed:
            self.lacking(event, replica, event.row.table, partition)
        return False

    def _resolved(self, event: WindowEvent, partition: str, replica: Replica, foreign: Partition, *, needed: bool) -> bool:
        """Whether an event goes on that meets a partition which somebody else put there."""
        shown = object_name(self.mapping.target_database, replica.name, partition)
        if needed:
            reason = f"the target partition {shown}, which event {event.evid} changes, was made by somebody else: repair it"
            raise LaneStopped(reason, refused=True)
        return self.resolve(lambda conflicts: conflicts.partition(event.evid, replica.name, partition, foreign, None)) is None

    def found(self, replica: Replica, incarnation: Incarnation, partition: str) -> int | None:
        """State id of a partition that exists at this point of the plan, under whatever name; None where it does not."""
        if partition in replica.partitions:
            return 0 if replica.partitions[partition] else None
        name = incarnation.located(lambda name: self._partition_id(replica, name))
        return None if name is None else self._partition_id(replica, name)

    def _partition_id(self, replica: Replica, name: str) -> int | None:
        part = self.view.partitions.get((replica.found_as, name))
        return None if part is None else object_id(part)


def _one_place(event: WindowEvent, files: Iterable[FileRef]) -> str:
    """Why files of an event cannot be told apart on the target."""
    places: dict[str, str] = {}
    first, other = next((places[one.relative], one.uri) for one in files if places.setdefault(one.relative, one.uri) != one.uri)
    return f"{first} and {other} of event {event.evid} would have one place on the target: rebuild the table from the source"
