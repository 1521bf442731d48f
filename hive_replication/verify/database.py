"""Reads both sides of a database for comparison: table by table, partitions in batches."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace

from hive_replication.copy.proof import Crc32c
from hive_replication.dump.cm_roots import NOTHING_KEPT
from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.dump.functions import function_record
from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source, why_skipped
from hive_replication.dump.source_boundary import ANYWHERE
from hive_replication.dump.statistics import with_statistics
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.events.event_records import function_name
from hive_replication.events.files import FileRef
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.view_rewriting import renamed_databases
from hive_replication.logs import reason
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import has_files, is_partitioned, is_transactional, is_view
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Function, Table, directory_of
from hive_replication.progress import Progress, Silent
from hive_replication.storage import Denied, Storage
from hive_replication.storage.effective_access import EffectiveAccess
from hive_replication.verify.acid import Seen
from hive_replication.verify.avro_schemas import SchemaFiles
from hive_replication.verify.compare import NOT_COMPARED, UNCOMPARED, Comparer, Listed, Pair, TableComparison
from hive_replication.verify.functions import Resources, function_pairs
from hive_replication.verify.left_out import leaves_out

_LOG = logging.getLogger(__name__)


def compare_database(
    source: Source,
    target: Target,
    database: str,
    *,
    table: str | None = None,
    partitions: Collection[str] | None = None,
    progress: Progress | None = None,
) -> Iterator[TableComparison]:
    """Compares every table of the policy in a database and its functions, or one table, with the replica as both are now.

    Tables and views that are never replicated (:func:`hive_replication.dump.source.why_skipped`) are left out, and partitions,
    files, column statistics and functions where the policy is ``metadata_only``. Changes made while it reads may show as
    differences: compare when no event waits, or repeat.

    Args:
        source: the source side.
        target: the target side.
        database: source name.
        table: only this table.
        partitions: only these partitions of it (and the table itself).
        progress: shows the progress.

    Raises:
        BadRequest: the source has no such database, the policy leaves the table out, or neither side has it.
    """
    source.database(database)
    if table is not None:
        source.require_included(database, table)
    comparison = _Comparison(source, target, database, source.policy.target_of(database), partitions)
    names = comparison.names() if table is None else [table]
    compared = source.threads.map(comparison.table, names)
    for found in (progress or Silent()).count(compared, f"compare {database}", len(names)):
        if found is not None:
            yield found
        elif table is not None:
            raise BadRequest(
                f"neither {source.metastore.uri} nor {target.metastore.uri} has a table {database}.{table} to compare"
            )
    if table is None and not source.policy.metadata_only:
        yield from comparison.functions()


class _Side:
    """One side's copy of the database."""

    def __init__(
        self, metastore: Metastore, storage: Storage, database: str, *, copies: bool, metadata_only: bool, acid: bool
    ) -> None:
        self.metastore = metastore
        self.database = database
        self._metadata_only, self._acid = metadata_only, acid
        self._storage, self._lister = storage, Lister(storage, nothing=metadata_only, copies=copies)

    def names(self) -> list[str]:
        return self.metastore.table_names(self.database) if self.metastore.database(self.database) else []

    def table(self, name: str) -> Table | None:
        found = self.metastore.table(self.database, name)
        return None if found is None or self._skips(found) else found

    def leaves_out(self, name: str) -> bool:
        """Whether there is a table of a name that is never replicated."""
        found = self.metastore.table(self.database, name)
        return found is not None and self._skips(found)

    def _skips(self, table: Table) -> bool:
        return bool(why_skipped(table, metadata_only=self._metadata_only, acid=self._acid))

    def partition_names(self, table: Table | None) -> list[str]:
        if table is None or not is_partitioned(table) or self._metadata_only:
            return []
        return self.metastore.partition_names(self.database, table.tableName)

    def listed(self, table: Table | None, includes: Callable[[str], bool]) -> Listed | None:
        if table is None:
            return None
        seen = self._seen(table) if has_files(table) and is_transactional(table) else None
        files = seen.files(table) if seen else self._lister.files(table.sd.location or "") if has_files(table) else ()
        if is_view(table):
            return Listed(table, files)
        columns = [column.name for column in table.sd.cols]
        found = () if self._metadata_only else self.metastore.table_statistics(self.database, table.tableName, columns)
        constraints = self.metastore.constraints(self.database, table.tableName)
        kept = (one for one in constraints if one.parent is None or (one.parent[0] == self.database and includes(one.parent[1])))
        listed = Listed(with_statistics(table, found), files, tuple(kept))
        if not is_transactional(table):
            return listed
        write_id = self.metastore.max_write_id(self.database, table.tableName.lower())
        return replace(listed, transactional=True, write_id=write_id, rows=seen.rows(table, files) if seen else None)

    def partitions(self, table: Table | None, names: list[str]) -> dict[str, Listed]:
        if table is None or not is_partitioned(table):
            return {}
        found = by_name(table, self.metastore.partitions(self.database, table.tableName, names))
        seen = self._seen(table) if is_transactional(table) else None
        files = seen.many(found.values()) if seen else self._lister.many(part.sd.location or "" for part in found.values())
        columns = [column.name for column in table.sd.cols]
        known = self.metastore.partition_statistics(self.database, table.tableName, columns, names)
        return {
            name: Listed(
                with_statistics(part, known.get(name, ())),
                listed,
                transactional=seen is not None,
                rows=seen.rows(part, listed) if seen else None,
            )
            for (name, part), listed in zip(found.items(), files, strict=True)
        }

    def _seen(self, table: Table) -> Seen:
        return Seen.now(self.metastore, self._storage, self._lister, self.database, table)

    def functions(self) -> dict[str, Function]:
        return {one.functionName.lower(): one for one in self.metastore.functions(self.database)}


