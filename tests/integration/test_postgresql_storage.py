"""Dagster's storage on a real PostgreSQL, with the ``dagster.yaml`` of this project and the section that the manual shows."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import dagster as dg
import pytest

from hive_replication.connect import Connection
from resources.embedded.cluster import Cluster
from resources.embedded.postgresql import USER
from tests.dagster_dev import ROOT
from tests.origin import Origin
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


@pytest.fixture
def postgresql(cluster: Cluster, unique: str) -> str:
    """URL of a database on the server of the target's metastore."""
    server = cluster.database("target")
    server.run('CREATE DATABASE :"name"', name=unique)
    return f"postgresql+psycopg2://{USER}:{server.password}@127.0.0.1:{server.port}/{unique}"


@pytest.fixture
def home(postgresql: str, tmp_path: Path) -> Path:
    """A DAGSTER_HOME with the manual's settings."""
    (section,) = re.findall(r"```yaml\n(storage:\n.*?)```", (ROOT / "docs/dagster.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text("utf-8") + section)
    return tmp_path


def test_a_window_with_dagster_on_postgresql_is_replicated_once(
    connection: Connection, unique: str, home: Path, postgresql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgresql)
    origin = Origin(connection, unique)
    origin.create_database()
    origin.create("plain")
    origin.insert("plain", "1\n")
    warehouse = Warehouse(connection, None, unique)  # type: ignore[arg-type] (no Hive driver is needed)
    with ExitStack() as stack:
        # Two daemons, each with connections of its own.
        instances = [stack.enter_context(dg.DagsterInstance.from_config(str(home))) for _ in range(2)]
        for storage in (instances[0].run_storage, instances[0].event_log_storage, instances[0].schedule_storage):
            assert type(storage).__module__.startswith("dagster_postgres.")
        first, second = (Sensor(warehouse, instance) for instance in instances)
        bootstrap = first.request()
        assert first.run(bootstrap).success
        origin.insert("plain", "2\n")
        together = Barrier(2, timeout=60)

        def ask(sensor: Sensor) -> dg.RunRequest:
            together.wait()
            return sensor.request()

        with ThreadPoolExecutor(2) as pool:
            window, same = pool.map(ask, (first, second))
        assert window.partition_key == same.partition_key
        assert window.run_key == same.run_key  # by which a daemon knows that it is asked for already
        assert first.run(window).success
        changes = warehouse.target_events()
        assert second.run(same).success  # started all the same
        assert warehouse.target_events() == changes
        assert "no events for this policy" in second.reason()
    warehouse.assert_equal()
    with dg.DagsterInstance.from_config(str(home)) as later:
        keys = {bootstrap.partition_key, window.partition_key}
        assert set(later.get_dynamic_partitions(str(first.names.windows.name))) == keys
        load = first.names.database(unique, "load")
        assert later.get_materialized_partitions(load) == keys
        assert [run.status for run in later.get_runs()] == [dg.DagsterRunStatus.SUCCESS] * 3
        assert later.get_latest_materialization_event(first.names.table(unique, "plain", "load"))
