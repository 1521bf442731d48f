"""Lags as Prometheus metrics: read when scraped, at most once in some seconds."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError
from hive_replication.lag.compute_lag import Lag, TableLag
from hive_replication.lag.reader import LagReader
from hive_replication.load.journal.journal import finished_loads

_LOG = logging.getLogger(__name__)

_PREFIX = "hive_replication_"
_MOST_EVENTS = 10_000  # of the log in one scrape, some 15 s; the next one continues


@dataclass(frozen=True, slots=True)
class _Observation:
    """The lags at one time; none if a server did not answer."""

    lags: tuple[Lag, ...] = ()
    last_loads: tuple[tuple[str, float], ...] = ()
    up: bool = False


class LagCollector(Collector):
    """The metrics of one policy.

    Args:
        connection: both sides.
        every: seconds for which the figures of one reading are served.
    """

    def __init__(self, connection: Connection, every: float) -> None:
        self._connection, self._every = connection, every
        self._reader = LagReader(connection.source, connection.target, most_events=_MOST_EVENTS)
        self._guard = threading.Lock()
        self._last, self._observed = _Observation(), float("-inf")
        self._tables: set[tuple[str, str]] = set()

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: the registry would ask the servers when the collector is registered."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All metrics; where a server does not answer only ``up``, which is 0."""
        policy = self._connection.source.policy
        with self._guard:
            if time.monotonic() - self._observed >= self._every:
                self._last, self._observed = self._ask(), time.monotonic()
            last = self._last
            self._tables |= {(one.database, table.table) for one in last.lags for table in one.tables}
            tables = sorted(self._tables)
        yield _gauge("up", "Whether source and target answer", ["policy"], [([policy.name], float(last.up))])
        target = [([policy.name], float(policy.lag_target_seconds))]
        yield _gauge("lag_target_seconds", "How long an event may wait by the policy", ["policy"], target)
        yield from _databases(policy.name, last)
        yield from _tables(policy.name, last.lags, tables)

    def _ask(self) -> _Observation:
        try:
            lags = self._reader.read()
            return _Observation(lags, tuple(self._last_loads(lags)), up=True)
        except ReplicationError as error:
            _LOG.warning("the lag is not known: %s", error)
            return _Observation()

    def _last_loads(self, lags: Iterable[Lag]) -> Iterator[tuple[str, float]]:
        target = self._connection.target
        for one in lags:
            found = target.metastore.database(one.target_database)
            loads = finished_loads(target.storage, found.locationUri) if found and found.locationUri else []
            if loads:
                yield one.database, max(load.time for load in loads)


def _databases(policy: str, last: _Observation) -> Iterator[GaugeMetricFamily]:
    def gauge(name: str, text: str, values: Iterable[tuple[str, float | None]]) -> GaugeMetricFamily:
        known = (([policy, database], float(value)) for database, value in values if value is not None)
        return _gauge(name, text, ["policy", "database"], known)

    lags = last.lags
    yield gauge(
        "seconds_behind",
        "Seconds since the commit of the oldest event not applied, 0 if nothing waits",
        ((one.database, one.seconds_behind) for one in lags),
    )
    yield gauge("events_waiting", "Events of the policy that are not applied", ((one.database, one.waiting) for one in lags))
    yield gauge(
        "bytes_waiting", "Bytes of the files that waiting events bring", ((one.database, one.bytes_waiting) for one in lags)
    )
    yield gauge("applied_event_id", "Event id that the target stands at", ((one.database, one.applied) for one in lags))
    yield gauge("source_event_id", "Newest event id of the source", ((one.database, one.current) for one in lags))
    yield gauge("held_tables", "Tables that are held", ((one.database, len(one.held)) for one in lags))
    yield gauge(
        "gap", "Whether the source's events cannot be applied to the replica", ((one.database, bool(one.gap)) for one in lags)
    )
    yield gauge(
        "stopped", "Whether an operator paused the database or took it back", ((one.database, bool(one.stopped)) for one in lags)
    )
    yield gauge("last_load_timestamp_seconds", "When the last load of a window was done, since the epoch", last.last_loads)


def _tables(policy: str, lags: Sequence[Lag], known: Iterable[tuple[str, str]]) -> Iterator[GaugeMetricFamily]:
    """Tables that are or were behind or held since the start: their metrics fall to 0 instead of disappearing."""
    lag_of = {(one.database, table.table): table for one in lags for table in one.tables}
    known_databases = {one.database for one in lags if one.seconds_behind is not None}
    rows = [(key, lag_of.get(key, TableLag(key[1], 0, 0, 0.0, 0))) for key in known if key[0] in known_databases]

    def gauge(name: str, text: str, values: Iterable[float | None]) -> GaugeMetricFamily:
        samples = (([policy, *key], float(value)) for (key, _), value in zip(rows, values, strict=True) if value is not None)
        return _gauge(f"table_{name}", text, ["policy", "database", "table"], samples)

    yield gauge(
        "seconds_behind",
        "Seconds since the commit of the table's oldest event not applied",
        (table.seconds_behind for _, table in rows),
    )
    yield gauge("events_waiting", "Events of the table that are not applied", (table.waiting for _, table in rows))
    yield gauge("bytes_waiting", "Bytes of the files that these bring", (table.bytes_waiting for _, table in rows))
    yield gauge("held", "Whether the table is held", (bool(table.held) for _, table in rows))


def _gauge(name: str, text: str, labels: Sequence[str], samples: Iterable[tuple[Sequence[str], float]]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(_PREFIX + name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family
