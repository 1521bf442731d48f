"""Windows that wait for approval: through the sensor, its runs, the asset and the command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from hive_replication.cli.main import run
from hive_replication.load.records import RecordStore
from hive_replication.load.replica.held_retries import CATCH_UP_DELAY
from hive_replication.metastore.types import copy_of
from hive_replication.plans.approval import Approvals
from repl_assets.catalog.catalog import read_catalog
from repl_assets.definitions import build_defs
from resources.embedded.policy import save_policy
from sensors.notification_log.decision import RETRY_DELAY
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def sensor(warehouse: Warehouse) -> Iterator[Sensor]:
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE other (a INT)")
    warehouse.load_data("plain", "1\n")
    with dg.DagsterInstance.ephemeral() as instance:
        made = Sensor(warehouse, instance)
        made.set_policy(approval=True)
        yield made


def stages(request: dg.RunRequest) -> set[str]:
    return {key.path[-1].rpartition("__")[2] for key in request.asset_selection or []}


def approve(sensor: Sensor, window: str) -> bool:
    """The two clicks in Dagster."""
    key = sensor.names.database(sensor.warehouse.database, "approval")
    return sensor.run(dg.RunRequest(partition_key=window, asset_selection=[key])).success


def test_a_window_is_planned_then_approved_then_loaded(
    sensor: Sensor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, source, target = sensor.warehouse.database, sensor.source, sensor.target
    config = tmp_path / "policy.yaml"
    save_policy(sensor.policy, config)
    # The bootstrap: planned, not loaded, however often the sensor looks; another window cannot be approved.
    planning = sensor.request()
    window = str(planning.partition_key)
    assert (stages(planning), planning.tags["hive_replication/kind"]) == ({"dump", "plan"}, "plan")
    assert sensor.run(planning).success
    assert f"the window {window} waits for approval: materialize {name}__approval" in sensor.reason(later=700)
    assert target.database(name) is None
    sensor.instance.add_dynamic_partitions(str(sensor.names.windows.name), ["1-2"])
    assert not approve(sensor, "1-2")
    assert not sensor.run(dg.RunRequest(partition_key=window, asset_selection=[sensor.names.database(name, "load")])).success
    assert target.database(name) is None
    made = sensor.instance.fetch_materializations(sensor.names.database(name, "plan"), limit=1).records[0].asset_materialization
    assert made is not None
    assert "CreateTable" in str(made.metadata["plan"].value)
    assert b"<h1>Plan of" in sensor.connection.store.storage.read(str(made.metadata["report"].value))
    capsys.readouterr()
    assert run(["--config", str(config), "approve", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["window"] == window
    assert approve(sensor, window)
    (approved,) = RecordStore.of(sensor.policy, sensor.connection.store, name).newest(1)
    assert (approved.action, approved.text, approved.by_hand) == ("approve", window, False)
    load = sensor.request()
    assert (stages(load), load.partition_key, load.tags["hive_replication/attempt"]) == ({"load"}, window, "1")
    # New events do not get in by an old approval, nor does a load that fails need another one.
    sensor.warehouse.load_data("plain", "2\n")
    sensor.record(load, dg.DagsterRunStatus.FAILURE)
    assert "attempt 2 of window" in sensor.reason()
    load = sensor.request(later=RETRY_DELAY[0] + 1)
    assert load.partition_key == window
    assert sensor.run(load).success
    content = sensor.warehouse.content(source=False)
    assert len(content["plain"]["files"]) == 1  # type: ignore[index]
    # A window, approved on the command line. Meanwhile somebody puts a table where a replica was: the plan has changed.
    planning = sensor.request()
    assert sensor.run(planning).success
    window = str(planning.partition_key)
    assert run(["--config", str(config), "approve", name, "1-2"]) == 2
    assert f"the window {window} waits" in capsys.readouterr().err
    assert run(["--config", str(config), "approve", name, window]) == 0
    ours = target.table(name, "plain")
    assert ours is not None
    strange = copy_of(ours)
    strange.parameters = {key: value for key, value in (ours.parameters or {}).items() if not key.startswith("hive_replication.")}
    target.alter_table(name, "plain", strange)
    load = sensor.request()
    failed = sensor.run(load)
    assert not failed.success
    (event,) = (event for event in failed.all_events if event.is_step_failure)
    reason = str(event.step_failure_data.user_failure_data)
    assert "the plan has changed since it was approved, and is made again: also plain: held at event" in reason
    assert sensor.warehouse.content(source=False) == content
    target.alter_table(name, "plain", ours)
    planning = sensor.request(later=RETRY_DELAY[0] + 1)
    assert (stages(planning), planning.partition_key) == ({"dump", "plan"}, window)
    assert sensor.run(planning).success
    assert approve(sensor, window)
    assert sensor.run(sensor.request(later=RETRY_DELAY[0] + 1)).success
    sensor.warehouse.assert_equal()
    assert sensor.reason().startswith("no")
    assert Approvals.of(sensor.policy).waiting(name) is None

    # The job that only reports.
    sensor.warehouse.load_data("other", "3\n")
    job = build_defs(sensor.policy, read_catalog(source, sensor.policy)).resolve_job_def(f"plan_{name}")
    assert job.execute_in_process(instance=sensor.instance).success
    (seen,) = sensor.instance.fetch_observations(sensor.names.database(name, "load"), limit=1).records
    assert f"{name}.other" in str(seen.asset_observation.metadata["plan"].value)  # type: ignore[union-attr]
    assert sensor.warehouse.content(source=False) != sensor.warehouse.content(source=True)


def test_a_table_that_a_bootstrap_could_not_do_brings_nothing_that_was_not_approved(sensor: Sensor) -> None:
    """Its catch-up is a recovery: it brings all events up to now, and drops what the source has dropped."""
    name, warehouse = sensor.warehouse.database, sensor.warehouse
    warehouse.sql("CREATE TABLE third (a INT)")
    warehouse.load_data("plain", "2\n", name="vanishing")
    planning = sensor.request()
    assert sensor.run(planning).success
    location = sensor.source.table(name, "plain").sd.location  # type: ignore[union-attr]
    warehouse.connection.source.storage.delete(f"{location}/vanishing")
    assert approve(sensor, str(planning.partition_key))
    assert sensor.run(sensor.request()).success
    bootstrapped = warehouse.content(source=False)
    assert set(bootstrapped) == {"other", "third"}
    warehouse.load_data("other", "3\n")
    warehouse.sql("DROP TABLE third")
    planning = sensor.request(later=CATCH_UP_DELAY[0] + 1)
    window = str(planning.partition_key)
    assert (stages(planning), window) == ({"dump", "plan"}, f"0-{warehouse.applied()}")
    assert sensor.run(planning).success
    assert f"the window {window} waits for approval" in sensor.reason(later=CATCH_UP_DELAY[0] + 1)
    # Nor does a run that an operator starts load the dump, or another one, before it is approved.
    for chosen in ({"load"}, {"dump", "load"}):
        keys = [sensor.names.database(name, stage) for stage in sorted(chosen)]  # type: ignore[arg-type]
        assert not sensor.run(dg.RunRequest(partition_key=window, asset_selection=keys)).success
    assert warehouse.content(source=False) == bootstrapped
    assert approve(sensor, window)
    # That run has compared the replica again: the plan is of another comparison, and is made anew.
    assert not sensor.run(sensor.request(later=CATCH_UP_DELAY[0] + 1)).success
    later = CATCH_UP_DELAY[0] + RETRY_DELAY[0] + 60
    planning = sensor.request(later=later)
    assert (stages(planning), planning.partition_key) == ({"dump", "plan"}, window)
    assert sensor.run(planning).success
    assert approve(sensor, window)
    load = sensor.request(later=later)
    assert stages(load) == {"load"}
    assert sensor.run(load).success
    warehouse.assert_equal()
    assert Approvals.of(sensor.policy).waiting(name) is None
