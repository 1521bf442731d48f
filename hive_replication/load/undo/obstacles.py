"""What an undo cannot be carried out for: all of it is looked for before anything is changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from hive_replication.errors import BadRequest, Refused
from hive_replication.load.journal.journal import Entry, LaneFile
from hive_replication.load.journal.lane_record import LaneRecord, Step
from hive_replication.load.operations.conflict_resolutions import Adopt
from hive_replication.load.operations.kinds import CreateTable, DropPartitions, DropTable, RenamePartition, RenameTable
from hive_replication.load.operations.transactions import ImpressWriteIds, ReplayCommit
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import LAST_ID, SOURCE, ReplicaState, is_ours
from hive_replication.load.replica.target import Target
from hive_replication.load.undo.old_data import OldDataLocator
from hive_replication.load.undo.reverse_lane import dropped_image, gone, is_created, is_renamed, require_replica
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Table, copy_of

#: Loads from the newest on, each with the lanes that are to be reversed, in their order.
Chosen = Sequence[tuple[Entry, list[LaneFile]]]

#: Kinds of operations that remove data.
_DROPS = frozenset({DropTable.kind, DropPartitions.kind})
_COMMITS = frozenset({ReplayCommit.kind, ImpressWriteIds.kind})


class Obstacles:
    """Looks for what stands in the way of an undo.

    Args:
        target: the target side.
        database: target database.
        state: where it stands.
        locator: finds the old data.
    """

    def __init__(self, target: Target, database: str, state: ReplicaState, locator: OldDataLocator) -> None:
        self._target, self._database, self._state, self._locator = target, database, state, locator

    @property
    def lost(self) -> frozenset[str]:
        """Tables that stand nowhere."""
        return frozenset(self._state.lost)

    def require_known(self, table: str, records: Iterable[LaneRecord]) -> None:
        """Makes sure that a table to undo is a replica, or was one in the loads that are taken back.

        Args:
            table: its name on the target.
            records: lanes of the loads since.

        Raises:
            BadRequest: it is not: the name is misspelt, or is one of the source.
        """
        found = self._target.metastore.table(self._database, table)
        ours = found is not None and is_ours(found, self._state.source)
        if not (ours or table in self._state.held or any(table in record.names for record in records)):
            shown = object_name(self._database, table)
            raise BadRequest(f"the target has no replica {shown}, and no load since has changed one: name a table of the target")

    def require_no_transactions(self, chosen: Chosen) -> None:
        """Makes sure that no commits are to be reversed, nor drops of transactional data, whose write ids are dropped with it.

        Raises:
            Refused: some are.
        """
        tables = sorted({step.table for record in _reversed(chosen) for step in record.steps if _of_transactions(record, step)})
        self._refuse_transactions(tables)

    def _refuse_transactions(self, tables: Collection[str]) -> None:
        if tables:
            raise Refused(
                f"{self._database}.{{{', '.join(tables)}}} had transactions committed, or data of transactions dropped or "
                "renamed, since, which cannot be undone; name a table that is not transactional"
            )

    def require_none(self, chosen: Chosen) -> None:
        """Makes sure that nothing else stands in the way, nor were tables or partitions renamed whose data moves with that.

        Raises:
            Refused: something does.
        """
        if why := self._data_lacks(chosen):
            raise Refused(why)
        self._require_names(chosen)
        trail = self._followed(chosen)
        if trail.missing:
            raise Refused(gone(self._database, trail.missing))
        if trail.foreign:
            shown = object_name(self._database, trail.foreign)
            require_replica(trail.at[trail.foreign].table, self._state.source, shown, "rename or drop it")
        self._refuse_transactions(sorted(trail.moved))
        self._require_partitions(trail)

    def lacks(self, chosen: Chosen) -> bool:
        """Whether old data or a replica is not there any more that the reversal of lanes needs.

        Not where retention is at it: it may be there whole when that has ended, which :meth:`require_none` says.
        """
        gone = any(not self._target.storage.exists(found) for _, _, found in self._kept(chosen))
        return gone or bool(self._followed(chosen).missing)

    def all_there(self, later: Chosen, until: Chosen) -> bool:
        """Whether the replicas are there that lanes left, once later ones are reversed.

        Args:
            later: the later ones.
            until: those that left the replicas.
        """
        names, source = set[str](), self._state.source
        for record in reversed([*_reversed(until)]):
            names = _left(record, names, source)
        trail = self._followed(later, also=names)
        there = {name for name, one in trail.at.items() if is_ours(one.table, source)}
        return not trail.missing and not trail.foreign and names <= there

    def _followed(self, chosen: Chosen, also: Collection[str] = ()) -> _Trail:
        """The tables' way back, up to the first lane that cannot be reversed."""
        names = {name for record in _reversed(chosen) for name in _names(record)}.union(also)
        trail = _Trail(self._state.source, {name: _Present(one, name) for name, one in self._tables(names)})
        for record in _reversed(chosen):
            trail.reverse(record)
            if trail.missing or trail.foreign:
                break
        return trail

    def _tables(self, names: Iterable[str]) -> Iterator[tuple[str, Table]]:
        return ((one.tableName.lower(), one) for one in self._target.metastore.tables(self._database, sorted(names)))

    def _data_lacks(self, chosen: Chosen) -> str:
        """Why old data cannot be gone back to, or ""."""
        for entry, place, found in self._kept(chosen):
            shown = f"{place}, which event {entry.to_evid} replaced or dropped,"
            if not self._target.storage.exists(found):
                return f"{shown} is not kept any more"
            if not self._locator.is_whole(place, found):
                return f"{shown} is in part moved or deleted: let retention end, then undo again"
        return ""

    def _kept(self, chosen: Chosen) -> Iterator[tuple[Entry, str, str]]:
        """The directories that lanes left, and their present paths."""
        kept = ((entry, place) for entry, lanes in chosen for lane in lanes for place in sorted(lane.record.kept))
        return ((entry, place, self._locator.locate(place, entry.token)) for entry, place in kept)

    def _require_names(self, chosen: Chosen) -> None:
        records, source = list(_reversed(chosen)), self._state.source
        foreign = {name for record in records for name, image in record.tables.items() if not is_ours(image, source)}
        taken = {name for record in records for name in _names_taken(record)} - foreign
        for name, table in self._tables(taken):
            require_replica(table, source, object_name(self._database, name), "rename or drop it")

    def _require_partitions(self, trail: _Trail) -> None:
        metastore = self._target.metastore
        for name, wanted in sorted(trail.partitions.items()):
            table = trail.present[name].table
            for some in batches(sorted(wanted), at_once(table.sd.cols)):
                for partition, one in by_name(table, metastore.partitions(self._database, name, some)).items():
                    require_replica(one, self._state.source, object_name(self._database, name, partition), "drop it")


