"""A window that failed: run again from its failure, or its load alone, as a person does it in Dagster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import PARTITION_NAME_TAG

from hive_replication.metastore.lock import MetastoreLock
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names, Window
from repl_assets.definitions import build_defs
from tests.project import Project
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

_POLICY = "HIVE_REPL_TEST_POLICY"


def window_job() -> dg.JobDefinition:
    """A job of dump and load, as another process would load it: Dagster's own job of all assets has a reserved name."""
    policy = Policy.model_validate_json(Path(os.environ[_POLICY]).read_text(encoding="utf-8"))
    keys = [Names.of(policy).database(database, stage) for database in policy.databases for stage in ("dump", "load")]
    job = dg.define_asset_job("windows", selection=dg.AssetSelection.assets(*keys))
    return dg.Definitions.merge(build_defs(policy), dg.Definitions(jobs=[job])).resolve_job_def("windows")


@pytest.fixture
def project(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    warehouse.sql("CREATE TABLE plain (a INT)")
    monkeypatch.setenv(_POLICY, str(tmp_path / "policy.json"))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        made = Project(warehouse, instance)
        (tmp_path / "policy.json").write_text(made.policy.model_dump_json(), encoding="utf-8")
        made.window(Window(None, 1))
        yield made


def test_from_failure_the_dump_is_used_again(project: Project) -> None:
    warehouse, instance = project.warehouse, project.instance
    warehouse.load_data("plain", "1\n")
    window = Window(warehouse.applied(), warehouse.connection.source.metastore.current_event_id())
    instance.add_dynamic_partitions(str(project.names.windows.name), [str(window)])
    job = dg.reconstructable(window_job)
    tags = {PARTITION_NAME_TAG: str(window)}  # Dagster's UI gives a run's tags to the one that repeats it
    lock = MetastoreLock(warehouse.connection.target.metastore, warehouse.database)
    with lock, dg.execute_job(job, instance, tags=tags) as failed:
        assert not failed.success
        assert [event.step_key for event in failed.get_step_failure_events()] == [f"{warehouse.database}__load"]
    dumps = len(project.events(project.database("dump")))

    again = dg.ReexecutionOptions.from_failure(failed.run_id, instance)
    with dg.execute_job(job, instance, tags=tags, reexecution_options=again) as retried:
        assert retried.success
    warehouse.assert_equal()
    assert len(project.events(project.database("dump"))) == dumps
    made = project.events(project.database("load"))[0]
    assert (made.partition, made.metadata["events"].value) == (str(window), 2)  # LOAD DATA: INSERT and ALTER_TABLE
