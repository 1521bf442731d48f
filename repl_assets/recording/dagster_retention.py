"""Deleting old records of a policy from Dagster's storage: runs with their logs, observations, evaluations of checks.

Dagster itself deletes only a run's record and events. The rest is deleted from its tables if they are in SQL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import dagster as dg
import sqlalchemy as sql

from hive_replication.policy import Policy
from repl_assets.catalog.keys import POLICY_TAG, UNRECORDED_TAG, Names
from repl_assets.catalog.run_statuses import FINISHED_STATUSES, ended
from repl_assets.dagster_private import (
    DATA_VERSION_TAG,
    RUNLESS_RUN_ID,
    AssetCheckExecutionRecordStatus,
    AssetCheckExecutionsTable,
    SqlEventLogStorage,
    SqlEventLogStorageTable,
    SqliteEventLogStorage,
)
from repl_assets.recording.recorder import DROPPED

_MOST_RUNS = 500  # that one run of the job deletes, in some 10 s; the next one continues
_PAGE = 500
_CHUNK = 1_000  # ids in one statement
_MOST_EVENTS = 100_000  # evaluations or observations that are read at once
_LONGEST = 600.0  # seconds in which one run deletes evaluations, and as many for observations; the next one continues
_OF_A_TABLE = 3  # components of its assets' keys: policy, database, table

_CHECKS, _EVENTS = AssetCheckExecutionsTable.c, SqlEventLogStorageTable.c
_OBSERVED, _CHECKED = dg.DagsterEventType.ASSET_OBSERVATION.value, dg.DagsterEventType.ASSET_CHECK_EVALUATION.value


def old_runs(instance: dg.DagsterInstance, names: Names, policy: Policy, before: float) -> Iterator[tuple[dg.DagsterRun, float]]:
    """Old runs of a policy that Dagster's catalog no longer shows, each with the time of its end.

    A run stays that has materialized the latest version of an asset or of a table's partition; of windows only the newest counts.
    So does one whose objects are still to be recorded.

    Args:
        instance: Dagster's.
        names: of the policy.
        policy: its databases.
        before: seconds since the epoch.
    """
    windows = {names.database(database, stage) for database in policy.databases for stage in ("dump", "load")}
    found = (record for record in _finished(instance, before) if _is_of(record.dagster_run, names, policy))
    old = (record for record in found if not _shown(instance, record.dagster_run.run_id, windows))
    for record in islice(old, _MOST_RUNS):
        yield record.dagster_run, ended(record)


def delete_run(instance: dg.DagsterInstance, run_id: str) -> None:
    """Deletes a run with its events and the logs of its steps."""
    instance.delete_run(run_id)
    instance.compute_log_manager.delete_logs(prefix=[run_id])
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        Path(storage.path_for_shard(run_id)).unlink(missing_ok=True)  # a file for each run, empty now


def delete_evaluations(instance: dg.DagsterInstance, names: Names, policy: Policy, before: float, *, dry_run: bool) -> int:
    """Deletes old evaluations of the checks of a policy's assets, except the newest of each check and partition.

    The last answer stays, too, where a run has announced another one: alarms and repairs go by it.

    Args:
        instance: Dagster's.
        names: of the policy.
        policy: its databases.
        before: seconds since the epoch.
        dry_run: only count.

    Returns:
        How many; 0 where Dagster does not keep them in SQL.
    """
    key = _CHECKS.asset_key, _CHECKS.check_name, _CHECKS.partition
    done, until = 0, time.monotonic() + _LONGEST
    for mine in _own(instance, names, policy, _CHECKS.asset_key):
        newest = sql.select(sql.func.max(_CHECKS.id)).where(mine).group_by(*key)
        answer = newest.where(_CHECKS.execution_status != AssetCheckExecutionRecordStatus.PLANNED.value)
        old = sql.select(_CHECKS.id, _CHECKS.evaluation_event_storage_id).where(
            mine, _CHECKS.create_timestamp < _naive(before), _CHECKS.id.not_in(newest), _CHECKS.id.not_in(answer)
        )
        done += _number(instance, old) if dry_run else 0
        for rows in _parts(instance, old, until) if not dry_run else ():
            _delete(instance, SqlEventLogStorageTable, [row[1] for row in rows if row[1]], _EVENTS.run_id == RUNLESS_RUN_ID)
            _delete(instance, AssetCheckExecutionsTable, [row[0] for row in rows])
            done += len(rows)
    if not dry_run:
        _delete_in_file(instance, _EVENTS.dagster_event_type == _CHECKED, before)
    return done


def delete_observations(instance: dg.DagsterInstance, names: Names, policy: Policy, before: float, *, dry_run: bool) -> int:
    """Deletes old observations of a policy's assets that belong to no run, such as those of lag, except the newest of each asset.

    Args:
        instance: Dagster's.
        names: of the policy.
        policy: its databases.
        before: seconds since the epoch.
        dry_run: only count.

    Returns:
        How many; 0 where Dagster does not keep them in SQL.
    """
    runless = sql.and_(_EVENTS.run_id == RUNLESS_RUN_ID, _EVENTS.dagster_event_type == _OBSERVED)
    done, until = 0, time.monotonic() + _LONGEST
    for own in _own(instance, names, policy, _EVENTS.asset_key, runless):
        mine = sql.and_(runless, own)
        newest = sql.select(sql.func.max(_EVENTS.id)).where(mine).group_by(_EVENTS.asset_key)
        old = sql.select(_EVENTS.id).where(mine, _EVENTS.timestamp < _naive(before), _EVENTS.id.not_in(newest))
        done += _number(instance, old) if dry_run else 0
        for rows in _parts(instance, old, until) if not dry_run else ():
            _delete(instance, SqlEventLogStorageTable, [row[0] for row in rows])
            done += len(rows)
        if not dry_run:
            _delete_in_file(instance, mine, before)
    return done


def dropped_tables(instance: dg.DagsterInstance, names: Names, before: float) -> list[dg.AssetKey]:
    """Assets of tables that were dropped or renamed away: Dagster shows entries of assets that nobody defines any more for ever.

    Args:
        instance: Dagster's.
        names: of the policy.
        before: seconds since the epoch; what was dropped later stays.

    Returns:
        Of each such table the assets of source, dump and replica, as far as they have entries.
    """
    known = {key for key in instance.get_asset_keys(prefix=[names.policy]) if len(key.path) == _OF_A_TABLE}
    dropped: list[dg.AssetKey] = []
    for key in sorted(known, key=dg.AssetKey.to_string):
        latest = instance.get_latest_materialization_event(key)
        made = latest.asset_materialization if latest is not None else None
        if latest is None or made is None or made.partition is not None:  # of a dropped partition there is such an entry, too
            continue
        if (made.tags or {}).get(DATA_VERSION_TAG, "").startswith(DROPPED):
            *path, table = key.path
            others = (dg.AssetKey([*path, f"{table}__{stage}"]) for stage in ("source", "dump"))
            dropped += [key, *known.intersection(others)] if latest.timestamp < before else []
    return dropped


def _finished(instance: dg.DagsterInstance, before: float) -> Iterator[dg.RunRecord]:
    """Finished runs that nothing has changed since, the oldest first."""
    wanted = dg.RunsFilter(statuses=FINISHED_STATUSES, updated_before=datetime.fromtimestamp(before, UTC))
    cursor: str | None = None
    while page := instance.get_run_records(wanted, limit=_PAGE, ascending=True, cursor=cursor):
        yield from page
        cursor = page[-1].dagster_run.run_id


def _is_of(run: dg.DagsterRun, names: Names, policy: Policy) -> bool:
    """Whether a run belongs to a policy, also one started by hand, and may be deleted."""
    keys = [*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())]
    mine = run.tags.get(POLICY_TAG) == names.policy or bool(names.own(keys, policy.databases))
    return mine and not run.tags.get(UNRECORDED_TAG)


def _shown(instance: dg.DagsterInstance, run_id: str, windows: set[dg.AssetKey]) -> bool:
    """Whether a run made the latest materialization of an asset, or of a partition of a table."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    for record in instance.get_records_for_run(run_id, of_type=kind).records:
        made = record.event_log_entry.asset_materialization
        if made is None:
            continue
        key, partition = made.asset_key, made.partition
        latest = instance.get_latest_materialization_event(key)
        if latest is not None and latest.run_id == run_id:
            return True
        if partition is not None and key not in windows:
            ids = instance.event_log_storage.get_latest_storage_id_by_partition(key, kind, {partition})
            if ids.get(partition) == record.storage_id:
                return True
    return False


