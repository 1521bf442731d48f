"""Chooses the directories for the data of a lane, before anything is copied.

New objects take Hive's default path, or their own below ``external_root``, if it is absent or empty. Data that replaces or
joins visible data is staged under the database's directory in ``.repl/<evid>-<n>/<partition name>``. A directory with nothing
but files of the same object was left by an earlier attempt: it is used again, so that nothing is copied twice. One in ``.repl``
comes first: the plain path may be free by now only because that attempt has dropped what was there.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from hive_replication.acid.directories import base_name
from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import ObjectName
from hive_replication.load.apply.commit_places import CreatedInLane, DataKey, files_of_commits
from hive_replication.load.apply.content_in_lane import ContentInLane
from hive_replication.load.apply.free_places import FreePlaces, Kept, checksum_of
from hive_replication.load.apply.lane_placement import LanePlacement, Visibility
from hive_replication.load.apply.taken_places import TakenPlaces
from hive_replication.load.layout.directories import Layout, staged_base
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.bases import is_staged
from hive_replication.load.operations.names_trail import NamesTrail
from hive_replication.load.operations.transactions import ReplayCommit, Written
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.fingerprint import files_changed
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects, TargetView
from hive_replication.load.report import UnexpectedObject
from hive_replication.metastore.names import table_directory
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.storage import FileStatus

#: Number of an operation, the operation, and what it changes.
_Change = tuple[int, op.ReplaceData | op.AppendData, Table | Partition | None]


@dataclass
class _LaneState:
    """The state of the target at one operation of a lane that is being placed.

    Args:
        placed: the directories chosen so far.
        before: the target's objects before the lane.
        committed: files that its commits add to what it creates.
        trail: leads back to their names before the lane.
        created: what the lane has created.
    """

    placed: LanePlacement
    before: TargetView
    committed: Mapping[DataKey, Mapping[str, FileRef]]
    trail: NamesTrail = field(default_factory=NamesTrail)
    created: CreatedInLane = field(default_factory=CreatedInLane)

    def thing(self, table: str, partition: str) -> Table | Partition | None:
        """A table or partition before the lane; None if it did not exist then."""
        table, partition = self.trail.before(table, partition)
        table = table.lower()
        return self.before.partitions.get((table, partition)) if partition else self.before.tables.get(table)

    def changed(self, operation: op.ReplaceData | op.AppendData) -> Table | Partition | None:
        """The object that an operation changes; None if the lane creates it."""
        thing = self.thing(operation.table, operation.partition)
        return thing if isinstance(thing, Partition) == bool(operation.partition) else None

    def follow(self, number: int, operation: op.Operation) -> None:
        """Applies what an operation does to names."""
        changes = operation.name_changes
        self.created.follow(number, changes)
        self.trail.follow(changes)

    def directory(self, table: str, partition: str = "") -> str:
        """Where a table or partition lies, or where the lane creates it; "" if that is not known."""
        key = self.created.key(table, partition)
        return (self.placed.directories.get(key, "") if key else "") or directory_of(self.thing(table, partition))


class Placer:
    """Chooses directories in one target database for one segment.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory.
        kept: returns the directories that an undo may need, which are never used again. Called only if a directory exists.
        known: the target's objects before the lanes.
        taken: the places that are others', as far as earlier segments know them.
    """

    def __init__(
        self, target: Target, database: str, location: str, kept: Kept, known: KnownObjects, taken: TakenPlaces | None = None
    ) -> None:
        self._target, self._database, self._layout = target, database, Layout(location)
        self._known, self._boundary = known, TargetBoundary(target, database, self._layout.location)
        self._taken = taken or TakenPlaces(target, database, self._layout.location)
        self._free = FreePlaces(target, self._layout, kept, self._taken.is_used_staging)

    def place(self, lane: LanePlan) -> LanePlacement:
        """Chooses the directories for a lane's data; changes nothing but marks of whose they are below ``external_root``."""
        state = _LaneState(LanePlacement(lane), self._before(lane), files_of_commits(lane.operations))
        changes: dict[ObjectName | int, list[_Change]] = {}  # those of an object together, by its name before the lane
        for number, operation in enumerate(lane.operations):
            match operation:
                case op.CreateTable() if operation.plain:
                    self._place_table(state, number, operation)
                case op.AddPartitions():
                    self._place_partitions(state, number, operation)
                case op.ReplaceData() | op.AppendData():
                    thing = state.changed(operation)
                    origin = state.trail.before(operation.table, operation.partition) if thing else number
                    changes.setdefault(origin, []).append((number, operation, thing))
                case ReplayCommit():
                    self._place_writes(state, number, operation)
                case op.CustomOperation():
                    contents = dict(operation.contents)
                    for name, directory in operation.places:
                        self._copy_to(state.placed, number, name, operation, contents[name], directory)
                case _:
                    if any(content.files for _, content in operation.contents):
                        raise AssertionError(f"no place for the files of {operation.kind}")
            state.follow(number, operation)
        list(self._target.storage.threads.map(partial(self._place_changes, state.placed), changes.values()))
        return state.placed

    def _before(self, lane: LanePlan) -> TargetView:
        """The objects whose data the lane changes, as they are before it."""
        trail, wanted = NamesTrail(), dict[str, set[str]]()
        for operation in lane.operations:
            for table, partition in operation.changes_data_of:
                before, name = trail.before(table, partition)
                if before:
                    wanted.setdefault(before.lower(), set()).update([name] if name else ())
            trail.follow(operation.name_changes)
        return self._known.view(wanted)

    def _place_table(self, state: _LaneState, number: int, operation: op.CreateTable) -> None:
        placed, wanted = state.placed, {file.relative: file for file in operation.content.files}
        for later in placed.lane.operations[number:]:
            if isinstance(later, op.AddPartitions) and later.table == operation.table:
                wanted |= {f"{new.name}/{file.relative}": file for new in later.added for file in new.content.files}
        wanted |= state.committed.get((number, ""), {})
        directory, content, partitioned = operation.plain, operation.content, bool(operation.image.partitionKeys)
        self._boundary.require_free(directory, self._shown(operation, ""))
        free = content.plain and self._free.is_free(directory, wanted) and not self._taken.is_a_tables(directory)
        usable = free and self._taken.owns(directory)
        staged = self._free.staged(content, "", wanted, parts=partitioned) if usable else ""
        if staged and not self._taken.is_a_tables(staged):
            directory = staged
        elif not (usable and self._taken.claim_table(directory, operation.table, partitioned=partitioned)):
            directory = self._free.staging(content, "", wanted, parts=partitioned)
        self._copy_to(placed, number, "", operation, content, directory)

    def _place_partitions(self, state: _LaneState, number: int, operation: op.AddPartitions) -> None:
        placed = state.placed
        base = state.directory(operation.table) or f"{self._layout.location}/{table_directory(operation.table)}"
        untouched = not self._target.storage.exists(base)
        before, _ = state.trail.before(operation.table)

        def files(new: op.NewPartition) -> dict[str, FileRef]:
            return {**{file.relative: file for file in new.content.files}, **state.committed.get((number, new.name), {})}

        begun = self._free.begun(new.content for new in operation.added if files(new)) - {base}

        def directory(new: op.NewPartition) -> str:
            wanted, values = files(new), new.image.values
            own, plain, owner = directory_of(new.image), f"{base}/{new.name}", (operation.table, new.name)
            if self._layout.staging(new.content.staging) in begun:
                staged = self._free.staged(new.content, new.name, wanted)
                if staged and not self._taken.is_another_partitions(before, values, staged):
                    return staged
            # A partition that the lane drops or renames first still uses its directory.
            free = not state.trail.gone(*owner)
            if own and free and self._takes_own(own, owner, wanted):
                return own
            plain_path = new.content.plain and free and self._taken.claim(plain, owner)
            if plain_path and (untouched or not self._target.storage.exists(plain)):
                placed.absent.add(plain)
                return plain
            if plain_path and self._free.has_only(plain, wanted) and not self._taken.is_another_partitions(before, values, plain):
                return plain
            return self._free.staging(new.content, new.name, wanted)

        for new, place in zip(operation.added, self._target.storage.threads.map(directory, operation.added), strict=True):
            self._copy_to(placed, number, new.name, operation, new.content, place)

    def _takes_own(self, own: str, owner: tuple[str, str], wanted: Mapping[str, FileRef]) -> bool:
        """Whether a partition at a location of its own gets that on the target: nobody else has it, or is about to get it."""
        self._boundary.require_free(own, object_name(self._database, *owner))
        free = self._free.is_free(own, wanted) and not self._taken.is_live(own)
        return free and self._taken.claim(own, owner) and self._taken.owns_place(own)

    def _place_changes(self, placed: LanePlacement, changes: Iterable[_Change]) -> None:
        """The changes of one object, in order: each but the first finds what those before it leave."""
        content = ContentInLane()
        for change in changes:
            self._place_change(placed, change, content)

    def _place_change(self, placed: LanePlacement, change: _Change, content: ContentInLane) -> None:
        number, operation, thing = change
        live = directory_of(thing)
        wanted = {file.relative: file for file in operation.content.files}
        mode: Visibility = "append" if isinstance(operation, op.AppendData) else "replace"
        present, proving, brought = dict[str, CopyResult](), dict[str, CopyTask](), set[str]()
        found = self._target.storage.named_files(live) if live and not content.replaced else {}
        if live and thing and not content.replaced and files_changed(thing, found, wanted):
            placed.changed.append(UnexpectedObject(self._shown(operation, operation.partition), "files added or removed"))
        if live and (isinstance(operation, op.AppendData) or operation.compare):
            tasks, brought = self._there(operation, content.others(wanted), found), content.brought(wanted)
            present = self._present(tasks)
            if isinstance(operation, op.AppendData):  # where checksums decide nothing the copier proves what looks like it
                others = tasks.keys() - present.keys()
                proving = {name: tasks[name] for name in sorted(others) if self._free.looks_like(found[name], tasks[name].file)}
            if mode == "replace" and len(present) + len(brought) == len(content.names(found)):
                mode = "same" if len(present) + len(brought) == len(wanted) else "append"
        if mode == "replace":
            present, brought = {}, set[str]()
        there = present.keys() | proving.keys() | brought
        if isinstance(operation, op.AppendData) and content.names(found) & wanted.keys() - there:
            placed.taken.append((number, operation.partition))
        if mode == "append" and self._target.policy.append == "atomic" and len(there) < len(wanted):
            mode = "union"
        if live and mode != "replace":
            self._boundary.require_within(live, self._shown(operation, operation.partition))
        placed.modes[number, operation.partition] = mode
        if mode in ("append", "same"):
            placed.live[number, operation.partition] = live
        placed.present.extend(present.values())
        placed.tasks.extend(((number, operation.partition), task) for task in proving.values())
        missing = {name: file for name, file in wanted.items() if name not in there}
        directory = self._free.staging(operation.content, operation.partition, missing, live)
        self._copy_to(placed, number, operation.partition, operation, operation.content, directory, there)
        content.follow(wanted, replaces=isinstance(operation, op.ReplaceData))

    def _place_writes(self, state: _LaneState, number: int, operation: ReplayCommit) -> None:
        """Writes of a transaction go to the directory of their table or partition: nobody reads them before the commit.

        A base, which may be read before, is staged there.
        """
        written = [(one, state.directory(one.table, one.partition)) for one in operation.written]
        staged = self._target.storage.threads.map(self._staged, written)
        for (one, directory), base in zip(written, staged, strict=True):
            if directory:
                shown = object_name(self._database, one.table, one.partition)
                self._copy_to(state.placed, number, one.key, operation, one.content, directory, shown=shown, staged=base)

    def _staged(self, write: tuple[Written, str]) -> str:
        """Name of the base of a write to a directory, if it has one that is staged."""
        one, directory = write
        staged = directory and is_staged(self._target.storage, directory, one.write_id, one.content.files)
        return base_name(one.write_id) if staged else ""

    def _there(
        self, operation: op.ReplaceData | op.AppendData, wanted: Mapping[str, FileRef], found: Mapping[str, FileStatus]
    ) -> dict[str, CopyTask]:
        """The wanted files whose names are in the live directory already, which an earlier attempt may have added."""
        shown, events = self._shown(operation, operation.partition), operation.content.events(operation.evid)
        return {
            name: CopyTask(wanted[name], found[name].uri, events[wanted[name]], shown, found[name].size)
            for name in sorted(wanted.keys() & found.keys())
        }

    def _present(self, tasks: Mapping[str, CopyTask]) -> dict[str, CopyResult]:
        """Those that are proven by their checksums."""
        results: dict[str, CopyResult] = {}
        for name, task in tasks.items():
            checksum = checksum_of(self._target.storage, task.target)
            if checksum is not None and checksum.value == task.file.checksum:
                proof = Proof(checksum.algorithm, checksum.value, recorded=True)
                results[name] = CopyResult(task, "present", task.size, proof, attempts=0)
        return results

    def _copy_to(
        self,
        placed: LanePlacement,
        number: int,
        partition: str,
        operation: op.Operation,
        content: op.Content,
        directory: str,
        present: Container[str] = (),
        shown: str = "",
        staged: str = "",
    ) -> None:
        shown = shown or self._shown(operation, partition)
        self._boundary.require_within(directory, shown)
        placed.directories[number, partition] = directory
        for file, evid in content.events(operation.evid).items():
            if file.relative not in present:
                place = staged_base(file.relative) if staged and file.relative.startswith(f"{staged}/") else file.relative
                placed.tasks.append(((number, partition), CopyTask(file, f"{directory}/{place}", evid, shown)))

    def _shown(self, operation: op.Operation, partition: str) -> str:
        return object_name(self._database, operation.table, partition)
