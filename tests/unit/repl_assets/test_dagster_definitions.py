"""Definitions: what the catalog becomes, how fast, and without which servers."""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import dagster as dg
import pytest
import yaml
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.tags import TagType, get_tag_type
from pydantic import ValidationError

from hive_replication.errors import BadRequest, MetastoreError
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Drift
from hive_replication.policy.model import Warehouse
from hive_replication.process import this_process
from repl_assets import definitions
from repl_assets.catalog.catalog import Catalog, CatalogDatabase, CatalogTable, Column, file_format
from repl_assets.catalog.keys import DATABASE_TAG, Names
from repl_assets.components import ReplicationPolicy, reading, replication_policy
from repl_assets.components.last_policy import keep_policy, kept_policy
from repl_assets.definitions import build_defs
from resources.connection import ReplicationConnection
from resources.heartbeat import PROCESS_TAG
from tests.integration.test_dagster_launchpad import prefilled

ROOT = Path(__file__).parents[3]
NOWHERE = "thrift://127.0.0.1:1"
NO_CONTEXT: Any = None  # the component does not look at it


def policy(name: str = "default") -> Policy:
    return Policy(
        name=name,
        source=Warehouse(metastore=NOWHERE, roots=(Root(uri="hdfs://source:8020/"),)),
        target=Warehouse(metastore=NOWHERE, roots=(Root(uri="hdfs://target:8020/"),)),
        dump_root="hdfs://target:8020/dumps",
        databases={"sales": "sales_copy"},
    )


def table(name: str, **changes: Any) -> CatalogTable:
    columns = (Column("a", "int", "an int"),)
    made = CatalogTable(name, False, f"hdfs://source:8020/w/sales.db/{name}", "parquet", columns, (), "etl", "")
    return replace(made, **changes)


ORDERS = table("orders", partition_keys=(Column("ds", "string"),), owner="jo@shop.com", comment="All orders.")
VIEW = table("seen", view=True, location="", format="", text="SELECT a FROM orders", reads=(("hr", "staff"), ("sales", "orders")))
CATALOG = Catalog(
    (
        CatalogDatabase(
            "sales",
            "hive",
            "The shop",
            "hdfs://source:8020/w/sales.db",
            (table("lookup", replica="hdfs://target:8020/w/sales.db/lookup"), ORDERS, VIEW),
            (("ledger", "transactional (ACID) tables are not replicated by this version"),),
        ),
    )
)

EXPECTED = """\
default/sales/lookup sales deps=lookup__dump,sales__load partitions=- kinds=hive,parquet owners=team:etl
default/sales/lookup__dump sales deps=lookup__source partitions=- kinds=hive owners=team:etl
default/sales/lookup__source sales deps=- partitions=- kinds=hive owners=team:etl
default/sales/orders sales deps=orders__dump,sales__load partitions=default.sales.orders kinds=hive,parquet owners=jo@shop.com
default/sales/orders__dump sales deps=orders__source partitions=default.sales.orders kinds=hive owners=jo@shop.com
default/sales/orders__source sales deps=- partitions=- kinds=hive owners=jo@shop.com
default/sales/seen sales deps=orders,seen__dump partitions=- kinds=hive,view owners=team:etl
default/sales/seen__dump sales deps=seen__source partitions=- kinds=hive,view owners=team:etl
default/sales/seen__source sales deps=orders__source partitions=- kinds=hive,view owners=team:etl
default/sales__dump sales deps=sales__source partitions=default.windows kinds=hive owners=team:hive
default/sales__load sales deps=sales__dump partitions=default.windows kinds=hdfs,hive,spark owners=team:hive
default/sales__source sales deps=- partitions=- kinds=hive owners=team:hive
default/status sales deps=- partitions=- kinds=hive owners=
"""


def database(name: str, *tables: CatalogTable) -> CatalogDatabase:
    return CatalogDatabase(name, "", "", "", tables, ())


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("dagster"), "propagate", True)
    return caplog


def specs(defs: dg.Definitions) -> dict[str, dg.AssetSpec]:
    return {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}


def shown(spec: dg.AssetSpec) -> str:
    deps = ",".join(sorted(dep.asset_key.path[-1] for dep in spec.deps)) or "-"
    partitions = spec.partitions_def.name if isinstance(spec.partitions_def, dg.DynamicPartitionsDefinition) else "-"
    parts = f"deps={deps} partitions={partitions} kinds={','.join(sorted(spec.kinds))} owners={','.join(spec.owners)}"
    return f"{spec.key.to_user_string()} {spec.group_name} {parts}\n"


def test_specs_are_as_they_were() -> None:
    assert "".join(shown(spec) for _, spec in sorted(specs(build_defs(policy(), CATALOG)).items())) == EXPECTED


