"""Comparing one object of the source with its replica (pure)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hive_replication.acid.rows import Rows
from hive_replication.dump.listing import Unsettled
from hive_replication.errors import MetastoreError, Refused, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.replica.hive4_translation import is_translated
from hive_replication.load.replica.state import object_id
from hive_replication.load.replica.view_rewriting import keeps_text
from hive_replication.logs import reason
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import Partition, Table
from hive_replication.policy.model import RenamedViews
from hive_replication.storage import Denied, Late, NoChecksum, StorageError, TooLarge
from hive_replication.storage.access import Access
from hive_replication.verify.columns_and_parameters import (
    expected_shape,
    partition_shape,
    shape_differences,
    source_paths,
    spark_path,
    table_shape,
)
from hive_replication.verify.constraints_and_statistics import constraint_differences, statistics_differences

_LOG = logging.getLogger(__name__)

#: Differences of one table that are listed; further ones are counted.
MOST_DIFFERENCES = 20

#: Why one object cannot be compared while others can: who may read its files, where they lie, what is known of them, what their
#: store says of them, or that a metastore does not show it, as where that asks HDFS who may read its directory.
NOT_COMPARED = (Denied, Refused, NoChecksum, Late, TooLarge, StorageError, Unsettled, MetastoreError)

#: How the difference of such an object begins.
UNCOMPARED = "it cannot be compared: "

SameContent = Callable[[FileRef, FileRef], bool]


@dataclass(frozen=True, slots=True)
class TableComparison:
    """How a table and its replica compare now.

    Args:
        table: name.
        partitions_source, partitions_target: numbers of partitions.
        files_source, files_target: numbers of data files.
        files_proven: files with the same checksum on both sides.
        by_rows: of a transactional table, number of objects whose files differ, as after a compaction of one side, and whose rows
            are equal by their hashes.
        translated: whether the target's metastore keeps a managed table as an external one (Hive 4), which is no difference.
        keeps_text: whether it is a view whose text stays by the policy, although it names databases that have other names on the
            target, which is no difference.
        last_id: highest ``repl.last.id`` of the replica and its partitions, 0 without one.
        repairs: partitions that differ, "" for the table itself or a partition that the source does not have; what to repair.
        content: those of ``repairs`` of which files, rows, write ids or the presence differ; of the others only metadata does.
        differences: one sentence each, the first :data:`MOST_DIFFERENCES` of them; empty where the replica is right.
    """

    table: str
    partitions_source: int = 0
    partitions_target: int = 0
    files_source: int = 0
    files_target: int = 0
    files_proven: int = 0
    by_rows: int = 0
    translated: bool = False
    keeps_text: bool = False
    last_id: int = field(default=0, compare=False)
    repairs: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Listed:
    """A table or partition of one side, its column statistics in ``colStats``, with its files and its own constraints.

    Args:
        thing: the object.
        files: of a transactional table those that a reader needs.
        constraints: its own.
        transactional: whether it is, or belongs to, a transactional table.
        write_id: of such a table the greatest write id that was given out; 0 of a partition.
        rows: of such a table adds up the rows that a reader sees; None where they cannot be read.
        access: what its directory allows, at the source together with all above it; None where that is not compared.
    """

    thing: Table | Partition
    files: tuple[FileRef, ...]
    constraints: tuple[Constraint, ...] = ()
    transactional: bool = False
    write_id: int = 0
    rows: Callable[[], Rows] | None = None
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """An object on both sides, or on one.

    Args:
        name: partition name, "" for the table itself.
        source, target: what is there; None where there is no such object.
    """

    name: str
    source: Listed | None
    target: Listed | None


@dataclass(frozen=True)
class Comparer:
    """Compares pairs.

    Args:
        source_roots, target_roots: storage roots of both sides.
        same_content: reads two files where their stores' checksums do not decide (files of other block sizes, other stores).
        statistics_logged: whether the source writes events of column statistics (Hive 4), so that all of them have to be equal.
        databases: databases that have another name on the target, by their names at the source.
        owners: of the policy.
        renamed_views: of the policy.
        schemas: tells what is wrong with files that a replica names for its schema.
    """

    source_roots: Sequence[str]
    target_roots: Sequence[str]
    same_content: SameContent
    statistics_logged: bool = False
    databases: Mapping[str, str] = field(default_factory=dict[str, str])
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    renamed_views: RenamedViews = "rewrite"
    schemas: Callable[[Table | Partition, Table | Partition], Iterable[str]] = field(default=lambda _source, _target: ())

    def table(self, name: str, pairs: Iterable[Pair]) -> TableComparison:
        """Adds up a table: the pair of the table itself and those of its partitions."""
        total = TableComparison(name)
        listed: list[str] = []
        unlisted = 0
        repairs: dict[str, None] = {}
        content: dict[str, None] = {}
        for pair in pairs:
            proven, by_rows, unlike, others = self._pair(pair)
            differences, repaired = [*unlike, *others], pair.name if pair.source else ""
            repairs |= {repaired: None} if differences else {}
            content |= {repaired: None} if unlike else {}
            total = _add(total, pair, proven, by_rows=by_rows)
            if isinstance(view := pair.source and pair.source.thing, Table) and pair.target:
                total = replace(total, keeps_text=keeps_text(view, self.databases, self.renamed_views))
            for difference in differences:
                if len(listed) < MOST_DIFFERENCES:
                    listed.append(difference)
                else:
                    unlisted += 1
        more = (f"and {unlisted} more differences",) if unlisted else ()
        return replace(total, repairs=tuple(repairs), content=tuple(content), differences=(*listed, *more))

    def _pair(self, pair: Pair) -> tuple[int, bool, list[str], list[str]]:
        """Files that are proven, whether rows were compared, and differences of the content and of the metadata."""
        what = f"partition {pair.name}" if pair.name else "the table"
        if pair.source is None and pair.target is None:
            return 0, False, [], []  # of partitions that are named, dropped on both sides
        if pair.source is None or pair.target is None:
            missing, present = ("target", "source") if pair.target is None else ("source", "target")
            return 0, False, [f"{what} is on the {present}, not on the {missing}"], []
        proven, files = self._files(pair.source.files, pair.target.files)
        by_rows = bool(files) and same_rows(pair.source.rows, pair.target.rows)
        content = [] if by_rows else files
        # A source that kept write ids of a dropped table of the name shows no more to a reader than one that gave out none.
        unused = not (pair.target.write_id or pair.source.files)
        if pair.source.write_id != pair.target.write_id and not unused:
            content.append(f"write ids go up to {pair.target.write_id} on the target, {pair.source.write_id} on the source")
        metadata = [*self._metadata(pair.source.thing, pair.target.thing)]
        metadata += constraint_differences(pair.source.constraints, pair.target.constraints)
        if not pair.source.transactional:  # whose statistics are not replicated
            metadata += statistics_differences(pair.source.thing, pair.target.thing, logged=self.statistics_logged)
        metadata += _access_differences(pair.source.access, pair.target.access)
        prefix = f"partition {pair.name}: " if pair.name else ""
        return proven, by_rows, [prefix + one for one in content], [prefix + one for one in metadata]

    def _metadata(self, source: Table | Partition, target: Table | Partition) -> Iterator[str]:
        theirs = table_shape(target) if isinstance(target, Table) else partition_shape(target)
        whole = isinstance(source, Table)
        ours = expected_shape(source, self.databases, self.owners, self.renamed_views) if whole else partition_shape(source)
        yield from shape_differences(ours, theirs, self.source_roots)
        yield from source_paths(target, self.source_roots, self.target_roots, source)
        yield from self.schemas(source, target)
        if not list(spark_path(source)):
            yield from spark_path(target)

    def _files(self, source: Iterable[FileRef], target: Iterable[FileRef]) -> tuple[int, list[str]]:
        ours, theirs = ({file.relative: file for file in files} for files in (source, target))
        differences = [f"file {name} is on the source only" for name in sorted(ours.keys() - theirs.keys())]
        differences += [f"file {name} is on the target only" for name in sorted(theirs.keys() - ours.keys())]
        common = sorted(ours.keys() & theirs.keys())
        differing = [name for name in common if not self._equal(ours[name], theirs[name])]
        return len(common) - len(differing), differences + [f"file {name} has other content" for name in differing]

    def _equal(self, source: FileRef, target: FileRef) -> bool:
        return bool(source.checksum and source.checksum == target.checksum) or self.same_content(source, target)


def _access_differences(source: Access | None, target: Access | None) -> Iterator[str]:
    if source and target and target.exceeds(source):
        yield f"its directory is {target} on the target, which allows more than {source}, with those above it, at the source"


def same_rows(source: Callable[[], Rows] | None, target: Callable[[], Rows] | None) -> bool:
    """Whether files that differ hold the same rows for readers, as after a compaction.

    Args:
        source: adds up the rows that a reader sees at the source; None where they cannot be read.
        target: the same of the replica.
    """
    if source is None or target is None:
        return False
    try:
        return source() == target()
    except Unreachable:
        raise
    except Exception as error:  # noqa: BLE001 - other format, deleted, damaged, odd values: the differences of files stand
        _LOG.info("rows cannot be compared, files are: %s", reason(error))
        return False


def _add(total: TableComparison, pair: Pair, proven: int, *, by_rows: bool) -> TableComparison:
    return replace(
        total,
        partitions_source=total.partitions_source + bool(pair.name and pair.source),
        partitions_target=total.partitions_target + bool(pair.name and pair.target),
        files_source=total.files_source + (len(pair.source.files) if pair.source else 0),
        files_target=total.files_target + (len(pair.target.files) if pair.target else 0),
        files_proven=total.files_proven + proven,
        by_rows=total.by_rows + by_rows,
        translated=total.translated or _translated(pair),
        last_id=max(total.last_id, object_id(pair.target.thing if pair.target else None)),
    )


def _translated(pair: Pair) -> bool:
    ours, theirs = pair.source and pair.source.thing, pair.target and pair.target.thing
    return isinstance(ours, Table) and isinstance(theirs, Table) and is_translated(theirs) and not is_translated(ours)
