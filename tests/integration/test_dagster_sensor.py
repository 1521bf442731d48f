"""The notification-log sensor with real metastores and a real Dagster instance; runs are run records, or run in this process."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from hive_replication import operate
from hive_replication.connect import Connection
from hive_replication.errors import MissingEvents
from hive_replication.lag import lag
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.replica.state import ReplicaState, replica_state, with_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database, NotificationEvent, copy_of
from hive_replication.plans.approval import Approvals
from hive_replication.process import this_process
from hive_replication.repair import repair
from repl_assets.catalog.keys import Window
from repl_assets.definitions import build_defs
from resources.connection import ReplicationConnection
from resources.heartbeat import PROCESS_TAG
from sensors.notification_log.decision import CATCH_UP_DELAY, RETRY_DELAY
from sensors.notification_log.listening import listen
from sensors.notification_log.log_scan import states
from sensors.notification_log.sensor import SensorSettings
from tests.faults import Killed
from tests.policy_sensor import Sensor
from tests.scenarios.support import die_at

pytestmark = [pytest.mark.servers, pytest.mark.hive]


class PurgedLog(Metastore):
    """A log whose events up to ``purged`` are gone, of which the newest are ours (others may write to it meanwhile)."""

    purged = 0

    def events(
        self, after: int, until: int | None = None, *, batch: int = 1000, patience: float = 3.0
    ) -> Iterator[NotificationEvent]:
        if after < self.purged:
            raise MissingEvents(f"events after {after} were purged")
        return super().events(after, until, batch=batch, patience=patience)


class PurgedConnection(ReplicationConnection):
    """The policy's servers, with such a log."""

    def connect(self, **patience: Any) -> Connection:
        made = super().connect(**patience)
        return replace(made, source=replace(made.source, metastore=PurgedLog(made.source.metastore.uri)))


def test_bootstrap_then_windows(sensor: Sensor) -> None:
    request = sensor.request()
    assert Window.parse(str(request.partition_key)).start is None
    assert sensor.run(request).success
    sensor.warehouse.assert_equal()
    applied = sensor.warehouse.applied()
    assert sensor.reason().startswith("no")
    sensor.warehouse.load_data("plain", "2\n")
    request = sensor.request()
    assert Window.parse(str(request.partition_key)).start == applied
    assert {key.path[-1] for key in request.asset_selection or []} == {
        f"{sensor.warehouse.database}__{s}" for s in ("dump", "load")
    }
    assert sensor.run(request).success
    sensor.warehouse.assert_equal()
    sensor.tick()


def test_an_idle_tick_is_one_call(sensor: Sensor) -> None:
    sensor.replicate()
    deadline = time.monotonic() + 60
    while sensor.reason() and (sensor.source.calls, sensor.target.calls) != (1, 0):
        assert time.monotonic() < deadline  # others may work on the same metastore
    assert json.loads(str(sensor.cursor))["settled"] is not None
    assert sensor.reason(later=700.0)
    assert sensor.target.calls > 0  # from time to time the target is looked at


def test_a_tick_waits_for_events(sensor: Sensor) -> None:
    sensor.replicate()
    defs = build_defs(sensor.policy, settings=SensorSettings(listen=2))
    resources = {sensor.names.connection: ReplicationConnection.of(sensor.policy)}
    (definition,) = (one for one in defs.sensors or () if one.name == sensor.names.local("notification_log"))
    began = time.monotonic()
    with dg.build_sensor_context(sensor.instance, cursor=sensor.cursor, resources=resources) as context:
        assert definition.evaluate_tick(context).skip_message
    assert time.monotonic() - began > 1
    insert = threading.Timer(1.0, sensor.warehouse.load_data, ("plain", "2\n"))
    insert.start()
    assert isinstance(listen(sensor.tick, 60), dg.SensorResult)
    insert.join()
    assert time.monotonic() - began < 50


def test_a_tick_with_work_says_how_far_behind(sensor: Sensor) -> None:
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    result = sensor.tick(later=100.0)
    assert isinstance(result, dg.SensorResult)
    (seen,) = result.asset_events
    assert seen.asset_key == sensor.names.database(sensor.warehouse.database, "source")
    assert seen.metadata["events waiting"].value >= 1
    assert 99 <= float(str(seen.metadata["behind (s)"].value)) < 200


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
def test_a_run_under_way_is_waited_for(sensor: Sensor, status: dg.DagsterRunStatus) -> None:
    run = sensor.record(sensor.request(), status)
    assert f"run {run.run_id[:8]} is in progress" in sensor.reason()