def test_a_policy_has_a_page_that_nothing_materializes() -> None:
    """Beside a database of its name, and one whose tables have names like it; in the group of the policy."""
    databases = {name: name for name in ("status", "fin", "sales")}
    fin = policy().model_copy(update={"name": "fin", "databases": databases})
    catalog = Catalog(
        (database("status", CatalogTable("status", False, "", "", (), (), "", "")), database("fin"), database("sales"))
    )
    defs = build_defs(fin, catalog)
    page = specs(defs)["fin/status"]
    assert (page.group_name, list(page.deps), page.partitions_def) == ("fin", [], None)
    two = policy().model_copy(update={"databases": databases})
    assert specs(build_defs(two))["default/status"].group_name == "default"
    assert {spec.group_name for spec in specs(build_defs(policy())).values()} == {"sales"}, "its lineage opens by itself"
    assert not defs.resolve_asset_graph().get(page.key).is_executable
    assert len(specs(defs)) == 1 + 3 * len(databases) + 3
    names = Names.of(fin)
    assert names.own([page.key, names.database("status", "load")], databases) == [names.database("status", "load")]


def test_metadata() -> None:
    found = specs(build_defs(policy(), CATALOG))
    orders = found["default/sales/orders"]
    assert orders.metadata["dagster/table_name"] == "sales_copy.orders"
    columns = orders.metadata["dagster/column_schema"].columns
    assert [(c.name, c.type, c.description, dict(c.tags)) for c in columns] == [
        ("a", "int", "an int", {}),
        ("ds", "string", None, {"partition_key": ""}),
    ]
    assert "All orders." in str(orders.description)
    first = {name: str(spec.description).partition("\n")[0] for name, spec in found.items()}
    repaired = "replica. Materialize it to repair it: what differs from the source is replaced."
    assert first["default/sales/orders"] == f"Hive table sales_copy.orders: {repaired}"
    assert first["default/sales/seen"] == f"Hive view sales_copy.seen: {repaired}"
    assert first["default/sales/orders__dump"] == "Hive table sales.orders: metadata and file references."
    assert first["default/sales/orders__source"] == "Hive table sales.orders: at the source."
    assert found["default/sales/orders__source"].metadata["dagster/table_name"] == "sales.orders"
    assert found["default/sales/orders__source"].metadata["dagster/uri"] == ORDERS.location
    assert found["default/sales/lookup"].metadata["dagster/uri"] == "hdfs://target:8020/w/sales.db/lookup"
    assert found["default/sales/lookup__dump"].metadata["dagster/uri"] == "hdfs://target:8020/dumps"
    assert found["default/sales/seen"].metadata["query"].value == "```sql\nSELECT a FROM orders\n```"
    assert "ledger" in found["default/sales__load"].metadata["not replicated"].value


def test_definitions_are_valid_jobs_and_checks_included() -> None:
    defs = build_defs(policy(), CATALOG)
    dg.Definitions.validate_loadable(defs)
    assert {job.name for job in defs.resolve_all_job_defs()} >= {"rebuild_sales", "record"}
    checks = {key.name for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks >= {"files_proven", "nothing_held", "replica_equal", "up_to_date"}
    sensors = {sensor.name: sensor for sensor in defs.sensors or []}
    assert set(sensors) == {"notification_log", "recording", "lag", "alarms"}
    assert sensors["notification_log"].minimum_interval_seconds == 4
    assert {sensor.default_status for sensor in sensors.values()} == {dg.DefaultSensorStatus.RUNNING}


def test_a_window_does_not_make_tables_out_of_date_that_it_left_alone() -> None:
    graph = build_defs(policy(), CATALOG).resolve_asset_graph()
    load, lookup, orders = (
        dg.AssetKey(["default", *path]) for path in (["sales__load"], ["sales", "lookup"], ["sales", "orders"])
    )
    assert load in graph.get(lookup).parent_keys & graph.get(orders).parent_keys
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("default.windows", ["1-2", "2-3"])
        instance.add_dynamic_partitions("default.sales.orders", ["ds=1"])

        def changed(key: dg.AssetKey, partition: str | None, version: str) -> None:
            tags = {"dagster/data_version": version}
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition, tags=tags))

        for stage in ("lookup__dump", "orders__dump"):
            changed(dg.AssetKey(["default", "sales", stage]), "ds=1" if stage.startswith("orders") else None, "1")
        changed(load, "1-2", "2")
        changed(lookup, None, "1")
        changed(orders, "ds=1", "1")
        changed(load, "2-3", "3")
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        assert (resolver.get_status(lookup), resolver.get_status(orders, "ds=1")) == (StaleStatus.FRESH, StaleStatus.FRESH)


def test_a_view_is_not_out_of_date_when_a_table_that_it_reads_changes() -> None:
    graph = build_defs(policy(), CATALOG).resolve_asset_graph()
    with dg.DagsterInstance.ephemeral() as instance:

        def changed(name: str, partition: str | None = None) -> None:
            key = dg.AssetKey(["default", "sales", name])
            tags = {"dagster/data_version": "1"}
            instance.report_runless_asset_event(dg.AssetMaterialization(key, partition=partition, tags=tags))

        instance.add_dynamic_partitions("default.sales.orders", ["ds=1"])
        for name, partition in (("seen__dump", None), ("seen", None), ("orders__dump", "ds=1"), ("orders", "ds=1")):
            changed(name, partition)
        resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
        assert resolver.get_status(dg.AssetKey(["default", "sales", "seen"])) == StaleStatus.FRESH


