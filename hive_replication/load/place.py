"""Where the data of a lane goes, decided before anything is copied.

New objects take Hive's plain path if it is absent or empty. Data that replaces or joins visible data is staged under the
database's directory in ``.repl/<evid>-<n>/<partition name>``. A directory that holds nothing but files which the same object is
waiting for was left by an earlier attempt: it is taken again, so that nothing is copied twice.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.events.files import FileRef
from hive_replication.load import operations as op
from hive_replication.load.locations import Locations
from hive_replication.load.origins import Origins, getting_data
from hive_replication.load.plan import LanePlan
from hive_replication.load.report import Stranger
from hive_replication.load.stamp import files_changed
from hive_replication.load.state import ReplicaState
from hive_replication.load.target import Target
from hive_replication.load.transactions import CommitTransaction, made_in_lane, written_to
from hive_replication.load.view import TargetView, read_view
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.storage import FileStatus

_THREADS = 32
#: Number of the operation in its lane, and partition name ("" for the table).
Key = tuple[int, str]
#: Nothing to do, give the staged files their names in the live directory, flip to them, or flip to both together.
Mode = Literal["same", "append", "replace", "union"]


#: Number of an operation, the operation, and what it changes.
_Change = tuple[int, op.ReplaceData | op.AppendData, Table | Partition | None]


@dataclass
class Placed:
    """The places of one lane.

    Args:
        lane: its plan.
        directories: where each content goes.
        modes: how a ReplaceData or AppendData is carried out, after a look at what is there.
        tasks: files to copy, with what waits for them.
        present: files that are in the live directory already, proven.
        changed: replicas with files that no load put there, or without some that one did.
    """

    lane: LanePlan
    directories: dict[Key, str] = field(default_factory=dict[Key, str])
    modes: dict[Key, Mode] = field(default_factory=dict[Key, Mode])
    tasks: list[tuple[Key, CopyTask]] = field(default_factory=list[tuple[Key, CopyTask]])
    present: list[CopyResult] = field(default_factory=list[CopyResult])
    changed: list[Stranger] = field(default_factory=list[Stranger])


@dataclass
class _Work:
    """A lane whose data is being placed.

    Args:
        placed: what is decided so far.
        before: the target's objects before the lane.
        origins: their names then.
        bases: directories of tables that the lane creates.
    """

    placed: Placed
    before: TargetView
    origins: Origins = field(default_factory=Origins)
    bases: dict[str, str] = field(default_factory=dict[str, str])

    def thing(self, table: str, partition: str) -> Table | Partition | None:
        """A table or partition as it is before the lane; None where it is not there, or has no name there."""
        table, partition = self.origins.of(table, partition)
        table = table.lower()
        return self.before.partitions.get((table, partition)) if partition else self.before.tables.get(table)

    def changed(self, operation: op.ReplaceData | op.AppendData) -> Table | Partition | None:
        """What an operation changes; None where the lane makes it."""
        thing = self.thing(operation.table, operation.partition)
        return thing if isinstance(thing, Partition) == bool(operation.partition) else None

    def base(self, table: str) -> str:
        """The directory of a partitioned table; "" where it is not known."""
        return self.bases.get(table) or directory_of(self.thing(table, ""))


class Placer:
    """Decides places under one target database.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory.
        kept: directories that an undo may need: they are never taken into use again. Asked only where a directory exists.
    """

    def __init__(self, target: Target, database: str, location: str, kept: Callable[[], Locations]) -> None:
        self._target, self._database, self._location, self._kept = target, database, location.rstrip("/"), kept

    def place(self, lane: LanePlan) -> Placed:
        """Decides the places of a lane's data; reads, but changes nothing."""
        work = _Work(Placed(lane), self._before(lane))
        changes: list[_Change] = []
        for number, operation in enumerate(lane.operations):
            match operation:
                case op.CreateTable() if operation.plain:
                    self._place_table(work, number, operation)
                case op.AddPartitions():
                    self._place_partitions(work, number, operation)
                case op.ReplaceData() | op.AppendData():
                    changes.append((number, operation, work.changed(operation)))
                case CommitTransaction():
                    self._place_writes(work, number, operation)
                case op.CustomOperation():
                    contents = dict(operation.contents)
                    for name, directory in operation.places:
                        self._want(work.placed, number, name, operation, contents[name], directory)
                case op.DropTable():
                    work.bases.pop(operation.table, None)
                case _:
                    pass
            work.origins.pass_by(operation)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="place") as pool:
            list(pool.map(partial(self._place_change, work.placed), changes))
        return work.placed

    def _before(self, lane: LanePlan) -> TargetView:
        """The objects that get data, as the target has them before the lane."""
        origins, wanted = Origins(), dict[str, set[str]]()
        for operation in lane.operations:
            for table, partition in getting_data(operation):
                before, name = origins.of(table, partition)
                if before:
                    wanted.setdefault(before.lower(), set()).update([name] if name else ())
            origins.pass_by(operation)
        return read_view(self._target.metastore, self._database, ReplicaState(), wanted, wanted)

    def _place_table(self, work: _Work, number: int, operation: op.CreateTable) -> None:
        placed = work.placed
        wanted = {file.relative: file for file in operation.content.files}
        for later in placed.lane.operations[number:]:
            if isinstance(later, op.AddPartitions) and later.table == operation.table:
                wanted |= {f"{new.name}/{file.relative}": file for new in later.added for file in new.content.files}
        wanted |= written_to(placed.lane.operations[number:], operation.table)
        directory = operation.plain
        if not (operation.content.plain and self._free(directory, wanted) and not self._in_use(directory)):
            directory = self._staged(operation.content, "", wanted)
        work.bases[operation.table] = directory
        self._want(placed, number, "", operation, operation.content, directory)

    def _place_partitions(self, work: _Work, number: int, operation: op.AddPartitions) -> None:
        placed, base = work.placed, work.base(operation.table) or f"{self._location}/{operation.table}"
        untouched = not self._target.storage.exists(base)

        def directory(new: op.NewPartition) -> str:
            wanted = {file.relative: file for file in new.content.files}
            wanted |= written_to(placed.lane.operations[number:], operation.table, new.name)
            plain = f"{base}/{new.name}"
            # What the lane drops first has its directory until then, and takes it along.
            plain_path = new.content.plain and not work.origins.dropped(operation.table, new.name)
            if plain_path and (untouched or self._free(plain, wanted)):
                return plain
            return self._staged(new.content, new.name, wanted)

        with ThreadPoolExecutor(_THREADS, thread_name_prefix="place") as pool:
            for new, place in zip(operation.added, pool.map(directory, operation.added), strict=True):
                self._want(placed, number, new.name, operation, new.content, place)

    def _place_change(self, placed: Placed, change: _Change) -> None:
        number, operation, thing = change
        live = directory_of(thing)
        wanted = {file.relative: file for file in operation.content.files}
        mode: Mode = "append" if isinstance(operation, op.AppendData) else "replace"
        present: dict[str, CopyResult] = {}
        found = self._found(live) if live else {}
        if live and thing and files_changed(thing, found, wanted):
            placed.changed.append(Stranger(self._shown(operation, operation.partition), "files added or removed"))
        if live and (isinstance(operation, op.AppendData) or operation.compare):
            present = self._present(operation, wanted, found)
            if mode == "replace" and len(present) == len(found):
                mode = "same" if len(present) == len(wanted) else "append"
        if mode == "replace":
            present = {}
        if mode == "append" and self._target.policy.append == "atomic" and len(present) < len(wanted):
            mode = "union"
        placed.modes[number, operation.partition] = mode
        placed.present.extend(present.values())
        missing = {name: file for name, file in wanted.items() if name not in present}
        directory = self._staged(operation.content, operation.partition, missing, live)
        self._want(placed, number, operation.partition, operation, operation.content, directory, present)

    def _place_writes(self, work: _Work, number: int, operation: CommitTransaction) -> None:
        """What a transaction wrote goes where its table or partition lies, or will lie: nobody reads it before the commit."""
        for one in operation.written:
            placed = work.placed
            directory = made_in_lane(placed.lane.operations[:number], placed.directories, one.table, one.partition)
            directory = directory or directory_of(work.thing(one.table, one.partition))
            if directory:
                shown = op.object_name(self._database, one.table, one.partition)
                self._want(placed, number, one.key, operation, one.content, directory, shown=shown)

    def _present(
        self, operation: op.ReplaceData | op.AppendData, wanted: Mapping[str, FileRef], found: Mapping[str, FileStatus]
    ) -> dict[str, CopyResult]:
        """Wanted files that are in the live directory already, proven."""
        shown = self._shown(operation, operation.partition)
        results: dict[str, CopyResult] = {}
        events = operation.content.events(operation.evid)
        for name in wanted.keys() & found.keys():
            status, checksum = found[name], self._target.storage.checksum(found[name].uri)
            if checksum is not None and checksum.value == wanted[name].checksum:
                task = CopyTask(wanted[name], status.uri, events[wanted[name]], shown, status.size)
                proof = Proof(checksum.algorithm, checksum.value, recorded=True)
                results[name] = CopyResult(task, "present", status.size, proof, attempts=0)
        return results

    def _want(
        self,
        placed: Placed,
        number: int,
        partition: str,
        operation: op.Operation,
        content: op.Content,
        directory: str,
        present: Container[str] = (),
        shown: str = "",
    ) -> None:
        placed.directories[number, partition] = directory
        shown = shown or self._shown(operation, partition)
        for file, evid in content.events(operation.evid).items():
            if file.relative not in present:
                placed.tasks.append(((number, partition), CopyTask(file, f"{directory}/{file.relative}", evid, shown)))

    def _shown(self, operation: op.Operation, partition: str) -> str:
        return op.object_name(self._database, operation.table, partition)

    def _staged(self, content: op.Content, partition: str, wanted: Mapping[str, FileRef], live: str = "") -> str:
        for attempt in range(1_000):
            token = content.staging + (f"-{attempt}" if attempt else "")
            hidden = "" if token.startswith(op.OPEN_STAGING) else ".repl"
            directory = "/".join(filter(None, (self._location, hidden, token, partition)))
            if directory != live and self._free(directory, wanted):
                return directory
        raise AssertionError(f"no free staging directory for {content.staging}")

    def _free(self, directory: str, wanted: Mapping[str, FileRef]) -> bool:
        """Whether a directory is absent or empty, or holds nothing but files that are wanted there, as wanted."""
        if not self._target.storage.exists(directory):
            return True
        if self._kept().around(directory) or self._kept().below(directory):
            return False
        found = self._found(directory)
        return all(name in wanted and self._equal(status, wanted[name]) for name, status in found.items())

    def _found(self, directory: str) -> dict[str, FileStatus]:
        """Data files below a directory, by relative path."""
        return self._target.storage.named_files(directory)

    def _equal(self, status: FileStatus | None, file: FileRef) -> bool:
        if status is None or not file.checksum:
            return False
        found = self._target.storage.checksum(status.uri)
        return found is not None and found.value == file.checksum

    def _in_use(self, directory: str) -> bool:
        """Whether an existing directory is another table's (a table keeps its directory when it is renamed)."""
        if not self._target.storage.exists(directory):
            return False
        names = self._target.metastore.table_names(self._database)
        locations = (table.sd.location for table in self._target.metastore.tables(self._database, names) if table.sd.location)
        return any(location.rstrip("/") == directory for location in locations)
