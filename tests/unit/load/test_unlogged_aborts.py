"""Transactions that the source aborted without a word in its log: what stands for them is ended after a window, nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import LockLost, MissingEvents, Unreachable
from hive_replication.load.operations import transactions
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.unlogged_aborts import aborted, end_unlogged
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.types import Database, NotificationEvent
from tests.bootstraps import SOURCE, header, loading

STATE = ReplicaState(SOURCE, 60)
WINDOW = replace(header(60), kind="incremental", acid=True)
NOW = WriteIds(9, open=frozenset({5}), aborted=frozenset({7}))


@dataclass
class Target:
    """A metastore whose transactions 71, 72, … stand for 7 and others of the source, which were opened together.

    Args:
        open: by transaction of the source, that of the target and its write id of the table t.
    """

    open: dict[int, tuple[int, int]]
    sources: tuple[int, int] = (4, 9)
    feeds: bool = False
    features: Any = field(default_factory=lambda: SimpleNamespace(major=4))
    calls: list[str] = field(default_factory=list[str])

    def database(self, _: str) -> Database:
        return Database("db", parameters={})

    def table_names(self, _: str) -> list[str]:
        self.calls.append("tables")
        return ["plain", "t"]

    def open_replayed(self) -> frozenset[int]:
        return frozenset(this for this, _ in self.open.values())

    def notes(self) -> Iterator[tuple[int, str, int, int]]:
        yield from ((this, "transactions of the source", *self.sources) for this, _ in self.open.values())
        yield 99, "transactions of the source", 7, 7  # aborted

    def open_writes(self, _: str, tables: Collection[str]) -> frozenset[tuple[str, int]]:
        return frozenset(("t", write_id) for _, write_id in self.open.values() if "t" in tables)

    def write_ids_of(self, transaction: int, _: str, tables: Collection[str]) -> Iterator[tuple[str, int]]:
        yield from (("t", write_id) for this, write_id in self.open.values() if this == transaction and "t" in tables)

    def replay_abort(self, policy: str, transaction: int) -> None:
        assert policy == policy_of(SOURCE, "db")
        self.open.pop(transaction, None)


@dataclass
class Source:
    """The source's metastore: what is open there by the first question, and the events after 60."""

    now: WriteIds
    writes: dict[int, int]
    ends: tuple[tuple[str, int], ...] = ()
    uri: str = "thrift://source"
    identity: str = "uuid"
    problem: Exception | None = None
    unreadable: bool = False
    newest: int | None = None
    calls: list[str] = field(default_factory=list[str])

    def uuid(self) -> str:
        return self.identity

    def open_writes(self, database: str, tables: Collection[str]) -> frozenset[tuple[str, int]]:
        assert (database, list(tables)) == ("db", ["t"])
        return frozenset(("t", write_id) for one, write_id in self.writes.items() if one in self.now.open or one > self.now.high)

    def transactions_now(self) -> WriteIds:
        self.calls.append("open")
        if isinstance(self.problem, Unreachable):
            raise self.problem
        return self.now

    def current_event_id(self) -> int:
        self.calls.append("newest")
        return 60 + len(self.ends) if self.newest is None else self.newest

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        assert after == 60
        assert until == self.newest or until == 60 + len(self.ends)
        if self.problem:
            raise self.problem
        for number, (kind, transaction) in enumerate(self.ends):
            text = "{" if self.unreadable else json.dumps({"txnid": transaction})
            yield NotificationEvent(61 + number, 0, kind, message=text)

    def write_ids_of(self, transaction: int, _: str, tables: Collection[str]) -> Iterator[tuple[str, int]]:
        yield from (("t", self.writes[one]) for one in self.writes if one == transaction and "t" in tables)

    def ended(self, some: Iterable[int]) -> set[int]:
        return {one for one in some if one <= self.now.high and one not in self.now.open}


def left(
    source: Source | None, target: Target, state: ReplicaState = STATE, window: Any = WINDOW, *, held: bool = False
) -> list[int]:
    """Transactions of the source for which something stands on the target after a load."""
    session = loading(state, window, (), source=source)
    session.replica.target.metastore = target  # type: ignore[misc]
    session.replica.target.feeds = lambda _: target.feeds  # type: ignore[method-assign]
    session.held.extend([object()] if held else [])  # type: ignore[list-item]
    end_unlogged(session, None)
    return sorted(target.open)


def both(*transactions: int, **more: Any) -> tuple[Source, Target]:
    """Each has the write id of its number less 4."""
    writes = {one: one - 4 for one in transactions}
    now = more.pop("now", NOW)
    return Source(now, writes, **more), Target({one: (one * 10 + 1, writes[one]) for one in transactions})


def test_what_the_source_aborted_without_an_event_is_ended() -> None:
    """It stayed open for 11 days: no compaction passed it, and then Hive marked the database as incompatible."""
    assert left(*both(7)) == []
    assert left(*both(5, 7)) == [5]  # which is open there


