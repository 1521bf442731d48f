"""Materialized views as ordinary views of the same definition, which is what replicas have of them (pure).

Whoever reads the source for a policy with ``materialized_views: definition`` sees them so, in its metastore as in its log. So
nothing else has to know of them, but for who tells their replicas from those of ordinary views: by a parameter.
"""

from __future__ import annotations

from hive_replication.metastore.marked_external import TRANSLATION
from hive_replication.metastore.statistics import is_statistic
from hive_replication.metastore.types import FieldSchema, SerDeInfo, StorageDescriptor, Table

MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
#: Parameter of a materialized view that is shown as a view, and of its replica.
MARK = "hive_replication.materialized_view"
#: Its values at the source and of a replica, which is an ordinary view where it is the source of another one.
_AT_SOURCE, REPLICA = "definition", "replica"
_DATA = TRANSLATION | {"transactional", "transactional_properties", "bucketing_version", "rewriting.time.window"}
_PREFIX = "materializedview."  # Hive's own parameters: by which columns the data is distributed and sorted
#: Parameters that stay where a storage handler has added its own: those cannot be told from the user's.
_OF_ALL_HANDLERS = frozenset({"comment", "transient_lastDdlTime", "last_modified_by", "last_modified_time"})


def is_materialized(table: Table) -> bool:
    """Whether it is a materialized view."""
    return table.tableType == MATERIALIZED_VIEW


def is_definition(table: Table) -> bool:
    """Whether it is a materialized view of the source, shown as an ordinary one."""
    return (table.parameters or {}).get(MARK) == _AT_SOURCE


def is_replica_of_materialized(table: Table) -> bool:
    """Whether a replica is the view that a materialized one of the source is replicated as."""
    return (table.parameters or {}).get(MARK) == REPLICA


def as_view(table: Table) -> Table:
    """A materialized view as an ordinary view with its texts, columns, comment and owner; any other table as it is.

    What Hive keeps of the data goes: place, format, partition keys, transactions and statistics. Partition keys are columns.
    """
    if not is_materialized(table):
        return table
    return Table(
        tableName=table.tableName,
        dbName=table.dbName,
        owner=table.owner,
        createTime=table.createTime,
        lastAccessTime=table.lastAccessTime,
        retention=table.retention,
        sd=_without_data([*(table.sd.cols or ()), *(table.partitionKeys or ())]),
        partitionKeys=[],
        parameters=_parameters(table.parameters or {}),
        viewOriginalText=table.viewOriginalText,
        viewExpandedText=table.viewExpandedText,
        tableType="VIRTUAL_VIEW",
        rewriteEnabled=False,
        catName=table.catName,
        ownerType=table.ownerType,
    )


def _without_data(columns: list[FieldSchema]) -> StorageDescriptor:
    """What Hive's CREATE VIEW writes."""
    return StorageDescriptor(
        cols=columns,
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(parameters={}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _parameters(found: dict[str, str]) -> dict[str, str]:
    if found.get("storage_handler"):
        kept = {key: value for key, value in found.items() if key in _OF_ALL_HANDLERS}
    else:
        kept = {key: value for key, value in found.items() if not (key in _DATA or is_statistic(key) or key.startswith(_PREFIX))}
    return {**kept, MARK: _AT_SOURCE}
