"""The lock against a metastore in memory: whose lock may be taken over, and which is waited for."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import LockState, NoSuchLockException, ShowLocksResponseElement

from hive_replication import process
from hive_replication.errors import LockLost, LockSilent, MetastoreError, Refused, ReplicationError, Unreachable
from hive_replication.metastore import lock as locks
from hive_replication.metastore.lock import MetastoreLock

ENDED = 4_190_000  # above the highest number that Linux gives by default


class Metastore:
    """Keeps locks; the first of a name has it."""

    def __init__(self) -> None:
        self.held: dict[int, ShowLocksResponseElement] = {}
        self._ids = itertools.count(1)
        self.now = 1_000_000

    def call(self, _: str, call: Callable[[Any], Any]) -> Any:
        return call(self)

    def add(self, hostname: str, agent: str) -> int:
        state = LockState.WAITING if self.held else LockState.ACQUIRED
        one = next(self._ids)
        self.held[one] = ShowLocksResponseElement(
            lockid=one, state=state, lastheartbeat=self.now, acquiredat=self.now, user="u", hostname=hostname, agentInfo=agent
        )
        return one

    def lock(self, request: Any) -> Any:
        one = self.add(request.hostname, request.agentInfo)
        return SimpleNamespace(lockid=one, state=self.held[one].state)

    def show_locks(self, _: Any) -> Any:
        return SimpleNamespace(locks=list(self.held.values()))

    def unlock(self, request: Any) -> None:
        self.held.pop(request.lockid, None)

    def heartbeat(self, _: Any) -> None:
        pass


def lock(metastore: Metastore, **options: Any) -> MetastoreLock:
    return MetastoreLock(metastore, "sales", **options)  # type: ignore[arg-type]


def test_the_lock_of_a_process_that_ended_here_is_taken_over() -> None:
    metastore = Metastore()
    metastore.add(process.machine(), f"h:{ENDED}:0a1b2c3d")
    with lock(metastore):
        assert len(metastore.held) == 1


@pytest.mark.parametrize("version", ["11f67ea", "this"])
def test_the_lock_of_another_host_of_the_same_name_is_not(version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Process namespaces of hosts have one number everywhere; only the other host knows whether the process runs."""
    metastore, numbers = Metastore(), Path("/proc/self/ns/pid").stat().st_ino
    hostname = f"{socket.gethostname()}/{numbers}"
    if version == "this":
        (tmp_path / "boot").write_text("99999999-2222-3333-4444-555555555555\n")
        with monkeypatch.context() as other:
            other.setattr(process, "_BOOT", tmp_path / "boot")
            hostname = process.machine()
    metastore.add(hostname, f"{socket.gethostname()}:{ENDED}:0a1b2c3d")
    with pytest.raises(Refused, match="another load of sales runs"):
        lock(metastore).acquire()
    metastore.held[1].lastheartbeat -= 61_000  # but no sign of life came for a while
    with lock(metastore):
        assert list(metastore.held) != [1]


def test_a_lock_held_briefly_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_POLL", 0.01)
    metastore, brief = Metastore(), lock(Metastore(), brief=True)
    brief._metastore = metastore  # type: ignore[assignment]
    brief.acquire()
    looks, waiter, sleep = iter(range(50)), threading.current_thread(), time.sleep

    def look(seconds: float) -> None:
        if threading.current_thread() is not waiter:  # a thread that an earlier test left behind, e.g. Py4J's
            sleep(seconds)
        elif next(looks) == 40:  # oftener than those wait who begin at the same moment
            brief.release()

    monkeypatch.setattr(time, "sleep", look)
    with lock(metastore):
        assert next(looks) == 41
    assert metastore.held == {}


def test_a_lock_is_waited_for_while_retention_reads_a_million_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the lock for as long again: loads failed after ten minutes, and said that another load runs."""
    metastore, now = Metastore(), [0.0]
    brief = lock(metastore, brief=True)
    brief.acquire()

    def look(_: float) -> None:
        now[0] += 100
        if now[0] == 1_200:
            brief.release()

    monkeypatch.setattr(locks, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=look))
    with lock(metastore):
        assert now == [1_200]


def test_a_lock_held_briefly_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    monkeypatch.setattr(locks, "_POLL", 0.01)
    metastore = Metastore()
    with lock(metastore, brief=True), pytest.raises(Refused, match="another load of sales runs"):
        lock(metastore).acquire()


def test_a_tick_of_a_sensor_waits_for_no_lock() -> None:
    """Dagster ends a tick after a minute, and retention holds the lock for as long as it reads a million partitions."""
    metastore = Metastore()
    with lock(metastore, brief=True), pytest.raises(Refused, match="another load of sales runs"):
        lock(metastore, patience=0).acquire()


def test_a_lock_of_a_load_is_not_waited_for() -> None:
    metastore = Metastore()
    began = time.monotonic()
    with lock(metastore), pytest.raises(Refused, match=r"runs: .*:\d+:"):
        lock(metastore, brief=True).acquire()
    assert time.monotonic() - began < 5


def test_a_lock_that_is_silent_is_held_again_after_a_heartbeat_and_not_once_it_was_removed() -> None:
    """Both were told alike, so a copy of hours ended with a metastore that was away for a minute."""
    metastore, gone = Metastore(), list[ReplicationError]()

    def heartbeat(_: Any) -> None:
        if gone:
            raise gone[0]

    metastore.heartbeat = heartbeat  # type: ignore[method-assign]
    with lock(metastore, heartbeat=0.02, stale_after=0.5) as held:
        gone.append(Unreachable("away"))
        time.sleep(0.6)
        with pytest.raises(LockSilent):
            held.check()
        gone.clear()
        time.sleep(0.2)
        held.check()
        error = MetastoreError("no such lock")
        error.__cause__ = NoSuchLockException("3")
        gone.append(error)
        time.sleep(0.2)
        with pytest.raises(LockLost) as lost:
            held.check()
    assert not isinstance(lost.value, LockSilent)


@pytest.mark.parametrize(
    ("host", "silent", "locked"),
    [("elsewhere", 61, True), ("elsewhere", 901, False), (process.machine(), 0, False)],
    ids=["away for a minute", "silent for long", "ended here"],
)
def test_who_asks_whether_a_lock_is_held_takes_it_from_nobody(host: str, silent: int, locked: bool) -> None:
    metastore = Metastore()
    metastore.now = int(time.time() - silent) * 1000
    metastore.add(host, f"h:{ENDED}:0a1b2c3d")
    metastore.add("waiting", "w:1:0a1b2c3d")
    assert locks.is_locked(metastore, "sales") is locked  # type: ignore[arg-type]
    assert len(metastore.held) == 2