@dataclass(frozen=True, slots=True)
class _Present:
    """A table at some moment of the undo.

    Args:
        table: as it is then.
        name: its name before the undo; "" of one that the undo creates.
    """

    table: Table
    name: str


@dataclass
class _Trail:
    """Follows the names of tables through an undo, as :class:`.reverse_lane.LaneReverser` changes them.

    Args:
        source: identity of the source.
        at: the tables of the target by name.

    Attributes:
        present: the tables before the undo.
        missing: a table that the lane that was reversed last needs, and that is not there; "" where all are.
        foreign: a table of users that had the name of a replica in that lane, or "".
        partitions: partitions that come back in tables that are there now, by the tables' names now.
        moved: transactional tables that were renamed, or had partitions renamed: where their data was, other data may be by now.
    """

    source: str
    at: dict[str, _Present]
    missing: str = ""
    foreign: str = ""
    partitions: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    moved: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.present = dict(self.at)

    def reverse(self, record: LaneRecord) -> None:
        """Reverses a lane."""
        for step in reversed(record.steps):
            self._reverse(record, step)
        ours = [name for name, image in record.tables.items() if is_ours(image, self.source)]
        self.foreign = next((one for one in ours if one in self.at and not is_ours(self.at[one].table, self.source)), "")
        self.missing = next((one for one in record.tables if one not in self.at and SOURCE in _parameters(record, one)), "")
        if self.foreign or self.missing:
            return
        for name in record.tables.keys() & self.at.keys():
            self.at[name] = _Present(record.tables[name], self.at[name].name)
        for name, parts in record.partitions.items():
            wanted = {part for part, image in parts.items() if image is not None and is_ours(image, self.source)}
            if wanted and name in self.at and self.at[name].name:
                self.partitions.setdefault(self.at[name].name, set()).update(wanted)

    def _reverse(self, record: LaneRecord, step: Step) -> None:
        match step.kind:
            case RenameTable.kind:
                current = self._table(step.new_name)
                if is_renamed(current, step):
                    self._note_moved(current, step.new_name)
                    former = copy_of(current)
                    former.parameters = {**current.parameters, LAST_ID: str(step.evid - 1)}
                    self.at[step.table] = _Present(former, self.at.pop(step.new_name).name)
            case CreateTable.kind:
                if is_created(self._table(step.table), step, self.source):
                    del self.at[step.table]
            case DropTable.kind:
                image = dropped_image(record, step, self._table)
                if image is not None:
                    self.at[step.table] = _Present(image, "")
            case RenamePartition.kind:
                self._note_moved(self._table(step.table), step.table)
            case _:
                pass  # does not change names

    def _note_moved(self, table: Table | None, name: str) -> None:
        if table is not None and is_transactional(table):
            self.moved.add(name)

    def _table(self, name: str) -> Table | None:
        return self.at[name].table if name in self.at else None


def _parameters(record: LaneRecord, table: str) -> Mapping[str, str]:
    return record.tables[table].parameters or {}


def _reversed(chosen: Chosen) -> Iterator[LaneRecord]:
    """Lanes in the order in which they are reversed."""
    return (lane.record for _, lanes in chosen for lane in reversed(lanes))


def _left(record: LaneRecord, names: Collection[str], source: str) -> set[str]:
    """The names of replicas after a lane, of those before it and its own."""
    left = {*names, *(name for name, image in record.tables.items() if is_ours(image, source))}
    for step in record.steps:
        if step.kind in (DropTable.kind, RenameTable.kind):
            left.discard(step.table)
        if step.kind in (CreateTable.kind, Adopt.kind, RenameTable.kind):
            left.add(step.new_name or step.table)
    return left


def _names(record: LaneRecord) -> Iterator[str]:
    """All names of tables that the reversal of a lane asks for."""
    steps = (name for step in record.steps for name in (step.table, step.new_name, *(former for former, _ in step.chain)))
    return filter(None, chain(record.tables, record.partitions, steps))


def _names_taken(record: LaneRecord) -> set[str]:
    """Names that tables of a replica get, or have for a moment, where a lane is reversed, but for tables that it created."""
    steps = (
        step.table for step in record.steps if step.kind == RenameTable.kind or (step.kind == DropTable.kind and step.origin)
    )
    return {*record.tables, *steps}


def _of_transactions(record: LaneRecord, step: Step) -> bool:
    image = record.tables.get(step.origin or step.table)
    return step.kind in _COMMITS or (step.kind in _DROPS and image is not None and is_transactional(image))
