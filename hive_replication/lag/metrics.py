"""Lags as Prometheus metrics: read when scraped, at most once in some seconds, and never waited for as long as a scrape may take.

A scrape that takes too long is none, and no rule sees what it would have said: so servers that do not answer are noticed here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hive_replication.connect.connection import connected
from hive_replication.connect.databases import matched, with_databases
from hive_replication.connect.hanging_storage import require_answers, require_reachable
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.lag.compute_lag import Lag, TableLag
from hive_replication.lag.reader import MOST_EVENTS, LagReader
from hive_replication.load.journal.journal import finished_loads
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy

_LOG = logging.getLogger(__name__)

_PREFIX = "hive_replication_"
_TIMEOUT, _ATTEMPTS = 15.0, 2  # seconds for the answer of one call, and how many
_PATIENCE = 3.0  # seconds that a scrape waits for a reading: Prometheus waits 10 s by default
_TOO_OLD = 60.0  # seconds of a reading after which the figures of the one before are served no more
_GIVEN_UP = 300.0  # seconds after which another reading begins: no call of a metastore waits so long here


@dataclass(frozen=True, slots=True)
class _Observation:
    """The lags at one time; none if a server did not answer."""

    lags: tuple[Lag, ...] = ()
    last_loads: tuple[tuple[str, float], ...] = ()
    up: bool = False


class _Reader:
    """Reads a policy's lags again and again; its patterns may have other databases each time.

    Args:
        policy: the policy, as it is written.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy, self._failed = policy, False
        self._lags = self._connect(with_databases(policy, ()), None)

    def _connect(self, policy: Policy, kept: LagReader | None) -> LagReader:
        """Connects anew; a reader that still fits stays: else a long log would be read from its start after each failure."""
        connections = policy.metastore_connections
        metastore = Metastore.of(policy.source, timeout=_TIMEOUT, retries=_ATTEMPTS, connections=connections)
        connection = connected(policy, metastore, timeout=_TIMEOUT, retries=_ATTEMPTS)
        if kept is None or not kept.fits(connection.source):
            kept = LagReader(connection.source, connection.target, most_events=MOST_EVENTS)
        self._metastore, self._resolved = metastore, policy
        self._target, self._dumps = connection.target, connection.store.storage
        return kept

    def read(self) -> _Observation:
        """What there is to tell now."""
        try:
            require_reachable(self._dumps, _TIMEOUT)  # nothing is replicated without it, nor known which databases patterns have
            policy, _ = matched(self._policy, self._metastore, _TIMEOUT, record=False)
            if policy != self._resolved or self._failed:  # a metastore that is upgraded is away meanwhile
                self._lags = self._connect(policy, self._lags)
            lags = self._lags.read()
            found, self._failed = _Observation(lags, tuple(self._last_loads(lags)), up=True), False
            return found
        except ReplicationError as error:
            self._failed = True
            _LOG.warning("the lag is not known: %s", error)
            return _Observation()

    def _last_loads(self, lags: Iterable[Lag]) -> Iterator[tuple[str, float]]:
        target = self._target
        require_answers(target.storage, _TIMEOUT)
        for one in lags:
            try:
                found = target.metastore.database(one.target_database)
                loads = finished_loads(target.storage, found.locationUri) if found and found.locationUri else []
            except Unreachable:
                raise
            except (ReplicationError, OSError) as error:  # the others are told of all the same
                _LOG.warning("when %s was loaded last is not known: %s", one.target_database, error)
                continue
            if loads:
                yield one.database, max(load.time for load in loads)


class LagCollector(Collector):
    """The metrics of one policy.

    Args:
        policy: the policy.
        every: seconds for which the figures of one reading are served.

    Raises:
        BadRequest: see :func:`~hive_replication.connect.connect`; no server is called.
    """

    def __init__(self, policy: Policy, every: float) -> None:
        self._policy, self._every = policy, every
        self._guard = threading.Lock()
        self._reader, self._reading, self._began = _Reader(policy), threading.Thread(), float("-inf")
        self._last, self._observed = _Observation(), float("-inf")
        self._tables: set[tuple[str, str]] = set()

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: the registry would ask the servers when the collector is registered."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All metrics; where a server does not answer, or a reading takes too long, only ``up``, which is 0."""
        self._begin_if_due().join(_PATIENCE)
        policy = self._policy
        with self._guard:
            # The age of the figures says nothing: with minutes between two scrapes they are always old when the next one begins.
            under_way = self._reading.is_alive() and time.monotonic() - self._began < _TOO_OLD
            last = self._last if under_way or self._observed >= self._began else _Observation()
            tables = sorted(self._tables)
        yield _gauge("up", "Whether source, target and dump root answer", ["policy"], [([policy.name], float(last.up))])
        target = [([policy.name], float(policy.lag_target_seconds))]
        yield _gauge("lag_target_seconds", "How long an event may wait by the policy", ["policy"], target)
        yield from _databases(policy.name, last)
        yield from _tables(policy.name, last.lags, tables)

    def _begin_if_due(self) -> threading.Thread:
        """The reading under way, a new one where it is time for that, or else the last one, which has ended."""
        with self._guard:
            now = time.monotonic()
            given_up = self._reading.is_alive() and now - self._began > _GIVEN_UP
            if given_up:
                self._reader, self._last = _Reader(self._policy), _Observation()
            if given_up or (not self._reading.is_alive() and now - self._observed >= self._every):
                self._reading = threading.Thread(target=self._read, args=(self._reader,), daemon=True, name="reads lags")
                self._began = now
                self._reading.start()
            return self._reading

    def _read(self, reader: _Reader) -> None:
        found = reader.read()
        with self._guard:
            if reader is self._reader:  # else it was given up
                self._last, self._observed = found, time.monotonic()
                self._tables |= {(one.database, table.table) for one in found.lags for table in one.tables}


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
        "no_replica",
        "Whether the target has no finished replica of a database that the source has",
        ((one.database, one.lacks_replica) for one in lags),
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
