"""Which checks there are by the policy, and what they examine after a repair."""

from __future__ import annotations

import dagster as dg
import pytest

from hive_replication.policy.checks import Checks
from repl_assets.checks.findings import WHOLE_TABLE, EvaluationKey, Finding, partitions_to_repair, with_failed
from repl_assets.checks.table_checks import enabled_checks
from repl_assets.definitions import build_defs
from tests.unit.repl_assets.test_dagster_definitions import CATALOG, policy

KEY = EvaluationKey(dg.AssetCheckKey(dg.AssetKey(["p", "sales", "orders"]), "replica_equal"))


def failure(*repairs: str) -> dg.AssetCheckEvaluation:
    return Finding(repairs=repairs).evaluation(KEY)


def test_the_policy_chooses() -> None:
    checks = Checks(run=("files_proven", "schema_equal", "row_diff"), blocking=("files_proven", "row_diff"), repair=True)
    defs = build_defs(policy().model_copy(update={"checks": checks}), CATALOG)
    dg.Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    found = {(key.asset_key.path[-1], key.name, graph.get(key).blocking) for key in graph.asset_check_keys}
    tables = {(table, "schema_equal", False) for table in ("lookup", "orders", "seen")}
    rows = {(table, "row_diff", True) for table in ("lookup", "orders")}
    assert found == tables | rows | {
        ("sales__load", "files_proven", True),
        ("sales__load", "up_to_date", False),
        ("sales__load", "no_alarms", False),
    }
    assert "failed_checks_sales" in {sensor.name for sensor in defs.sensors or []}


def test_rows_are_not_compared_where_no_data_is_replicated() -> None:
    """They would differ for ever, and no repair changes it."""
    checks = Checks(run=("schema_equal", "row_counts", "row_diff"), repair=True)
    chosen = policy().model_copy(update={"checks": checks})
    assert [check.name for check in enabled_checks(chosen)] == ["schema_equal", "row_counts", "row_diff"]
    assert [check.name for check in enabled_checks(chosen.model_copy(update={"metadata_only": True}))] == ["schema_equal"]


@pytest.mark.parametrize(
    ("repairs", "expected"),
    [(("ds=1", "ds=2"), ("ds=1", "ds=2")), (("", "ds=1"), ()), (tuple(f"ds={n}" for n in range(501)), ()), ((), None)],
)
def test_what_a_failed_check_names_for_repair(repairs: tuple[str, ...], expected: tuple[str, ...] | None) -> None:
    assert partitions_to_repair(failure(*repairs).metadata) == expected


def test_a_check_that_cannot_be_made_warns_and_has_nothing_repaired() -> None:
    found = Finding(undecided="Spark does not know avro").evaluation(KEY)
    assert (found.passed, found.severity, partitions_to_repair(found.metadata)) == (False, dg.AssetCheckSeverity.WARN, None)


def test_after_a_repair_of_partitions_those_that_failed_before_are_examined_too() -> None:
    assert with_failed(("ds=1",), None) == ("ds=1",)
    assert with_failed(("ds=1",), failure("ds=2")) == ("ds=1", "ds=2")
    assert with_failed(("ds=1",), failure("")) is None
    assert with_failed(None, failure("ds=2")) is None
    assert with_failed(("ds=1",), Finding(undecided="Spark cannot read it").evaluation(KEY)) is None, "whatever failed before"
    assert WHOLE_TABLE in str(failure("").metadata)
