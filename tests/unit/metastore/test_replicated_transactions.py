"""Write ids of transactions that stand for a source's: what is sent, and what a lost answer leads to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import AllocateTableWriteIdsRequest
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from hive_replication.errors import LockLost
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.transactions import WriteEvent


class Server:
    """Gives write ids out; ``lost`` answers of the first calls do not arrive."""

    def __init__(self, lost: int = 0, carried_out: bool = True) -> None:
        self.highest, self.given, self._lost, self._carried_out = 5, list[list[int]](), lost, carried_out

    def allocate_table_write_ids(self, request: Any) -> Any:
        lost, self._lost = self._lost > 0, self._lost - 1
        if not lost or self._carried_out:
            self.given.append([one.writeId for one in request.srcTxnToWriteIdList])
            self.highest = self.given[-1][-1]
        if lost:
            raise EOFError
        return SimpleNamespace(txnToWriteIds=request.srcTxnToWriteIdList)

    def get_max_allocated_table_write_id(self, request: Any) -> Any:
        return SimpleNamespace(maxWriteId=self.highest)

    def call(self, what: str, do: Callable[[Any], Any]) -> Any:
        while True:
            try:
                return do(self)
            except EOFError:
                continue


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_repeated_call_gives_write_ids_out_once(monkeypatch: pytest.MonkeyPatch, *, carried_out: bool) -> None:
    """Given out again, they would make Hive forget the table's open write ids."""
    server, metastore = Server(lost=1, carried_out=carried_out), Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    metastore.replay_write_ids("p", "db", "t", {1: 6, 2: 7})
    assert server.given == [[6, 7]]


def test_write_ids_that_are_not_given_are_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    """A25: of transactions of which it does not know one, Hive answers that it gave none."""
    server, metastore = Server(), Metastore("thrift://t:1")
    monkeypatch.setattr(server, "allocate_table_write_ids", lambda _: SimpleNamespace(txnToWriteIds=[]))
    monkeypatch.setattr(metastore, "call", server.call)
    with pytest.raises(TransactionGone, match=r"write ids \[\] are given instead of \{1: 6, 2: 7\}"):
        metastore.replay_write_ids("p", "db", "t", {1: 6, 2: 7})


class Transactions:
    """Opens transactions, and notes what for; ``mapped`` are those of policy p, ``asked`` counts calls that open."""

    def __init__(self) -> None:
        self.opened, self.ended, self.asked, self.highest = list[Any](), list[int](), 0, 100
        self.policies = dict[str, dict[int, int]]()
        self.mapped = self.policies.setdefault("p", {})

    def get_open_txns(self) -> Any:
        return SimpleNamespace(txn_high_water_mark=self.highest)

    def open_txns(self, request: Any) -> Any:
        self.asked += 1
        mapped = self.policies.setdefault(request.replPolicy, {})
        there = [mapped[one] for one in request.replSrcTxnIds if one in mapped]
        if there:
            return SimpleNamespace(txn_ids=there)
        ids = list(range(self.highest + 1, self.highest + 1 + request.num_txns))
        self.highest = ids[-1]
        mapped |= zip(request.replSrcTxnIds, ids, strict=True)
        self.opened += [SimpleNamespace(id=one, user=request.user, hostname=request.hostname) for one in ids]
        return SimpleNamespace(txn_ids=ids)

    def get_open_txns_info(self) -> Any:
        return SimpleNamespace(open_txns=self.opened)

    def heartbeat_txn_range(self, _: Any) -> Any:
        return SimpleNamespace(aborted=set(), nosuch=set())

    def abort_txn(self, request: Any) -> None:
        self.ended.append(request.txnid)
        gone = self.policies.setdefault(request.replPolicy, {}).pop(request.txnid, None)
        self.opened = [one for one in self.opened if one.id != gone]

    def call(self, what: str, do: Callable[[Any], Any]) -> Any:
        return do(self)


