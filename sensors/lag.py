"""The sensor that reports the lag of replicas: observations that Dagster plots, and results of the check ``up_to_date``.

Every event costs Dagster some 15 ms and a kilobyte, so there are few: one a minute while events wait, fewer where they wait in
many databases, one as soon as none waits any more, and one an hour after that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect import Connection
from hive_replication.errors import OF_ONE_DATABASE, ReplicationError, Unreachable
from hive_replication.failover import ReplicaRole, role_now
from hive_replication.lag import MOST_EVENTS, Lag, LagReader, TableLag
from hive_replication.markdown import escaped
from hive_replication.policy import Policy
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import UP_TO_DATE, Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.up_to_date import answer, is_up_to_date
from repl_assets.recording.metadata import lag_figures, lag_metadata, role_metadata
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.connections import connect_for_tick

_INTERVAL = 30
_BEHIND = 60.0  # seconds between two observations of a lag
_AT_REST = 3600.0
_MOST_DATABASES = 20  # observed a minute because events wait there; where there are more, each less often
_MOST_TABLES = 20  # in one tick; those with the greatest lag first
_GIVEN_UP = 300.0  # seconds after which another reading begins: no call of a metastore waits so long here
_PATIENCE = 40.0  # seconds: longer than a reading takes, and with it a tick ends in time
_Each = Callable[[Callable[[Lag], ReplicaRole | None], Sequence[Lag]], Iterator[ReplicaRole | None]]


@dataclass(frozen=True, slots=True)
class Observed:
    """The last observation of a database or table.

    Args:
        time: when, seconds since the epoch.
        level: whether no event waited.
        passed: whether the check passed.
        stopped: whether an operator had stopped the database.
        known: False during an outage.
    """

    time: float
    level: bool
    passed: bool = True
    stopped: bool = False
    known: bool = True


@dataclass(frozen=True, slots=True)
class LagCursor:
    """The last observations of databases, and of the tables that were behind, as ``db/table``."""

    databases: Mapping[str, Observed] = field(default_factory=dict[str, Observed])
    tables: Mapping[str, Observed] = field(default_factory=dict[str, Observed])


_CURSOR = TypeAdapter(LagCursor)


class KeptReader:
    """A reader that sensors share and keep between ticks, so that each event is read once.

    It is replaced when the policy changes, or the source is another one by now, as after an upgrade. Sensors tick in threads: one
    reads at a time, those that come meanwhile get what it finds. If each waited for its turn with a server that does not answer,
    Dagster would end their ticks.

    Args:
        patience: seconds to wait for another one's reading.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._kept: LagReader | None = None
        self._reading: Future[Sequence[Lag]] | None = None
        self._began = 0.0  # by the monotonic clock
        self._guard = threading.Lock()

    def read(self, connection: Connection) -> Sequence[Lag]:
        """The lags of a connection's policy.

        Raises:
            Unreachable: a metastore does not answer, or a reading that began before takes too long.
        """
        with self._guard:
            others, mine = self._reading, Future[Sequence[Lag]]()
            if others and time.monotonic() - self._began > _GIVEN_UP:
                others = self._kept = None
            if others is None:
                self._reading, self._began = mine, time.monotonic()
        if others is None:
            return self._read(connection, mine)
        try:
            return others.result(self._patience)
        except TimeoutError as error:
            raise Unreachable(
                f"a reading of the lags has not ended after {self._patience:g} s; hive-repl doctor shows what is slow"
            ) from error

    def _read(self, connection: Connection, reading: Future[Sequence[Lag]]) -> Sequence[Lag]:
        try:
            kept = self._kept
            if kept is None or not kept.fits(connection.source):
                kept = self._kept = LagReader(connection.source, connection.target, most_events=MOST_EVENTS)
            reading.set_result(kept.read())
        except BaseException as error:  # noqa: BLE001 (raised below, and to those that wait)
            reading.set_exception(error)
        finally:
            with self._guard:
                self._reading = None if self._reading is reading else self._reading
        return reading.result()


