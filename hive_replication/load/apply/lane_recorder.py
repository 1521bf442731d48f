"""The journal records of a lane: the state of its objects before it changes anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from hive_replication.events.name_changes import ObjectName
from hive_replication.load.apply.lane_placement import LanePlacement, Visibility
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import Resolution, owner_of
from hive_replication.load.operations.names_trail import NamesTrail
from hive_replication.load.operations.statistics import DeleteStatistics, SetStatistics
from hive_replication.load.replica.state import SOURCE
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.statistics import with_claims
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of
from hive_replication.storage import Storage


def lane_records(
    storage: Storage, known: KnownObjects, lane: LanePlacement, operations: Sequence[op.Operation]
) -> Iterator[LaneRecord]:
    """Records what the operations of a lane are about to change: the last one has the steps.

    Images of a dropped table's many partitions come in records before that, so that never all of them are in memory.

    Args:
        storage: the target's.
        known: the target's objects before the lane.
        lane: the placed lane.
        operations: the operations that will be carried out, from its first on.
    """
    recorder = _StepRecorder()
    for number, operation in enumerate(operations):
        recorder.step(operation, lane.directories.get((number, ""), ""))
    view = known.view(recorder.wanted)
    image = _without_claims if any(isinstance(one, SetStatistics | DeleteStatistics) for one in operations) else _as_it_is
    tables, partitions = view.tables, dict[str, dict[str, Partition | None]]()
    for name, table in tables.items():
        if table.partitionKeys and (wanted := recorder.wanted[name]):
            partitions[name] = dict.fromkeys(sorted(wanted))
    for (name, part), found in view.partitions.items():
        if (name, part) not in recorder.aside or owner_of(found.parameters):
            partitions[name][part] = image(found)
    for name in sorted(recorder.dropped & tables.keys()):
        images, touched, none = known.images(name), partitions.get(name, {}), dict[str, Partition]()
        first, second = next(images, none), next(images, none)
        if not second:
            partitions[name] = {part: image(found) for part, found in first.items()} | touched
            continue
        for batch in chain((first, second), images):
            rest = {part: image(found) for part, found in batch.items() if part not in touched}
            about = {} if SOURCE in (tables[name].parameters or {}) else {name: tables[name]}  # as in lane_record._pieces
            yield LaneRecord(lane.lane.names, (), about, {name: rest}, {}, _outside(rest, tables[name]))
    locations = _LocationTrail(tables, partitions)
    for number, operation in enumerate(operations):
        locations.follow(lane, number, operation)
    files = {directory: tuple(storage.named_files(directory)) for directory in sorted(locations.grown)}
    yield LaneRecord(
        lane.lane.names,
        tuple(recorder.steps),
        tables,
        partitions,
        files,
        tuple(dict.fromkeys(locations.left)),
        tuple(locations.placed),
    )


def _outside(parts: Mapping[str, Partition], table: Table) -> tuple[str, ...]:
    """Directories of partitions but for those below their table's."""
    places = filter(None, map(directory_of, parts.values()))
    return tuple(dict.fromkeys(place for place in places if not place.startswith(f"{directory_of(table)}/")))


def _as_it_is(image: Partition) -> Partition:
    return image


def _without_claims(image: Partition) -> Partition:
    """Of a lane that writes statistics, which an undo does not put back; not every file of a split record has the steps."""
    image = copy_of(image)
    image.parameters = with_claims(image.parameters or {}, ())
    return image