def _own(
    instance: dg.DagsterInstance, names: Names, policy: Policy, column: sql.Column[Any], *where: sql.ColumnElement[bool]
) -> Iterator[sql.ColumnElement[bool]]:
    """What the rows of a policy's assets meet, some assets at a time; other projects' keys may begin with its name, too."""
    prefix = dg.AssetKey([names.policy]).to_string().removesuffix("]") + ","
    rows = _rows(instance, sql.select(column).where(column.startswith(prefix, autoescape=True), *where).distinct())
    found = [dg.AssetKey(json.loads(row[0])) for row in rows]
    keys = [*names.own(found, policy.databases), *(key for key in found if key == names.status)]
    for start in range(0, len(keys), _CHUNK):
        yield column.in_([key.to_string() for key in keys[start : start + _CHUNK]])


def _naive(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC).replace(tzinfo=None)


def _parts(instance: dg.DagsterInstance, query: Any, until: float) -> Iterator[list[tuple[Any, ...]]]:
    """What a query finds, until some time; each part is to be deleted before the next is asked for."""
    while time.monotonic() < until and (rows := _rows(instance, query.limit(_MOST_EVENTS))):
        yield rows


def _number(instance: dg.DagsterInstance, query: Any) -> int:
    rows = _rows(instance, sql.select(sql.func.count()).select_from(query.subquery()))
    return int(rows[0][0]) if rows else 0


def _rows(instance: dg.DagsterInstance, query: Any) -> list[tuple[Any, ...]]:
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return []
    with storage.index_connection() as connection:
        return [tuple(row) for row in connection.execute(query)]


def _delete(instance: dg.DagsterInstance, table: sql.Table, ids: Sequence[int], *where: sql.ColumnElement[bool]) -> None:
    storage = instance.event_log_storage
    if isinstance(storage, SqlEventLogStorage):
        for start in range(0, len(ids), _CHUNK):
            with storage.index_connection() as connection:
                connection.execute(table.delete().where(table.c.id.in_(ids[start : start + _CHUNK]), *where))


def _delete_in_file(instance: dg.DagsterInstance, which: sql.ColumnElement[bool], before: float) -> None:
    """Deletes events without a run in the file where SQLite has a second copy of all of them, which nothing shows."""
    storage = instance.event_log_storage
    if isinstance(storage, SqliteEventLogStorage):
        with storage.run_connection(RUNLESS_RUN_ID) as connection:
            connection.execute(SqlEventLogStorageTable.delete().where(which, _EVENTS.timestamp < _naive(before)))
