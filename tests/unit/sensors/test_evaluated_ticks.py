"""Each sensor's tick with something to say, as Dagster evaluates it: what it refuses of a result is lost with the whole tick."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.connect import Connection, connect
from hive_replication.drift import Drifted, TableDrift
from hive_replication.errors import Unreachable
from hive_replication.lag import Lag
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.held_reasons import UNDONE_REASON
from hive_replication.load.replica.state import PAUSED, ReplicaState
from hive_replication.metastore.types import Database
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Checks, Drift
from hive_replication.storage import Denied, FileStatus, Storage
from repl_assets.catalog.keys import DATABASE_TAG, UNRECORDED_TAG, Names
from repl_assets.checks.findings import EvaluationKey, Finding, last_failure
from repl_assets.dagster_private import GrpcServerCodeLocationOrigin
from repl_assets.definitions import build_defs
from repl_assets.jobs.found_drift import FoundDrift, Handover
from sensors import catalog, drift, lag
from sensors.lag import KeptReader
from sensors.notification_log import operator_actions
from sensors.notification_log.cursor import read_cursor
from sensors.notification_log.sensor import SensorSettings
from tests.lags import LATE, POLICY
from tests.unit.repl_assets.test_dagster_definitions import CATALOG

#: The sensors of which each has a test here.
_SENSORS = {"notification_log", "recording", "drift_sales", "failed_checks_sales", "lag", "alarms", "catalog"}


class Servers(dg.ConfigurableResource["Servers"]):
    """The policy's servers: an event at the source, an empty target."""

    dump_root: str
    policy: ClassVar[Policy] = POLICY
    parameters: ClassVar[dict[str, str]] = {}  # of the target database

    def connect(self, **_: Any) -> Connection:
        made = connect(self.policy.model_copy(update={"dump_root": self.dump_root}))
        made_up: Any = SimpleNamespace(
            database=lambda name: Database(name, parameters=self.parameters),
            current_event_id=lambda: 7,
            event=lambda _: None,
            partition_count=lambda _, table: 2_001 if table == "large" else 2_000,
        )
        there = {"metastore": made_up, "storage": made.store.storage}  # those of the policy have no address
        return replace(made, source=replace(made.source, **there), target=replace(made.target, **there))


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as made:
        yield made


@pytest.fixture
def definitions(tmp_path: Path) -> dg.Definitions:
    policy = POLICY.model_copy(update={"checks": Checks(repair=True), "drift": Drift(budget=1e-6)})
    servers = {Names.of(policy).connection: Servers(dump_root=f"file://{tmp_path}")}
    looking = dg.Definitions(sensors=[catalog.catalog_sensor(policy, {"sales": frozenset({"orders"})}, lambda: "")])
    return dg.Definitions.merge(build_defs(policy, CATALOG, resources=servers, settings=SensorSettings(listen=0)), looking)


def evaluated(definitions: dg.Definitions, instance: dg.DagsterInstance, name: str, cursor: str | None = None) -> Any:
    """What Dagster makes of a tick: as ``dagster._grpc.impl.get_external_sensor_execution``."""
    repository = definitions.get_repository_def()
    resources, sensor = repository.get_top_level_resources(), repository.get_sensor_def(name)
    with dg.SensorEvaluationContext(
        instance.get_ref(),
        cursor=cursor,
        repository_def=repository,
        sensor_name=name,
        resources={key: resources[key] for key in sensor.required_resource_keys},
        code_location_origin=GrpcServerCodeLocationOrigin(host="localhost", socket="/tmp/none"),
    ) as context:
        return sensor.evaluate_tick(context)


def test_each_sensor_has_a_test_here(definitions: dg.Definitions) -> None:
    assert {sensor.name for sensor in definitions.sensors or ()} == _SENSORS


