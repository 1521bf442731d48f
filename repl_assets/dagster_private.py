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
  :func:`delete_dynamic_partitions`) may do nothing: Dagster then keeps old rows, or keys are deleted one by one. The last answers
  of checks are read in the first one (``checks.answered``): without it, each check is asked for alone.
- ``GrpcServerCodeLocationOrigin``, ``DagsterGrpcClient``: the sensor ``catalog`` asks its own code server to load the definitions
  again. Without them operators choose Reload in Dagster's Deployment page, as the sensor says.
- ``is_valid_email``: which owners Dagster takes as e-mail addresses; without it call every owner a team.
- ``DefinitionsLoadContext``, ``DefinitionsLoadType``: whether definitions are loaded, or reconstructed for a run, and what the
  load gave the run along. Without them let the component read its catalog each time, and runs the policies as they were kept.
- ``LaunchRunContext``, ``GrpcServerCodeLocation``, ``CheckRunHealthResult``, ``WorkerStatus``, ``GRPC_INFO_TAG``: what a run
  launcher gets and answers; look at ``DefaultRunLauncher``. ``execute_run_command``, ``ExecuteRunArgs``,
  ``RepositoryPythonOrigin``, ``RepositoryLoadData``, ``recon_repository_from_origin``, ``serialize_value``,
  ``deserialize_value``: the command ``dagster api execute_run``, and what it loads. Without them leave ``run_launcher`` out of
  ``dagster.yaml``: each run then imports and makes everything again.
"""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster._cli.api import execute_run_command
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.definitions.definitions_load_context import DefinitionsLoadContext, DefinitionsLoadType
from dagster._core.definitions.repository_definition import RepositoryLoadData
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.launcher import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.origin import RepositoryPythonOrigin
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._core.remote_representation.code_location import GrpcServerCodeLocation
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord, AssetCheckExecutionRecordStatus
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, DynamicPartitionsTable, SqlEventLogStorageTable
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    GRPC_INFO_TAG,
    HIDDEN_TAG_PREFIX,
    PARTITION_NAME_TAG,
    PRIORITY_TAG,
    RUN_KEY_TAG,
)
from dagster._core.utils import is_valid_email
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import deserialize_value, serialize_value
from dagster._utils.hosted_user_process import recon_repository_from_origin

__all__ = [
    "ASSET_PARTITION_RANGE_END_TAG",
    "ASSET_PARTITION_RANGE_START_TAG",
    "DATA_VERSION_TAG",
    "GRPC_INFO_TAG",
    "HIDDEN_TAG_PREFIX",
    "PARTITION_NAME_TAG",
    "PRIORITY_TAG",
    "RUNLESS_RUN_ID",
    "RUN_KEY_TAG",
    "AssetCheckExecutionRecord",
    "AssetCheckExecutionRecordStatus",
    "AssetCheckExecutionsTable",
    "CheckRunHealthResult",
    "DagsterGrpcClient",
    "DefinitionsLoadContext",
    "DefinitionsLoadType",
    "ExecuteRunArgs",
    "GrpcServerCodeLocation",
    "GrpcServerCodeLocationOrigin",
    "LaunchRunContext",
    "PartitionKeyFilter",
    "RepositoryLoadData",
    "RepositoryPythonOrigin",
    "SqlEventLogStorage",
    "SqlEventLogStorageTable",
    "SqliteEventLogStorage",
    "WorkerStatus",
    "delete_dynamic_partitions",
    "deserialize_value",
    "execute_run_command",
    "is_valid_email",
    "recon_repository_from_origin",
    "serialize_value",
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