def test_a_run_whose_process_is_gone_has_failed(sensor: Sensor) -> None:
    run = sensor.record(sensor.request(), dg.DagsterRunStatus.STARTED)
    sensor.instance.add_run_tags(run.run_id, {PROCESS_TAG: this_process()})
    assert "in progress" in sensor.reason()
    host, pid, _ = this_process().split()
    sensor.instance.add_run_tags(run.run_id, {PROCESS_TAG: f"{host} {pid} 1.00"})  # another process had this number before
    assert "attempt 2 of window" in sensor.reason()
    failed = sensor.instance.get_run_by_id(run.run_id)
    assert failed
    assert failed.status == dg.DagsterRunStatus.FAILURE


def test_a_window_started_by_hand_is_waited_for(sensor: Sensor) -> None:
    request = sensor.request()
    run = sensor.record(request.with_replaced_attrs(tags={}), dg.DagsterRunStatus.STARTED)
    assert f"run {run.run_id[:8]} is in progress" in sensor.reason()


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED])
def test_a_failed_window_comes_again_and_nothing_passes_it(sensor: Sensor, status: dg.DagsterRunStatus) -> None:
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    first = sensor.request()
    assert first.tags["hive_replication/attempt"] == "1"
    sensor.record(first, status)
    sensor.warehouse.load_data("plain", "3\n")
    assert "attempt 2 of window" in sensor.reason()
    again = sensor.request(later=RETRY_DELAY[0] + 1)
    assert again.partition_key == first.partition_key
    assert again.tags["hive_replication/attempt"] == "2"
    assert again.run_key != first.run_key
    assert sensor.run(again).success
    request = sensor.request()
    assert Window.parse(str(request.partition_key)).start == Window.parse(str(first.partition_key)).end
    assert sensor.run(request).success
    sensor.warehouse.assert_equal()


def test_many_runs_of_others_do_not_hide_a_failed_window(sensor: Sensor) -> None:
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    first = sensor.request()
    sensor.record(first, dg.DagsterRunStatus.FAILURE)
    others = first.with_replaced_attrs(asset_selection=[dg.AssetKey("of_another_database")])
    for _ in range(100):
        sensor.record(others, dg.DagsterRunStatus.SUCCESS)
    assert "attempt 2 of window" in sensor.reason()


def test_what_a_tick_has_read_counts_only_for_the_same_log(sensor: Sensor) -> None:
    """As after a restore of the source's metastore: the log has other events where a tick had read it."""
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    assert sensor.request()
    cursor, database = json.loads(str(sensor.cursor)), sensor.warehouse.database
    assert cursor["readings"][database][2]
    cursor["readings"][database] = [sensor.warehouse.applied(), cursor["event"][0], None, 0]
    sensor.cursor = json.dumps(cursor)
    assert sensor.reason().startswith("no")
    cursor["event"][2] = "0" * 16
    sensor.cursor = json.dumps(cursor)
    assert sensor.request()


