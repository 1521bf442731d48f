"""Tables that are dropped, or whose files are replaced, while they are compared or scanned for drift: others go on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.cli.commands import drift as command
from hive_replication.drift import DriftScan, TableDrift
from hive_replication.errors import Refused, Unreachable
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.verify import TableComparison, compare_database
from hive_replication.verify import database as module
from tests.lags import POLICY

DROPPED = NotFound("get_partitions_by_names d.t at thrift://s: d.t table not found")
GONE = FileNotFoundError(2, "it is absent", "hdfs://s/t/f")


def compared(monkeypatch: pytest.MonkeyPatch, *answers: object) -> list[TableComparison]:
    """What a comparison of the tables a and t finds, where reading t meets these answers."""
    left = list(answers)

    def found(_: object, name: str) -> object:
        answer = left.pop(0) if name == "t" else TableComparison(name)
        if isinstance(answer, Exception):
            raise answer
        return answer

    comparison: Any = module._Comparison  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(comparison, "names", lambda _: ["a", "t"])
    monkeypatch.setattr(comparison, "functions", lambda _: iter(()))
    monkeypatch.setattr(comparison, "_compared" if hasattr(comparison, "_compared") else "table", found)
    features = SimpleNamespace(major=3)
    source: Any = SimpleNamespace(
        database=lambda _: None, policy=POLICY, threads=SimpleNamespace(map=map), storage=SimpleNamespace(roots=()),
        metastore=SimpleNamespace(features=features), acid=False,
    )  # fmt: skip
    target: Any = SimpleNamespace(storage=source.storage, policy=POLICY, metastore=source.metastore)
    target.within_filters = lambda _: target
    return list(compare_database(source, target, "sales"))


@pytest.mark.parametrize("error", [DROPPED, GONE, MetastoreError("table not found")])
def test_a_table_that_changes_while_it_is_compared_is_read_once_more(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [one.table for one in compared(monkeypatch, error, None)] == ["a"]  # it is gone on both sides
    assert compared(monkeypatch, error, TableComparison("t", last_id=5))[1] == TableComparison("t", last_id=5)


@pytest.mark.parametrize("error", [DROPPED, GONE])
def test_a_table_that_keeps_changing_differs(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    _, found = compared(monkeypatch, error, error)
    assert found.differences[0].startswith("it changed while it was compared: ")


@pytest.mark.parametrize("error", [Unreachable("the metastore does not answer"), MetastoreError("out of memory")])
def test_what_concerns_more_than_one_table_ends_a_comparison(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(type(error)):
        compared(monkeypatch, error, error)


def test_a_table_that_changes_while_it_is_scanned_for_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[Exception | None] = [DROPPED, None, GONE, DROPPED]

    def scanned(*_: object) -> None:
        if answer := left.pop(0):
            raise answer

    monkeypatch.setattr(DriftScan, "_scanned", scanned)
    scan = DriftScan(cast("Any", None), cast("Any", None), "sales")
    assert scan.table("t") is None
    found = scan.table("t")
    assert found is not None
    assert found.waiting.startswith("it changed while it was read: ")


def test_a_repair_that_is_refused_stops_no_other() -> None:
    def refused(_: TableDrift) -> list[str]:
        raise Refused("another load of sales runs")

    held = command._held(TableDrift("t", 1), refused)  # pyright: ignore[reportPrivateUsage]
    assert held == ["t is not repaired: another load of sales runs"]

    def down(_: TableDrift) -> list[str]:
        raise Unreachable("it is down")

    with pytest.raises(Unreachable):
        command._held(TableDrift("t", 1), down)  # pyright: ignore[reportPrivateUsage]
