"""Findings of checks as Dagster shows them."""

from __future__ import annotations

import dagster as dg

from repl_assets.checks.findings import EvaluationKey, Finding

KEY = EvaluationKey(dg.AssetCheckKey(dg.AssetKey(["p", "db", "t"]), "replica_equal"))


def test_figures_of_some_partitions_are_not_plotted_with_those_of_the_whole_table() -> None:
    """A repair of one partition made the plot fall from 63 files to 2."""
    finding = Finding({"files at source": 2, "differences": "none"})
    whole, some = finding.evaluation(KEY), finding.evaluation(KEY, ("ds=1",))
    assert set(whole.metadata) == {"files at source", "differences"}
    assert set(some.metadata) == {"partitions checked", "files at source (of these partitions)", "differences"}
