"""The job that looks for drift: what it hands over, and what one table ends does not concern the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.drift import Drifted, NoReplica, TableDrift
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.parallel import ParallelCalls, Threads, ThresholdCalls
from hive_replication.policy.checks import Drift
from hive_replication.progress import LoggedProgress
from repl_assets.build import policy_definitions
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.jobs import drift as module
from repl_assets.jobs.drift import find_drift_job, find_drift_request
from repl_assets.jobs.found_drift import FoundDrift, Handover
from resources.java import has_java
from tests.lags import POLICY

WITH_DRIFT = POLICY.model_copy(update={"drift": Drift()})
SPECS = Specs(WITH_DRIFT)
JOB = find_drift_job(SPECS, CatalogDatabase("sales", "", "", "", (), ()))


def connection(many: ParallelCalls) -> Any:
    side = SimpleNamespace(storage=SimpleNamespace(many=many))
    return SimpleNamespace(source=side, target=side)


class Runs:
    """Runs of the job, with a scan in place of servers."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance, self.seen, self.begun = instance, list[str](), list[float]()
        self.answers: dict[str, TableDrift | Exception] = {}
        self.many = ThresholdCalls(Threads(1, "t"), lambda: Threads(1, "spark"), most=1)
        self.directories = 0  # of each table
        self.done: dg.ExecuteInProcessResult | None = None

    def engine(self, *_: object) -> Any:
        return SimpleNamespace(connection=connection(self.many), log=logging.getLogger(__name__))

    def scan(self, source: Any, *_: object, begun: float, progress: object) -> Any:
        assert isinstance(progress, LoggedProgress)
        self.begun.append(begun)

        def look(table: str) -> TableDrift | None:
            self.seen.append(table)
            assert sum(source.storage.many.map(int, "1" * self.directories)) == self.directories
            answer = self.answers.get(table, TableDrift(table, 10, listings=3))
            if isinstance(answer, Exception):
                raise answer
            return answer

        def finish() -> None:
            self.seen.append("finished")

        return SimpleNamespace(
            database="sales", names=lambda: ["a", "b", "c"], table=look, finish=finish, told=lambda _: ["spared"]
        )

    def run(self, config: Any = None) -> str:
        """How a run with these settings, or started from the Launchpad as it stands, fails; "" where it does not."""
        resources: dict[str, Any] = dict.fromkeys(
            SPECS.names.resources, SimpleNamespace(application=lambda: "app-1", connect=lambda: connection(Threads(1, "t")))
        )
        self.done = JOB.execute_in_process(
            run_config=config or {}, instance=self.instance, raise_on_error=False, resources=resources
        )
        failures = [event.step_failure_data for event in self.done.all_events if event.is_step_failure]
        return "".join(str(one.user_failure_data.description) if one.user_failure_data else str(one.error) for one in failures)

    def metadata(self) -> dict[str, Any]:
        """Of the output."""
        assert self.done
        (output,) = [event for event in self.done.all_events if event.is_successful_output]
        return {name: value.value for name, value in output.step_output_data.metadata.items()}

    def found(self) -> list[FoundDrift]:
        """What is handed to the sensor."""
        return list(Handover(self.instance, SPECS.names, "sales").read())


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with dg.DagsterInstance.ephemeral() as instance:
        made = Runs(instance)
        monkeypatch.setattr(module, "DriftScan", made.scan)
        monkeypatch.setattr(module, "connected_engine", made.engine)
        monkeypatch.setattr(module, "has_java", lambda: True)
        yield made


def drift_of(table: str) -> TableDrift:
    return TableDrift(table, 1000, (Drifted("p=1", "x", "1 new"), Drifted("p=2", "y", "2 gone")), listings=1004)


def test_started_from_the_launchpad_it_looks_at_all_tables(runs: Runs) -> None:
    runs.answers["b"] = drift_of("b")
    assert runs.run() == ""
    assert runs.seen == ["a", "b", "c", "finished"]
    (found,) = runs.found()
    assert (found.table, found.drifted, [found.begun]) == ("b", (("p=1", "x"), ("p=2", "y")), runs.begun)
    metadata = runs.metadata()
    assert [metadata[name] for name in ("tables looked at", "partitions looked at", "directories listed", "drifted")] == [
        3,
        1020,
        1010,
        2,
    ]
    assert "| b | p=1 | 1 new |" in metadata["what has drifted"]
    assert metadata["listed by"] == "threads"


def test_what_the_sensor_asks_for(runs: Runs) -> None:
    request = find_drift_request(SPECS.names, "sales", ["b", "gone"], 1000.0)
    assert (request.job_name, runs.run(request.run_config)) == (JOB.name, "")
    assert (runs.seen, runs.begun) == (["b", "finished"], [1000.0])
    assert runs.metadata()["not in the source"] == "gone"
    assert runs.run(find_drift_request(SPECS.names, "sales", ["gone"], 1000.0).run_config) == "", "it was dropped since"
    assert (runs.seen, runs.metadata()["not in the source"]) == (["b", "finished", "finished"], "gone")


def test_one_table_by_hand_leaves_the_snapshots_of_others(runs: Runs) -> None:
    def config(*tables: str) -> Any:
        return {"ops": {"find_drift_sales__tables": {"config": {"tables": list(tables)}}}}

    assert runs.run(config("B")) == ""
    assert runs.seen == ["b"]
    assert runs.run(config("bb")) == "the source has no table bb of the policy in sales"


def test_one_table_that_cannot_be_read_does_not_stop_the_others(runs: Runs) -> None:
    runs.answers |= {
        "a": ReplicationError("a directory is odd"),
        "b": TableDrift("b", 0, waiting="it cannot be read: the account lacks rx"),
        "c": drift_of("c"),
    }
    assert runs.run() == "a cannot be read: a directory is odd; b: it cannot be read: the account lacks rx"
    assert [one.table for one in runs.found()] == ["c"]


def test_what_is_found_before_a_server_stops_answering_is_handed_over(runs: Runs) -> None:
    runs.answers |= {"a": drift_of("a"), "b": Unreachable("nobody answers")}
    assert runs.run() == "nobody answers"
    assert (runs.seen, [one.table for one in runs.found()]) == (["a", "b"], ["a"])


def test_it_says_where_spark_has_listed(runs: Runs) -> None:
    assert list(runs.many.map(len, ["12", "3"])) == [2, 1]
    assert runs.run() == ""
    assert runs.metadata()["listed by"] == "Spark, application app-1"


def test_without_java_it_lists_by_threads(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> ParallelCalls:
        raise BadRequest("Spark needs a JDK")

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setattr(module, "has_java", has_java)
    runs.many, runs.directories = ThresholdCalls(Threads(1, "t"), start, most=2_000), 2_001
    runs.answers["a"] = drift_of("a")
    assert runs.run() == ""
    assert ([one.table for one in runs.found()], runs.metadata()["listed by"]) == (["a"], "threads")


def test_there_is_one_for_each_database_of_a_policy_with_drift() -> None:
    def jobs(policy: Any) -> set[str]:
        return {job.name for job in policy_definitions(policy).jobs or () if "find_drift" in job.name}

    assert jobs(WITH_DRIFT) == {f"find_drift_{name}" for name in POLICY.databases}
    assert jobs(POLICY) == set()


def test_a_scan_that_a_failover_overtakes_looks_at_no_other_table(runs: Runs) -> None:
    """Each of the tables that were left asked the metastore, and looked for snapshots once more."""
    runs.answers["b"] = NoReplica("the target's 'sales' is no replica any more")
    assert runs.run() == ""
    assert runs.seen == ["a", "b"]
