"""A lock that all loads of one name share, kept in the metastore's own lock table (no transaction, no event).

A holder proves that it lives by heartbeats. Who is gone (its process ended on this machine, or no heartbeat came for a while
by the metastore's own clock) loses the lock to the next who asks. Who holds it briefly says so, and is waited for.
"""

from __future__ import annotations

import logging
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

from hive_replication.errors import LockLost, LockSilent, Refused, ReplicationError, Unreachable
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.process import is_gone, machine, user

_LOG = logging.getLogger(__name__)

RESERVED_DATABASE = "__hive_replication__"
_BRIEF = "brief@"  # before the host's name in a lock's agent
_PATIENCE, _POLL = 3_600.0, 0.5  # seconds for which a lock that is held briefly is waited for, and between two looks
_SILENT = 900.0  # seconds: a load whose metastore was away waits for a heartbeat for ten minutes; clocks may differ, too
_ATTEMPTS = 20  # others that ask at the same moment stand in each other's way, for a few hundredths of a second


def is_locked(metastore: Metastore, name: str) -> bool:
    """Whether somebody who seems to live holds a lock; who only wants to know takes it from nobody.

    Args:
        metastore: keeps the lock.
        name: what is locked.
    """
    latest = (time.time() - _SILENT) * 1000
    held = (lock for lock in _locks(metastore, name) if lock.state == LockState.ACQUIRED)
    return any(lock.lastheartbeat > latest and not _has_ended(lock) for lock in held)


def _locks(metastore: Metastore, name: str) -> list[ShowLocksResponseElement]:
    request = ShowLocksRequest(dbname=RESERVED_DATABASE, tablename=name.lower())
    return metastore.call(f"show_locks {name}", lambda client: client.show_locks(request)).locks or []


def _has_ended(lock: ShowLocksResponseElement) -> bool:
    """Whether the holder was a process of this machine, and is gone.

    After a restart of the machine the heartbeat decides: machines that were cloned may share their id.
    """
    agent = (lock.agentInfo or "").split(":")
    return lock.hostname == machine() and is_gone(" ".join((lock.hostname, *agent[-2:-1])))


class MetastoreLock:
    """An exclusive lock, as a context manager; readers of tables are not affected.

    Args:
        metastore: keeps the lock.
        name: what is locked, e.g. the target database.
        heartbeat: seconds between signs of life.
        stale_after: seconds without one after which others may take the lock over.
        brief: whether it is held for a short time only, so that others wait for it instead of being refused.
        patience: seconds for which a lock that another one holds so is waited for.
    """

    def __init__(
        self,
        metastore: Metastore,
        name: str,
        *,
        heartbeat: float = 10,
        stale_after: float = 60,
        brief: bool = False,
        patience: float | None = None,
    ) -> None:
        self.name = name
        self._metastore = metastore
        self._heartbeat = heartbeat
        self._stale_after = stale_after
        self._brief = brief
        self._patience = _PATIENCE if patience is None else patience
        self._agent = ""
        self._id = 0
        self._seen = 0.0
        self._lost = False
        self._awaited = False
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
        host = f"{_BRIEF}{socket.gethostname()}" if self._brief else socket.gethostname()
        self._agent = f"{host}:{os.getpid()}:{secrets.token_hex(4)}"
        attempts, until = 0, time.monotonic() + self._patience
        while True:
            asked = time.monotonic()
            if self._ask(patient=asked < until):
                break
            attempts += not self._awaited
            if attempts == _ATTEMPTS:
                raise Refused(f"another load of {self.name} is starting at this moment; wait a little and try again")
            _LOG.debug("others ask for the lock on %s, or hold it briefly: once more", self.name, extra=about(self.name))
            time.sleep(_POLL if self._awaited else random.uniform(0.02, 0.2))  # noqa: S311 - not a secret
        _LOG.debug("has the lock on %s", self.name, extra=about(self.name))
        self._seen, self._lost, self._stop = asked, False, threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lock-{self.name}", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """Gives the lock back. Where the metastore cannot be reached it is left to go stale."""
        self._stop.set()
        if self._thread:
            self._thread.join()
            self._thread = None
            try:
                self._unlock(self._id)
            except ReplicationError as error:
                _LOG.warning("the lock on %s is left to go stale: %s", self.name, error, extra=about(self.name))

    def check(self) -> None:
        """Makes sure that the lock is still ours; to be called before each change that must not be made twice.

        Raises:
            LockLost: it was removed, as by who took it over.
            LockSilent: too long no sign of life got through.
        """
        kind = LockLost if self._lost else LockSilent if time.monotonic() - self._seen > self._stale_after else None
        if kind:
            raise kind(f"the lock on {self.name} was lost (removed, or no heartbeat for {self._stale_after:.0f} s); "
                       "another load may run, so this one stops")  # fmt: skip

    def _ask(self, *, patient: bool) -> bool:
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
        self._awaited = False
        try:
            self._clear(answer.lockid, patient=patient)
        finally:
            self._unlock(answer.lockid)
        return False

    def _clear(self, own: int, *, patient: bool) -> None:
        locks = _locks(self._metastore, self.name)
        now = next((lock.lastheartbeat for lock in locks if lock.lockid == own), 0)  # the metastore's clock, not ours
        for lock in locks:
            if lock.lockid == own:
                continue
            if self._is_gone(lock, now):
                self._take_over(lock, (now - lock.lastheartbeat) / 1000)
            elif lock.state == LockState.ACQUIRED and patient and (lock.agentInfo or "").startswith(_BRIEF):
                self._awaited = True
            elif lock.state == LockState.ACQUIRED:
                since = datetime.fromtimestamp((lock.acquiredat or lock.lastheartbeat) / 1000, UTC)
                raise Refused(
                    f"another load of {self.name} runs: {lock.agentInfo or lock.hostname} (host:process:id) of user {lock.user}, "
                    f"since {since:%Y-%m-%d %H:%M:%S} UTC; wait for it, or end that process and try again"
                )

    def _take_over(self, lock: ShowLocksResponseElement, silent: float) -> None:
        if lock.agentInfo != self._agent:  # not one of ours whose id got lost
            message = "the lock on %s is taken over from %s of user %s, which is gone (last heartbeat %.0f s ago)"
            _LOG.warning(message, self.name, lock.agentInfo or lock.hostname, lock.user, silent, extra=about(self.name))
        self._unlock(lock.lockid)

    def _is_gone(self, lock: ShowLocksResponseElement, now: int) -> bool:
        silent = now - lock.lastheartbeat > self._stale_after * 1000
        return lock.agentInfo == self._agent or silent or _has_ended(lock)

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
                pass  # it was logged with each attempt; the time since the last success decides, see check()
            except MetastoreError as error:
                _LOG.warning("no heartbeat for the lock on %s: %s", self.name, error, extra=about(self.name))
                if isinstance(error.__cause__, NoSuchLockException):
                    self._lost = True
                    return
