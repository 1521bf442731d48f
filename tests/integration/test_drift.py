"""Writes that leave no event, on real servers: found, never mistaken for a write in progress, and replicated."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import dagster as dg
import hdfs_native
import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.connect import Connection
from hive_replication.drift.directories import CLOCKS_APART
from hive_replication.policy.checks import Drift
from repl_assets.catalog.catalog import read_catalog
from repl_assets.catalog.keys import Names
from repl_assets.definitions import build_defs
from sensors.drift import tick
from tests.drifting import Drifting

pytestmark = pytest.mark.servers

DAYS = ("1", "2", "3", "4")


@pytest.fixture(scope="module")
def drifting(connection: Connection) -> Drifting:
    made = Drifting.of(connection)
    made.origin.create("plain")
    made.origin.insert("plain", "1\n")
    made.origin.create("parts", *DAYS)
    for day in DAYS:
        made.origin.insert("parts", f"{day}\n", day)
    time.sleep(CLOCKS_APART + 0.1)  # what is copied at once is compared
    made.replica.replicate()
    return made


def test_files_put_deleted_and_rewritten(drifting: Drifting) -> None:
    storage, parts = drifting.connection.source.storage, drifting.scan("parts")
    assert (parts.looked, parts.drifted, parts.listings) == (4, (), 8)
    assert drifting.scan("parts").listings == 4  # the replica is not listed again
    drifting.put("parts", "1", "part-0")
    storage.delete(drifting.file("parts", "2"))
    storage.delete(drifting.file("parts", "3"))
    storage.write(drifting.file("parts", "4"), b"5\n")  # of the same size
    storage.write(f"{drifting.origin.location('parts')}/ds=5/part-0", b"5\n")  # of no partition
    assert drifting.repaired("parts") == {"ds=1": "1 new", "ds=2": "1 gone", "ds=3": "1 gone", "ds=4": "1 changed"}


def test_a_directory_that_is_missing_empties_nothing(drifting: Drifting) -> None:
    storage, replica = drifting.connection.source.storage, drifting.connection.target
    location = drifting.origin.location("parts", "4")
    storage.delete(location, recursive=True)
    found = drifting.scan("parts")
    assert [one.partition for one in found.drifted] == ["ds=4"]
    (why,) = drifting.repair(found)
    assert f"the directory {location} was missing at the source" in why
    (part,) = replica.metastore.partitions(drifting.origin.database, "parts", ["ds=4"])
    assert [replica.storage.read(file.uri) for file in replica.storage.files(part.sd.location)] == [b"5\n"]
    storage.mkdirs(location)
    assert drifting.repaired("parts") == {"ds=4": "1 gone"}
    drifting.put("parts", "4", "part-0", b"4\n")
    assert drifting.repaired("parts") == {"ds=4": "1 new"}


def test_a_rewrite_before_anything_was_known(drifting: Drifting) -> None:
    drifting.connection.source.storage.write(drifting.file("plain"), b"2\n")
    assert drifting.repaired("plain") == {"": "1 changed"}
    drifting.connection.source.storage.write(drifting.file("plain"), b"2\n")
    assert drifting.drifted("plain") == {}  # other times, but the same content


def test_a_write_in_progress_is_no_drift(drifting: Drifting) -> None:
    storage, location = drifting.connection.source.storage, drifting.origin.location("parts", "1")
    growing = drifting.put("parts", "1", "growing")
    found = drifting.scan("parts", lambda: storage.write(growing, b"9\n9\n"))
    assert (found.drifted, found.writing) == ((), ("ds=1",))
    scratch = f"{drifting.origin.location('parts')}/_temporary/0/part-0"
    for unfinished in (scratch, f"{location}/.hive-staging_1/part-0", f"{location}/part-1._COPYING_"):
        storage.write(unfinished, b"9\n")
        found = drifting.scan("parts")
        assert (found.drifted, found.writing) == ((), ("ds=1",)), unfinished
        storage.delete(unfinished)
    assert drifting.repaired("parts") == {"ds=1": "1 new"}


def test_an_open_file_is_no_drift(drifting: Drifting) -> None:
    """Its size and time stay as they are until it is closed."""
    root = drifting.connection.source.policy.source.roots[0].uri
    path = drifting.origin.location("parts", "2")[len(root) - 1 :] + "/open"
    with hdfs_native.Client(root.rstrip("/")).create(path) as writer:
        writer.write(b"9\n")
        found = drifting.scan("parts")
        assert (found.drifted, found.writing) == ((), ("ds=2",))
    assert drifting.repaired("parts") == {"ds=2": "1 new"}


def test_what_an_event_tells_is_no_drift(drifting: Drifting) -> None:
    drifting.origin.insert("parts", "7\n", "1")
    found = drifting.scan("parts")
    assert (found.drifted, found.waiting) == ((), "events wait")
    drifting.replica.replicate()
    assert drifting.drifted("parts") == {}


def test_an_event_that_comes_after_the_repair(drifting: Drifting) -> None:
    """Hive moves its files first and then tells of them."""
    storage = drifting.connection.source.storage
    uri = drifting.put("parts", "4", "000007_0")
    assert drifting.repaired("parts") == {"ds=4": "1 new"}
    checksum = storage.checksum(uri)
    assert checksum is not None
    drifting.connection.source.metastore.fire_insert_event(
        drifting.origin.database, "parts", values=["4"], files=[uri], checksums=[checksum.value], replace=False
    )
    report = drifting.replica.replicate()
    assert report.bytes_copied == 0
    drifting.replica.assert_equal()
    assert drifting.drifted("parts") == {}


def test_the_command(drifting: Drifting, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    policy = drifting.connection.source.policy.model_dump(mode="json", exclude_defaults=True)
    path.write_text(yaml.safe_dump(policy), encoding="utf-8")
    drifting.put("parts", "3", "part-9")
    command = ["drift", drifting.origin.database, "--config", str(path), "--settle", "0.1", "--json"]
    assert run(command) == 1
    tables = {table["table"]: table["drifted"] for table in json.loads(capsys.readouterr().out)["tables"]}
    assert [one["partition"] for one in tables["parts"]] == ["ds=3"]
    assert tables["plain"] == []
    assert run([*command, "--repair"]) == 0
    drifting.replica.assert_equal()
    assert run(command) == 0


def test_the_sensor(drifting: Drifting) -> None:
    """Looks at a table a tick where it has no more time, asks once for each finding, and begins a new round in time."""
    connection, drift = drifting.connection, Drift(every=100, settle=0.1, budget=0.000001)
    policy = connection.source.policy.model_copy(update={"drift": drift})
    names, cursor, now = Names.of(policy), None, time.time()
    defs = build_defs(policy, read_catalog(connection.source.metastore, policy))
    assert f"drift_{drifting.origin.database}" in {sensor.name for sensor in defs.sensors or ()}
    drifting.put("parts", "1", "part-9")
    with dg.DagsterInstance.ephemeral() as instance:

        def look(later: float) -> dg.SensorResult | dg.SkipReason:
            nonlocal cursor
            context = dg.build_sensor_context(instance, cursor=cursor)
            result = tick(context, connection, names, drift, drifting.origin.database, now + later)
            cursor = context.cursor
            return result

        result = look(0)
        assert isinstance(result, dg.SensorResult)
        (request,) = result.run_requests or []
        assert isinstance(look(1), dg.SkipReason)  # the other table
        for seconds in (2, 3):
            skipped = look(seconds)
            assert isinstance(skipped, dg.SkipReason)
        assert "next round starts" in str(skipped.skip_message)
        job = defs.resolve_job_def(f"repair_{drifting.origin.database}")
        done = job.execute_in_process(instance=instance, run_config=request.run_config, tags=dict(request.tags))
        assert done.success
        recorded = instance.get_latest_materialization_event(names.table(drifting.origin.database, "parts", "load"))
        assert recorded is not None
        drifting.replica.assert_equal()
        drifting.put("parts", "2", "part-9")
        again = look(200)
        assert isinstance(again, dg.SensorResult)
        assert [one.run_key for one in again.run_requests or []] != [request.run_key]
        assert [one.run_config["ops"] for one in again.run_requests or []] != [request.run_config["ops"]]


def test_large_tables_are_left_to_a_job_that_lists_by_spark(drifting: Drifting) -> None:
    """What it finds is repaired once, and it finds the same started from the Launchpad as it stands."""
    drift, database = Drift(every=100, settle=0.1), drifting.origin.database
    policy = drifting.connection.source.policy.model_copy(update={"drift": drift, "driver_max_directories": 0})
    connection = replace(drifting.connection, source=replace(drifting.connection.source, policy=policy))
    names, cursor, now = Names.of(policy), None, time.time()
    defs = build_defs(policy, read_catalog(connection.source.metastore, policy))
    job = defs.resolve_job_def(f"find_drift_{database}")
    drifting.repaired("parts")
    drifting.put("parts", "1", "part-large")
    with dg.DagsterInstance.ephemeral() as instance:

        def look(later: float) -> list[dg.RunRequest]:
            nonlocal cursor
            context = dg.build_sensor_context(instance, cursor=cursor)
            result = tick(context, connection, names, drift, database, now + later)
            cursor = context.cursor
            return list(result.run_requests or ()) if isinstance(result, dg.SensorResult) else []

        (request,) = look(0)
        assert request.job_name == job.name
        done = job.execute_in_process(instance=instance, run_config=request.run_config, tags=dict(request.tags))
        (output,) = [event for event in done.all_events if event.is_successful_output]
        metadata = {name: value.value for name, value in output.step_output_data.metadata.items()}
        assert (metadata["tables looked at"], metadata["partitions looked at"], metadata["drifted"]) == (1, len(DAYS), 1)
        assert str(metadata["listed by"]).startswith("Spark, application ")
        (repair,) = look(1)
        assert look(2) == []
        job_of_repair = defs.resolve_job_def(repair.job_name or "")
        assert job_of_repair.execute_in_process(instance=instance, run_config=repair.run_config, tags=dict(repair.tags)).success
        drifting.replica.assert_equal()
        assert job.execute_in_process(instance=instance).success
        assert look(3) == []
