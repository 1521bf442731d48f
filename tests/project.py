"""A policy's Dagster project for one database, each run in this process."""

from __future__ import annotations

import time
from collections.abc import Mapping

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog.catalog import read_catalog
from repl_assets.catalog.keys import Names, Stage, Window
from repl_assets.definitions import build_defs
from sensors.record_rest import tick as recording_tick
from tests.warehouse import Warehouse


class Project:
    """The definitions of one database's policy, with an instance of its own."""

    def __init__(self, warehouse: Warehouse, instance: dg.DagsterInstance) -> None:
        self.warehouse = warehouse
        self.instance = instance
        self.policy: Policy = warehouse.connection.source.policy.model_copy(
            update={"databases": {warehouse.database: warehouse.database}}
        )
        self.names = Names.of(self.policy)
        self.settings: dict[str, int] = {}

    @property
    def defs(self) -> dg.Definitions:
        """Definitions as after a reload, with the present tables."""
        catalog = read_catalog(self.warehouse.connection.source.metastore, self.policy)
        return build_defs(self.policy, catalog, **self.settings)

    def table(self, table: str, stage: Stage = "load") -> dg.AssetKey:
        return self.names.table(self.warehouse.database, table, stage)

    def database(self, stage: Stage) -> dg.AssetKey:
        return self.names.database(self.warehouse.database, stage)

    def run(
        self, *keys: dg.AssetKey, defs: dg.Definitions | None = None, raise_on_error: bool = True, **options: object
    ) -> dg.ExecuteInProcessResult:
        """Materializes assets."""
        job = (defs or self.defs).resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            asset_selection=list(keys), instance=self.instance, raise_on_error=raise_on_error, **options
        )  # type: ignore[arg-type]

    def window(self, window: Window, **options: object) -> dg.ExecuteInProcessResult:
        """Dumps and loads a window."""
        self.instance.add_dynamic_partitions(str(self.names.windows.name), [str(window)])
        return self.run(self.database("dump"), self.database("load"), partition_key=str(window), **options)

    def next_window(self, **options: object) -> dg.ExecuteInProcessResult:
        """The window that the sensor would request."""
        end = self.warehouse.connection.source.metastore.current_event_id()
        return self.window(Window(self.warehouse.applied(), end), **options)

    def events(self, key: dg.AssetKey) -> list[dg.AssetMaterialization]:
        """Materializations, the newest first."""
        records = self.instance.fetch_materializations(key, limit=100).records
        return [record.asset_materialization for record in records if record.asset_materialization]

    def recorded(self) -> int:
        """Records what loads left out; the number of runs that it took."""
        keys: list[str | None] = []
        while isinstance(request := recording_tick(self.instance, self.names, "record", time.time()), dg.RunRequest):
            assert request.run_key not in keys
            keys.append(request.run_key)
            assert self.defs.resolve_job_def("record").execute_in_process(instance=self.instance).success
        return len(keys)

    def partitions(self, table: str) -> list[str]:
        return list(self.instance.get_dynamic_partitions(str(self.names.partitions(self.warehouse.database, table).name)))

    def check(self, key: dg.AssetKey, name: str) -> dg.AssetCheckResult | None:
        """The newest result of a check."""
        records = self.instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(key, name), limit=1)
        return records[0].event.dagster_event.event_specific_data if records and records[0].event else None  # type: ignore[union-attr,return-value]

    def checked(self, only: str = "") -> Mapping[tuple[str, str], dg.AssetCheckEvaluation]:
        """Runs the checks of all tables of now, or those of a name, and returns their answers by table and check."""
        defs = self.defs
        keys = [key for key in defs.resolve_asset_graph().asset_check_keys if only in ("", key.name)]
        own = [key for key in keys if key.name not in ("files_proven", "nothing_held", "up_to_date", "no_alarms")]
        job = dg.define_asset_job("checks", selection=dg.AssetSelection.checks(*own)).resolve(
            asset_graph=defs.resolve_asset_graph()
        )
        result = job.execute_in_process(instance=self.instance, resources=defs.resources)
        found = result.get_asset_check_evaluations()
        return {(one.asset_key.path[-1], one.check_name): one for one in found}