def test_a_load_by_hand_during_a_tick_is_no_restored_source(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor.replicate()

    def after_a_load(connection: Connection) -> dict[str, ReplicaState]:
        sensor.warehouse.load_data("plain", "2\n")
        sensor.warehouse.replicate()
        return states(connection)

    monkeypatch.setattr("sensors.notification_log.sensor.states", after_a_load)
    assert sensor.reason(later=700.0).startswith("no events")


def test_a_failing_run_is_seen_in_the_records(sensor: Sensor) -> None:
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    broken = sensor.policy.model_copy(update={"dump_root": "hdfs://127.0.0.1:1/dumps"})
    request = sensor.request()
    policy, sensor.policy = sensor.policy, broken
    assert not sensor.run(request).success
    sensor.policy = policy
    assert "attempt 2" in sensor.reason()
    assert sensor.run(sensor.request(later=RETRY_DELAY[0] + 1)).success
    sensor.warehouse.assert_equal()


def test_max_events_cuts_windows(sensor: Sensor) -> None:
    sensor.replicate()
    small = sensor.policy.model_copy(update={"max_events": 1})
    sensor.connection = replace(sensor.connection, source=replace(sensor.connection.source, policy=small))
    sensor.warehouse.sql("CREATE TABLE one (a INT)", "CREATE TABLE two (a INT)")
    runs = 0
    while sensor.connection.target.metastore.table(sensor.warehouse.database, "two") is None:
        result = sensor.tick()
        if isinstance(result, dg.SensorResult):
            (request,) = result.run_requests or []
            sensor.instance.add_dynamic_partitions(str(sensor.names.windows.name), [str(request.partition_key)])
            assert sensor.run(request).success
            runs += 1
    assert runs == 2
    sensor.warehouse.assert_equal()


def test_a_run_in_the_queue_loads_nothing_of_a_database_that_is_paused_meanwhile(sensor: Sensor) -> None:
    sensor.replicate()
    warehouse, database = sensor.warehouse, sensor.warehouse.database
    applied = warehouse.applied()
    warehouse.load_data("plain", "2\n")
    request = sensor.request()
    assert operate.pause(warehouse.connection, database, "the disk is full")
    failed = sensor.run(request)
    (step,) = (event for event in failed.all_events if event.is_step_failure)
    assert ": the disk is full, before this load began" in str(step.step_failure_data.user_failure_data)
    assert warehouse.applied() == applied
    assert "the disk is full" in sensor.reason(later=60.0)
    assert operate.resume(warehouse.connection, database)
    again = sensor.request(later=60.0)
    assert again.partition_key == request.partition_key
    assert sensor.run(again).success
    warehouse.assert_equal()
    # An operator loads what he has paused.
    assert operate.pause(warehouse.connection, database)
    assert sensor.run(again.with_replaced_attrs(tags={})).success


def test_an_idle_database_is_advanced_without_a_run(sensor: Sensor) -> None:
    sensor.replicate()
    applied = sensor.warehouse.applied()
    sensor.source.create_database(Database(name=f"{sensor.warehouse.database}_other", parameters={}))
    assert sensor.reason()
    assert sensor.warehouse.applied() == applied
    sensor.cursor = None
    assert sensor.reason(event_ttl=0.0)
    assert (sensor.warehouse.applied() or 0) > (applied or 0)
    sensor.warehouse.load_data("plain", "2\n")
    assert sensor.run(sensor.request()).success
    sensor.warehouse.assert_equal()


@pytest.mark.parametrize("approval", [False, True])
def test_a_repair_that_was_killed_is_done_without_an_event(sensor: Sensor, approval: bool) -> None:
    """Tables were half made until the source changed, and every light was green. One that runs is left alone."""
    sensor.replicate()
    connection, database = sensor.warehouse.connection, sensor.warehouse.database
    sensor.set_policy(approval=approval)
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, TableChanges, "carry_out", lambda *_: True)
        connection.target.metastore.drop_table(database, "plain")
        with pytest.raises(Killed):
            repair(connection, database)
    with MetastoreLock(connection.target.metastore, database):
        assert sensor.reason(later=700.0)
        assert not lag(connection.source, connection.target, database).changed
    assert "was killed" in lag(connection.source, connection.target, database).changed
    request = sensor.request(later=1400.0)
    assert sensor.run(request).success
    if approval:
        assert "waits for approval" in sensor.reason(later=1400.0)
        Approvals.of(sensor.policy).approve(database, str(request.partition_key), "anna")
        assert sensor.run(sensor.request(later=1400.0)).success
    sensor.warehouse.assert_equal()
    assert not lag(connection.source, connection.target, database).changed
    assert sensor.reason(later=1400.0)


