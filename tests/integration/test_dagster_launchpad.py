"""Jobs started as Dagster's Launchpad offers them, and a search for a secret of the policy in all that Dagster keeps."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path

import dagster as dg
import psutil
import pytest
import yaml
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.serdes import serialize_value

from hive_replication.policy import Policy
from repl_assets.catalog.keys import Window
from tests.project import Project
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

CANARY = "canary7f3a5d9e2b"


def prefilled(job: dg.JobDefinition) -> dict[str, object]:
    """The configuration that the Launchpad fills in."""
    snapshot = job.get_job_snapshot()
    key = snapshot.mode_def_snaps[0].root_config_key
    assert key
    root = snapshot.config_schema_snapshot.get_config_snap(key)
    text = default_values_yaml_from_type_snap(snapshot.config_schema_snapshot, root)
    return yaml.safe_load(text) or {}


def test_each_job_starts_as_the_launchpad_offers_it(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    with dg.DagsterInstance.ephemeral() as instance:
        project = Project(warehouse, instance)
        project.window(Window(None, 1))
        defs = project.defs
        jobs = [job for job in defs.resolve_all_job_defs() if not job.name.startswith("__")]
        database = warehouse.database
        expected = {"record", "retention", "checks", "same_objects"}
        assert {job.name for job in jobs} == expected | {
            f"{kind}_{database}" for kind in ("failover", "pause", "plan", "rebuild", "repair", "resume")
        }
        for job in jobs:
            config = prefilled(job)
            assert "***" not in json.dumps(config)
            result = job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
            assert result.success, (job.name, [event.message for event in result.all_events if event.is_failure])
        warehouse.assert_equal()
        failover = defs.resolve_job_def(f"failover_{database}")
        for step, state in (("start", "ready"), ("rollback", "replicating")):
            config = {"ops": {f"failover_{database}__step": {"config": {"step": step}}}}
            result = failover.execute_in_process(instance=instance, run_config=config)
            (observed,) = result.asset_observations_for_node(f"failover_{database}__step")
            assert observed.metadata["state"].value == state


def test_a_secret_is_nowhere(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read by the process that uses it; Dagster's storage, its definitions, logs and command lines do not have it."""
    from pyspark import SparkContext

    monkeypatch.setenv("HIVE_REPL_CANARY", CANARY)
    (tmp_path / "secret").write_text(CANARY)
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    home = tmp_path / "dagster"
    home.mkdir()
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        project = Project(warehouse, instance)
        given = project.policy.model_dump(mode="json")
        for side in ("source", "target"):
            # A file: workers of Spark have the environment of whoever started the JVM of this process first.
            given[side]["roots"][0]["options"]["fs.s3a.secret.key"] = f"${{file:{tmp_path}/secret}}"
        given |= {"driver_max_files": 0, "packed_above": 0}
        given["spark"] = {
            "spark.hadoop.fs.s3a.secret.key": "${env:HIVE_REPL_CANARY}",
            "spark.hadoop.fs.s3a.session.token": f"${{file:{tmp_path}/secret}}",
        }
        project.policy = Policy.model_validate(given)
        if (other := SparkContext._active_spark_context) is not None:
            other.stop()  # of another test of this process: it would be taken again, with its own settings
        assert project.window(Window(None, 1)).success
        (made,) = project.events(project.database("load"))
        assert made.metadata["files by spark"].value == 1
        warehouse.assert_equal()

        context = SparkContext._active_spark_context
        assert context is not None
        assert context.getConf().get("spark.hadoop.fs.s3a.secret.key") == CANARY  # where it is used, it is known
        assert context.getConf().get("spark.hadoop.fs.s3a.session.token") == CANARY
        lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        assert any("py4j" in line or "spark" in line for line in lines)
        assert not [line for line in lines if CANARY in line]
        repository = project.defs.get_repository_def()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Dagster reads a property that it calls deprecated
            assert CANARY not in serialize_value(RepositorySnap.from_def(repository))
        for job in project.defs.resolve_all_job_defs():
            assert CANARY not in serialize_value(job.get_job_snapshot())
            assert CANARY not in json.dumps(prefilled(job))
        context.stop()
    stored = [path for path in home.rglob("*") if path.is_file()]
    assert stored
    assert not [path for path in stored if CANARY.encode() in path.read_bytes()]

    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(given))
    command = [
        str(Path(sys.executable).parent / "hive-repl"),
        "policy",
        "check",
        "--json",
        "--config",
        str(tmp_path / "policy.yaml"),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "${env:HIVE_REPL_CANARY}" in shown.stdout
    assert CANARY not in shown.stdout + shown.stderr