def test_transactions_whose_ids_are_far_apart_can_all_be_aborted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their range is all that is known of those opened together, and only its first ids were tried: a failover left some open."""
    server, metastore = Transactions(), Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    opened = metastore.replay_open("p", [5, 9, 30_000, 55_000])
    assert len({one.hostname for one in server.opened}) == 3
    metastore.abort_replayed("p", [one.id for one in opened.values()], lambda: None)
    assert {5, 9, 30_000, 55_000} <= set(server.ended)


@pytest.mark.parametrize("together", [(5, 7, 9), (5, 9)])
def test_what_was_opened_with_others_is_aborted_alone(monkeypatch: pytest.MonkeyPatch, together: tuple[int, ...]) -> None:
    """Others of their range, which is all that is noted of them, may write to other tables, which would lack their rows."""
    server, metastore = Transactions(), Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    opened = metastore.replay_open("p", together) | metastore.replay_open("p", [7, 40])
    metastore.abort_replayed("p", [opened[9].id], lambda: None, [opened[one].id for one in (5, 7, 40)])
    assert {5, 7, 40} <= server.mapped.keys()
    assert 9 not in server.mapped
    assert set(server.mapped) == {5, 7, 40}, "what was opened to ask is aborted, too"
    metastore.abort_replayed("p", [one.id for one in opened.values()], lambda: None)
    assert server.mapped == {}


@pytest.mark.parametrize("at", range(1, 10))
def test_what_was_opened_to_ask_is_ended_after_a_kill(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Noted like one of somebody else's that has to stay, it stayed open until Hive gave the database up."""
    server, metastore, checks = Transactions(), Metastore("thrift://t:1"), list[int]()

    def killed(what: str, do: Callable[[Any], Any]) -> Any:
        if what.startswith("abort_txn"):
            checks.append(at)
            if len(checks) == at:
                raise KeyboardInterrupt
        return do(server)

    monkeypatch.setattr(metastore, "call", server.call)
    opened = metastore.replay_open("p", [5, 9, 14])
    ended, stay = [opened[9].id, opened[14].id], [opened[5].id]
    monkeypatch.setattr(metastore, "call", killed)
    with pytest.raises(KeyboardInterrupt):
        metastore.abort_replayed("p", ended, lambda: None, stay)
    there = [one for one in ended if one in server.mapped.values()]  # what the next try finds, by its write ids
    assert there
    metastore.abort_replayed("p", there, lambda: None, stay)
    assert server.mapped.keys() == {5}


def test_transactions_of_other_policies_are_not_taken_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of a source's databases overlap: a failover opened each id of the range to ask for which one they stand."""
    server, metastore = Transactions(), Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    opened, other = metastore.replay_open("p", [1, 90]), metastore.replay_open("q", [40])
    before = server.asked
    metastore.abort_replayed("p", [one.id for one in opened.values()], lambda: None)
    assert (server.asked, server.mapped, server.policies["q"]) == (before, {}, {40: other[40].id})


@pytest.mark.parametrize("stays", [True, False])
def test_none_is_ended_without_the_lock(monkeypatch: pytest.MonkeyPatch, *, stays: bool) -> None:
    """Another load may have opened it since, under the same name."""
    server, metastore, left = Transactions(), Metastore("thrift://t:1"), [1, 2, 3]

    def check() -> None:
        if not left:
            raise LockLost
        left.pop()

    monkeypatch.setattr(metastore, "call", server.call)
    opened = metastore.replay_open("p", [5, 20])
    before = server.asked
    with pytest.raises(LockLost):
        metastore.abort_replayed("p", [opened[20].id], check, [opened[5].id] if stays else ())
    assert (server.ended, server.asked - before) == (([6, 7], 3) if stays else ([5, 6, 7], 0))


