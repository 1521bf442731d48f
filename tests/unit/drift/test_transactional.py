"""A transactional table is compared again where its directories are as before, but not what readers see of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.drift import DriftScan, scan
from hive_replication.metastore.types import StorageDescriptor, Table
from hive_replication.verify import UNCOMPARED, TableComparison
from tests.lags import POLICY
from tests.unit.drift.test_batches import Storage

MARKS = {"hive_replication.source": "s/sales", "repl.last.id": "5", "transactional": "true"}


class Metastore:
    """One side's: a table, and what a reader sees of it."""

    def __init__(self, location: str) -> None:
        self._location, self.seen = location, WriteIds(4)

    def database(self, name: str) -> Any:
        parameters = {"hive_replication.source": "s/sales", "hive_replication.applied.id": "5", "repl.last.id": "5"}
        return SimpleNamespace(name=name, parameters=parameters, locationUri="hdfs://target:8020/")

    def table(self, db: str, name: str) -> Table:
        place = StorageDescriptor(location=self._location)
        return Table(dbName=db, tableName=name, sd=place, parameters=dict(MARKS), tableType="MANAGED_TABLE")

    def write_ids(self, _: str, tables: list[str]) -> dict[str, WriteIds]:
        return dict.fromkeys(tables, self.seen)

    def current_event_id(self) -> int:
        return 5

    def events(self, *_: object) -> Iterator[Any]:
        return iter(())

    def partition_names(self, *_: str) -> list[str]:
        return []


@pytest.mark.parametrize("side", [0, 1])
def test_a_commit_that_one_side_lacks_is_found_though_no_directory_changes(monkeypatch: pytest.MonkeyPatch, side: int) -> None:
    """What an open transaction wrote lies there already: the commit was lost, and each scan said that all is equal."""
    sides = Metastore("hdfs://source:8020/t"), Metastore("hdfs://target:8020/t")
    compared = list[str]()

    def compare(*_: object, table: str) -> list[Any]:
        compared.append(table)
        differs = sides[0].seen != sides[1].seen
        return [SimpleNamespace(content=("",) if differs else (), repairs=(), differences=("rows differ",) if differs else ())]

    monkeypatch.setattr(scan, "compare_database", compare)
    drift = _scan(*sides)
    for one in sides:
        one.seen = WriteIds(5, frozenset({5}))
    for _ in range(2):
        found = drift.table("t")
        assert found is not None
        assert (found.drifted, found.waiting) == ((), "")
    assert compared == ["t"]
    sides[side].seen = WriteIds(5)
    found = drift.table("t")
    assert found is not None
    assert [one.reason for one in found.drifted] == ["rows differ"]


def test_a_table_that_cannot_be_compared_is_one_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of any other table: it was told as one whose events wait, with exit code 0, and no run failed of it."""
    lost = TableComparison("t", differences=(f"{UNCOMPARED}its blocks are lost",))
    monkeypatch.setattr(scan, "compare_database", lambda *_, **_more: [lost])
    found = _scan(Metastore("hdfs://source:8020/t"), Metastore("hdfs://target:8020/t")).table("t")
    assert found is not None
    assert (found.is_unread, found.waiting) == (True, "it cannot be read: its blocks are lost")


def _scan(one: Metastore, other: Metastore) -> DriftScan:
    policy = POLICY.model_copy(update={"drift": None})
    source: Any = SimpleNamespace(
        policy=policy, identity="s", acid=True, metastore=one, storage=Storage(1.0), database=one.database
    )
    target: Any = SimpleNamespace(policy=policy, identity="t", metastore=other, storage=Storage(2.0))
    return DriftScan(source, target, "sales", 1.0, lambda _: None)
