"""A lock that all loads of one name share, kept in the metastore's own lock table (no transaction, no event).

A holder proves that it lives by heartbeats. Who is gone (its process ended on this machine, or no heartbeat came for a while
by the metastore's own clock) loses the lock to the next who asks.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import socket
import threading
import time
from datetime import UTC, datetime
from typing import Self

from hive_metastore.ttypes import (
    DataOperationType,
    HeartbeatRequest,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    NoSuchLockException,
    ShowLocksRequest,
    ShowLocksResponseElement,
    UnlockRequest,
)

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.process import machine, runs_here, user

RESERVED_DATABASE = "__hive_replication__"
_ATTEMPTS = 20  # others that ask at the same moment stand in each other's way, for a few hundredths of a second


class MetastoreLock:
    """An exclusive lock, as a context manager; readers of tables are not affected.

    Args:
        metastore: keeps the lock.
        name: what is locked, e.g. the target database.
        heartbeat: seconds between signs of life.
        stale_after: seconds without one after which others may take the lock over.
    """

    def __init__(self, metastore: Metastore, name: str, *, heartbeat: float = 10, stale_after: float = 60):
        self.name = name
        self._metastore = metastore
        self._heartbeat = heartbeat
        self._stale_after = stale_after
        self._agent = ""
        self._id = 0
        self._seen = 0.0
        self._lost = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self) -> None:
        """Takes the lock, or takes it over from one who is gone.

        Raises:
            Refused: somebody holds it; the message says who and since when.
        """
        self._agent = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        for _ in range(_ATTEMPTS):
            asked = time.monotonic()
            if self._ask():
                break
            time.sleep(random.uniform(0.02, 0.2))  # noqa: S311 - not a secret
        else:
            raise Refused(f"another load of {self.name} is starting at this moment; wait a little and try again")
        self._seen, self._lost, self._stop = asked, False, threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lock-{self.name}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Gives the lock back. Where the metastore cannot be reached it is left to go stale."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
            with contextlib.suppress(ReplicationError):
                self._unlock(self._id)

    def check(self) -> None:
        """Makes sure that the lock is still ours; to be called before each change that must not be made twice.

        Raises:
            Refused: it was taken over, or too long no sign of life got through.
        """
        if self._lost or time.monotonic() - self._seen > self._stale_after:
            raise Refused(f"the lock on {self.name} was lost (removed, or no heartbeat for {self._stale_after:.0f} s); "
                          "another load may run, so this one stops")  # fmt: skip

    def _ask(self) -> bool:
        """Asks for the lock once; where others stand before us, removes those who are gone. Leaves no waiting lock behind."""
        component = LockComponent(
            type=LockType.EXCLUSIVE,
            level=LockLevel.TABLE,
            dbname=RESERVED_DATABASE,
            tablename=self.name.lower(),
            operationType=DataOperationType.NO_TXN,
            isTransactional=False,
        )
        request = LockRequest(component=[component], txnid=0, user=user(), hostname=machine(), agentInfo=self._agent)
        # May be repeated: a lock whose id got lost carries our name and is removed below.
        answer = self._metastore.call(f"lock {self.name}", lambda client: client.lock(request))
        if answer.state == LockState.ACQUIRED:
            self._id = answer.lockid
            return True
        try:
            self._clear(answer.lockid)
        finally:
            self._unlock(answer.lockid)
        return False

    def _clear(self, own: int) -> None:
        request = ShowLocksRequest(dbname=RESERVED_DATABASE, tablename=self.name.lower())
        locks = self._metastore.call(f"show_locks {self.name}", lambda client: client.show_locks(request)).locks or []
        now = next((lock.lastheartbeat for lock in locks if lock.lockid == own), 0)  # the metastore's clock, not ours
        for lock in locks:
            if lock.lockid == own:
                continue
            if self._is_gone(lock, now):
                self._unlock(lock.lockid)
            elif lock.state == LockState.ACQUIRED:
                since = datetime.fromtimestamp((lock.acquiredat or lock.lastheartbeat) / 1000, UTC)
                raise Refused(
                    f"another load of {self.name} runs: {lock.agentInfo or lock.hostname} (host:process:id) of user {lock.user}, "
                    f"since {since:%Y-%m-%d %H:%M:%S} UTC; wait for it, or end that process and try again"
                )

    def _is_gone(self, lock: ShowLocksResponseElement, now: int) -> bool:
        agent = lock.agentInfo or ""
        if agent == self._agent or now - lock.lastheartbeat > self._stale_after * 1000:
            return True
        pid = agent.split(":")[-2:-1]
        return lock.hostname == machine() and bool(pid) and pid[0].isdigit() and not runs_here(int(pid[0]))

    def _unlock(self, lock: int) -> None:
        self._metastore.call(f"unlock {self.name}", lambda client: client.unlock(UnlockRequest(lockid=lock)))

    def _beat(self) -> None:
        request = HeartbeatRequest(lockid=self._id, txnid=0)
        while not self._stop.wait(self._heartbeat):
            asked = time.monotonic()
            try:
                self._metastore.call(f"heartbeat {self.name}", lambda client: client.heartbeat(request))
                self._seen = asked
            except Unreachable:
                continue  # the time since the last success decides, see check()
            except MetastoreError as error:
                if isinstance(error.__cause__, NoSuchLockException):
                    self._lost = True
                    return