@dataclass
class _StepRecorder:
    """Turns operations into steps, and collects the objects whose images are needed.

    Args:
        steps: one for each operation.
        wanted: touched partitions by the table's name before the lane.
        dropped: names before the lane of tables that are dropped: images of all their partitions are needed.
        aside: foreign partitions that are moved away with their data, so that no undo puts them back.
        trail: leads back to the names before the lane.
        chains: earlier names of each table in this lane, with the event ids of the renames.
    """

    steps: list[Step] = field(default_factory=list[Step])
    wanted: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    dropped: set[str] = field(default_factory=set[str])
    aside: set[ObjectName] = field(default_factory=set[ObjectName])
    trail: NamesTrail = field(default_factory=NamesTrail)
    chains: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict[str, tuple[tuple[str, int], ...]])

    def step(self, operation: op.Operation, directory: str) -> None:
        table, (before, after) = operation.table, _table_change(operation)
        if not table:  # a custom operation on the whole database
            return
        step = Step(operation.kind, operation.evid, table)
        if after and not before:
            self.chains[table] = ()
            self.steps.append(replace(step, directory=directory))
        else:
            foreign = operation.foreign_partitions if isinstance(operation, Resolution) else ()
            self.aside |= {(self.trail.before(table)[0], name) for name in foreign}
            changed = replace(step, new_name=after, partitions=(*operation.partitions, *foreign))
            self.steps.append(self._step(changed, drops=bool(before and not after)))
        self.trail.follow(operation.name_changes)

    def _step(self, step: Step, *, drops: bool) -> Step:
        """A step on an existing table; its images before the lane are needed."""
        origin, chain = self.trail.before(step.table)[0], self.chains.get(step.table, ())
        if origin:
            self.wanted.setdefault(origin, set()).update(step.partitions)
        if step.new_name:
            self.chains[step.new_name] = (*self.chains.pop(step.table, ()), (step.table, step.evid))
        if drops and origin:
            self.dropped.add(origin)
        return replace(step, origin=origin, chain=chain) if drops else step


def _table_change(operation: op.Operation) -> tuple[str, str]:
    """Name of the operation's table before and after, where it creates, drops or renames it."""
    return next((change.tables for change in operation.name_changes if any(change.tables)), ("", ""))


class _LocationTrail:
    """Follows the directories of tables and partitions from operation to operation.

    Args:
        tables: images before the lane, by name.
        partitions: images of touched partitions before the lane, by table and name.

    Attributes:
        left: directories that no location points at afterwards.
        placed: directories that the operations put into use.
        grown: directories to which files are added.
    """

    def __init__(self, tables: Mapping[str, Table], partitions: Mapping[str, Mapping[str, Partition | None]]) -> None:
        self._at: dict[ObjectName, str] = {(name, ""): directory_of(table) for name, table in tables.items()}
        self._at |= {
            (table, name): directory_of(part) for table, parts in partitions.items() for name, part in parts.items() if part
        }
        self._before = set(filter(None, self._at.values()))
        self.left: list[str] = []
        self.placed: list[str] = []
        self.grown: set[str] = set()

    def follow(self, lane: LanePlacement, number: int, operation: op.Operation) -> None:
        for change in operation.name_changes:
            before, after = change.before, change.after
            if before is None and after is not None and (number, after[1]) in lane.directories:
                self._put(after, lane.directories[number, after[1]])
            elif before is not None and after is None:
                self._leave(before)
            elif before is not None and after is not None:
                self._move(before, after)
        for partition, _ in operation.contents:
            if (number, partition) in lane.modes:
                self._change((operation.table, partition), lane.modes[number, partition], lane.directories[number, partition])

    def _change(self, name: ObjectName, mode: Visibility, directory: str) -> None:
        if mode in ("replace", "union"):
            self._leave_alone(name)
            self._put(name, directory)
        elif mode == "append" and (place := self._at.get(name)) in self._before and place:
            self.grown.add(place)

    def _put(self, name: ObjectName, directory: str) -> None:
        self._at[name] = directory
        self.placed.append(directory)

    def _move(self, before: ObjectName, after: ObjectName) -> None:
        """Renames an object, a table with its partitions."""
        if before[1]:
            self._at |= {after: self._at.pop(before)} if before in self._at else {}
            return
        moved = [key for key in self._at if key[0] == before[0]]
        self._at |= {(after[0], name): self._at.pop((table, name)) for table, name in moved}

    def _leave(self, name: ObjectName) -> None:
        """Drops an object, a table with its partitions; those below its directory are not listed separately."""
        table, partition = name
        if not partition:
            base = self._at.get(name, "")
            for key in [key for key in self._at if key[0] == table and key[1]]:
                self._leave_alone(key, below=base)
        self._leave_alone(name)

    def _leave_alone(self, name: ObjectName, below: str = "") -> None:
        place = self._at.pop(name, "")
        if place and not (below and place.startswith(below + "/")):
            self.left.append(place)