def test_a_held_table_catches_up_by_itself(sensor: Sensor) -> None:
    warehouse = sensor.warehouse
    warehouse.sql("CREATE TABLE other (a INT)")
    sensor.replicate()
    storage = warehouse.connection.source.storage
    location = warehouse.connection.source.metastore.table(warehouse.database, "plain").sd.location  # type: ignore[union-attr]
    warehouse.load_data("plain", "2\n", name="vanishing")
    warehouse.load_data("other", "1\n")
    content = storage.read(f"{location}/vanishing")
    storage.delete(f"{location}/vanishing")
    result = sensor.run(sensor.request())
    assert result.success  # green: the others went on
    assert {check.check_name: check.passed for check in result.get_asset_check_evaluations()} == {
        "files_proven": False,
        "nothing_held": False,
        "up_to_date": False,
        "same_objects": True,
        "no_alarms": True,  # the sensor of alarms has not looked yet
        "not_held": False,
    }
    assert "held tables are retried in" in sensor.reason()
    catch_up = sensor.request(later=CATCH_UP_DELAY[0] + 1)
    assert catch_up.tags["hive_replication/kind"] == "catch-up"
    assert sensor.run(catch_up).success
    assert "held tables are retried in" in sensor.reason(later=CATCH_UP_DELAY[0] + 1)
    warehouse.load_data("other", "2\n")
    assert sensor.run(sensor.request()).success
    storage.write(f"{location}/vanishing", content)
    again = sensor.request(later=2 * CATCH_UP_DELAY[0] + 1)
    assert again.tags["hive_replication/kind"] == "catch-up"
    assert sensor.run(again).success
    warehouse.assert_equal()
    assert isinstance(sensor.tick(), dg.SkipReason)


def test_a_replica_dropped_by_hand_is_bootstrapped_again(sensor: Sensor) -> None:
    sensor.replicate()
    sensor.target.drop_database(sensor.warehouse.database, cascade=True, delete_data=True)
    again = sensor.request(later=700.0)
    assert Window.parse(str(again.partition_key)).start is None
    assert sensor.run(again).success
    sensor.warehouse.assert_equal()


def test_another_history_is_compared_whole(sensor: Sensor) -> None:
    """The target remembers another event under its applied id, as after a restore of the source's metastore."""
    sensor.warehouse.sql("CREATE TABLE other (a INT)")
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    found = sensor.target.database(sensor.warehouse.database)
    assert found is not None
    changed = copy_of(found)
    changed.parameters = with_state(found.parameters, replace(replica_state(found), applied_hash="0" * 16))
    sensor.target.alter_database(sensor.warehouse.database, changed)
    assert sensor.run(sensor.request()).success
    sensor.warehouse.assert_equal()
    key = sensor.names.database(sensor.warehouse.database, "dump")
    (made,) = sensor.instance.fetch_materializations(key, limit=1).records
    assert made.asset_materialization
    assert made.asset_materialization.metadata["kind"].value == "bootstrap"
    assert str(made.asset_materialization.metadata["gap"].value).startswith("other history: event ")
    assert made.asset_materialization.metadata["tables equal"].value == 1
    assert "| plain | differs | file " in str(made.asset_materialization.metadata["tables not equal"].value)
    assert sensor.warehouse.status() == made.asset_materialization.metadata["to_evid"].value


def test_purged_events_are_made_up_for(sensor: Sensor, monkeypatch: pytest.MonkeyPatch) -> None:
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    sensor.warehouse.sql("CREATE TABLE other (a INT)")
    request = sensor.request()
    monkeypatch.setattr(PurgedLog, "purged", sensor.source.current_event_id())
    assert sensor.run(request, connection=PurgedConnection.of(sensor.policy)).success
    sensor.warehouse.assert_equal()
    assert (sensor.warehouse.applied() or 0) >= Window.parse(str(request.partition_key)).end


def test_another_history_without_events_of_the_database_is_no_idleness(sensor: Sensor) -> None:
    """What happened before the applied id is known again may be of the database, so its id is not just raised."""
    sensor.replicate()
    found = sensor.target.database(sensor.warehouse.database)
    assert found is not None
    changed = copy_of(found)
    changed.parameters = with_state(found.parameters, replace(replica_state(found), applied_hash="0" * 16))
    sensor.target.alter_database(sensor.warehouse.database, changed)
    sensor.source.create_database(Database(name=f"{sensor.warehouse.database}_other", parameters={}))
    sensor.cursor = None
    assert sensor.run(sensor.request(event_ttl=0.0)).success
    assert replica_state(sensor.target.database(sensor.warehouse.database)).applied_hash != "0" * 16
    sensor.warehouse.assert_equal()
