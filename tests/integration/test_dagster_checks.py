"""Checks of replicas on real servers: what they find, what a repair makes of them, and who starts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import dagster as dg
import pytest
from dagster._core.storage.tags import RUN_KEY_TAG

from hive_replication.metastore.types import copy_of
from hive_replication.policy.checks import Checks
from repl_assets.catalog.catalog import read_catalog
from repl_assets.catalog.keys import Window
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import partitions_to_repair
from repl_assets.checks.table_checks import TABLE_CHECKS
from sensors.check_repairs import requests
from tests.project import Project
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

CHECKS = {check.name for check in TABLE_CHECKS}


@pytest.fixture
def project(warehouse: Warehouse) -> Iterator[Project]:
    """A table with and one without partitions and a view of them, bootstrapped; failed checks are repaired."""
    warehouse.sql(
        "CREATE TABLE plain (a INT, b STRING)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    warehouse.load_data("plain", "1\n2\n")
    for day in ("1", "2", "a b%c"):
        warehouse.load_data(f"parts PARTITION (ds='{day}')", "1\n2\n2\n")
    with dg.DagsterInstance.ephemeral() as instance:
        made = Project(warehouse, instance)
        spark = {"spark.sql.shuffle.partitions": "2"}
        made.policy = made.policy.model_copy(update={"checks": Checks(repair=True), "spark": spark})
        made.window(Window(None, 1))
        yield made


def write(project: Project, partition: str, rows: str) -> None:
    """Writes over the one file of a partition on the target."""
    target, database = project.warehouse.connection.target, project.warehouse.database
    (found,) = target.metastore.partitions(database, "parts", [partition])
    (file,) = target.storage.files(str(found.sd.location))
    target.storage.write(file.uri, rows.encode())


@pytest.mark.long
def test_what_checks_find_and_repairs_that_they_start(project: Project) -> None:
    found = project.checked()
    assert {table: {name for other, name in found if other == table} for table, _ in found} == {
        "plain": CHECKS,
        "parts": CHECKS,
        "seen": {"not_held", "schema_equal", "replica_equal"},
        f"{project.warehouse.database}__load": {"no_strays", "same_objects"},
    }
    assert [key for key, answer in found.items() if not answer.passed] == []
    assert found["parts", "row_counts"].metadata["rows at target"].value == 9
    assert found["parts", "row_diff"].metadata["rows compared at target"].value == 9

    write(project, "ds=a b%25c", "1\n2\n2\n2\n")
    write(project, "ds=2", "1\n1\n2\n")
    found = project.checked()
    assert {key for key, answer in found.items() if not answer.passed} == {
        ("parts", "replica_equal"),
        ("parts", "row_counts"),
        ("parts", "row_diff"),
        (f"{project.warehouse.database}__load", "same_objects"),
    }
    assert partitions_to_repair(found["parts", "row_counts"].metadata) == ("ds=a b%25c",)
    for check in ("replica_equal", "row_diff"):
        assert partitions_to_repair(found["parts", check].metadata) == ("ds=2", "ds=a b%25c")
    rows = str(found["parts", "row_diff"].metadata["rows that differ"].value).splitlines()
    assert rows[2:] == ["| ds=2 | 1 | 2 | value: 1 |", "| ds=2 | 2 | 1 | value: 2 |", "| ds=a b%25c | 2 | 3 | value: 2 |"]
    assert found["parts", "row_diff"].metadata["rows at target only"].value == 2

    # A repair by hand of one partition: the check is about the table, and red until the other one is right, too.
    project.run(project.table("parts"), partition_key="ds=2")
    assert partitions_to_repair(latest(project, "parts", "replica_equal").metadata) == ("ds=a b%25c",)
    assert latest(project, "parts", "row_counts").metadata["partitions checked"].value == 2

    project.policy = project.policy.model_copy(update={"checks": Checks(run=("replica_equal",), repair=True)})
    (known,) = read_catalog(project.warehouse.connection.source.metastore, project.policy).databases
    specs = Specs(project.policy)
    ((_, request),) = requests(project.instance, specs, known)
    job = project.defs.resolve_job_def(f"repair_{project.warehouse.database}")
    tags = {**request.tags, RUN_KEY_TAG: str(request.run_key)}  # as the daemon does
    assert job.execute_in_process(instance=project.instance, run_config=request.run_config, tags=tags).success
    project.warehouse.assert_equal()
    assert latest(project, "parts", "replica_equal").passed
    assert list(requests(project.instance, specs, known)) == []


def test_a_failure_that_stays_is_repaired_once(project: Project) -> None:
    """And what a repair cannot correct is reported: a schema that somebody changed comes back, a stray stays."""
    target, database = project.warehouse.connection.target, project.warehouse.database
    changed = copy_of(target.metastore.table(database, "parts"))
    changed.sd.cols[0].type = "bigint"
    target.metastore.alter_table(database, "parts", changed)
    storage, location = target.storage, str(target.metastore.database(database).locationUri)
    storage.write(f"{location}/forgotten/file", b"1")
    storage.write(f"{location}/parts/ds=9/file", b"1")
    foreign = copy_of(target.metastore.table(database, "plain"))
    foreign.tableName, foreign.sd.location = "stranger", f"{location}/stranger"
    target.metastore.create_table(foreign)
    part = copy_of(next(iter(target.metastore.partitions(database, "parts", ["ds=2"]))))
    part.values, part.sd.location = ["8"], f"{location}/parts/ds=8"
    target.metastore.add_partitions(database, "parts", [part])

    schema = project.checked("schema_equal")["parts", "schema_equal"]
    assert "columns is 'a bigint' on the target, 'a int' on the source" in str(schema.metadata["differences"].value)
    strays = project.checked("no_strays")[f"{database}__load", "no_strays"]
    table = str(strays.metadata["found"].value)
    assert strays.metadata["strays"].value == 4
    for shown in ("| table | stranger |", "| partition | parts/ds=8 |", "/parts/ds=9 |", "/forgotten |"):
        assert shown in table

    (known,) = read_catalog(project.warehouse.connection.source.metastore, project.policy).databases
    specs = Specs(project.policy)
    ((_, request),) = requests(project.instance, specs, known)
    with_run = {"tags": {RUN_KEY_TAG: str(request.run_key)}, "instance": project.instance}
    project.defs.resolve_job_def("record").execute_in_process(**with_run)  # a repair that has mended nothing
    assert list(requests(project.instance, specs, known)) == []
    project.checked("schema_equal")
    assert list(requests(project.instance, specs, known)) == []


@pytest.mark.long
def test_checks_of_tables_without_assets_of_their_own(project: Project) -> None:
    """Each table has answers of its own: from the job of the schedule, a repair by hand, and one that a failure starts."""
    run = ("replica_equal", "row_counts", "no_strays")
    project.policy = project.policy.model_copy(update={"checks": Checks(run=run, repair=True)})
    project.settings = {"most_tables": 0}
    database = project.warehouse.database
    project.warehouse.load_data("plain", "3\n")
    project.next_window()
    tables = project.names.tables(database)

    def answered(result: dg.ExecuteInProcessResult) -> dict[tuple[str | None, str], bool]:
        return {(one.partition, one.check_name): one.passed for one in result.get_asset_check_evaluations()}

    def by_schedule() -> dict[tuple[str | None, str], bool]:
        result = project.defs.resolve_job_def("checks").execute_in_process(instance=project.instance)
        assert result.success
        return answered(result)

    together = {(None, check): True for check in run}
    well = {(table, check): True for table in ("parts", "plain") for check in run[:2]} | {("seen", "replica_equal"): True}
    assert by_schedule() == well | together
    write(project, "ds=2", "1\n1\n2\n")
    wrong = {("parts", "replica_equal"): False, (None, "replica_equal"): False}
    assert by_schedule() == well | together | wrong
    shown = project.check(tables, "replica_equal")
    assert shown
    link = f"[parts](/assets/default/{database}__tables?view=partitions&partition=parts)"
    assert link in str((shown.metadata or {})["not passed"].value)  # type: ignore[union-attr]
    (known,) = read_catalog(project.warehouse.connection.source.metastore, project.policy).databases
    specs, overflow = Specs(project.policy, overflow=frozenset([database])), replace(known, tables=(), overflow=3)
    ((_, request),) = requests(project.instance, specs, overflow)
    job = project.defs.resolve_job_def(f"repair_{database}")
    tags = {**request.tags, RUN_KEY_TAG: str(request.run_key)}
    repaired = job.execute_in_process(instance=project.instance, run_config=request.run_config, tags=tags)
    assert answered(repaired) == {("parts", "replica_equal"): True}
    project.warehouse.assert_equal()
    assert list(requests(project.instance, specs, overflow)) == []
    assert answered(project.run(tables, partition_key="plain")) == {("plain", "replica_equal"): True}
    job = project.defs.resolve_implicit_global_asset_job_def()
    alone = job.get_subset(asset_selection=set(), asset_check_selection={dg.AssetCheckKey(tables, "replica_equal")})
    found = answered(alone.execute_in_process(instance=project.instance))
    assert found == {(table, "replica_equal"): True for table in ("parts", "plain", "seen", None)}


def latest(project: Project, table: str, check: str) -> dg.AssetCheckEvaluation:
    """The newest answer of a check."""
    key = project.database("load") if table.endswith("__load") else project.table(table)
    found = project.check(key, check)
    assert isinstance(found, dg.AssetCheckEvaluation)
    return found
