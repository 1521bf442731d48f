"""The check ``replica_equal``: what it tells of a comparison."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.verify import TableComparison
from repl_assets.checks import replica_equal
from repl_assets.checks.findings import Finding

EXAMINER: Any = SimpleNamespace(connection=SimpleNamespace(source=None, target=None), database="sales")
KEPT = "kept as an external table by the target's metastore"


def found(monkeypatch: pytest.MonkeyPatch, comparison: TableComparison) -> Finding:
    monkeypatch.setattr(replica_equal, "compare_database", lambda *_, **__: [comparison])
    return replica_equal.find_replica_equal(EXAMINER, "orders", None)


def test_a_table_that_hive_4_keeps_as_an_external_one_is_told_and_is_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other tables nothing is said of it, least of all that it is false."""
    told = found(monkeypatch, TableComparison("orders", translated=True))
    assert (told.metadata[KEPT], told.repairs, told.passed) == (True, (), True)
    assert KEPT not in found(monkeypatch, TableComparison("orders")).metadata


def test_what_was_compared_by_rows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "compared by rows (compacted)"
    assert found(monkeypatch, TableComparison("orders", by_rows=2)).metadata[name] == 2
    assert name not in found(monkeypatch, TableComparison("orders")).metadata


def test_a_table_that_could_not_be_compared_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    told = found(monkeypatch, TableComparison("orders", differences=("may not read it",)))
    assert (told.undecided, told.metadata) == ("may not read it", {})
    assert not found(monkeypatch, TableComparison("orders", repairs=("",), differences=("a differs",))).undecided
