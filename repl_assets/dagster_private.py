"""All that this project uses of Dagster's private modules: nothing else imports ``dagster._``.

On an upgrade of Dagster ``tests/unit/repl_assets/test_dagster_private.py`` names what is gone or has changed. What to do then:

- ``DATA_VERSION_TAG``, ``PARTITION_NAME_TAG``, ``ASSET_PARTITION_RANGE_START_TAG``, ``ASSET_PARTITION_RANGE_END_TAG``,
  ``PRIORITY_TAG``, ``RUN_KEY_TAG``, ``HIDDEN_TAG_PREFIX``: names of tags, which Dagster's manual says, but its package does not
  offer. They are in stored runs and events: if a name has changed, read the old one too.
- ``RUNLESS_RUN_ID``: the run id under which Dagster keeps events that belong to no run. Look for it there.
- ``AssetCheckExecutionRecord``, ``AssetCheckExecutionRecordStatus``, ``PartitionKeyFilter``: answers of checks. Dagster's public
  calls give no answer of a partition; look at what ``DagsterInstance.event_log_storage`` returns and takes.
- ``SqlEventLogStorage``, ``SqliteEventLogStorage``, ``AssetCheckExecutionsTable``, ``DynamicPartitionsTable``,
  ``SqlEventLogStorageTable``: old answers of checks, observations and partition keys are deleted in these tables, as Dagster has
  no call that does so, or only one for each key. If a table is gone, the functions that use it (``dagster_retention`` and
  :func:`delete_dynamic_partitions`) may do nothing: Dagster then keeps old rows, or keys are deleted one by one.
- ``GrpcServerCodeLocationOrigin``, ``DagsterGrpcClient``: the sensor ``catalog`` asks its own code server to load the definitions
  again. Without them operators choose Reload in Dagster's Deployment page, as the sensor says.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord, AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, DynamicPartitionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    HIDDEN_TAG_PREFIX,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    RUN_KEY_TAG,
)
from dagster._grpc.client import DagsterGrpcClient

__all__ = [
    "ASSET_PARTITION_RANGE_END_TAG",
    "ASSET_PARTITION_RANGE_START_TAG",
    "DATA_VERSION_TAG",
    "HIDDEN_TAG_PREFIX",
    "PARTITION_NAME_TAG",
    "PRIORITY_TAG",
    "RUNLESS_RUN_ID",
    "RUN_KEY_TAG",
    "AssetCheckExecutionRecord",
    "AssetCheckExecutionRecordStatus",
    "AssetCheckExecutionsTable",
    "DagsterGrpcClient",
    "GrpcServerCodeLocationOrigin",
    "PartitionKeyFilter",
    "SqlEventLogStorage",
    "SqlEventLogStorageTable",
    "SqliteEventLogStorage",
    "delete_dynamic_partitions",
]

_CHUNK = 1_000  # keys in one statement


def delete_dynamic_partitions(instance: dg.DagsterInstance, name: str, keys: Sequence[str]) -> None:
    """Deletes partition keys, many by one statement where Dagster keeps them in SQL; its own call deletes one."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        for key in keys:
            instance.delete_dynamic_partition(name, key)
        return
    known = DynamicPartitionsTable.c
    for start in range(0, len(keys), _CHUNK):
        some = known.partition.in_(keys[start : start + _CHUNK])
        with storage.index_connection() as connection:
            connection.execute(DynamicPartitionsTable.delete().where(known.partitions_def_name == name, some))
