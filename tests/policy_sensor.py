"""A policy's sensor on the notification log as tests drive it: ticks at chosen times, runs in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import dagster as dg
from dagster._core.test_utils import create_run_for_test
from hive_metastore.ThriftHiveMetastore import Client

from hive_replication.metastore.client import Metastore
from repl_assets.catalog.catalog import read_catalog
from repl_assets.catalog.keys import Names
from repl_assets.definitions import build_defs
from sensors.notification_log.sensor import DAY, SensorSettings, tick
from tests.warehouse import Warehouse

T = TypeVar("T")


class CountingMetastore(Metastore):
    """Counts calls."""

    calls = 0

    def call(self, what: str, do: Callable[[Client], T], *, repeatable: bool = True) -> T:
        self.calls += 1
        return super().call(what, do, repeatable=repeatable)


class Sensor:
    """A policy's sensor, its cursor and its instance."""

    def __init__(self, warehouse: Warehouse, instance: dg.DagsterInstance) -> None:
        self.warehouse = warehouse
        self.instance = instance
        policy = warehouse.connection.source.policy.model_copy(update={"databases": {warehouse.database: warehouse.database}})
        self.source, self.target = CountingMetastore(policy.source.metastore), CountingMetastore(policy.target.metastore)
        connection = warehouse.connection
        self.connection = replace(
            connection,
            source=replace(connection.source, metastore=self.source, policy=policy),
            target=replace(connection.target, metastore=self.target, policy=policy),
        )
        self.names = Names.of(policy)
        self.policy = policy
        self.cursor: str | None = None

    def set_policy(self, **settings: object) -> None:
        """Changes settings of the policy."""
        self.policy = self.policy.model_copy(update=settings)
        sides = {side: replace(getattr(self.connection, side), policy=self.policy) for side in ("source", "target")}
        self.connection = replace(self.connection, **sides)

    def tick(self, *, later: float = 0.0, event_ttl: float = 10 * DAY) -> dg.SensorResult | dg.SkipReason:
        """One tick, some seconds from now."""
        self.source.calls = self.target.calls = 0
        context = dg.build_sensor_context(self.instance, cursor=self.cursor)
        result = tick(context, self.connection, self.names, SensorSettings(event_ttl=event_ttl), time.time() + later)
        self.cursor = context.cursor
        return result

    def request(self, **options: float) -> dg.RunRequest:
        """The one run that a tick requests; its window is registered as the daemon does."""
        result = self.tick(**options)
        assert isinstance(result, dg.SensorResult), result.skip_message
        (request,) = result.run_requests or []
        for added in result.dynamic_partitions_requests or []:
            self.instance.add_dynamic_partitions(added.partitions_def_name, list(added.partition_keys))
        assert self.instance.has_dynamic_partition(str(self.names.windows.name), str(request.partition_key))
        return request

    def reason(self, **options: float) -> str:
        """Why a tick requests no run."""
        result = self.tick(**options)
        assert isinstance(result, dg.SkipReason), result
        return str(result.skip_message)

    def run(self, request: dg.RunRequest, **resources: object) -> dg.ExecuteInProcessResult:
        """Executes the requested run in this process."""
        defs = build_defs(self.policy, read_catalog(self.source, self.policy), resources=resources)
        job = defs.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=list(request.asset_selection or []),
            partition_key=request.partition_key,
            tags=dict(request.tags),
            raise_on_error=False,
        )

    def record(self, request: dg.RunRequest, status: dg.DagsterRunStatus) -> dg.DagsterRun:
        """Creates the requested run as the daemon would."""
        return create_run_for_test(
            self.instance,
            asset_selection=frozenset(request.asset_selection or []),
            tags={**request.tags, "dagster/partition": str(request.partition_key)},
            status=status,
        )

    def replicate(self) -> None:
        """Runs what the sensor requests until nothing is left."""
        assert self.run(self.request()).success
        assert isinstance(self.tick(), dg.SkipReason)
