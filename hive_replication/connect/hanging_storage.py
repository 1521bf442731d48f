"""Notices a store that takes connections and never answers, for those who cannot wait."""

from __future__ import annotations

import time
from threading import Lock, Thread

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import Storage

PATIENCE = 30.0  # seconds that commands wait for the storage of dumps
_ASK_AGAIN = 300.0  # seconds


def require_answers(storage: Storage, seconds: float) -> None:
    """Makes sure that the stores of all roots answer in time, if only that they refuse.

    Args:
        storage: whose roots are asked.
        seconds: to wait for each of them.

    Raises:
        Unreachable: one does not answer.
    """
    for root in storage.roots:
        _QUESTIONS.answer(storage, root, seconds)


def require_reachable(storage: Storage, seconds: float) -> None:
    """Makes sure that the stores of all roots answer in time, if only that they deny what is asked.

    Args:
        storage: whose roots are asked.
        seconds: to wait for each of them.

    Raises:
        Unreachable: one does not answer, or cannot be reached.
    """
    for root in storage.roots:
        problem = _QUESTIONS.answer(storage, root, seconds)
        if problem:
            raise problem


class _Question(Thread):
    """Whether a root is there."""

    def __init__(self, storage: Storage, uri: str) -> None:
        super().__init__(daemon=True, name=f"asks {uri}")
        self._storage, self._uri = storage, uri
        self.since = time.monotonic()
        self.problem: Unreachable | None = None

    def run(self) -> None:
        try:
            self._storage.exists(self._uri)
        except Unreachable as error:
            self.problem = error
        except (ReplicationError, OSError):  # whoever needs it says what is wrong
            pass


class _Questions:
    """One question to each root at a time: the client of HDFS waits for ever, and a thread that waits cannot be ended.

    It waits on where a NameNode's host lost its power, up to two hours after that is back, so that others ask now and then. Those
    of object stores give up, but with all their attempts not within a minute.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: dict[str, _Question] = {}

    def answer(self, storage: Storage, root: Root, seconds: float) -> Unreachable | None:
        """Why a root cannot be reached, None where it can.

        Raises:
            Unreachable: it does not answer in time.
        """
        with self._lock:
            asked = self._asked.get(repr(root))
            if asked is None or not asked.is_alive() or time.monotonic() - asked.since > _ASK_AGAIN:
                asked = self._asked[repr(root)] = _Question(storage, root.uri)
                asked.start()
        asked.join(max(0.0, asked.since + seconds - time.monotonic()))
        if asked.is_alive():
            waited = time.monotonic() - asked.since
            raise Unreachable(f"{root.uri} has not answered for {waited:.0f} s; hive-repl doctor shows what is slow")
        return asked.problem


_QUESTIONS = _Questions()