def test_notification_log(definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
    said = evaluated(definitions, instance, "notification_log")
    (request,), (added,) = said.run_requests, said.dynamic_partitions_requests
    assert [request.partition_key] == list(added.partition_keys)
    assert read_cursor(said.cursor, POLICY).event[0] == 7


@pytest.mark.parametrize("fault", ["denied", "planted"])
def test_plans_that_cannot_be_read_stop_their_own_database_only(
    fault: str, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error ended the tick, and with it the windows of all databases."""
    policy = POLICY.model_copy(update={"approval": True, "databases": {"hr": "hr", "sales": "sales"}})
    monkeypatch.setattr(Servers, "policy", policy)
    ls = Storage.ls

    def denied(storage: Storage, uri: str) -> list[FileStatus]:
        if "/.plans/sales-" in uri:
            raise Denied("the account may not list it")
        return list(ls(storage, uri))

    if fault == "denied":
        monkeypatch.setattr(Storage, "ls", denied)
    else:
        root = f"file://{tmp_path}"
        approvals = Approvals(Storage((Root(uri=root),)), root, pair=policy.pair)
        approvals.wait("sales", PlannedWindow("none", "hdfs://d/1", "bootstrap", 7, 50.0, "1 operation", ()))
    servers = {Names.of(policy).connection: Servers(dump_root=f"file://{tmp_path}")}
    definitions = build_defs(policy, CATALOG, resources=servers, settings=SensorSettings(listen=0))
    said = evaluated(definitions, instance, "notification_log")
    assert [request.tags[DATABASE_TAG] for request in said.run_requests] == ["hr"]
    request = said.run_requests[0]
    assets, status = frozenset(request.asset_selection), dg.DagsterRunStatus.STARTED
    create_run_for_test(instance, asset_selection=assets, tags=request.tags, status=status)
    why = {"denied": "the account may not list it", "planted": "'none' is not a window such as 170-1400 or bootstrap-170"}
    said = evaluated(definitions, instance, "notification_log", said.cursor)
    assert said.skip_message.endswith(f"; sales: its plans below file://{tmp_path}/.plans cannot be read: {why[fault]}")


@pytest.mark.parametrize("most", [1_000, 1], ids=["assets of tables", "overflow"])
def test_a_repair_on_the_command_line_answers_the_checks_that_it_mends(
    most: int, instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the source was quiet nothing did: the alarm that advises the repair never ended."""
    servers = {Names.of(POLICY).connection: Servers(dump_root=f"file://{tmp_path}")}
    arguments: dict[str, Any] = {"resources": servers, "settings": SensorSettings(listen=0), "most_tables": most}
    definitions = build_defs(POLICY, CATALOG, **arguments)
    names = Names(POLICY.name, overflow=frozenset({"sales"} if most == 1 else ()))
    keys = [EvaluationKey.of_database(names, "sales", name) for name in ("files_proven", "nothing_held")]
    keys.append(EvaluationKey.of(names, "sales", "orders", "not_held"))
    for key in keys:
        instance.report_runless_asset_event(Finding(passed=False).evaluation(key))

    def failing(cursor: str | None = None) -> tuple[list[str], str]:
        said = evaluated(definitions, instance, "notification_log", cursor)
        return [key.check.name for key in keys if last_failure(instance, key)], said.cursor

    def repair() -> None:
        time.sleep(0.01)
        storage = Storage((Root(uri=f"file://{tmp_path}"),))
        store = RecordStore(storage, f"file://{tmp_path}", "sales", POLICY.pair)
        store.keep(Record(new_token(), "repair", "sales", "ann@gate", time.time(), tables=("orders",)))

    def state(**held: str) -> None:
        monkeypatch.setattr(Servers, "parameters", ReplicaState("s/sales", 7, held=held).parameters())

    state()
    found, cursor = failing()
    assert found == ["files_proven", "nothing_held", "not_held"], "nobody has repaired anything"
    state(lookup="the disk is full")
    repair()
    found, cursor = failing(cursor)
    assert found == ["files_proven", "nothing_held", *(["not_held"] if most == 1 else [])]
    repair()
    with monkeypatch.context() as patch:
        patch.setattr(operator_actions, "state_of", Mock(side_effect=Unreachable("nobody answers")))
        assert failing(cursor)[1] == cursor, "it is looked at again"
    state()
    # Of the tables that are partitions Dagster takes no second answer outside of a run: the next load has it.
    assert failing(cursor)[0] == (["not_held"] if most == 1 else [])


def test_recording(definitions: dg.Definitions, instance: dg.DagsterInstance) -> None:
    create_run_for_test(instance, status=dg.DagsterRunStatus.SUCCESS, tags={UNRECORDED_TAG: POLICY.name})
    assert len(evaluated(definitions, instance, "recording").run_requests) == 1


def test_drift(definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(name: str) -> TableDrift:
        return TableDrift(name, 1, (Drifted("ds=1", "digest", "one file is new"),))

    made = SimpleNamespace(database="sales", names=lambda: ["a", "b"], table=look, finish=lambda: None, told=lambda _: [])
    monkeypatch.setattr(drift, "DriftScan", lambda *_, begun: made)
    said = evaluated(definitions, instance, "drift_sales")
    assert [request.run_config["ops"]["repair_sales__partitions"]["config"]["table"] for request in said.run_requests] == ["a"]
    assert drift.read_round(said.cursor).after == "a"
    said = evaluated(definitions, instance, "drift_sales", said.cursor)
    assert [request.run_config["ops"]["repair_sales__partitions"]["config"]["table"] for request in said.run_requests] == ["b"]


def test_drift_of_large_tables(
    definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = SimpleNamespace(database="sales", names=lambda: ["large"], finish=lambda: None, told=lambda _: [])
    monkeypatch.setattr(drift, "DriftScan", lambda *_, begun: made)
    Handover(instance, Names.of(POLICY), "sales").add(FoundDrift("large", 7.0, (("ds=1", "digest"),)))
    said = evaluated(definitions, instance, "drift_sales")
    (repair,) = said.run_requests
    assert (repair.job_name, repair.run_config["ops"]["repair_sales__partitions"]["config"]["partitions"]) == (
        "repair_sales",
        ["ds=1"],
    )
    for _ in range(2):  # the table, and the end of the round
        said = evaluated(definitions, instance, "drift_sales", said.cursor)
    (request,) = said.run_requests
    job = definitions.resolve_job_def(request.job_name)
    assert job.name == "find_drift_sales"
    assert dg.validate_run_config(job, request.run_config)["ops"]["find_drift_sales__tables"]["config"]["tables"] == ["large"]


def test_failed_checks(definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> tuple[list[str], str | None]:
        said = evaluated(definitions, instance, "failed_checks_sales")
        return [
            one.run_config["ops"]["repair_sales__partitions"]["config"]["table"] for one in said.run_requests
        ], said.skip_message

    def state(**changes: Any) -> None:
        monkeypatch.setattr(Servers, "parameters", replace(ReplicaState("s/sales", 100), **changes).parameters())

    with monkeypatch.context() as alone:
        alone.setattr(Servers, "connect", None)
        assert looks() == ([], "no failed check needs a repair"), "no server is asked"
    for table in ("lookup", "orders"):
        failed = Finding(repairs=("",)).evaluation(EvaluationKey.of(Names.of(POLICY), "sales", table, "replica_equal"))
        instance.report_runless_asset_event(failed)
    state()
    assert looks() == (["lookup", "orders"], None)
    state(held={"orders": f"{UNDONE_REASON}90 by request"}, at={"orders": 90})
    assert looks() == (["lookup"], None)
    state(held=dict.fromkeys(("lookup", "orders"), f"{UNDONE_REASON}90 by request"), at={"lookup": 90, "orders": 90})
    assert looks() == ([], "undone, not to be repaired: lookup, orders")
    joined = {"orders": f"{UNDONE_REASON}90 by request", "lookup": f"held with orders: {UNDONE_REASON}90 by request"}
    state(held=joined, at={"lookup": 90, "orders": 90})
    assert looks() == ([], "undone, not to be repaired: lookup, orders"), "it goes on with the one that it is joined to"
    state(undone=90)
    assert looks() == ([], "sales: undone to event 90; hive-repl undo sales --release")
    monkeypatch.setattr(Servers, "parameters", {**ReplicaState("s/sales", 100).parameters(), PAUSED: "since noon"})
    assert looks() == ([], "sales: paused since noon; hive-repl resume sales")


def test_lag(definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "role_now", lambda *_: None)
    found: list[Sequence[Lag] | Unreachable] = [[LATE], Unreachable("nobody answers")]

    def read(*_: object) -> Sequence[Lag]:
        one = found.pop(0)
        if isinstance(one, Unreachable):
            raise one
        return one

    monkeypatch.setattr(KeptReader, "read", read)
    said = evaluated(definitions, instance, "lag")
    assert [getattr(event, "passed", None) for event in said.asset_events] == [None, False]
    said = evaluated(definitions, instance, "lag", said.cursor)
    assert [getattr(event, "passed", None) for event in said.asset_events] == [False]
    assert '"known":false' in said.cursor


def test_alarms(definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptReader, "read", lambda *_: [replace(LATE, seconds_behind=0.0, gap="events were purged")])
    said = evaluated(definitions, instance, "alarms")
    assert said.skip_message == "1 alarm: gap: sales"
    assert '"gap: sales"' in said.cursor


def test_catalog(definitions: dg.Definitions, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(catalog, "changes", lambda *_: ["+sales.new"])
    monkeypatch.setattr(catalog, "_DELAY", 0.0)
    monkeypatch.setattr(catalog, "_reload", asked.append)
    said = evaluated(definitions, instance, "catalog")
    assert said.skip_message == "changed: +sales.new; the code server is asked to reload the definitions"
    assert said.cursor