def lag_sensor(specs: Specs, databases: Sequence[CatalogDatabase], reader: KeptReader) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        specs: of the policy.
        databases: its databases, with the tables that have assets.
        reader: reads the policy's lags.
    """
    names = specs.names
    assets = {f"{database.name}/{table.name}" for database in databases for table in database.tables}

    @running_sensor(
        name=names.local("lag"),
        description="Observes the lag of databases and tables",
        interval=_INTERVAL,
        resources=frozenset({names.connection}),
    )
    def observe_lag(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with in_tick(context.log):
            try:
                connection = connect_for_tick(context, names)
                lags = reader.read(connection)
                return tick(
                    context.cursor, lags, specs, assets, time.time(), partial(_role, connection), connection.source.threads.map
                )
            except ReplicationError as error:
                return outage(context.cursor, error, specs.policy, time.time())

    return observe_lag


def tick(
    cursor: str | None,
    lags: Sequence[Lag],
    specs: Specs,
    assets: Collection[str],
    now: float,
    role: Callable[[Lag], ReplicaRole | None],
    each: _Each = map,
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time.

    Args:
        cursor: of the last tick.
        lags: of all databases.
        specs: of the policy, with the databases whose tables are partitions of one asset: the check links to them.
        assets: tables that have assets, as ``db/table``.
        now: seconds since the epoch.
        role: reads what a replica is now; it is asked for those that are observed.
        each: asks for several.
    """
    seen, names, limit = _read(cursor), specs.names, specs.policy.lag_target_seconds
    databases, tables = dict(seen.databases), dict(seen.tables)
    events: list[dg.AssetObservation | dg.AssetCheckEvaluation] = []
    behind = _seconds_behind(sum(bool(one.waiting or one.gap or one.lacks_replica) for one in lags))
    due: list[tuple[Lag, Observed]] = []
    for one in lags:
        last = databases.get(one.database)
        if one.applied is None and not (one.gap or one.stopped or (one.in_source and last)):
            databases.pop(one.database, None)  # nothing to tell before the first bootstrap, nor after the source dropped it
            continue
        level = not (one.waiting or one.gap or one.lacks_replica)
        new = Observed(now, level, is_up_to_date(one, limit), bool(one.stopped))
        if _due(last, new, behind):
            databases[one.database] = new
            due.append((one, new))
    for (one, _), found in zip(due, each(role, [one for one, _ in due]), strict=True):
        events += _database(names, one, found, limit)
    for key, table in _tables(lags, seen, assets, now):
        new = Observed(now, not table.waiting)
        database, _, name = key.partition("/")
        events.append(dg.AssetObservation(names.table(database, name, "load"), metadata=lag_figures(table)))
        tables = {known: old for known, old in tables.items() if known != key} | ({} if new.level else {key: new})
    why = None if events else dg.SkipReason("no observation is due")
    if why and databases == seen.databases:
        return why
    return dg.SensorResult(asset_events=events, skip_reason=why, cursor=_CURSOR.dump_json(LagCursor(databases, tables)).decode())


def outage(cursor: str | None, error: ReplicationError, policy: Policy, now: float) -> dg.SensorResult:
    """One tick while a server does not answer: nobody knows whether replicas are up to date, so the check fails and says why."""
    seen, names = _read(cursor), Names.of(policy)
    unknown = Observed(now, level=False, passed=False, known=False)
    behind = _seconds_behind(len(policy.databases))
    due = [database for database in sorted(policy.databases) if _due(seen.databases.get(database), unknown, behind)]
    events = [
        dg.AssetCheckEvaluation(
            asset_key=names.database(database, "load"),
            check_name=UP_TO_DATE,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=escaped(f"the lag is not known: {error}"),
        )
        for database in due
    ]
    databases = {**seen.databases, **dict.fromkeys(due, unknown)}
    return dg.SensorResult(
        skip_reason=f"the lag is not known: {error}",
        asset_events=events,
        cursor=_CURSOR.dump_json(LagCursor(databases, seen.tables)).decode(),
    )


def _role(connection: Connection, found: Lag) -> ReplicaRole | None:
    try:
        return role_now(connection, found)
    except OF_ONE_DATABASE:  # the lag says so
        return None


def _database(
    names: Names, found: Lag, role: ReplicaRole | None, limit: float
) -> Iterator[dg.AssetObservation | dg.AssetCheckEvaluation]:
    key = names.database(found.database, "load")
    yield dg.AssetObservation(key, metadata=role_metadata(role) | lag_metadata(found))
    yield dg.AssetCheckEvaluation(asset_key=key, check_name=UP_TO_DATE, **answer(found, names, limit))


def _tables(lags: Sequence[Lag], seen: LagCursor, assets: Collection[str], now: float) -> list[tuple[str, TableLag]]:
    """Tables to observe: those with a lag, and those whose lag has ended."""
    known = {one.database for one in lags if one.seconds_behind is not None and one.complete}
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
        if key in assets and _due(seen.tables.get(key), Observed(now, not table.waiting))
    ]
    return sorted(due, key=lambda one: -one[1].seconds_behind)[:_MOST_TABLES]


def _seconds_behind(databases: int) -> float:
    """Seconds between two observations of a database where events wait in so many."""
    return min(_AT_REST, _BEHIND * max(1.0, databases / _MOST_DATABASES))


def _due(last: Observed | None, new: Observed, behind: float = _BEHIND) -> bool:
    """Whether it is told at once or after a time; only that events wait is told when it is due, as that they still wait."""
    if last is None or replace(last, time=new.time, level=new.level) != new or (new.level and not last.level):
        return True
    return new.time - last.time >= (_AT_REST if new.level else behind)


def _read(cursor: str | None) -> LagCursor:
    try:
        return _CURSOR.validate_json(cursor or "")
    except ValidationError:
        return LagCursor()
