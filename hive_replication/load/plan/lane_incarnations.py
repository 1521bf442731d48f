"""The incarnation of a table or partition that each event of a lane is about, from the whole lane (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable

from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.events.events_of_policy import refiltered, renamed_into
from hive_replication.events.partition_filters import Entered, within
from hive_replication.events.redumps import is_unclear
from hive_replication.load.plan import gate
from hive_replication.load.plan.incarnations import Incarnation, Incarnations, PartitionEvent, incarnations_of_partitions
from hive_replication.load.plan.lanes import Lane, WindowEvent
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.metastore.types import Table
from hive_replication.policy.scope import PartitionFilters


class LaneIncarnations:
    """The incarnations of a lane.

    Args:
        lane: its events.
        mapping: names and paths.
        includes: whether a source table's name belongs to the dump's scope.
        coming: target tables that were taken into the policy and could not be loaded yet.
        ended: event id of the database's drop at the end of the segment, which ends all incarnations; None without one.
        filters: which partitions belong to the dump's scope.
        acid: whether the dump has transactional tables and transactions.
        left_out: whether a table is of a kind that is not replicated: one that is renamed goes.
        state_id: state id of the target's replica of a source table's name, None where there is none.
        undumped: whether a table that has to come whole, under one of these names, has no dump: what the target has of it stays.

    Attributes:
        tables: by event id; those of functions, too.
        written: of the tables that a transaction wrote to, by event id and table.
        partitions: by event id and partition; of commits by event id and ``<table>/<partition>``.
    """

    def __init__(
        self,
        lane: Lane,
        mapping: NameMapping,
        includes: Callable[[str], bool],
        coming: Container[str],
        ended: int | None,
        filters: PartitionFilters,
        *,
        acid: bool,
        left_out: Callable[[Table], object],
        state_id: Callable[[str], int | None],
        undumped: Callable[[Collection[str]], bool],
    ) -> None:
        self._mapping, self._includes, self._filters, self._acid = mapping, includes, filters, acid
        self._left_out, self._state_id = left_out, state_id
        self._undumped = undumped(lane.names)  # by its last name, which is known at the end alone
        self.tables: dict[int, Incarnation] = {}
        self.written: dict[tuple[int, str], Incarnation] = {}
        self.partitions: dict[tuple[int, str], Incarnation] = {}
        self._names = Incarnations()
        self._of_partitions: dict[int, Incarnations] = {}
        self._begun: dict[tuple[int, str], Incarnation] = {}
        self._awaited = [self._names.of(name) for name in lane.names if mapping.table(name) in coming]
        for event in lane.events:
            self._follow(event)
        for incarnation in (*self.all(), *self.tables.values()):
            incarnation.dropped = incarnation.dropped or ended

    def all(self) -> Iterable[Incarnation]:
        """All incarnations of tables that an event is about, and those that the target waits for."""
        tables = (one for one in self.tables.values() if not r.is_function(one.names[0][0]))
        return (*tables, *self.written.values(), *self._awaited)

    def brought(self, evid: int) -> set[str]:
        """Names of partitions that events of the table of an event are about, and that are not dropped in the window."""
        table = self.tables[evid]
        return {name for (at, name), part in self.partitions.items() if self.tables[at] is table and part.dropped is None}

    def _belongs(self, change: r.AlterTable) -> bool:
        return change.after.dbName.lower() == self._mapping.source_database and self._includes(change.names[1])

    def _follow(self, event: WindowEvent) -> None:
        incarnation = self.tables[event.evid] = self._table(event)
        if event.event and (event.shared or self._enters(event) or is_unclear(event.event, acid=self._acid)):
            incarnation.unclear_evid = incarnation.unclear_evid or event.evid
        if isinstance(event.event, PartitionEvent):
            for name, part in incarnations_of_partitions(self._partitions_of(incarnation), event.event):
                self.partitions[event.evid, name] = part
        elif isinstance(event.event, tx.AllocateWriteIds):
            self._begun |= {(transaction, event.row.table): incarnation for transaction, _ in event.event.write_ids}
        elif isinstance(event.event, tx.TransactionEvent):
            self._follow_transaction(event, event.event)

    def _is_unclear(self, renamed: Incarnation, new: str, evid: int) -> bool:
        """Whether a renamed table comes whole: its replica lacks what nothing told of, and there is a dump to make it from.

        The positions of its names do not count: they may have passed such an event, where only a rebuilt replica has its id.
        """
        if renamed.unclear_evid is None or self._undumped:
            return False
        found = Incarnation([*renamed.names, (new, evid)]).located(self._state_id)
        stands = self._state_id(found) if found else None
        return not gate.applied(renamed.unclear_evid, table_id=stands or 0)

    def _enters(self, event: WindowEvent) -> bool:
        """Whether a partition was renamed into the filter of its table."""
        found = self._filters.of(event.row.table) if event.outside else None
        return found is not None and event.event is not None and isinstance(within(event.event, found), Entered)

    def _follow_transaction(self, event: WindowEvent, ended: tx.TransactionEvent) -> None:
        for table in ended.tables:
            begun = self._begun.get((ended.transaction, table))  # who drops a table without a lock lets its writers go on
            self.written[event.evid, table] = begun if begun and begun.dropped else self._names.of(table)
        for one in ended.writes if isinstance(ended, tx.CommitTransaction) else ():
            of_table = self._partitions_of(self.written[event.evid, one.table])
            self.partitions[event.evid, f"{one.table}/{one.partition}"] = of_table.of_or_gone(one.partition)

    def _partitions_of(self, table: Incarnation) -> Incarnations:
        return self._of_partitions.setdefault(id(table), Incarnations())

    def _table(self, event: WindowEvent) -> Incarnation:
        names = self._names
        match event.event:
            case r.CreateTable():
                return names.create(event.row.table, event.evid)
            case r.DropTable():
                return names.drop(event.row.table, event.evid)
            case r.CreateFunction() | r.DropFunction():
                follows = names.create if isinstance(event.event, r.CreateFunction) else names.drop
                return follows(event.names[0], event.evid)
            case r.AlterTable(rename=True) as change:
                old, new = change.names
                if renamed_into(change, self._mapping.source_database, self._includes):
                    return names.enter(new, event.evid)
                told = refiltered(change, self._filters.of)
                follows = self._belongs(change) and not self._left_out(change.after)
                whole = told or self._is_unclear(names.of(old), new, event.evid)
                if follows and not whole:
                    return names.rename(old, new, event.evid)
                left = names.drop(old, event.evid)
                left.rebuilt = follows and not told
                if follows:  # it comes whole, with the partitions that the filter of its new name includes
                    self._awaited.append(names.enter(new, event.evid))
                return left
            case _:
                return names.of(event.names[0])
