"""The sensor that shows how far replicas are behind: observations that Dagster plots, and answers to ``up_to_date``.

Every event costs Dagster some 15 ms and a kilobyte, so they are few: one a minute while something waits, at once when nothing
does any more, and one an hour at rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect import Connection
from hive_replication.lag import Lag, LagReader, TableLag
from hive_replication.policy import Policy
from repl_assets.catalog import CatalogDatabase
from repl_assets.freshness import UP_TO_DATE, is_up_to_date
from repl_assets.keys import Names
from repl_assets.lag_metadata import database_metadata, figures
from resources.connection import ReplicationConnection

_INTERVAL = 30
_BEHIND = 60.0  # seconds between two observations of what is behind
_AT_REST = 3600.0
_MOST_TABLES = 20  # in one tick, those first that are furthest behind
MOST_EVENTS = 10_000  # of the log in one tick: some 15 s of the 60 s that it has; the next one goes on from there


@dataclass(frozen=True, slots=True)
class Seen:
    """What was observed last of a database or table.

    Args:
        time: when, seconds since the epoch.
        level: whether nothing waited.
        passed: whether it was up to date.
    """

    time: float
    level: bool
    passed: bool = True


@dataclass(frozen=True, slots=True)
class LagCursor:
    """The last observations of databases, and of the tables that were behind, as ``db/table``."""

    databases: Mapping[str, Seen] = field(default_factory=dict[str, Seen])
    tables: Mapping[str, Seen] = field(default_factory=dict[str, Seen])


_CURSOR = TypeAdapter(LagCursor)


class KeptReader:
    """A reader that sensors share and keep between ticks, which need not read again what waits.

    It stays until the policy has other databases. Sensors tick in threads: one reads at a time.
    """

    def __init__(self) -> None:
        self._kept: tuple[Policy, LagReader] | None = None
        self._reading = threading.Lock()

    def read(self, connection: Connection) -> Sequence[Lag]:
        """The lags of a connection's policy.

        Raises:
            Unreachable: a metastore does not answer.
        """
        policy = connection.source.policy
        with self._reading:
            if self._kept is None or self._kept[0] != policy:
                self._kept = policy, LagReader(connection.source, connection.target, most_events=MOST_EVENTS)
            return self._kept[1].read()


def lag_sensor(policy: Policy, databases: Sequence[CatalogDatabase], reader: KeptReader) -> dg.SensorDefinition:
    """The sensor of a policy; it runs from the start.

    Args:
        policy: the policy.
        databases: those of it, with the tables that have assets.
        reader: of the policy's lags.
    """
    names = Names.of(policy)
    assets = {f"{database.name}/{table.name}" for database in databases for table in database.tables}

    @dg.sensor(
        name=names.local("lag"),
        description="Observes how far databases and tables are behind",
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={names.connection},
    )
    def observe_lag(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        return tick(context.cursor, reader.read(resource.connect()), policy, assets, time.time())

    return observe_lag


def tick(
    cursor: str | None, lags: Sequence[Lag], policy: Policy, assets: Collection[str], now: float
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time.

    Args:
        cursor: of the last tick.
        lags: of all databases.
        policy: the policy.
        assets: tables that have assets, as ``db/table``.
        now: seconds since the epoch.
    """
    seen, names = _read(cursor), Names.of(policy)
    databases, tables = dict(seen.databases), dict(seen.tables)
    events: list[dg.AssetObservation | dg.AssetCheckEvaluation] = []
    for one in lags:
        new = Seen(now, not one.waiting and not one.gap, is_up_to_date(one, policy.lag_target_seconds))
        if one.applied is not None and _due(databases.get(one.database), new):
            databases[one.database] = new
            events += _database(names, one, passed=new.passed)
    for key, table in _tables(lags, seen, assets, now):
        new = Seen(now, not table.waiting)
        database, _, name = key.partition("/")
        events.append(dg.AssetObservation(names.table(database, name, "load"), metadata=figures(table)))
        tables = {known: old for known, old in tables.items() if known != key} | ({} if new.level else {key: new})
    if not events:
        return dg.SkipReason("nothing new about the lag")
    return dg.SensorResult(asset_events=events, cursor=_CURSOR.dump_json(LagCursor(databases, tables)).decode())


def _database(names: Names, found: Lag, *, passed: bool) -> Iterator[dg.AssetObservation | dg.AssetCheckEvaluation]:
    key, metadata = names.database(found.database, "load"), database_metadata(found)
    yield dg.AssetObservation(key, metadata=metadata)
    yield dg.AssetCheckEvaluation(
        asset_key=key, check_name=UP_TO_DATE, passed=passed, severity=dg.AssetCheckSeverity.WARN, metadata=metadata
    )


def _tables(lags: Sequence[Lag], seen: LagCursor, assets: Collection[str], now: float) -> list[tuple[str, TableLag]]:
    """Tables to observe: those behind, and those that were and are level now."""
    known = {one.database for one in lags if one.seconds_behind is not None}
    behind = {f"{one.database}/{table.table}": table for one in lags for table in one.tables if table.waiting}
    level = {
        key: TableLag(key.partition("/")[2], applied, 0, 0.0, 0)
        for key in seen.tables.keys() - behind.keys()
        for one in lags
        if one.database == key.partition("/")[0] and one.database in known and (applied := one.applied) is not None
    }
    due = [
        (key, table)
        for key, table in (level | behind).items()
        if key in assets and _due(seen.tables.get(key), Seen(now, not table.waiting))
    ]
    return sorted(due, key=lambda one: -one[1].seconds_behind)[:_MOST_TABLES]


def _due(last: Seen | None, new: Seen) -> bool:
    if last is None or (last.level, last.passed) != (new.level, new.passed):
        return True
    return new.time - last.time >= (_AT_REST if new.level else _BEHIND)


def _read(cursor: str | None) -> LagCursor:
    try:
        return _CURSOR.validate_json(cursor or "")
    except ValidationError:
        return LagCursor()
