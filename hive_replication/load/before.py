"""What a lane finds before it changes anything: the record of it that goes into the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hive_replication.load import operations as op
from hive_replication.load.columns import SetColumns
from hive_replication.load.journal_record import LaneRecord, Step
from hive_replication.load.place import Placed
from hive_replication.load.target import Target
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Partition, Table, directory_of


def lane_record(target: Target, database: str, lane: Placed, operations: Sequence[op.Operation]) -> LaneRecord:
    """Reads what the operations of a lane are about to change.

    Args:
        target: the target side.
        database: target database.
        lane: the placed lane.
        operations: the first of its operations, those that will be carried out.
    """
    walk = _Walk()
    for number, operation in enumerate(operations):
        walk.step(operation, lane.directories.get((number, ""), ""))
    metastore = target.metastore
    tables = {table.tableName.lower(): table for table in metastore.tables(database, sorted(walk.wanted))}
    partitions: dict[str, dict[str, Partition | None]] = {}
    for name, table in tables.items():
        wanted = walk.wanted[name]
        if not table.partitionKeys or wanted == set():
            continue
        found = metastore.partitions(database, name, None if wanted is None else sorted(wanted))
        partitions[name] = dict.fromkeys(sorted(wanted or ())) | by_name(table, found)
    places = _Places(tables, partitions)
    for number, operation in enumerate(operations):
        places.follow(lane, number, operation)
    files = {place: tuple(target.storage.named_files(place)) for place in sorted(places.grown)}
    return LaneRecord(
        lane.lane.names, tuple(walk.steps), tables, partitions, files, tuple(dict.fromkeys(places.left)), tuple(places.placed)
    )


@dataclass
class _Walk:
    """The operations by the names that tables had before the lane.

    Args:
        origins: name before the lane, "" for a table that the lane makes, by the name at this point.
        wanted: partitions touched by table name before the lane; None for all.
        chains: former names of a table in this lane, with the event ids that took them away.
    """

    steps: list[Step] = field(default_factory=list[Step])
    wanted: dict[str, set[str] | None] = field(default_factory=dict[str, set[str] | None])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    chains: dict[str, tuple[tuple[str, int], ...]] = field(default_factory=dict[str, tuple[tuple[str, int], ...]])

    def step(self, operation: op.Operation, directory: str) -> None:
        table, names = operation.table, operation.names if isinstance(operation, SetColumns) else op.partitions_of(operation)
        kind, evid = operation.kind, operation.evid
        if isinstance(operation, op.CreateTable):
            self.origins[table], self.chains[table] = "", ()
            self.steps.append(Step(kind, evid, table, directory=directory))
            return
        if not table:  # an operation of a site's own, about the whole database
            return
        origin = self.origins.setdefault(table, table)
        touched = self.wanted.setdefault(origin, set()) if origin else None
        if touched is not None:
            touched |= set(names)
        new_name, chain = "", self.chains.get(table, ())
        if isinstance(operation, op.RenameTable):
            new_name = operation.image.tableName.lower()
            self.origins[new_name] = self.origins.pop(table)
            self.chains[new_name] = (*self.chains.pop(table, ()), (table, evid))
        elif isinstance(operation, op.DropTable) and origin:
            self.wanted[origin] = None
        dropped = isinstance(operation, op.DropTable)
        self.steps.append(
            Step(kind, evid, table, new_name, names, origin=origin if dropped else "", chain=chain if dropped else ())
        )


class _Places:
    """Where data lies as the operations go on.

    Args:
        tables: images before, by name.
        partitions: images of touched partitions before, by table and name.
    """

    def __init__(self, tables: Mapping[str, Table], partitions: Mapping[str, Mapping[str, Partition | None]]) -> None:
        self._at: dict[tuple[str, str], str] = {(name, ""): directory_of(table) for name, table in tables.items()}
        self._at |= {
            (table, name): directory_of(part) for table, parts in partitions.items() for name, part in parts.items() if part
        }
        self._before = set(filter(None, self._at.values()))
        self.left: list[str] = []
        self.placed: list[str] = []
        self.grown: set[str] = set()

    def follow(self, lane: Placed, number: int, operation: op.Operation) -> None:
        table = operation.table
        match operation:
            case op.CreateTable() | op.AddPartitions():
                for name, _ in operation.contents:
                    if (number, name) in lane.directories:
                        self._put(table, name, lane.directories[number, name])
            case op.ReplaceData() | op.AppendData():
                self._change(table, operation.partition, lane.modes[number, operation.partition], lane, number)
            case op.DropPartitions():
                self._leave(table, operation.names)
            case op.DropTable():
                base = self._at.get((table, ""), "")
                self._leave(table, [name for owner, name in self._at if owner == table and name], below=base)
                self._leave(table, [""])
            case op.RenameTable():
                moved = [key for key in self._at if key[0] == table]
                self._at |= {(operation.image.tableName.lower(), name): self._at.pop((table, name)) for _, name in moved}
            case op.RenamePartition() if (table, operation.old) in self._at:
                self._at[table, operation.new] = self._at.pop((table, operation.old))
            case _:
                pass

    def _change(self, table: str, partition: str, mode: str, lane: Placed, number: int) -> None:
        if mode in ("replace", "union"):
            self._leave(table, [partition])
            self._put(table, partition, lane.directories[number, partition])
        elif mode == "append" and (place := self._at.get((table, partition))) in self._before and place:
            self.grown.add(place)

    def _put(self, table: str, partition: str, directory: str) -> None:
        self._at[table, partition] = directory
        self.placed.append(directory)

    def _leave(self, table: str, names: Sequence[str], below: str = "") -> None:
        for name in names:
            place = self._at.pop((table, name), "")
            if place and not (below and place.startswith(below + "/")):
                self.left.append(place)
