"""Objects of a dump against the target's state: bootstrap, its continuation after a crash, and repair (pure).

One table is one lane. What is missing is created, what differs is replaced, what the source does not have is dropped. A
partitioned table gets its state id last, after all its partitions: until then no window can take it for complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from typing import Literal
from zlib import crc32

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.format.record_types import PartitionRecord, TableRecord
from hive_replication.dump.statistics import statistics_of
from hive_replication.errors import Refused
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.avro_schemas import copied_schemas
from hive_replication.load.operations.conflict_resolutions import Adopt, adopted_at
from hive_replication.load.operations.constraints import FOREIGN, OWN, SetConstraints, on_target
from hive_replication.load.operations.statistics import Columns, SetStatistics
from hive_replication.load.operations.transactions import ImpressWriteIds, replay_policy
from hive_replication.load.plan import call_groups, gate
from hive_replication.load.plan.conflicts import Conflicts, is_foreign
from hive_replication.load.plan.lane_batches import in_parts
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica.name_mapping import NameMapping, object_name
from hive_replication.load.replica.state import CHECKPOINT, object_id
from hive_replication.load.replica.target_partitions import TargetPartitions
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import Skipped
from hive_replication.metastore.partition_filters import inside, why_unfit
from hive_replication.metastore.table_kinds import has_files, is_partitioned, is_transactional, is_view, other_shape
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Partition, Table, copy_of
from hive_replication.policy.model import ConflictPolicy
from hive_replication.policy.scope import PartitionFilters

_BATCH = 500
_SHOWN = 5


@dataclass(frozen=True)
class ObjectPlanner:
    """Plans tables of a dump of objects.

    Args:
        mapping: names and paths.
        view: the target's tables of the dump.
        evid: event id that the objects stand at.
        checkpoint: dump directory, kept on every object as Hive does (``hive.repl.ckpt.key``).
        repair: compare and replace also what stands at ``evid`` already.
        whole: whether the dump has all partitions of its tables, so that others have to go.
        other_history: the target's state ids are of another history of the source, and say nothing.
        conflicts: the policy's setting.
        metadata_only: the dump has neither data nor partitions; what the target has of them stays.
        present: partitions that the target has of the one table that is planned.
        filters: which partitions the dump has.
        excluded: what becomes of those that are outside by now.
    """

    mapping: NameMapping
    view: TargetView
    evid: int
    checkpoint: str
    repair: bool = False
    whole: bool = True
    other_history: bool = False
    conflicts: ConflictPolicy = "refuse"
    metadata_only: bool = False
    present: TargetPartitions = field(default_factory=TargetPartitions)
    filters: PartitionFilters = field(default_factory=PartitionFilters)
    excluded: Literal["keep", "drop"] = "keep"
    staying: list[str] = field(default_factory=list[str], init=False)

    def plan(
        self, record: TableRecord, partitions: Iterable[PartitionRecord], most: int | None = None
    ) -> Iterator[tuple[LanePlan, list[Skipped]]]:
        """One table's lane, in parts that are carried out one after another, each planned when it is asked for.

        A table that is dropped and made again is one part: it must not be without its partitions while files are copied.

        Args:
            record: the table.
            partitions: its partitions, by name.
            most: partitions and files of a part, but for its last operation; None for one part.
        """
        name = self.mapping.table(record.name)
        existing = self.view.tables.get(name)
        shown = object_name(self.mapping.target_database, name)
        base = self.view.state.position(name)
        if existing is None and not self.whole:
            reason = f"the target lacks {shown}: rebuild the whole table first"
            yield LanePlan((name,), base, (), Stop(self.evid, reason)), []
            return
        if existing is not None and not self._due(object_id(existing), again=True):
            reason = f"the target stands at {object_id(existing)} already, later than the dump's {self.evid}"
            yield LanePlan((name,), base, ()), [Skipped(self.evid, shown, reason)]
            return
        if reason := self.mapping.why_held(record.table) or why_unfit(self.filters.of(record.name), record.table):
            yield LanePlan((name,), base, (), Stop(self.evid, reason, refused=True)), []
            return
        # Other dumps, and an event, may have the same id: of each table the directories are its own, and never those of an event.
        number = 1 + crc32(record.name.encode())
        staging = staging_name(self.evid, number, transactional=record.write_ids is not None)
        self.staying.clear()
        try:
            for part in in_parts(self._resolved(staging, record, existing, partitions), most):
                yield LanePlan((name,), base, part), []
        except Refused as error:
            yield LanePlan((name,), base, (), Stop(self.evid, str(error), refused=True)), []
        if self.staying:
            more = f" and {len(self.staying) - _SHOWN} more" if len(self.staying) > _SHOWN else ""
            reason = (
                f"partitions of the target's own, which the source does not have, stay: {', '.join(self.staying[:_SHOWN])}{more}"
            )
            yield LanePlan((name,), base, ()), [Skipped(self.evid, shown, reason)]

    def _resolved(
        self, staging: str, record: TableRecord, existing: Table | None, partitions: Iterable[PartitionRecord]
    ) -> Iterator[op.Operation]:
        """The table's operations, after those that settle a conflict about its name."""
        if existing is not None and is_foreign(existing, self.mapping.source):
            first = self._conflicts.table(self.evid, existing, self.mapping.with_view_text(record.table))
            yield first
            existing = existing if isinstance(first, Adopt) else None
        yield from self._operations(staging, record, existing, partitions)

    def _operations(
        self, staging: str, record: TableRecord, existing: Table | None, partitions: Iterable[PartitionRecord]
    ) -> Iterator[op.Operation]:
        name = self.mapping.table(record.name)
        if existing is None or self._due(object_id(existing)):
            yield from copied_schemas(self.mapping, self.evid, name, [record.table])
        if record.write_ids is not None and self.whole:  # else partitions alone: the table has the write ids of their files
            yield from self._transactional(staging, name, record, record.write_ids, existing, partitions)
            return
        image = self.mapping.new_table(record.table, self.evid)
        if existing is not None and self.whole and other_shape(existing, record.table):
            yield from self._aside(name, existing)
            yield op.DropTable(self.evid, name, ends=is_transactional(existing))
            existing = None
        unsettled = existing is not None and self.whole and self._unsettled(existing)
        if existing is None:
            yield self._create(staging, record, name)
        elif has_files(record.table) and not self.metadata_only and self._due(object_id(existing)):
            content = op.Content(record.files, staging, origin=record.table.sd.location or "")
            first = self._with_checkpoint(image, existing if unsettled else None)
            yield op.ReplaceData(self.evid, name, "", first, content, compare=True)
        yield from self._partitions(staging, record.table, existing, partitions)
        if self.whole and not is_view(record.table):
            yield from self._attached(name, record, existing)
        late = bool(record.table.partitionKeys) if existing is None else self.metadata_only or not has_files(record.table)
        if unsettled or (late and self.whole and (existing is None or self._due(object_id(existing)))):
            yield op.AlterTable(self.evid, name, self._with_checkpoint(image))

    def _with_checkpoint(self, image: Table, of: Table | None = None) -> Table:
        """An image with this dump's checkpoint, or with that of a table until all that belongs to it is the dump's."""
        made = copy_of(image)
        found = (of.parameters or {}).get(CHECKPOINT) if of else self.checkpoint
        made.parameters |= {CHECKPOINT: found} if found else {}
        return made

    def _unsettled(self, existing: Table) -> bool:
        """Whether constraints and statistics of a table may be those of another dump, or of events.

        Only the last operation of its lane gives it this dump's checkpoint, so that it is so also after the load was killed.
        """
        return not self._by_ids(existing) and (existing.parameters or {}).get(CHECKPOINT) != self.checkpoint

    def _by_ids(self, existing: Table) -> bool:
        """Whether state ids alone say what has to be looked at: the load is a repair, or the table's name stands at the dump."""
        position = self.view.state.position(existing.tableName.lower())
        return self.repair or self.other_history or bool(gate.applied(self.evid, position=position))

    def _transactional(
        self,
        staging: str,
        name: str,
        record: TableRecord,
        write_ids: WriteIds,
        existing: Table | None,
        partitions: Iterable[PartitionRecord],
    ) -> Iterator[op.Operation]:
        """A transactional table is rebuilt where it differs; nothing of it is read before its write ids are set."""
        if existing is not None and not self._due(object_id(existing)):
            return
        begun = existing is not None and object_id(existing) == 0 and existing.parameters.get(CHECKPOINT) == self.checkpoint
        if existing is not None and not begun:
            yield from self._aside(name, existing)
            yield op.DropTable(self.evid, name, ends=True)
        if existing is None or not begun:
            existing = None
            yield self._create(staging, record, name)
        yield from self._partitions(staging, record.table, existing, partitions)
        yield ImpressWriteIds(self.evid, name, replay_policy(self.mapping), write_ids)
        yield from self._constraints(name, record, existing)
        image = self.mapping.new_table(record.table, self.evid)
        image.parameters[CHECKPOINT] = self.checkpoint
        yield op.AlterTable(self.evid, name, image)

    def _create(self, staging: str, record: TableRecord, name: str) -> op.CreateTable:
        """A partitioned or transactional table begins with state id 0, as Hive's own replicas do."""
        later = bool(record.table.partitionKeys) or record.write_ids is not None
        first = self.mapping.new_table(record.table, 0 if later else self.evid)
        first.parameters[CHECKPOINT] = self.checkpoint
        plain = self.mapping.table_location(record.table) if record.table.sd.location else ""
        content = op.Content(record.files, staging, origin=record.table.sd.location or "")
        return op.CreateTable(self.evid, name, first, content, plain, ends=is_transactional(record.table))

    def _partitions(
        self, staging: str, of: Table, existing: Table | None, partitions: Iterable[PartitionRecord]
    ) -> Iterator[op.Operation]:
        table = self.mapping.table(of.tableName.lower())
        for batch in batches(partitions, at_once(of.sd.cols, _BATCH)):
            present = self.present.named(record.name for record in batch) if existing else {}
            for record in batch:
                yield from self._make_room(table, record, present)
            due = (one.partition for one in batch if one.name not in present or self._due(object_id(present[one.name])))
            yield from copied_schemas(self.mapping, self.evid, table, due)
            new = (self._new_partition(staging, of, record) for record in batch if record.name not in present)
            yield from (op.AddPartitions(self.evid, table, tuple(some)) for some in batches(new, call_groups.MOST_ADDED))
            for record in batch:
                if record.name in present and self._due(object_id(present[record.name])):
                    one = self._new_partition(staging, of, record)
                    compare = self.conflicts != "replace" or not is_foreign(present[record.name], self.mapping.source)
                    yield op.ReplaceData(self.evid, table, record.name, one.image, one.content, compare=compare)
            counted = (
                one for one in batch if self._behind(existing, present.get(one.name), attached=statistics_of(one.partition))
            )
            statistics = tuple(Columns.of(record.name, record.partition) for record in counted)
            if statistics:
                yield SetStatistics(self.evid, table, statistics, whole=True)
        for others in self.present.others() if existing and self.whole and not self.metadata_only else ():
            own = existing is not None and not (is_foreign(existing, self.mapping.source) or adopted_at(existing))
            yield from self._drop(table, {name: part for name, part in others.items() if self._goes(of, name, part, own=own)})

    def _goes(self, of: Table, name: str, part: Partition, *, own: bool) -> bool:
        """Whether a partition has to go that the dump does not have; what others have added to a replica is in nothing's way."""
        found, foreign = self.filters.of(of.tableName), is_foreign(part, self.mapping.source)
        if found is not None and not inside(found, name) and (self.excluded == "keep" or foreign):
            return False
        if own and foreign:
            self.staying.append(name)
            return False
        return self._due(object_id(part), again=True)

    def _aside(self, table: str, existing: Table) -> Iterator[op.Operation]:
        """Settles conflicts about partitions that others have added to a table that is dropped, and that would go with it."""
        for found in self.present.others() if is_partitioned(existing) else ():
            foreign = {name: part for name, part in found.items() if is_foreign(part, self.mapping.source)}
            for name, part in foreign.items():
                if (first := self._conflicts.partition(self.evid, table, name, part, None)) is not None:
                    yield first

    def _make_room(self, table: str, record: PartitionRecord, present: dict[str, Partition]) -> Iterator[op.Operation]:
        """Settles a conflict about a partition's name; one that moves away is not present any more."""
        found = present.get(record.name)
        if found is not None and is_foreign(found, self.mapping.source):
            first = self._conflicts.partition(self.evid, table, record.name, found, record.partition)
            if first is not None:
                yield first
                del present[record.name]

    def _drop(self, table: str, partitions: Mapping[str, Partition]) -> Iterator[op.Operation]:
        """Drops partitions that the source does not have; a foreign one is in the way, too."""
        dropped: list[str] = []
        for name, found in partitions.items():
            foreign = is_foreign(found, self.mapping.source)
            first = self._conflicts.partition(self.evid, table, name, found, None) if foreign else None
            if first is not None:
                yield first
            else:
                dropped.append(name)
        if dropped:
            yield op.DropPartitions(self.evid, table, tuple(dropped))

    @property
    def _conflicts(self) -> Conflicts:
        return Conflicts(self.conflicts, self.mapping.source, self.mapping.target_database)

    def _attached(self, table: str, record: TableRecord, existing: Table | None) -> Iterator[op.Operation]:
        """Column statistics and constraints of the table itself; foreign keys come when all tables are there."""
        if self._behind(existing, existing, attached=statistics_of(record.table)):
            yield SetStatistics(self.evid, table, (Columns.of("", record.table),), whole=True)
        yield from self._constraints(table, record, existing)

    def _constraints(self, table: str, record: TableRecord, existing: Table | None) -> Iterator[op.Operation]:
        own = tuple(one for one in record.constraints if one.kind in OWN)
        if self._behind(existing, existing, attached=own):
            kept, _ = on_target(own, self.mapping, table, lambda _: True)
            # Foreign keys come last; while the first bootstrap is under way only those of the dump are looked at.
            others = self.view.state.applied is None and existing is not None and self._unsettled(existing)
            yield SetConstraints(self.evid, table, kept, whole=OWN | FOREIGN if others else OWN)

    def _behind(self, existing: Table | None, thing: Table | Partition | None, *, attached: Sized) -> bool:
        """Whether what belongs to an object has to be looked at: it has some, or may have had; not if that is done already.

        Args:
            existing: the target's table.
            thing: the target's object: the table, or a partition of it.
            attached: what the dump has of it.
        """
        if existing is None or thing is None:
            return bool(attached)
        if self._by_ids(existing):
            return self._due(object_id(thing))
        return self._due(object_id(thing), again=True) and (bool(attached) or self._unsettled(existing))

    def _new_partition(self, staging: str, of: Table, record: PartitionRecord) -> op.NewPartition:
        image = self.mapping.new_partition(record.partition, of, self.mapping.table(of.tableName.lower()), self.evid)
        image.parameters[CHECKPOINT] = self.checkpoint
        content = op.Content(record.files, staging, origin=record.partition.sd.location or "")
        return op.NewPartition(record.name, image, content)

    def _due(self, state_id: int, *, again: bool = False) -> bool:
        return gate.due(self.evid, state_id, again=again or self.repair, other_history=self.other_history)
