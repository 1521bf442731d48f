"""Calls about partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Self

from hive_metastore.ttypes import AddPartitionsRequest, DropPartitionsRequest, RequestPartsSpec

from hive_replication.metastore.dialect import KEEP_STATISTICS
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.partition_filters import FilterOf, inside
from hive_replication.metastore.tables import Tables, at_once, batches, carries, stands
from hive_replication.metastore.types import Partition, Table

_SEVERAL_EVENTS = "overwrite a read-only parameter"  # in its words


def by_name(table: Table, partitions: Iterable[Partition]) -> dict[str, Partition]:
    """Partitions of a table by their names, without those of another table that has taken its name meanwhile, with other keys."""
    return dict(named(table, partitions))


def named(table: Table, partitions: Iterable[Partition]) -> Iterator[tuple[str, Partition]]:
    """The same, one after another, each with its name."""
    keys = [key.name for key in table.partitionKeys or []]
    return ((partition_name(keys, part.values), part) for part in partitions if len(part.values) == len(keys))


class Partitions(Tables):
    """Partitions of tables, by Hive's partition names (see ``names``)."""

    filter_of: FilterOf | None = None

    def within(self, filter_of: FilterOf) -> Self:
        """The same metastore, which shows of tables with a filter only the partitions inside."""
        shown = copy(self)
        shown.filter_of = filter_of
        return shown

    def partition_names(self, db: str, table: str) -> list[str]:
        """Names of all partitions, sorted by the metastore.

        Raises:
            NotFound: there is no such table.
        """
        try:
            names = self.call(f"get_partition_names {db}.{table}", lambda client: client.get_partition_names(db, table, -1))
        except NotFound:
            raise
        except MetastoreError as error:  # so Hive 2 answers where there is no such table
            if self.table(db, table) is not None:
                raise
            raise NotFound(f"{db}.{table} at {self.uri}: no such table") from error
        if not names and self.table(db, table) is None:  # Hive 4 has no partitions of a table that it does not have
            raise NotFound(f"{db}.{table} at {self.uri}: no such table")
        return list(self._shown(db, table, names))

    def partition_count(self, db: str, table: str) -> int:
        """How many partitions a table has (0 if it is not partitioned), those outside a filter among them."""
        return self.call(f"get_num_partitions {db}.{table}", lambda client: client.get_num_partitions_by_filter(db, table, ""))

    def partitions(self, db: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        """Those of the named partitions that exist, or all; a batch a call, in no certain order within one; none of a view."""
        yield from self._read(db, table, self.partition_names(db, table) if names is None else self._shown(db, table, names))

    def add_partitions(self, db: str, table: str, partitions: Sequence[Partition]) -> None:
        """Adds partitions in one call and with one event: all of them or none.

        Raises:
            AlreadyExists: one of them exists; none is added.
        """
        request = AddPartitionsRequest(dbName=db, tblName=table, parts=list(partitions), ifNotExists=False, needResult=False)
        self.write(
            f"add_partitions {db}.{table}",
            lambda client: client.add_partitions_req(request),
            done=lambda: self._all(carries, db, table, partitions),
            made=lambda: self._all(stands, db, table, partitions),
        )

    def alter_partitions(self, db: str, table: str, partitions: Sequence[Partition]) -> None:
        """Replaces the descriptions of existing partitions; their statistics stay as described.

        One call, but on Hive 4.2 one for each where they have several write ids there or are more than
        ``hive.metastore.jdbc.max.batch.size``: it would log several events of one call, and fails to, having changed nothing.
        """
        try:
            self._alter_partitions(db, table, list(partitions))
        except MetastoreError as error:
            if len(partitions) < 2 or _SEVERAL_EVENTS not in str(error):
                raise
            for partition in partitions:
                self._alter_partitions(db, table, [partition])

    def _alter_partitions(self, db: str, table: str, partitions: list[Partition]) -> None:
        self.write(
            f"alter_partitions {db}.{table}",
            lambda client: client.alter_partitions_with_environment_context(db, table, partitions, KEEP_STATISTICS),
            done=lambda: self._all(stands, db, table, partitions),
        )

    def rename_partition(self, db: str, table: str, old_values: Sequence[str], partition: Partition) -> None:
        """Gives a partition the values and description of ``partition``. Of a managed table the metastore moves the data too."""
        self._rename(db, table, old_values, partition)

    def rename_partitions(self, db: str, table: str, renames: Sequence[tuple[Sequence[str], Partition]]) -> None:
        """The same for several, with one call each; all are looked at together.

        Args:
            db: database.
            table: its table.
            renames: old values and wanted partition of each.
        """
        for old_values, partition in renames:
            self._rename(db, table, old_values, partition, made=lambda: True)
        wanted = [partition for _, partition in renames]
        found = {tuple(p.values) for p in self._read(db, table, self._names_of(db, table, wanted))}
        for old_values, partition in renames:
            if tuple(partition.values) not in found:
                self._rename(db, table, old_values, partition)

    def _rename(
        self, db: str, table: str, old_values: Sequence[str], partition: Partition, made: Callable[[], bool] | None = None
    ) -> None:
        def done() -> bool:
            left = self._named(db, table, self._names_of(db, table, [Partition(values=list(old_values)), partition]))
            return [p.values for p in left] == [partition.values]

        what = f"rename_partition {db}.{table} {'/'.join(old_values)}"
        self.write(what, lambda client: client.rename_partition(db, table, list(old_values), partition), done=done, made=made)

    def drop_partitions(self, db: str, table: str, names: Iterable[str], *, delete_data: bool = False) -> None:
        """Drops the named partitions, a batch a call; those that do not exist are passed over.

        Hive 3.1 writes an event for each partition, Hive 4 one for the call. A metastore makes one SQL
        condition of a call's names, which its database may refuse if it is long (Derby does between 500 and 1,100 names).
        """
        for batch in batches(names, self._batch):
            request = DropPartitionsRequest(
                dbName=db,
                tblName=table,
                parts=RequestPartsSpec(names=batch),
                deleteData=delete_data,
                ifExists=True,
                needResult=False,
            )
            self._drop(db, table, batch, request)

    def _drop(self, db: str, table: str, names: list[str], request: DropPartitionsRequest) -> None:
        self.write(
            f"drop_partitions {db}.{table}",
            lambda client: client.drop_partitions_req(request),
            done=lambda: not self._named(db, table, names),
        )

    def _read(self, db: str, table: str, names: Iterable[str]) -> Iterator[Partition]:
        rest, size = iter(names), self._batch
        while batch := list(islice(rest, size)):
            found = self._named(db, table, batch)
            size = min([at_once(part.sd.cols, self._batch) for part in found[:1]], default=size)
            yield from found

    def _shown(self, db: str, table: str, names: Iterable[str]) -> Iterable[str]:
        found = self.filter_of(db, table) if self.filter_of else None
        return names if found is None else (name for name in names if inside(found, name))

    def _all(self, like: Callable[[Partition, Partition], bool], db: str, table: str, partitions: Sequence[Partition]) -> bool:
        """Whether all of some partitions are there as described."""
        found = {tuple(p.values): p for p in self._read(db, table, self._names_of(db, table, partitions))}
        return all(tuple(p.values) in found and like(found[tuple(p.values)], p) for p in partitions)

    def _named(self, db: str, table: str, names: list[str]) -> list[Partition]:
        found = self.call(f"get_partitions {db}.{table}", lambda client: self._dialect.partitions(client, db, table, names))
        return [part for part in found if part.sd]  # those of views have no storage

    def _names_of(self, db: str, table: str, partitions: Sequence[Partition]) -> list[str]:
        described = self.table(db, table)
        if described is None:
            raise NotFound(f"{db}.{table} at {self.uri}: no such table")
        keys = [key.name for key in described.partitionKeys]
        return [partition_name(keys, partition.values) for partition in partitions]