class _Comparison:
    def __init__(
        self, source: Source, target: Target, database: str, target_database: str, partitions: Collection[str] | None
    ) -> None:
        self._partitions = partitions
        self._storages = source.storage, target.storage
        self._access = EffectiveAccess(source.storage) if target.policy.preserve else None
        self._includes = source.policy.includes
        metadata_only = source.policy.metadata_only
        kinds = {"metadata_only": metadata_only, "acid": source.acid}
        self._source = _Side(source.metastore, source.storage, database, copies=False, **kinds)
        there = target.within_filters(database).metastore
        self._target = _Side(there, target.storage, target_database, copies=True, **kinds)
        source_roots, target_roots = ([root.uri for root in storage.roots] for storage in self._storages)
        databases = renamed_databases(source.policy.databases, database, target_database)
        logged = source.metastore.features.major >= 4
        self._parents = dict[str, bool]()
        names = databases, source.policy.owners, source.policy.renamed_views
        self._comparer = Comparer(source_roots, target_roots, self._same_content, logged, *names)
        if not metadata_only:
            self._comparer = replace(self._comparer, schemas=SchemaFiles(*self._storages).differences)
        self._side = source

    def names(self) -> list[str]:
        """Tables of the policy on either side."""
        return sorted(name for name in {*self._source.names(), *self._target.names()} if self._includes(name))

    def table(self, name: str) -> TableComparison | None:
        """Compares one table; None where neither side has one that is replicated.

        One that is dropped, or whose files are replaced, while it is read is read once more: others are to be compared as well.
        """
        try:
            with suppress(MetastoreError, FileNotFoundError):
                return self._compared(name)
            return self._compared(name)
        except (NotFound, FileNotFoundError) as error:
            return TableComparison(name, differences=(f"it changed while it was compared: {reason(error)}",))
        except NOT_COMPARED as error:
            return TableComparison(name, differences=(f"{UNCOMPARED}{error}",))

    def _compared(self, name: str) -> TableComparison | None:
        source, target = self._source.table(name), self._target.table(name)
        if source is None and (target is None or leaves_out(self._side.policy, target)):
            return None
        return self._comparer.table(name, self._pairs(source, target))

    def functions(self) -> Iterator[TableComparison]:
        """Compares functions, under their names of lanes."""
        boundary = replace(ANYWHERE, beside=self._side.database(self._source.database).locationUri or "")
        found = self._source.functions().values()
        records = [function_record(self._side, function, NOTHING_KEPT, boundary) for function in found]
        for pair in function_pairs(records, self._target.functions(), self._side.policy.owners):
            differences = list(pair.differences())
            if pair.record and pair.target:
                differences += self._of_resources(pair.record, pair.target)
            yield TableComparison(function_name(pair.name), differences=tuple(differences))

    def _of_resources(self, source: FunctionRecord, target: Function) -> list[str]:
        try:
            return list(Resources(*self._storages, self._same_content).differences(source, target))
        except (*NOT_COMPARED, FileNotFoundError) as error:
            return [f"its resources cannot be compared: {reason(error)}"]

    def _pairs(self, source: Table | None, target: Table | None) -> Iterator[Pair]:
        sides = (self._source, source), (self._target, target)
        yield self._with_access(Pair("", *(side.listed(table, self._is_replicated) for side, table in sides)))
        names = self._partitions
        if names is None:
            names = {*self._source.partition_names(source), *self._target.partition_names(target)}
        columns = max((table.sd.cols or [] for table in (source, target) if table), key=len, default=())
        for batch in batches(sorted(names), at_once(columns)):
            ours, theirs = self._source.partitions(source, batch), self._target.partitions(target, batch)
            pairs = (Pair(name, ours.get(name), theirs.get(name)) for name in batch)
            yield from self._storages[0].threads.map(self._with_access, pairs)

    def _is_replicated(self, parent: str) -> bool:
        """Whether a foreign key to a table is: loads leave out those to a table that is left out itself."""
        if parent not in self._parents:
            self._parents[parent] = self._includes(parent) and not self._source.leaves_out(parent)
        return self._parents[parent]

    def _with_access(self, pair: Pair) -> Pair:
        """With what the directories of both sides allow, where both have one."""
        source, target = (directory_of(one.thing) if one else "" for one in (pair.source, pair.target))
        if self._access is None or not (pair.source and pair.target and source and target):
            return pair
        storage = self._storages[1]
        with suppress(FileNotFoundError, Refused):  # a directory is gone, or lies outside the roots, which is told elsewhere
            found = storage.about_access(target, lambda store, path: store.read(path))
            wanted = self._access.of(source) if found else None
            return Pair(pair.name, replace(pair.source, access=wanted), replace(pair.target, access=found))
        return pair

    def _same_content(self, source: FileRef, target: FileRef) -> bool:
        ours, theirs = self._storages
        try:
            copy = Crc32c.of(theirs.stream(target.uri))
        except (Denied, Unreachable):
            raise
        except ReplicationError as error:  # its blocks are lost or damaged: a repair replaces it
            _LOG.warning("a file of the replica cannot be read: %s", error)
            return False
        return Crc32c.of(ours.stream(source.uri)) == copy
