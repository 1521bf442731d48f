"""A pause while a load writes the state of the same database: the metastore replaces all parameters at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hive_metastore.ttypes import LockState, ShowLocksResponseElement

from hive_replication.errors import BadRequest, Refused
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.replica.pause import pause, resume
from hive_replication.load.replica.state import PAUSED, ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore import lock as locks
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database, copy_of

BEFORE = ReplicaState("uuid/sales", 170)
AFTER = BEFORE.advanced(1400, 5, "hash").quarantine("orders", 900, "no space")


class Server:
    """A metastore in memory: one database, and locks. ``between`` is called inside a call that alters the database."""

    def __init__(self) -> None:
        self.there = Database(name="sales", locationUri="hdfs://t/sales.db", parameters=BEFORE.parameters())
        self.held: dict[int, ShowLocksResponseElement] = {}
        self._ids, self._guard = itertools.count(1), threading.Lock()
        self.before: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None

    def get_database_req(self, _: object) -> Database:
        return copy_of(self.there)

    def alter_database(self, _: str, database: Database) -> None:
        before, after, self.before, self.after = self.before, self.after, None, None
        if before:
            before()
        self.there = copy_of(database)
        if after:
            after()

    def lock(self, request: Any) -> Any:
        with self._guard:
            name, one = request.component[0].tablename, next(self._ids)
            free = all(other.tablename != name for other in self.held.values())
            self.held[one] = ShowLocksResponseElement(
                lockid=one, tablename=name, state=LockState.ACQUIRED if free else LockState.WAITING, lastheartbeat=1,
                acquiredat=1, user="u", hostname=request.hostname, agentInfo=request.agentInfo,
            )  # fmt: skip
            return SimpleNamespace(lockid=one, state=self.held[one].state)

    def show_locks(self, request: Any) -> Any:
        with self._guard:
            return SimpleNamespace(locks=[one for one in self.held.values() if one.tablename == request.tablename])

    def unlock(self, request: Any) -> None:
        with self._guard:
            self.held.pop(request.lockid, None)

    def heartbeat(self, _: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(Metastore, "call", lambda _, _what, do, **_more: do(made))
    monkeypatch.setattr(locks, "_POLL", 0.01)
    return made


@pytest.fixture
def target() -> Target:
    policy = SimpleNamespace(name="default", read_only=False, owners={})
    metastore = Metastore("thrift://127.0.0.1:1")
    return cast("Target", SimpleNamespace(metastore=metastore, policy=policy, source_identity="uuid"))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_load_writes_during_a_pause_stays(moment: str, server: Server, target: Target) -> None:
    with MetastoreLock(target.metastore, "sales"):
        load = TargetDatabase(target, "sales", lambda: None, dry=False)
        writing = threading.Thread(target=load.write_state, args=(AFTER,))

        def meanwhile() -> None:
            writing.start()
            writing.join(0.5)  # it may have to wait for the pause

        setattr(server, moment, meanwhile)
        assert pause(target, "sales", "since noon")
        writing.join(20)
    found = replica_state(server.there)
    assert (found.applied, found.held, found.paused) == (1400, {"orders": "no space"}, "since noon")
    assert not server.held


def test_a_pause_during_the_write_of_a_load_is_kept(server: Server, target: Target) -> None:
    with MetastoreLock(target.metastore, "sales"):
        load = TargetDatabase(target, "sales", lambda: None, dry=False)
        pausing = threading.Thread(target=pause, args=(target, "sales", "since noon"))

        def meanwhile() -> None:
            pausing.start()
            pausing.join(0.5)

        server.before = meanwhile
        load.write_state(AFTER)
        pausing.join(20)
    found = replica_state(server.there)
    assert (found.applied, found.paused) == (1400, "since noon")


def test_pause_and_resume_tell_whether_anything_changed(server: Server, target: Target) -> None:
    assert [pause(target, "sales", "a"), pause(target, "sales", "b")] == [True, False]
    assert [resume(target, "sales"), resume(target, "sales")] == [True, False]
    server.there.parameters = {}
    with pytest.raises(BadRequest, match="no replica 'sales'"):
        pause(target, "sales", "a")


def test_the_replica_of_another_policy_is_neither_paused_nor_resumed(server: Server, target: Target) -> None:
    for paused in ("", "since noon"):
        before = server.there.parameters = ReplicaState("uuid/sales", 170, policy="b").parameters() | {PAUSED: paused}
        with pytest.raises(Refused, match="'sales' is written by the policy 'b', and this one is 'default'"):
            _ = resume(target, "sales") if paused else pause(target, "sales", "since noon")
        assert server.there.parameters == before


def test_nor_is_one_of_another_source_whose_policy_has_the_same_name(server: Server, target: Target) -> None:
    before = server.there.parameters = ReplicaState("another/sales", 170, policy="default").parameters()
    with pytest.raises(Refused, match="'sales' is a replica of another/sales, and the source of this policy 'default' is uuid"):
        pause(target, "sales", "since noon")
    assert server.there.parameters == before


def test_a_hold_and_a_pause_are_recorded_by_a_metastore_that_keeps_latin_1_alone(
    server: Server, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one on MySQL: the window of the whole database failed for a character of the reason why one table is held."""
    alter = server.alter_database

    def strict(name: str, database: Database) -> None:
        for text in itertools.chain.from_iterable((database.parameters or {}).items()):
            text.encode("latin-1")
        alter(name, database)

    monkeypatch.setattr(server, "alter_database", strict)
    with MetastoreLock(target.metastore, "sales"):
        TargetDatabase(target, "sales", lambda: None, dry=False).write_state(AFTER.quarantine("orders", 900, "列 fehlt"))
    assert pause(target, "sales", "since noon by 王")
    found = replica_state(server.there)
    assert (found.applied, found.held, found.paused) == (1400, {"orders": r"\u5217 fehlt"}, r"since noon by \u738b")
