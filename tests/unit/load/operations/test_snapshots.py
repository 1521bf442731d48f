"""The transaction by which a new table with aborted write ids is shown: whoever was killed at it leaves nothing open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.load import bootstrap
from hive_replication.load.operations.left_open import end_left, end_replayed, end_snapshots
from hive_replication.load.operations.transactions import ImpressWriteIds, policy_of
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.types import Table
from tests.bootstraps import SOURCE, header, loading
from tests.faults import Killed
from tests.unit.metastore.test_replicated_transactions import Transactions

POLICY = policy_of(SOURCE, "db")
IMPRESS = ImpressWriteIds(50, "t", POLICY, WriteIds(3, aborted=frozenset({1})))
#: A write's letter tells whether it was committed or aborted.
WRITES = ["".join(one) for number in range(1, 7) for one in product("ca", repeat=number)]
CALLS = ["impress_write_ids", "replay_open", "replay_write_ids", "replay_commit"]


class Server(Transactions):
    """A metastore with the table t; ``write_id`` is the last one given out, ``seen`` whether readers see it."""

    def __init__(self) -> None:
        super().__init__()
        self.write_id, self.seen, self.dies_at = 0, False, ""

    def repl_tbl_writeid_state(self, _: Any) -> None:
        self.write_id = self.write_id or 2

    def get_max_allocated_table_write_id(self, _: Any) -> Any:
        return SimpleNamespace(maxWriteId=self.write_id)

    def allocate_table_write_ids(self, request: Any) -> Any:
        self.write_id = request.srcTxnToWriteIdList[-1].writeId
        return SimpleNamespace(txnToWriteIds=request.srcTxnToWriteIdList)

    def commit_txn(self, request: Any) -> None:
        gone = self.policies.setdefault(request.replPolicy, {}).pop(request.txnid, None)
        self.opened = [one for one in self.opened if one.id != gone]
        self.seen |= gone is not None and self.write_id == 3

    def get_open_txns_req(self, _: Any) -> Any:
        ids = [one.id for one in self.opened]
        return SimpleNamespace(txn_high_water_mark=self.highest, open_txns=ids, abortedBits=b"")

    def get_valid_write_ids(self, _: Any) -> Any:
        hidden = [] if self.seen else [3]
        one = SimpleNamespace(fullTableName="db.t", writeIdHighWaterMark=3, invalidWriteIds=hidden, abortedBits=b"\x01")
        return SimpleNamespace(tblValidWriteIds=[one])

    def call(self, what: str, do: Callable[[Any], Any]) -> Any:
        answer = do(self)
        if self.dies_at and what.startswith(self.dies_at):
            raise KeyboardInterrupt
        return answer


class Hive:
    """What Hive 4 answers of the table t (ReplTableWriteIdStateFunction, GetValidWriteIdsForTableFunction, OpenTxnsFunction).

    Attributes:
        known: TXN_TO_WRITE_ID, the state of each write id's transaction: committed, open or aborted.
        following: NEXT_WRITE_ID; 0 where the table has none.
        opened: source transactions that something stands for, with what they have; 0 for no write id.
        dies: the call at which the load is killed, and whether it comes through.
    """

    def __init__(self, dies: tuple[str, bool] = ("", False)) -> None:
        self.known, self.following, self.opened, self.dies = dict[int, str](), 0, dict[int, int](), dies

    def partition_names(self, *_: str) -> list[str]:
        return []

    def max_write_id(self, *_: str) -> int:
        return max(self.following - 1, 0)

    def impress_write_ids(self, _db: str, _table: str, write_ids: WriteIds, _partitions: list[str]) -> None:
        with self._killed("impress_write_ids"):
            if not self.following:
                self.known = dict.fromkeys(sorted(write_ids.aborted)[:1000], "aborted")
                self.following = write_ids.high + 1

    def replay_open(self, policy: str, transactions: list[int]) -> dict[int, Any]:
        with self._killed("replay_open"):
            self.opened = dict.fromkeys(transactions, 0) | self.opened
        return {one: SimpleNamespace(name=policy) for one in transactions}

    def replay_write_ids(self, _name: str, _db: str, _table: str, write_ids: dict[int, int]) -> None:
        with self._killed("replay_write_ids"):
            assert write_ids.keys() <= self.opened.keys()
            assert min(write_ids.values()) == self.following, "else Hive forgets all that it knows of the table"
            self.opened |= write_ids
            self.known |= dict.fromkeys(write_ids.values(), "open")
            self.following = max(write_ids.values()) + 1

    def replay_commit(self, _policy: str, transaction: int, _db: str, _written: object) -> None:
        with self._killed("replay_commit"):
            self.known |= dict.fromkeys(filter(None, [self.opened.pop(transaction, 0)]), "committed")

    def reader(self) -> WriteIds:
        """What a reader who begins now sees."""
        high = max(self.known, default=self.following - 1)
        hidden = [one for one, state in sorted(self.known.items()) if state != "committed"]
        if hidden and len(hidden) == len(self.known):
            high, hidden = hidden[0], hidden[:1]
        return WriteIds(high, aborted=frozenset(hidden))

    def clean(self) -> None:
        """Hive forgets aborted write ids of which there are no files."""
        self.known = {one: state for one, state in self.known.items() if state != "aborted"}

    @contextmanager
    def _killed(self, call: str) -> Iterator[None]:
        (at, after), self.dies = self.dies, self.dies if self.dies[0] != call else ("", False)
        if at == call and not after:
            raise Killed
        yield
        if at == call:
            raise Killed


def _impressed(writes: WriteIds, hive: Hive) -> None:
    ImpressWriteIds(50, "t", POLICY, writes).carry_out(cast("Target", SimpleNamespace(metastore=hive)), "db")


def _hidden(writes: WriteIds, hive: Hive) -> list[int]:
    """Committed writes that a reader of the target does not see."""
    seen = hive.reader()
    return [one for one in range(1, writes.high + 1) if writes.sees(one) and not seen.sees(one)]


def _writes(text: str) -> WriteIds:
    return WriteIds(len(text), aborted=frozenset(number for number, one in enumerate(text, 1) if one == "a"))


@pytest.mark.parametrize("text", [*WRITES, "a" * 2_000, "ca" * 1_500, "ac" * 1_500])
def test_no_committed_write_is_hidden_whatever_was_aborted_before_or_after_it(text: str) -> None:
    """Where the last one was aborted, readers saw no write after the first aborted one, and every comparison was equal."""
    hive, writes = Hive(), _writes(text)
    _impressed(writes, hive)
    assert (_hidden(writes, hive), hive.following, hive.opened) == ([], writes.high + 1, {})
    told = {one for one, state in hive.known.items() if state == "aborted"}
    assert told <= writes.aborted
    assert len(told) >= min(len(writes.aborted) - 1, 1000), "those that were aborted are known as such, but for one that is last"
    hive.clean()
    assert (_hidden(writes, hive), hive.max_write_id()) == ([], writes.high)


@pytest.mark.parametrize("text", ["cac", "caca", "acaaa"])
@pytest.mark.parametrize(("at", "after"), [*product(CALLS, (False, True))])
@pytest.mark.parametrize("ended", [False, True])
def test_no_committed_write_is_hidden_where_the_load_was_killed(text: str, at: str, *, after: bool, ended: bool) -> None:
    """The load goes on, after others of objects may have ended what it left open."""
    hive, writes = Hive((at, after)), _writes(text)
    with pytest.raises(Killed):
        _impressed(writes, hive)
    for one in list(hive.opened) if ended else ():
        hive.replay_commit(POLICY, one, "db", ())
    _impressed(writes, hive)
    assert (_hidden(writes, hive), hive.following, hive.opened) == ([], writes.high + 1, {})


def check() -> None:
    """The lock is held."""


def side(monkeypatch: pytest.MonkeyPatch, server: Server) -> Any:
    metastore = Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    vars(metastore)["features"] = SimpleNamespace(major=4)
    monkeypatch.setattr(metastore, "partition_names", lambda *_: [])
    table = Table(tableName="t", dbName="db", parameters={"transactional": "true"}, partitionKeys=[])
    monkeypatch.setattr(metastore, "table_names", lambda *_: ["t"])
    monkeypatch.setattr(metastore, "tables", lambda *_: iter([table]))
    monkeypatch.setattr(metastore, "write_ids", lambda *_: {"t": WriteIds(3, frozenset({3}))})
    monkeypatch.setattr(metastore, "write_ids_of", lambda *_: iter([("t", 3)]))
    return SimpleNamespace(metastore=metastore, feeds=lambda _: False)


def killed(monkeypatch: pytest.MonkeyPatch, at: str) -> tuple[Any, Server]:
    """A load that died after one of its calls."""
    server = Server()
    target = side(monkeypatch, server)
    server.dies_at = at
    with pytest.raises(KeyboardInterrupt):
        IMPRESS.carry_out(target, "db")
    server.dies_at = ""
    assert len(server.opened) == 1
    return side(monkeypatch, server), server


@pytest.mark.parametrize("at", ["open_txns", "allocate_table_write_ids"])
@pytest.mark.parametrize("end", [end_left, end_replayed, end_snapshots])
def test_it_is_ended_with_the_replica_or_by_the_next_load_of_objects(
    monkeypatch: pytest.MonkeyPatch, at: str, end: Callable[..., None]
) -> None:
    """Eleven days later Hive aborted it, and marked the database as incompatible."""
    target, server = killed(monkeypatch, at)
    end(target, "db", POLICY, check)
    assert server.opened == []


def test_it_is_ended_with_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    target, server = killed(monkeypatch, "allocate_table_write_ids")
    end_replayed(target, "db", POLICY, check, only="t")
    assert server.opened == []


@pytest.mark.parametrize("at", ["open_txns", "allocate_table_write_ids"])
def test_the_load_itself_goes_on_with_it(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    target, server = killed(monkeypatch, at)
    IMPRESS.carry_out(target, "db")
    assert (server.opened, server.seen, server.asked) == ([], True, 2 if at == "open_txns" else 1)
    IMPRESS.carry_out(target, "db")


def test_who_goes_on_after_it_was_aborted_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last write would be missing for good, and all be green."""
    target, _ = killed(monkeypatch, "allocate_table_write_ids")
    end_left(target, "db", POLICY, check)
    with pytest.raises(TransactionGone, match="repair its tables"):
        IMPRESS.carry_out(target, "db")


@pytest.mark.parametrize("holds", [False, True])
def test_a_load_of_objects_ends_what_others_have_left(monkeypatch: pytest.MonkeyPatch, *, holds: bool) -> None:
    """Its table may be one that the policy no longer has; one that is held goes on with its own."""
    done = Mock()
    monkeypatch.setattr(bootstrap, "end_snapshots", done)
    load = loading(ReplicaState(SOURCE, 40), header(50, acid=True), ())
    load.copier = Mock()
    if holds:
        load.held.append(Mock(tables=("t",), base=40, evid=50, reason="r"))
    for name in ("finish", "journal"):
        monkeypatch.setattr(load, name, Mock())
    bootstrap.load_objects(load, repair=False)
    assert done.called != holds