def test_two_policies_load_together() -> None:
    dg.Definitions.validate_loadable(dg.Definitions.merge(build_defs(policy(), CATALOG), build_defs(policy("dr"), CATALOG)))


@pytest.mark.parametrize("name", ["2024", "2nd_site", "_"])
def test_the_name_of_a_policy_may_begin_as_it_likes(name: str) -> None:
    """No sensor of any policy of the project was left where one began with a digit."""
    dg.Definitions.validate_loadable(dg.Definitions.merge(build_defs(policy(), CATALOG), build_defs(policy(name), CATALOG)))


@pytest.mark.parametrize("owner", ["alice@corp.internal", "etl@prod.cluster1"])
def test_owners_that_dagster_takes_for_no_addresses_are_teams(owner: str) -> None:
    defs = build_defs(policy(), Catalog((database("sales", table("orders", owner=owner)),)))
    dg.Definitions.validate_loadable(defs)
    assert specs(defs)["default/sales/orders"].owners == [f"team:{owner}"]


@pytest.mark.parametrize(
    ("tables", "with_assets"), [("a-b a_b c", {"a_b", "c"}), ("x.y x_2ey", {"x_2ey"}), ("x.y x-2ey", set[str]())]
)
def test_of_tables_with_one_name_in_dagster_the_plainest_has_assets(
    tables: str, with_assets: set[str], log: pytest.LogCaptureFixture
) -> None:
    defs = build_defs(policy(), Catalog((database("sales", *map(table, tables.split())),)))
    dg.Definitions.validate_loadable(defs)
    assert {spec.key.path[-1] for spec in specs(defs).values() if len(spec.key.path) == 3 and spec.kinds >= {"parquet"}} == (
        with_assets
    )
    assert "no assets for tables of sales that Dagster cannot tell from others: " in log.text


@pytest.mark.parametrize("one", ["default", "fin"])
def test_databases_of_policies_whose_names_run_together_have_ops_of_their_own(one: str) -> None:
    names = {one: "eu_sales", "eu" if one == "default" else "fin_eu": "sales"}
    made = [
        build_defs(
            policy(name).model_copy(update={"databases": {of: of}}),
            Catalog((database(of, table("orders")),)),
            others=names.keys() - {name},
        )
        for name, of in names.items()
    ]
    dg.Definitions.validate_loadable(dg.Definitions.merge(*made))
    ops = [{one.op.name for one in each.assets or () if isinstance(one, dg.AssetsDefinition)} for each in made]
    assert not ops[0] & ops[1]
    assert ops[1] == {f"{[*names][1]}_sales__{step}" for step in ("dump", "load", "dump_tables", "load_tables")}


