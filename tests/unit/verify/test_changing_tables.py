"""Tables that are dropped, or whose files are replaced, while they are compared or scanned for drift: others go on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.drift import DriftScan, TableDrift
from hive_replication.dump.listing import Unsettled
from hive_replication.errors import Refused, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.storage import Denied, Late, NoChecksum, StorageError, TooLarge
from hive_replication.verify import TableComparison, compare_database
from hive_replication.verify import database as module
from hive_replication.verify.compare import NOT_COMPARED, same_rows
from repl_assets.checks import replica_equal
from repl_assets.checks.examiner import Examiner
from tests.lags import POLICY

DROPPED = NotFound("get_partitions_by_names d.t at thrift://s: d.t table not found")
GONE = FileNotFoundError(2, "it is absent", "hdfs://s/t/f")
UNREADABLE = [
    Denied("the account lacks rx"),
    Refused("'s3a://lake/x' lies outside the storage roots of the policy"),
    NoChecksum("its blocks are lost"),
    Unsettled("hdfs://s/t changes faster than it can be listed"),
    MetastoreError("get_table d.t at thrift://s: Permission denied"),
    StorageError("hdfs://s/t/f: KMS request failed (403 Forbidden): not allowed to do DECRYPT_EEK on k"),
    Late("hdfs://s/t/f: its checksum takes too long"),
    TooLarge("hdfs://s/schemas/t.avsc has more than the 16,777,216 bytes that are read of such a file"),
]


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
    monkeypatch.setattr(comparison, "_compared", found)
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


@pytest.mark.parametrize("error", UNREADABLE)
def test_a_table_whose_files_cannot_be_read_differs_and_stops_no_other(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    told = TableComparison("t", differences=(f"it cannot be compared: {error}",))
    assert compared(monkeypatch, error, error) == [TableComparison("a"), told]
    monkeypatch.setattr(replica_equal, "compare_database", lambda *_, **__: iter([told]))
    examiner = Examiner(cast("Any", SimpleNamespace(source=None, target=None)), POLICY, "sales")
    found = replica_equal.find_replica_equal(examiner, "t", None)
    assert found.undecided == f"it cannot be compared: {error}", "the check passed"


def test_what_concerns_more_than_one_table_ends_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreachable):
        compared(monkeypatch, Unreachable("the metastore does not answer"))


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


@pytest.mark.parametrize("error", UNREADABLE)
def test_a_table_whose_files_cannot_be_read_ends_no_scan_for_drift(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def scanned(*_: object) -> None:
        raise error

    monkeypatch.setattr(DriftScan, "_scanned", scanned)
    found = DriftScan(cast("Any", None), cast("Any", None), "sales").table("t")
    assert found == TableDrift("t", 0, waiting=f"it cannot be read: {error}")


def scanned_transactional(monkeypatch: pytest.MonkeyPatch, told: TableComparison) -> tuple[TableDrift, list[str]]:
    """What a scan finds where a comparison tells this, and the tables that got a baseline."""
    monkeypatch.setattr(DriftScan, "_compared", lambda *_: told)
    monkeypatch.setattr(DriftScan, "_waiting", lambda *_: "")
    monkeypatch.setattr("hive_replication.drift.scan.observed", lambda *_: [])
    written: list[str] = []
    memory: Any = SimpleNamespace(read=lambda _: {}, write=lambda name, _: written.append(name))
    metastore = SimpleNamespace(write_ids=lambda *_: {"t": WriteIds()})
    policy = SimpleNamespace(target_of=lambda _: "sales")
    sides: Any = SimpleNamespace(storage=None, metastore=metastore, policy=policy)
    table: Any = SimpleNamespace(tableName="t")
    scan = DriftScan(sides, sides, "sales", sleep=lambda _: None)
    return scan._transactional(table, table, cast("Any", SimpleNamespace(objects={})), memory), written  # pyright: ignore[reportPrivateUsage]


def test_a_transactional_table_that_cannot_be_compared_is_looked_at_again_in_the_next_scan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It got a baseline as if it were equal."""
    told = TableComparison("t", differences=("it cannot be compared: its blocks are lost",))
    scan, written = scanned_transactional(monkeypatch, told)
    assert (scan.waiting, scan.drifted, written) == ("it cannot be read: its blocks are lost", (), [])


def test_a_transactional_table_drifts_by_its_content_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it was rebuilt, each time it was scanned, for a parameter that no repair makes equal."""
    told = TableComparison(
        "t", repairs=("", "ds=1"), differences=("parameter x differs", "partition ds=1: file a has other content")
    )
    scan, written = scanned_transactional(monkeypatch, told)
    assert (scan.waiting, scan.drifted, written) == ("", (), ["t"])
    scan, written = scanned_transactional(monkeypatch, replace(told, content=("ds=1",)))
    assert (scan.waiting, [one.partition for one in scan.drifted], written) == ("", ["ds=1"], [])


class _Copies:
    """A storage with one content, or whose files cannot be read."""

    def __init__(self, found: bytes | Exception) -> None:
        self._found = found

    def stream(self, _: str) -> Iterator[bytes]:
        if isinstance(self._found, Exception):
            raise self._found
        yield self._found


def same_content(source: bytes | Exception, target: bytes | Exception) -> bool:
    comparison: Any = object.__new__(module._Comparison)  # pyright: ignore[reportPrivateUsage]
    comparison._storages = _Copies(source), _Copies(target)
    return comparison._same_content(FileRef("hdfs://s/f", "0a"), FileRef("hdfs://t/f"))


def test_a_copy_whose_blocks_are_lost_has_other_content() -> None:
    lost = StorageError("hdfs://t/f: none of the DataNodes that have its blocks answers")
    assert same_content(b"1", b"1")
    assert not same_content(b"1", lost)
    for error in (Unreachable("it is down"), Denied("the account lacks r"), GONE):
        with pytest.raises(type(error)):
            same_content(b"1", error)
    with pytest.raises(NOT_COMPARED):
        same_content(lost, b"1")


@pytest.mark.parametrize(
    "error",
    [
        StorageError("hdfs://t/f: none of the DataNodes that have its blocks answers"),
        OverflowError("date value out of range"),  # a DATE beyond the year 9999
        KeyError("currentTransaction"),  # a file without row ids in a delete_delta
        NotImplementedError("a type of ORC"),
    ],
    ids=repr,
)
def test_rows_that_cannot_be_read_are_not_the_same(error: Exception) -> None:
    def damaged() -> Any:
        raise error

    def down() -> Any:
        raise Unreachable("it is down")

    assert not same_rows(damaged, damaged)
    with pytest.raises(Unreachable):
        same_rows(down, down)
