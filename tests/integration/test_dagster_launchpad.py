"""Jobs started as Dagster's Launchpad offers them, and a search for a secret of the policy in all that Dagster keeps."""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
import trustme
import yaml
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from dagster_shared.serdes import serialize_value

import repl_assets
from hive_replication.cli.main import run
from hive_replication.logs import PACKAGE
from hive_replication.policy import Policy
from hive_replication.policy.checks import Drift
from repl_assets.catalog.keys import Window
from tests.project import Project
from tests.warehouse import Warehouse
from tests.webserver import webserver

pytestmark = [pytest.mark.servers, pytest.mark.hive]

CANARY = "canary7f3a5d"  # each secret begins with it


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
        project.policy = project.policy.model_copy(update={"drift": Drift(settle=0.1)})
        project.window(Window(None, 1))
        defs = project.defs
        jobs = [job for job in defs.resolve_all_job_defs() if not job.name.startswith("__")]
        database = warehouse.database
        expected = {"record", "retention", "checks", "same_objects"}
        assert {job.name for job in jobs} == expected | {
            f"{kind}_{database}" for kind in ("failover", "find_drift", "pause", "plan", "rebuild", "repair", "resume")
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


def planted(given: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A policy with all kinds of secrets by reference; those of the channels of alarms, none of which answers, are set."""

    def secret(name: str) -> str:
        (folder / name).write_text(f"{CANARY}-{name}")
        return f"${{file:{folder}/{name}}}"

    client = trustme.CA().issue_cert("client.test")
    client.cert_chain_pems[0].write_to_path(folder / "client.pem")
    key, password = load_pem_private_key(client.private_key_pem.bytes(), None), f"{CANARY}-key".encode()
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password)))
    made = copy.deepcopy(given) | {"driver_max_files": 0, "packed_above": 0, "signing_key": "${env:HIVE_REPL_CANARY}"}
    for side in ("source", "target"):
        # A file: workers of Spark have the environment of whoever started the JVM of this process first.
        made[side]["roots"][0]["options"]["fs.s3a.secret.key"] = secret("option")
        made[side]["tls"] = {"certificate": f"{folder}/client.pem", "key": f"{folder}/key.pem", "key_password": secret("key")}
    made["spark"] = {
        "spark.hadoop.fs.s3a.secret.key": "${env:HIVE_REPL_CANARY}",
        "spark.hadoop.fs.s3a.session.token": secret("token"),
    }
    for name, value in {
        "HIVE_REPL_CANARY": f"{CANARY}-environment",
        "HIVE_REPL_ALARM_MAIL_TO": "operators@repl.test",
        "HIVE_REPL_ALARM_SMTP": f"smtp://operators:{CANARY}-mail@127.0.0.1:1",
        "HIVE_REPL_ALARM_SLACK_URL": f"http://127.0.0.1:1/services/{CANARY}-slack",
        "HIVE_REPL_ALARM_WEBHOOK_URL": f"http://operators:{CANARY}-webhook@127.0.0.1:1/alarms?token={CANARY}-webhook",
    }.items():
        monkeypatch.setenv(name, value)
    return made


def command_lines() -> list[str]:
    """Those of all processes of this machine, as ``ps`` shows them."""
    return [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance that keeps all in a folder, and starts runs at once."""
    (tmp_path / "dagster").mkdir()
    overrides = {"run_coordinator": {"module": "dagster.core.run_coordinator", "class": "DefaultRunCoordinator"}}
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster"), overrides=overrides) as made:
        yield made


def test_a_secret_is_nowhere(
    warehouse: Warehouse,
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is read by the process that uses it; all that Dagster keeps and tells, logs, dumps and command lines do not have it."""
    caplog.set_level(logging.DEBUG, PACKAGE)
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    project = Project(warehouse, instance)
    given = planted(project.policy.model_dump(mode="json"), tmp_path, monkeypatch)
    project.policy = Policy.model_validate(given)
    lines = loaded_by_spark(project)
    repository = project.defs.get_repository_def()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Dagster reads a property that it calls deprecated
        told = serialize_value(RepositorySnap.from_def(repository))
    for job in project.defs.resolve_all_job_defs():
        told += serialize_value(job.get_job_snapshot()) + json.dumps(prefilled(job))

    config = tmp_path / "policy.yaml"
    config.write_text(yaml.safe_dump(given))
    monkeypatch.setenv("HIVE_REPL_CONFIG", str(config))
    lines += told_by_webserver(instance, warehouse.database, tmp_path)
    lines += told_by_commands(given, warehouse.database, tmp_path)

    assert not [line for line in lines if CANARY in line]
    assert CANARY not in told
    said = "".join(capfd.readouterr())
    assert all(f"{channel} was not notified" in said for channel in ("mail", "Slack", "webhook"))
    assert CANARY not in said
    assert f"{PACKAGE}.metastore.connection" in caplog.text
    assert CANARY not in caplog.text
    target = warehouse.connection.target
    states = Path(repl_assets.__file__).parent / "defs/.local_defs_state"
    dumps = target.storage.files(f"{project.policy.dump_root}/{warehouse.database}", hidden=True)
    dumped = [target.storage.read(one.uri) for one in dumps]
    stored = [path.read_bytes() for folder in (tmp_path / "dagster", states) for path in folder.rglob("*") if path.is_file()]
    assert dumped
    assert stored
    assert not [content for content in (*dumped, *stored) if CANARY.encode() in content]
    assert CANARY not in repr([side.metastore.database(warehouse.database) for side in (warehouse.connection.source, target)])


def loaded_by_spark(project: Project) -> list[str]:
    """Dumps, signed, and loads with a session of Spark that has the secrets; command lines meanwhile."""
    from pyspark import SparkContext

    if (other := SparkContext._active_spark_context) is not None:
        other.stop()  # of another test of this process: it would be taken again, with its own settings
    assert project.window(Window(None, 1)).success
    (made,) = project.events(project.database("load"))
    assert made.metadata["files by spark"].value == 1
    project.warehouse.assert_equal()
    context = SparkContext._active_spark_context
    assert context is not None
    # Where it is used, it is known.
    assert context.getConf().get("spark.hadoop.fs.s3a.secret.key") == f"{CANARY}-environment"
    assert context.getConf().get("spark.hadoop.fs.s3a.session.token") == f"{CANARY}-token"
    lines = command_lines()
    assert any("py4j" in line or "spark" in line for line in lines)
    context.stop()
    return lines


def told_by_webserver(instance: dg.DagsterInstance, database: str, folder: Path) -> list[str]:
    """What GraphQL tells of the definitions, of a run that succeeds, of one that fails and of alarms, and command lines."""
    told, failover = list[str](), f"failover_{database}"
    with webserver(instance) as pages:
        pages.tick("alarms")  # runs before the first one raise no alarm
        runs = [
            pages.launch("checks", {}),
            pages.launch(failover, {"ops": {f"{failover}__step": {"config": {"step": "finish"}}}}),
        ]
        while not all(run.is_finished for run in instance.get_runs(dg.RunsFilter(run_ids=runs))):
            told += command_lines()
            time.sleep(0.5)
        told += [json.dumps(pages.tick("alarms")), everything := pages.told()]
    ended = {run.job_name: run.status.value for run in instance.get_runs(dg.RunsFilter(run_ids=runs))}
    assert ended == {"checks": "SUCCESS", failover: "FAILURE"}
    assert any(sys.executable in line and "repl_assets.definitions" in line for line in told)
    for shown in ("${env:HIVE_REPL_CANARY}", f"${{file:{folder}/option}}", "fs.s3a.session.token", *runs):
        assert shown in everything, "this is where a secret would stand"
    return told


def told_by_commands(given: dict[str, Any], database: str, folder: Path) -> list[str]:
    """Runs the command line with policies that can be used, and with some that cannot; command lines meanwhile."""
    plain, tls, wrong, short = (copy.deepcopy(given) for _ in range(4))
    plain["target"]["roots"][0]["options"]["fs.s3a.secret.key"] = f"{CANARY}-plain"
    tls["target"]["metastore_ssl"] = wrong["target"]["metastore_ssl"] = True  # which the target's does not speak
    wrong["target"]["tls"]["key_password"] = f"${{file:{folder}/option}}"
    short["signing_key"] = f"${{file:{folder}/short}}"
    (folder / "short").write_text(CANARY)
    for name, policy in {"usable": given, "plain": plain, "tls": tls, "wrong": wrong, "short": short}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(policy))
    for name, expected, *command in (
        ("usable", 0, "policy", "check", "--json"),
        ("usable", 0, "doctor"),
        ("usable", 0, "status"),
        ("usable", 0, "verify", database),
        ("plain", 2, "policy", "check"),
        ("tls", 1, "doctor"),
        ("wrong", 1, "doctor"),
        ("short", 1, "doctor"),
    ):
        assert run(["--config", str(folder / f"{name}.yaml"), "-vv", *command]) == expected, (name, command)
    program = Path(sys.executable).parent / "hive-repl"
    with subprocess.Popen([program, "-vv", "status"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        lines = command_lines()
        assert process.stdout
        lines.append(process.stdout.read())
    assert "DEBUG hive_replication" in lines[-1]
    return lines