class Taken:
    """Knows no transaction of the source any more; of its table write id 8 is the last that was given out.

    Hive hides it where an older transaction had a greater one (``hidden``), which its housekeeper removed.
    """

    def __init__(self, invalid: Sequence[int] = (), aborted: bytes = b"", *, hidden: bool = False) -> None:
        self._answer = SimpleNamespace(
            fullTableName="db.t", writeIdHighWaterMark=7 if hidden else 8, invalidWriteIds=list(invalid), abortedBits=aborted
        )

    def commit_txn(self, request: Any) -> None:
        """It does nothing, and answers well."""

    def get_open_txns_info(self) -> Any:
        return SimpleNamespace(open_txns=[])

    def get_valid_write_ids(self, request: Any) -> Any:
        return SimpleNamespace(tblValidWriteIds=[self._answer])

    def get_max_allocated_table_write_id(self, request: Any) -> Any:
        return SimpleNamespace(maxWriteId=8)

    def call(self, what: str, do: Callable[[Any], Any]) -> Any:
        return do(self)


@pytest.mark.parametrize("aborted", [b"\x01", b""], ids=["aborted", "open"])
def test_a_commit_whose_write_id_somebody_else_took_is_told_of(monkeypatch: pytest.MonkeyPatch, aborted: bytes) -> None:
    """Who writes on a replica takes the source's next write id: what the source wrote with it was lost, and all was green."""
    metastore = Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", Taken([8], aborted).call)
    with pytest.raises(TransactionGone, match=r"write id 8 of db.t at .* is that of another transaction.*repair its tables"):
        metastore.replay_commit("p", 5, "db", [WriteEvent("t", "", 8)])
    metastore.replay_commit("p", 5, "db", [])  # nothing is lost of what wrote nothing


@pytest.mark.parametrize("server", [Taken(), Taken(hidden=True), Taken([6], b"\x01")])
def test_a_commit_that_was_carried_out_before_is_repeated(monkeypatch: pytest.MonkeyPatch, server: Taken) -> None:
    metastore = Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    metastore.replay_commit("p", 5, "db", [WriteEvent("t", "", 8)])


class Giving(Taken):
    """The same, which gives write ids out, and loses an answer first where it is to; notes who asks what readers see."""

    def __init__(self, *, loses: bool) -> None:
        super().__init__()
        self.loses, self.asked = loses, 0

    def allocate_table_write_ids(self, request: Any) -> Any:
        return SimpleNamespace(txnToWriteIds=request.srcTxnToWriteIdList)

    def get_valid_write_ids(self, request: Any) -> Any:
        self.asked += 1
        return super().get_valid_write_ids(request)

    def call(self, what: str, do: Callable[[Any], Any]) -> Any:
        if self.loses and what.startswith("allocate"):
            do(self)
        return do(self)


@pytest.mark.parametrize("loses", [False, True])
def test_a_commit_asks_for_no_write_id_that_it_gave_out_itself(monkeypatch: pytest.MonkeyPatch, *, loses: bool) -> None:
    """That was a call for each transaction; where an answer was lost, somebody else may have the write id."""
    server, metastore = Giving(loses=loses), Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    metastore.replay_write_ids("p", "db", "t", {5: 8})
    metastore.replay_commit("p", 5, "db", [WriteEvent("t", "", 8)])
    assert server.asked == loses
    metastore.replay_commit("p", 5, "db", [WriteEvent("t", "", 8)])
    assert server.asked == loses + 1, "it is committed, and nothing is known of it any more"
    metastore.replay_write_ids("p", "db", "t", {6: 8})
    metastore.replay_commit("p", 6, "db", [WriteEvent("t", "", 7)])
    assert server.asked == loses + 2, "another write id than was given"


def test_the_generated_request_has_the_field_of_hive_4() -> None:
    """``reallocate`` is the field 6, a boolean."""
    plain, again = TMemoryBuffer(), TMemoryBuffer()
    for buffer, value in ((plain, None), (again, True)):
        request = AllocateTableWriteIdsRequest("db", "t", [1])
        request.reallocate = value
        Client(TBinaryProtocolAccelerated(buffer)).send_allocate_table_write_ids(request)
    assert again.getvalue() == plain.getvalue()[:-2] + b"\x02\x00\x06\x01\x00\x00"
