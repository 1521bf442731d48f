"""The last answers of many checks at once, whatever was asked of them since.

Dagster's call for many checks gives the newest execution of each. That is no answer where a run has only announced the check: it
is to come, or the run died before, or it left the check out, as repairs do with those that need Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
import sqlalchemy as sql

from repl_assets.dagster_private import (
    AssetCheckExecutionRecord,
    AssetCheckExecutionsTable,
    PartitionKeyFilter,
    SqlEventLogStorage,
)
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status

#: States of executions that are answers.
ANSWERED = frozenset({Status.SUCCEEDED, Status.FAILED})

_CHUNK = 1_000  # keys in one statement
_CHECKS = AssetCheckExecutionsTable.c
_RECORD: Any = AssetCheckExecutionRecord  # which does not say what rows it is made of
_ANSWERED = _CHECKS.execution_status.in_([one.value for one in ANSWERED])


def newest_executions(
    instance: dg.DagsterInstance, checks: Sequence[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, AssetCheckExecutionRecord]:
    """The last answer of each check that has one, else its newest execution.

    Those that were only announced are read a second time, many by one statement: there may be as many as there are checks, since
    nothing answers for a run that died.
    """
    latest = instance.event_log_storage.get_latest_asset_check_execution_by_key
    chunks = (checks[start : start + _CHUNK] for start in range(0, len(checks), _CHUNK))
    found = {check: record for chunk in chunks for check, record in latest(chunk).items()}
    return found | _last_answers(instance, [check for check, one in found.items() if one.status not in ANSWERED])


def answers_of_partitions(instance: dg.DagsterInstance, check: dg.AssetCheckKey, partitions: Sequence[str]) -> dict[str, Status]:
    """Whether the last answer of a check passed, by partition, of those that have one."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        history = storage.get_asset_check_execution_history
        found = {
            one: history(check, limit=1, status=ANSWERED, partition_filter=PartitionKeyFilter(key=one)) for one in partitions
        }
        return {partition: records[0].status for partition, records in found.items() if records}
    mine = sql.and_(_CHECKS.asset_key == check.asset_key.to_string(), _CHECKS.check_name == check.name)
    statuses: dict[str, Status] = {}
    for some in _chunks(partitions):
        rows = _newest(storage, sql.and_(mine, _CHECKS.partition.in_(some)), _CHECKS.partition)
        statuses |= {row["partition"]: Status(row["execution_status"]) for row in rows}
    return statuses


def _last_answers(
    instance: dg.DagsterInstance, checks: Sequence[dg.AssetCheckKey]
) -> dict[dg.AssetCheckKey, AssetCheckExecutionRecord]:
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        history = storage.get_asset_check_execution_history
        return {check: one for check in checks for one in history(check, limit=1, status=ANSWERED)}
    keys = {(check.asset_key.to_string(), check.name): check for check in checks}
    found: dict[dg.AssetCheckKey, AssetCheckExecutionRecord] = {}
    for some in _chunks([*keys]):
        mine = sql.and_(_CHECKS.asset_key.in_({one for one, _ in some}), _CHECKS.check_name.in_({name for _, name in some}))
        for row in _newest(storage, mine, _CHECKS.asset_key, _CHECKS.check_name):
            if check := keys.get((row["asset_key"], row["check_name"])):  # else another check of one of the assets
                found[check] = _RECORD.from_db_row(row, key=check)
    return found


def _chunks(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (keys[start : start + _CHUNK] for start in range(0, len(keys), _CHUNK))


def _newest(storage: SqlEventLogStorage, mine: sql.ColumnElement[bool], *key: sql.ColumnElement[Any]) -> Sequence[sql.RowMapping]:
    newest = sql.select(sql.func.max(_CHECKS.id)).where(mine, _ANSWERED).group_by(*key)
    with storage.index_connection() as connection:
        return connection.execute(sql.select(AssetCheckExecutionsTable).where(_CHECKS.id.in_(newest))).mappings().all()