def test_what_the_source_has_forgotten_since_is_ended_too() -> None:
    """It was compacted meanwhile; all that the source knows then is that it is not open."""
    source, target = both(5, 6)
    assert left(source, target) == [5]
    assert source.calls == ["open", "newest"], "the other way round, the end of one that was committed in between is not seen"


@pytest.mark.parametrize("kind", ["COMMIT_TXN", "ABORT_TXN"])
def test_what_ends_after_the_window_is_left_to_the_next(kind: str) -> None:
    assert left(*both(6, ends=(("INSERT", 0), (kind, 6)))) == [6]
    assert left(*both(6, 8, ends=((kind, 6),))) == [6]


def test_what_began_after_the_source_was_asked_is_left() -> None:
    assert left(*both(9, now=WriteIds(8))) == [9]


@pytest.mark.parametrize(
    "more",
    [
        {"problem": MissingEvents("purged")},
        {"ends": (("COMMIT_TXN", 6),), "unreadable": True},
        {"newest": 60 + 10_001},
        {"newest": 59},
    ],
    ids=["purged", "unreadable", "far from the log's end", "restored"],
)
def test_where_the_log_does_not_tell_that_nothing_ended_only_what_is_known_to_be_aborted_is_ended(more: dict[str, Any]) -> None:
    assert left(*both(6, 7, **more)) == [6]


def test_a_commit_that_is_held_is_kept() -> None:
    """Its event lies before where the database stands, and its table has not got it."""
    held = replace(STATE, at={"u": 40}, held={"u": "a file is gone"})
    assert left(*both(6, 7), held) == [6]
    assert left(*both(6, 7), held=True) == [6]
    assert left(*both(6, 7), replace(STATE, at={"t": 40})) == [6]
    assert left(*both(7), replace(STATE, at={"t": 40}, held={"t": "a file is gone"})) == [7]


@pytest.mark.parametrize(
    ("window", "identity"),
    [
        (replace(WINDOW, kind="bootstrap"), "uuid"),
        (replace(WINDOW, acid=False), "uuid"),
        (replace(WINDOW, source_database=Database("db", parameters={"repl.last.id": "5"})), "uuid"),
        (WINDOW, "another"),
    ],
    ids=["objects", "no transactions", "the source is a replica", "another source"],
)
def test_only_windows_of_the_very_source_tell(window: Any, identity: str) -> None:
    assert left(*both(7, identity=identity), window=window) == [7]


def test_without_a_source_or_transactions_nothing_is_asked() -> None:
    _, target = both(7)
    assert left(None, target) == [7]
    source, target = both()
    assert left(source, target) == []
    assert target.calls == source.calls == []
    source, target = both(5)
    assert left(source, target) == [5]
    assert source.calls == [], "its write id is open at the source, too"


def test_a_source_that_does_not_answer_fails_no_load(caplog: pytest.LogCaptureFixture) -> None:
    assert left(*both(7, problem=Unreachable("nobody answers"))) == [7]
    assert "whether the source aborted transactions without a word in its log is not known: nobody answers" in caplog.text


def test_nothing_is_ended_without_the_lock() -> None:
    source, target = both(7)
    session = loading(STATE, WINDOW, (), source=source)
    session.replica.target.metastore = target  # type: ignore[misc]

    def check() -> None:
        raise LockLost("the lock on db was lost")

    session.replica.check = check  # type: ignore[misc]
    with pytest.raises(LockLost):
        end_unlogged(session, None)
    assert list(target.open) == [7]


@pytest.mark.parametrize("feeds", [True, False])
def test_a_replica_that_feeds_others_ends_it_without_data(monkeypatch: pytest.MonkeyPatch, *, feeds: bool) -> None:
    """Of an abort its log would name the source's transaction, which the next replica does not know; nothing else is tried."""
    ended, tried = list[int](), list[int]()
    source, target = both(7)
    target.feeds = feeds

    def end(_target: object, _database: str, _policy: str, transaction: int) -> None:
        ended.append(transaction)
        del target.open[transaction]

    def abort(_policy: str, transaction: int) -> None:
        tried.append(transaction)
        del target.open[transaction]

    monkeypatch.setattr(transactions, "end_without_data", end)
    monkeypatch.setattr(target, "replay_abort", abort)
    left(source, target)
    assert (ended, tried) == (([7], []) if feeds else ([], [7]))


def test_what_the_target_has_aborted_itself_is_none_of_its_concern(monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = both(7, 8)
    monkeypatch.setattr(target, "replay_abort", Mock(side_effect=TransactionGone("it was aborted")))
    assert left(source, target) == [7, 8]


@pytest.mark.parametrize(
    ("one", "ended", "gone"),
    [(7, None, True), (5, (), False), (6, None, False), (6, (), True), (6, (6,), False), (9, (), True), (10, (), False)],
)
def test_what_proves_that_a_transaction_was_aborted(one: int, ended: tuple[int, ...] | None, *, gone: bool) -> None:
    assert (aborted([one], NOW, ended) == {one}) == gone