def test_a_database_whose_tables_dagster_does_not_take_is_replicated_without_assets_of_tables(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repl_assets.catalog.specs.dagster_owner", lambda name: name and f"no owner: {name}")
    two = policy().model_copy(update={"databases": {"sales": "sales", "hr": "hr"}})
    defs = build_defs(two, Catalog((database("hr", replace(table("staff"), owner="")), database("sales", table("orders")))))
    dg.Definitions.validate_loadable(defs)
    found = specs(defs)
    assert {"default/hr/staff", "default/sales__load"} <= found.keys()
    assert "default/sales/orders" not in found
    assert "Invalid owner" in str(found["default/sales__load"].description)
    assert "tables of sales have no assets, Dagster does not take their definitions: Invalid owner" in log.text


@pytest.mark.parametrize("circle", [("sales.v", "hr.w"), ("sales.v", "sales.w"), ("sales.v",)], ids=" ".join)
def test_views_that_read_each_other_have_no_lineage(log: pytest.LogCaptureFixture, circle: tuple[str, ...]) -> None:
    """As after a rename: the definitions did not load, no backfill of any table began, or no table of a database had assets."""
    names = [(database, name) for database, _, name in (one.partition(".") for one in circle)]
    reads = {names[number - 1]: one for number, one in enumerate(names)}

    def of(database_name: str, *tables: CatalogTable) -> CatalogDatabase:
        views = (replace(VIEW, name=one[1], reads=(reads[one],)) for one in names if one[0] == database_name)
        return database(database_name, *tables, *views)

    two = policy().model_copy(update={"databases": {"sales": "sales", "hr": "hr"}})
    defs = build_defs(two, Catalog((of("hr"), of("sales", ORDERS, replace(VIEW, reads=(("sales", "orders"),))))))
    dg.Definitions.validate_loadable(defs)
    assert defs.resolve_asset_graph().toposorted_asset_keys_by_level  # as backfills order all assets
    found = specs(defs)
    assert shown(found["default/sales/v"]).split()[2] == "deps=v__dump"
    assert shown(found["default/sales/seen"]).split()[2] == "deps=orders,seen__dump"
    told = log.text.partition("lineage is not shown of views that read each other: ")[2].splitlines()[0]
    assert set(told.split(", ")) == set(circle)


@pytest.mark.parametrize("most", [0, 2])
def test_more_tables_than_the_limit_are_partitions_of_one_asset(log: pytest.LogCaptureFixture, most: int) -> None:
    defs = build_defs(policy(), CATALOG, most_tables=most)
    dg.Definitions.validate_loadable(defs)
    found = specs(defs)
    database = {f"default/sales__{stage}" for stage in ("source", "dump", "load")}
    assert found.keys() == database | {"default/sales__tables", "default/status"}
    tables = found["default/sales__tables"]
    assert shown(tables).split()[1:4] == ["sales", "deps=sales__load,sales__source", "partitions=default.sales:tables"]
    assert "The 3 tables and views of sales_copy" in str(tables.description)
    assert "partitions of one asset, sales__tables" in str(found["default/sales__load"].description)
    assert "the 3 tables of sales are partitions of one asset" in log.text


def test_databases_that_fit_keep_the_assets_of_their_tables() -> None:
    small = CatalogDatabase("hr", "", "", "", (table("staff"),), ())
    two = policy().model_copy(update={"databases": {"sales": "sales", "hr": "hr"}})
    found = specs(build_defs(two, Catalog((small, *CATALOG.databases)), most_tables=3))
    assert {"default/hr/staff", "default/sales__tables"} <= found.keys()
    assert not {"default/hr__tables", "default/sales/orders"} & found.keys()


def test_the_policy_is_shown_since_it_has_no_secrets() -> None:
    resources = build_defs(policy()).resources or {}
    assert "dump_root: hdfs://target:8020/dumps" in str(resources["connection"].get_resource_definition().description)
    assert Policy.model_validate(resources["connection"].policy) == policy()
    assert resources["spark"].settings == policy().spark


@pytest.mark.parametrize(
    "value",
    [
        object(),
        dg.ResourceDefinition.hardcoded_resource("mine"),
        ReplicationConnection.of(policy()),
        ReplicationConnection.configure_at_launch(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_kind_of_resource_may_take_the_place_of_the_policys(value: object) -> None:
    with_drift = policy().model_copy(update={"drift": Drift()})
    defs = build_defs(with_drift, CATALOG, resources={"connection": value})
    dg.Definitions.validate_loadable(defs)
    assert {"connection", "spark"} <= defs.resolve_job_def("repair_sales").resource_defs.keys()


def test_catalog_round_trips() -> None:
    assert Catalog.of_json(CATALOG.to_json()) == CATALOG


@pytest.mark.parametrize(
    ("input_format", "expected"),
    [
        ("org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat", "parquet"),
        ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", "orc"),
        ("org.apache.hadoop.mapred.TextInputFormat", "text"),
        ("org.apache.hadoop.hive.ql.io.avro.AvroContainerInputFormat", "avro"),
        ("com.example.Other", "Other"),
    ],
)
def test_file_formats(input_format: str, expected: str) -> None:
    assert file_format(input_format) == expected


def component(**fields: Any) -> ReplicationPolicy:
    return ReplicationPolicy(**fields)


def test_the_last_catalog_stays_while_the_source_cannot_be_reached(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    state = tmp_path / "state"
    state.write_text(CATALOG.to_json(), encoding="utf-8")
    made = component(policy=policy().model_dump(mode="json"))
    made.write_state_to_path(state)
    assert "tables are shown as last known" in log.text
    found = specs(made.build_defs_from_state(NO_CONTEXT, state))
    assert "default/sales/orders" in found


def test_a_database_that_is_refused_now_keeps_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the checks of its tables would be gone, and alarms of them would end though they still fail."""

    def refused(*_: object) -> Database:
        raise MetastoreError("get_database sales: permission denied")

    monkeypatch.setattr(Metastore, "database", refused)
    state = tmp_path / "state"
    state.write_text(CATALOG.to_json(), encoding="utf-8")
    component(policy=policy().model_dump(mode="json")).write_state_to_path(state)
    assert Catalog.of_json(state.read_text(encoding="utf-8")) == CATALOG


def test_without_any_catalog_there_are_the_database_assets(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    made = component(policy=policy().model_dump(mode="json"))
    made.write_state_to_path(tmp_path / "state")
    assert "no tables are known yet" in log.text
    found = specs(made.build_defs_from_state(NO_CONTEXT, tmp_path / "state"))
    assert sorted(found) == ["default/sales__dump", "default/sales__load", "default/sales__source", "default/status"]


def test_sources_that_hang_delay_a_load_by_one_deadline_together(
    tmp_path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else some policies would take longer than Dagster waits, and an outage would end all sensors."""
    monkeypatch.setattr(reading, "_TOGETHER", 2)
    monkeypatch.setattr(replication_policy, "BUDGET", reading.Budget())
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        address = {"metastore": f"thrift://127.0.0.1:{server.getsockname()[1]}"}
        sides = {side: getattr(policy(), side).model_copy(update=address) for side in ("source", "target")}
        began = time.monotonic()
        for name in ("one", "two", "three"):
            hanging = policy().model_copy(update={"name": name, **sides}).model_dump(mode="json")
            component(policy=hanging).write_state_to_path(tmp_path / name)
    assert time.monotonic() - began < 4
    assert "the source of policy one cannot be read" in log.text
    assert "the source of policy three is not read now" in log.text
    assert reading.was_read(tmp_path / "one"), "it is not to take the time of the others again"
    assert not reading.was_read(tmp_path / "three")


def test_a_damaged_catalog_is_none(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("{", encoding="utf-8")
    made = component(policy=policy().model_dump(mode="json"))
    assert len(specs(made.build_defs_from_state(NO_CONTEXT, tmp_path / "state"))) == 4
    assert "unreadable" in log.text


_LOADS = """
import sys, pathlib
import dagster as dg
from repl_assets.components import reading, replication_policy
from repl_assets.catalog.catalog import Catalog, CatalogDatabase
from repl_assets.dagster_private import DefinitionsLoadContext, DefinitionsLoadType
databases = iter([["sales"], ["sales", "sales_b"], ["sales", "sales_b", "sales_c"]])
made = lambda *_: Catalog(tuple(CatalogDatabase(name, "", "", "", (), ()) for name in next(databases)))
replication_policy.read_catalog, replication_policy.resolved = made, lambda policy, *_, **__: policy
def load(how):
    DefinitionsLoadContext.set(DefinitionsLoadContext(how))
    found = dg.load_from_defs_folder(path_within_project=pathlib.Path(sys.argv[1]))
    print(*sorted(spec.key.path[-1] for spec in found.resolve_all_asset_specs() if spec.key.path[-1].endswith("__load")))
load(DefinitionsLoadType.INITIALIZATION)
if sys.argv[2] == "kept":
    load(DefinitionsLoadType.INITIALIZATION)  # it was read just now
    for state in pathlib.Path(sys.argv[1]).rglob("state"):
        reading.read_again(state)
load(DefinitionsLoadType.INITIALIZATION)
load(DefinitionsLoadType.RECONSTRUCTION)
"""


@pytest.mark.parametrize("writable", [True, False], ids=["kept", "not writable"])
def test_databases_of_patterns_get_assets_whenever_a_code_server_loads(writable: bool, tmp_path: Path) -> None:
    """Not only those of ``dagster dev``. Runs take the catalog that was kept, or read it where none can be kept.

    One that was read a short while ago is not read again, unless that is asked for.
    """
    given = policy().model_copy(update={"databases": {"sales*": "*"}}).model_dump(mode="json", exclude_defaults=True)
    defs = tmp_path / "project" / "defs"
    (defs / "one").mkdir(parents=True)
    spec = {"type": "repl_assets.components.ReplicationPolicy", "attributes": {"policy": given}}
    (defs / "one" / "defs.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    if not writable:
        (defs / ".local_defs_state").touch()  # root writes to every directory, but makes none of a file
    (tmp_path / "project" / "__init__.py").touch()
    (tmp_path / "dg.toml").write_text('directory_type = "project"\n[project]\nroot_module = "project"\n', encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "DAGSTER_IS_DEV_CLI"}
    done = subprocess.run(
        [sys.executable, "-c", _LOADS, str(defs), "kept" if writable else "not kept"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    loads = ["sales__load", "sales__load sales_b__load"]
    expected = [loads[0], *loads, loads[1]] if writable else [*loads, f"{loads[1]} sales_c__load"]
    assert done.stdout.splitlines() == expected, done.stderr


_EDITED = """
import sys, pathlib, logging
import dagster as dg
from repl_assets import build
from repl_assets.components import replication_policy
from repl_assets.catalog.catalog import Catalog
from repl_assets.dagster_private import DefinitionsLoadContext, DefinitionsLoadType
replication_policy.read_catalog, replication_policy.resolved = lambda *_: Catalog(), lambda policy, *_, **__: policy
alarms = build.alarm_sensor
def alarm_sensor(*given):
    print(given[-1].partition("\\n")[0] or "no problem")
    return alarms(*given)
build.alarm_sensor = alarm_sensor
file = pathlib.Path("policy.yaml")
valid = file.read_text()
for text in sys.argv[2:]:
    file.write_text(valid if text == "valid" else text)
    for how in (DefinitionsLoadType.INITIALIZATION, DefinitionsLoadType.RECONSTRUCTION):
        DefinitionsLoadContext.set(DefinitionsLoadContext(how))
        found = dg.load_from_defs_folder(path_within_project=pathlib.Path(sys.argv[1]))
        print(*sorted(spec.key.path[-1] for spec in found.resolve_all_asset_specs()), *sorted(one.name for one in found.sensors))
"""


def edited(folder: Path, *texts: str) -> subprocess.CompletedProcess[str]:
    """Definitions that a code server loads, and then a run, each time after the policy's file was edited."""
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy().model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")
    defs = folder / "project" / "defs"
    (defs / "one").mkdir(parents=True)
    spec = {"type": "repl_assets.components.ReplicationPolicy", "attributes": {"policy_file": "policy.yaml"}}
    (defs / "one" / "defs.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    (folder / "project" / "__init__.py").touch()
    (folder / "dg.toml").write_text('directory_type = "project"\n[project]\nroot_module = "project"\n', encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "DAGSTER_IS_DEV_CLI"}
    return subprocess.run(
        [sys.executable, "-c", _EDITED, str(defs), *texts],
        cwd=folder,
        env={**environment, "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_policy_that_is_not_valid_leaves_the_last_one_in_use_with_an_alarm(tmp_path: Path) -> None:
    """Code servers that a daemon starts load the file as it is, once a minute."""
    done = edited(tmp_path, "valid", "databases: [", "no: policy", "valid")
    loaded = "sales__dump sales__load sales__source status alarms catalog lag notification_log recording"
    said = done.stdout.splitlines()
    assert said[1::2] == [loaded] * 8, done.stderr
    assert said[0] == said[2] == said[12] == said[14] == "no problem"
    assert all("the policy default is used as it was loaded last: policy.yaml" in one for one in said[4:12:2])
    assert "the policy default as it was loaded last is used" in done.stderr


_RELOADED = """
import sys, pathlib, yaml
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.definitions.reconstruct import initialize_repository_def_from_pointer, reconstruct_repository_def_from_pointer
from repl_assets.components import replication_policy
from repl_assets.catalog.catalog import Catalog
replication_policy.read_catalog, replication_policy.resolved = lambda *_: Catalog(), lambda policy, *_, **__: policy
whys = []
why_no_reload = replication_policy.why_no_reload
replication_policy.why_no_reload = lambda loaded: whys.append(why_no_reload(loaded)) or whys[-1]
pointer, file = ModuleCodePointer("project.definitions", "made", "."), pathlib.Path(sys.argv[1])
def write(before, after):
    file.write_text(file.read_text().replace(before, after))
def said(repository):
    shown = repository.get_top_level_resources()["connection"].description.split("```")[1].removeprefix("yaml")
    print(*yaml.safe_load(shown)["databases"].values(), bool(whys[-1]()))
    return repository.repository_load_data
given = said(initialize_repository_def_from_pointer(pointer))  # the code server
write("sales_copy", "sales_dr")
said(reconstruct_repository_def_from_pointer(pointer, given))  # a run
write("databases", "no_setting")
said(reconstruct_repository_def_from_pointer(pointer, given))
write("no_setting", "databases")
again = said(initialize_repository_def_from_pointer(pointer))  # Reload
said(reconstruct_repository_def_from_pointer(pointer, given))  # it was requested before
said(reconstruct_repository_def_from_pointer(pointer, again))
"""


@pytest.mark.parametrize("place", ["policy_file", "policy"])
def test_a_policy_that_was_edited_acts_in_runs_once_the_code_server_has_loaded_it(place: str, tmp_path: Path) -> None:
    """It dropped what it left out, or made another replica, while the sensors went on with the policy of before."""
    content = policy().model_dump(mode="json", exclude_defaults=True)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    attributes = {"policy_file": "policy.yaml"} if place == "policy_file" else {"policy": content}
    spec = {"type": "repl_assets.components.ReplicationPolicy", "attributes": attributes}
    defs = tmp_path / "project" / "defs"
    (defs / "one").mkdir(parents=True)
    (defs / "one" / "defs.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    (tmp_path / "project" / "__init__.py").touch()
    (tmp_path / "project" / "definitions.py").write_text(
        "import pathlib\nimport dagster as dg\n@dg.definitions\ndef made():\n"
        "    return dg.load_from_defs_folder(path_within_project=pathlib.Path(__file__).parent)\n"
    )
    (tmp_path / "dg.toml").write_text('directory_type = "project"\n[project]\nroot_module = "project"\n', encoding="utf-8")
    file = tmp_path / "policy.yaml" if place == "policy_file" else defs / "one" / "defs.yaml"
    done = subprocess.run(
        [sys.executable, "-c", _RELOADED, str(file)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
    )
    before, after = "sales_copy True", "sales_dr False"
    assert done.stdout.splitlines() == ["sales_copy False", before, before, after, before, after], done.stderr


def test_a_policy_that_an_earlier_version_took_stays_in_use_where_this_one_refuses_it(tmp_path: Path) -> None:
    """What was kept was refused for the same reason, so that the sensors and alarms of all policies ended."""
    now = policy().model_dump(mode="json", exclude_defaults=True)
    root = {"uri": "hdfs://source:8020/", "webhdfs": "http://nn:9870,"}
    earlier = now | {
        "source": {"metastore": "thrift://a b:9083", "roots": [root], "paths": ["hdfs://nn1:8020,nn2:8020/x"]},
        "dump_root": "hdfs://target:8020/a//dumps",
        "tables": ["fact_*", "/t[0-9]+"],
        "partition_filters": {"sales": {"/t[0-9]+": "dt = 1"}},
    }
    with pytest.raises(ValidationError):
        Policy.model_validate(earlier)
    place = tmp_path / "kept"
    place.write_text(json.dumps(earlier), encoding="utf-8")
    used = kept_policy(place)
    assert used is not None
    assert used.model_dump(mode="json", exclude_defaults=True) == earlier
    assert ReplicationConnection.of(used).settings() == used, "runs"
    one = component(policy=used.model_dump(mode="json"))
    with pytest.raises(BadRequest):
        one.settings()
    one.in_use = used
    assert one.settings() == used
    keep_policy(place, used)
    assert kept_policy(place) == used
    for damaged in (b"\xff", b"{", b" " * (5 << 20)):
        place.write_bytes(damaged)
        assert kept_policy(place) is None


def test_a_policy_that_was_never_valid_does_not_load(tmp_path: Path) -> None:
    done = edited(tmp_path, "databases: [")
    assert (done.returncode, done.stdout) == (1, "")
    assert "policy.yaml" in done.stderr


def test_definitions_load_from_an_installed_package(tmp_path: Path) -> None:
    """Without the checkout's ``pyproject.toml`` above it: with all that goes into a wheel, and nothing else."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    data = [file for pattern in settings["package-data"]["repl_assets"] for file in (ROOT / "repl_assets").glob(pattern)]
    for file in (*(ROOT / "repl_assets").rglob("*.py"), *data):
        place = tmp_path / file.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy().model_dump(mode="json")), encoding="utf-8")
    code = "from repl_assets import definitions as made; print(made.__file__, len(list(made.defs().resolve_all_asset_specs())))"
    for package in ("hive_replication", "sensors", "resources"):
        (tmp_path / package).symlink_to(ROOT / package)
    environment = {**os.environ, "HIVE_REPL_CONFIG": str(path), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{tmp_path / 'repl_assets/definitions.py'} 4\n", done.stderr


def test_no_policy_is_no_definitions(log: pytest.LogCaptureFixture) -> None:
    made = component(policy_file="")
    assert specs(made.build_defs_from_state(NO_CONTEXT, None)) == {}
    assert "set HIVE_REPL_CONFIG" in log.text


def test_another_source_has_another_catalog() -> None:
    policies = policy(), policy("other"), policy().model_copy(update={"databases": {"sales": "x", "hr": "hr"}})
    keys = {component(policy=each.model_dump(mode="json")).defs_state_config.key for each in policies}
    assert len(keys) == len(policies)


def test_both_kinds_of_policy_are_refused() -> None:
    with pytest.raises(BadRequest, match="not both"):
        component(policy={}, policy_file="x").settings()


def test_loading_is_quick_and_starts_no_jvm(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump(policy().model_dump(mode="json")), encoding="utf-8")
    code = (
        "import sys, psutil; cpu = lambda: sum(psutil.Process().cpu_times()[:2]);"
        "import dagster, pyarrow, pydantic, yaml; libraries = cpu();"
        "from repl_assets.definitions import defs; made = defs();"
        "made.resolve_asset_graph(); assert len(list(made.resolve_all_asset_specs())) == 4;"
        "print([name for name in ('pyspark', 'py4j', 'dagster_pyspark') if name in sys.modules], psutil.Process().children());"
        "print(cpu() / libraries)"
    )
    environment = {**os.environ, "HIVE_REPL_CONFIG": str(path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    found, times = done.stdout.splitlines()
    assert found == "[] []", done.stderr
    assert float(times) < 5  # of the CPU that the libraries' imports take on the same machine; about 3


def test_nothing_is_collected_while_definitions_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIVE_REPL_CONFIG", raising=False)
    collections: list[str] = []
    gc.callbacks.append(lambda phase, _: collections.append(phase))
    try:
        definitions.defs()
        assert not collections
        gc.collect(0)
        assert collections
    finally:
        gc.callbacks.pop()
        gc.unfreeze()
    assert gc.isenabled()


def test_dagster_finds_the_project_valid(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "HIVE_REPL_CONFIG"}
    command = [sys.executable, "-m", "dagster", "definitions", "validate"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "DAGSTER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "All code locations passed validation" in done.stderr + done.stdout


def test_of_two_policies_of_one_name_the_one_that_was_used_stays(tmp_path: Path) -> None:
    """As with a swapped policy that kept its name: all sensors ended, and the alarms with them."""
    code = """
import dagster as dg, pathlib
for _ in range(3):
    made = dg.load_from_defs_folder(path_within_project=pathlib.Path("project/defs").resolve())
    made.get_repository_def()
    print(len(made.sensors), *sorted(str(one.key.path[1]) for one in made.resolve_all_asset_specs()))
    if pathlib.Path("back").exists():
        pathlib.Path("back").rename("project/defs/back")  # which Dagster loads first
"""
    of_old = tmp_path / "project" / "defs" / "of_old"
    for place, databases in ((of_old, {"sales": "sales_copy"}), (tmp_path / "back", {"sales_copy": "sales"})):
        place.mkdir(parents=True)
        content = policy().model_copy(update={"databases": databases}).model_dump(mode="json", exclude_defaults=True)
        spec = {"type": "repl_assets.components.ReplicationPolicy", "attributes": {"policy": content}}
        (place / "defs.yaml").write_text(yaml.safe_dump(spec), encoding="utf-8")
    (tmp_path / "project" / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "project"\n', encoding="utf-8"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == ["5 sales__dump sales__load sales__source status"] * 3, done.stderr
    assert done.stderr.count("two policies are named 'default': defs.yaml is left out, defs.yaml is used; give each") == 2


def test_of_two_policies_of_one_name_that_were_both_used_the_later_one_stays(tmp_path: Path) -> None:
    """Where the first one is put back in for the next failback: it took the place of the one in use where it was listed first."""
    used, loaded = policy(), list[tuple[Any, Policy | None]]()
    for age, name in ((100, "before"), (10, "in use"), (5, "renamed since")):
        place = tmp_path / name
        keep_policy(place, used.model_copy(update={"name": "another"}) if name == "renamed since" else used)
        os.utime(place, (1_000_000 - age,) * 2)
        loaded.append((SimpleNamespace(kept_at=place), used))
    loaded.append((SimpleNamespace(kept_at=tmp_path / "never used"), used))
    first, *_ = replication_policy._of_one_name(used, loaded)
    assert first.kept_at.name == "in use"


def test_a_policy_that_is_left_out_for_its_name_is_an_alarm_of_the_other_one(
    log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def kept(*_: object, problem: str, **__: object) -> dg.Definitions:
        told.append(problem)
        return dg.Definitions()

    monkeypatch.setattr(replication_policy, "policy_definitions", kept)
    first, twin = (component(policy=policy().model_dump(mode="json")) for _ in range(2))
    context = mock.Mock()
    context.component_tree.get_all_components.return_value = [first, twin]
    first.build_defs_from_state(context, None)
    made = twin.build_defs_from_state(context, None)
    assert list(made.sensors or ()) == []
    said = "two policies are named 'default': defs.yaml is left out, defs.yaml is used; give each a name of its own"
    assert told == [said]
    assert said in log.text


def test_errors_of_a_policy_in_defs_yaml_are_one_line_with_their_places() -> None:
    given = {**policy().model_dump(), "schedule": "61 * * * *", "checks": {"schedule": "weekly"}}
    with pytest.raises(BadRequest) as error:
        component(policy=given).settings()
    message = str(error.value)
    assert message.startswith("the policy is not valid: schedule: Value error, '61 * * * *' is not a cron expression")
    assert "; checks.schedule: Value error, 'weekly' is not" in message
    assert "\n" not in message
    given = policy().model_dump()
    with pytest.raises(
        BadRequest, match=r"^the policy is not valid: external_root: Value error, external_root hdfs://other/x lies"
    ):
        component(policy=given | {"external_root": "hdfs://other/x"}).settings()
    with pytest.raises(BadRequest, match=r"^the policy is not valid: target\.roots\.0\.uri: [^;]*$"):
        component(policy=given | {"target": {"metastore": NOWHERE, "roots": [{"uri": "x"}]}}).settings()


def test_a_run_that_is_executed_again_has_the_policy_as_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It carried the whole policy of then: it copied tables that were excluded since, to a target of before."""
    used: list[Policy] = []

    def refuse(resource: ReplicationConnection) -> None:
        used.append(resource.settings())
        raise BadRequest("there are no servers")

    monkeypatch.setattr(ReplicationConnection, "connect", refuse)
    now = policy().model_copy(update={"exclude": ("orders",), "excluded": "drop", "files_in_flight": 7})
    job = build_defs(now, CATALOG).resolve_job_def("repair_sales")
    of_before = {"policy": policy().model_dump(mode="json", exclude_defaults=True)}
    with dg.DagsterInstance.ephemeral() as instance:
        for config in ({}, {"connection": {"config": of_before}}):
            job.execute_in_process(run_config={"resources": config}, instance=instance, raise_on_error=False)
        said = [entry.user_message for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
    assert used == [now, now]
    assert sum("the policy in this run's configuration is not used" in one for one in said) == 1


def test_the_launchpad_offers_no_policy() -> None:
    config = prefilled(build_defs(policy(), CATALOG).resolve_job_def("repair_sales"))
    assert config["resources"]["connection"] == {"config": {}}


@pytest.mark.parametrize("asset", ["lookup", "lookup__dump"])
def test_a_repair_by_hand_is_tagged_with_its_process_and_database(asset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a killed one is noticed, as the runs of windows are; Dagster's pages do not show the process."""

    def refuse(_resource: ReplicationConnection) -> None:
        raise BadRequest("there are no servers")

    monkeypatch.setattr(ReplicationConnection, "connect", refuse)
    job = build_defs(policy(), CATALOG).resolve_implicit_global_asset_job_def()
    with dg.DagsterInstance.ephemeral() as instance:
        key = dg.AssetKey(["default", "sales", asset])
        result = job.execute_in_process(asset_selection=[key], instance=instance, raise_on_error=False)
        run = instance.get_run_by_id(result.run_id)
    assert not result.success
    assert run is not None
    assert run.tags[PROCESS_TAG] == f"{this_process()} {run.run_id}"
    assert {key for key in run.tags if get_tag_type(key) is TagType.USER_PROVIDED} == {DATABASE_TAG}
    assert run.tags[DATABASE_TAG] == "sales"
