"""The jobs ``checks`` and ``same_objects``: what one database or table ends does not concern the others."""

from __future__ import annotations

import logging
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import MetastoreError, Refused, ReplicationError, Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Table
from hive_replication.policy.checks import Checks
from hive_replication.verify.witness import Round
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.checks.checks_job import checks_job
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding
from repl_assets.checks.same_objects import same_objects_job
from repl_assets.checks.table_checks import TableCheck
from repl_assets.steps.engine import Engine as RealEngine
from tests.lags import POLICY

CHECKS, SAME = "repl_assets.checks.checks_job", "repl_assets.checks.same_objects"
RUN = Checks(run=("schema_equal", "no_strays"))
SPECS = Specs(POLICY.model_copy(update={"databases": {"a": "a", "b": "b"}, "checks": RUN}), overflow=frozenset({"a", "b"}))
DATABASES = [CatalogDatabase(name, "", "", "", (), (), overflow=1) for name in ("a", "b")]
EDITED = Refused("the parameter repl.last.id of a is no number")


class Engine:
    """Two replicas of two tables each; the state of ``a`` cannot be read where there is an error."""

    def __init__(self, problem: Exception | None = None, *, lacks: bool = False) -> None:
        self._lacks = lacks
        self.connection, self.log = SimpleNamespace(source=None, target=None), logging.getLogger(__name__)
        self._problem = problem

    def state(self, database: str) -> ReplicaState:
        if database == "a" and self._problem:
            raise self._problem
        return ReplicaState(applied=5)

    def tables(self, _: str) -> list[str]:
        return ["t", "u"]

    def lacking(self, database: str) -> list[str]:
        return ["gone"] if (database, self._lacks) == ("b", True) else []


def run(job: dg.JobDefinition, module: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[str, bool]]:
    """How a job fails, "" where it does not, and its answers by check and asset or table."""
    monkeypatch.setattr(import_module(module), "connected_engine", lambda *_: engine)
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(
            instance=instance, raise_on_error=False, resources=dict.fromkeys(SPECS.names.resources, "none")
        )
        failures = [event.step_failure_data for event in done.all_events if event.is_step_failure]
        answers = done.get_asset_check_evaluations()
    why = [str(one.user_failure_data.description) if one.user_failure_data else str(one.error) for one in failures]
    return "".join(why), {f"{one.check_name} of {one.asset_key.path[-1]} {one.partition or ''}": one.passed for one in answers}


