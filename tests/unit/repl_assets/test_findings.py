"""Findings of checks as Dagster shows them."""

from __future__ import annotations

import dagster as dg
import pytest

from repl_assets.catalog.keys import Names
from repl_assets.checks.findings import REPAIR_PAGE, WHAT_TO_DO, EvaluationKey, Finding

KEY = EvaluationKey(dg.AssetCheckKey(dg.AssetKey(["p", "db", "t"]), "replica_equal"))


def test_figures_of_some_partitions_are_not_plotted_with_those_of_the_whole_table() -> None:
    """A repair of one partition made the plot fall from 63 files to 2."""
    finding = Finding({"files at source": 2, "differences": "none"})
    whole, some = finding.evaluation(KEY), finding.evaluation(KEY, ("ds=1",))
    assert set(whole.metadata) == {"files at source", "differences"}
    assert set(some.metadata) == {"partitions checked", "files at source (of these partitions)", "differences"}


NAMES, OVERFLOW = Names("p"), Names("p", frozenset({"db"}))


@pytest.mark.parametrize(
    ("names", "table", "repairs", "page", "command"),
    [
        (NAMES, "orders", ("",), "/assets/p/db/orders", "db.orders"),
        (NAMES, "orders", ("", "ds=1"), "/assets/p/db/orders?view=partitions", "db.orders"),
        (NAMES, "orders", ("ds=1", "ds=2"), "/assets/p/db/orders?view=partitions", "db.orders"),
        (
            NAMES,
            "orders",
            ("ds=a|b&ü",),
            "/assets/p/db/orders?view=partitions&partition=ds%3Da%257Cb%26%C3%BC",
            "db.orders",
        ),
        (NAMES, "a b/ü", ("",), "/assets/p/db/a.20b.2f.c3.bc", "'db.`a b/ü`'"),
        (OVERFLOW, "a b&c", ("ds=1",), "/assets/p/db__tables?view=partitions&partition=a%20b%26c", "'db.`a b&c`'"),
    ],
)
def test_a_failed_check_links_to_where_it_is_repaired(
    names: Names, table: str, repairs: tuple[str, ...], page: str, command: str
) -> None:
    """It named in plain text what to repair, and nothing said where or how."""
    key = EvaluationKey.of(names, "db", table, "replica_equal")
    for found in (Finding(repairs=repairs).evaluation(key), Finding(repairs=repairs).result(key)):
        metadata = found.metadata or {}
        assert metadata[REPAIR_PAGE] == dg.MetadataValue.url(page)
        assert metadata[WHAT_TO_DO] == dg.MetadataValue.text(f"materialize it in Dagster, or hive-repl repair {command}")


def test_only_a_failure_that_a_repair_removes_links_to_one() -> None:
    for found in (Finding(), Finding(undecided="nobody answers"), Finding(passed=False)):
        assert found.evaluation(KEY).metadata.keys().isdisjoint({REPAIR_PAGE, WHAT_TO_DO})
    assert set(Finding(passed=False, advice="look").evaluation(KEY).metadata) == {WHAT_TO_DO}
    assert set(Finding(passed=False, advice="look", mended=True).evaluation(KEY).metadata) == {WHAT_TO_DO, REPAIR_PAGE}
