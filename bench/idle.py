"""W7: a tick of the sensor when nothing has happened, however many tables there are."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import dagster as dg
from hive_metastore.ThriftHiveMetastore import Client

from bench.peers import Ours
from bench.report import Measurement
from bench.source import SourceDatabase
from hive_replication.connect import connect
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from sensors.notification_log.sensor import SensorSettings, tick

T = TypeVar("T")
_THREADS = 8
_TICKS = 20


class _Counting(Metastore):
    """Counts calls."""

    calls = 0

    def call(self, what: str, do: Callable[[Client], T], *, repeatable: bool = True) -> T:
        self.calls += 1
        return super().call(what, do, repeatable=repeatable)


def measure(policy: Policy, source: SourceDatabase, tables: int) -> Measurement:
    """Median of a tick, and its metastore calls.

    Args:
        policy: of the warehouses.
        source: the database, made already.
        tables: to make in it.

    Raises:
        RuntimeError: a tick makes more than one call of a metastore, or finds something to do.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda number: source.table(f"t{number:05}", partitioned=False), range(tables)))
    policy = policy.model_copy(update={"databases": {source.name: source.name}})
    Ours(policy).replicate(source.name, source.name)
    times, calls = zip(*_ticks(policy), strict=True)
    if max(calls) > 1:
        raise RuntimeError(f"an idle tick makes {max(calls)} metastore calls")
    median = statistics.median(times)
    rows = {"a tick": {"both, ms": median, "longest, ms": max(times), "metastore calls": max(calls)}}
    title = f"idle: {tables:,} tables and no event"
    return Measurement("W7", title, rows, median, 50, "milliseconds", at_most=True, means="ms a tick")


def _ticks(policy: Policy) -> list[tuple[float, int]]:
    """Milliseconds and calls of each tick; the first one, which connects to the target, is left out."""
    source, target = _Counting(policy.source.metastore), _Counting(policy.target.metastore)
    sides = connect(policy)
    sides = replace(sides, source=replace(sides.source, metastore=source), target=replace(sides.target, metastore=target))
    found: list[tuple[float, int]] = []
    cursor: str | None = None
    with dg.DagsterInstance.ephemeral() as instance:
        for _ in range(_TICKS + 1):
            source.calls = target.calls = 0
            context = dg.build_sensor_context(instance, cursor=cursor)
            began = time.monotonic()
            result = tick(context, sides, Names.of(policy), SensorSettings(), time.time())
            found.append((1000 * (time.monotonic() - began), source.calls + target.calls))
            cursor = context.cursor
            if isinstance(result, dg.SensorResult) and result.run_requests:
                raise RuntimeError(f"the sensor finds something to do: {result.run_requests}")
    return found[1:]