def schema_equal(examiner: Examiner, table: str, _: object) -> Finding:
    if (examiner.database, table) == ("a", "t"):
        raise ReplicationError("a.t is odd")
    return Finding()


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Checks without servers."""
    module = import_module(CHECKS)
    monkeypatch.setattr(module, "enabled_checks", lambda _: [TableCheck("schema_equal", "", schema_equal)])
    monkeypatch.setattr(module, "find_no_strays", lambda _: Finding())
    return monkeypatch


def test_a_database_whose_state_cannot_be_read_stops_no_check_of_others(answered: pytest.MonkeyPatch) -> None:
    why, answers = run(checks_job(SPECS, DATABASES), CHECKS, Engine(EDITED), answered)
    assert why == f"1 checks have no answer: every check of a: {EDITED}"
    assert answers == {
        "schema_equal of b__tables t": True,
        "schema_equal of b__tables u": True,
        "schema_equal of b__tables ": True,
        "no_strays of b__load ": True,
    }


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_database_that_a_metastore_does_not_show_stops_no_check_of_others(side: str, answered: pytest.MonkeyPatch) -> None:
    class Hidden:
        def database(self, name: str) -> str:
            return self.table_names(name)[0]

        def table_names(self, name: str) -> list[str]:
            raise MetastoreError(f"{name}: permission denied")

    real: Any = SimpleNamespace(connection=SimpleNamespace(source=None, target=None), target_name=str)
    setattr(real.connection, side, SimpleNamespace(metastore=Hidden(), policy=POLICY))
    engine = Engine()
    method = "lacking" if side == "source" else "tables"
    have = getattr(engine, method)
    answered.setattr(engine, method, lambda name: getattr(RealEngine, method)(real, name) if name == "a" else have(name))
    why, answers = run(checks_job(SPECS, DATABASES), CHECKS, engine, answered)
    assert why == "1 checks have no answer: every check of a: a: permission denied"
    assert "no_strays of b__load " in answers


def test_a_table_that_the_replica_has_lost_is_checked(answered: pytest.MonkeyPatch) -> None:
    """Its checks kept their last answers, as if it were there."""
    _, answers = run(checks_job(SPECS, DATABASES), CHECKS, Engine(lacks=True), answered)
    assert "schema_equal of b__tables gone" in answers


def test_what_a_replica_lacks_are_tables_that_are_replicated() -> None:
    class Metastore:
        def __init__(self, *names: str) -> None:
            self.names = names

        def database(self, name: str) -> str | None:
            return name if name == "a" else None

        def table_names(self, _: str) -> tuple[str, ...]:
            return self.names

        def tables(self, _: str, names: list[str]) -> list[Table]:
            kind = {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}
            return [Table(tableName=name, parameters=kind if name == "hbase" else {}) for name in names]

    policy = POLICY.model_copy(update={"exclude": ("left",), "databases": {"a": "a"}})
    source = SimpleNamespace(metastore=Metastore("t", "gone", "left", "hbase"), policy=policy, acid=True)
    target = SimpleNamespace(metastore=Metastore("t", "own"), policy=policy)
    real: Any = SimpleNamespace(connection=SimpleNamespace(source=source, target=target), target_name=lambda _: "a")
    real.tables = lambda name: RealEngine.tables(real, name)
    assert [RealEngine.lacking(real, database) for database in ("a", "dropped")] == [["gone"], []]


def test_a_check_without_an_answer_stops_no_other(answered: pytest.MonkeyPatch) -> None:
    def strays(examiner: Examiner) -> Finding:
        if examiner.database == "a":
            raise ReplicationError("a directory of a is odd")
        return Finding()

    answered.setattr(import_module(CHECKS), "find_no_strays", strays)
    why, answers = run(checks_job(SPECS, DATABASES), CHECKS, Engine(), answered)
    assert why == "2 checks have no answer: schema_equal of a.t: a.t is odd"
    assert answers.keys() == {
        "schema_equal of a__tables u",
        "schema_equal of a__tables ",
        "schema_equal of b__tables t",
        "schema_equal of b__tables u",
        "schema_equal of b__tables ",
        "no_strays of b__load ",
    }


def test_strays_are_looked_for_where_the_last_table_was_dropped(answered: pytest.MonkeyPatch) -> None:
    """Else the last answers about the database stay failures for ever."""
    answered.setattr(Engine, "tables", lambda *_: [])
    why, answers = run(checks_job(SPECS, DATABASES[1:]), CHECKS, Engine(), answered)
    assert (why, answers) == ("", {"schema_equal of b__tables ": True, "no_strays of b__load ": True})
    answered.setattr(Engine, "state", lambda *_: ReplicaState())
    assert run(checks_job(SPECS, DATABASES[1:]), CHECKS, Engine(), answered) == ("", {})


def test_a_server_that_does_not_answer_ends_the_checks(answered: pytest.MonkeyPatch) -> None:
    why, answers = run(checks_job(SPECS, DATABASES), CHECKS, Engine(Unreachable("nobody answers")), answered)
    assert (why, answers) == ("nobody answers", {})


def test_the_witness_goes_on_after_a_database_whose_state_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def witness(_: object, __: object, database: str, **___: Any) -> Round:
        if database == "a":
            raise EDITED
        return Round(5, 5)

    monkeypatch.setattr(import_module(SAME), "witness", witness)
    why, answers = run(same_objects_job(SPECS, DATABASES), SAME, Engine(EDITED), monkeypatch)
    assert (why, answers) == ("", {"same_objects of a__load ": False, "same_objects of b__load ": True})
