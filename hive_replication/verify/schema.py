"""Compares the schema of a table and its partitions with the replica's, without reading files."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hive_replication.dump.source import Source
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.view_rewriting import renamed_databases
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Table
from hive_replication.verify.columns_and_parameters import expected_shape, partition_shape, shape_differences, table_shape


def schema_differences(
    source: Source, target: Target, database: str, table: str, partitions: Collection[str] | None
) -> Iterator[tuple[str, str]]:
    """Columns, types, formats, parameters and owners that differ now.

    Partitions that only one side has are no difference of schema.

    Args:
        source: the source side.
        target: the target side.
        database: source name.
        table: its name.
        partitions: only these partitions, and the table itself; all where None.

    Returns:
        Names of partitions, "" for the table, each with one sentence.
    """
    name = source.policy.target_of(database)
    ours, theirs = source.metastore.table(database, table), target.metastore.table(name, table)
    if ours is None or theirs is None:
        yield "", f"the table is not on the {'source' if ours is None else 'target'}"
        return
    roots = [root.uri for root in source.storage.roots]
    databases = renamed_databases(source.policy.databases, database, name)
    expected = expected_shape(ours, databases, source.policy.owners, source.policy.renamed_views)
    yield from (("", text) for text in shape_differences(expected, table_shape(theirs), roots))
    for batch in batches(sorted(_names(source, database, ours, theirs, partitions)), at_once(ours.sd.cols)):
        left = by_name(ours, source.metastore.partitions(database, table, batch))
        right = by_name(theirs, target.metastore.partitions(name, table, batch))
        for partition in sorted(left.keys() & right.keys()):
            shapes = partition_shape(left[partition]), partition_shape(right[partition])
            yield from ((partition, text) for text in shape_differences(*shapes, roots))


def _names(source: Source, database: str, ours: Table, theirs: Table, partitions: Collection[str] | None) -> Collection[str]:
    if not (is_partitioned(ours) and is_partitioned(theirs)) or source.policy.metadata_only:
        return ()
    return source.metastore.partition_names(database, ours.tableName) if partitions is None else partitions
