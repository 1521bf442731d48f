"""Notices an HDFS that takes connections and never answers, for those who cannot wait."""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Lock, Thread

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import Storage

_ASK_AGAIN = 300.0  # seconds


def require_answers(storage: Storage, seconds: float) -> None:
    """Makes sure that HDFS answers, if only that it refuses.

    Args:
        storage: whose roots are asked.
        seconds: to wait for each of them.

    Raises:
        Unreachable: one does not answer.
    """
    for root in storage.roots:
        if root.uri.startswith("hdfs:"):
            _QUESTIONS.require_answer(storage, root, seconds)


def require_reachable(storage: Storage, seconds: float) -> None:
    """Makes sure that the stores of all roots answer, of whatever kind they are, if only that they deny what is asked.

    Args:
        storage: whose roots are asked.
        seconds: to wait for an HDFS that takes connections and never answers.

    Raises:
        Unreachable: one does not answer, or cannot be reached.
    """
    require_answers(storage, seconds)
    for root in storage.roots:
        try:
            storage.exists(root.uri)
        except Unreachable:
            raise
        except (ReplicationError, OSError):  # whoever needs it says what is wrong
            continue


class _Questions:
    """One question to each root at a time: the client of HDFS waits for ever, and a thread that waits cannot be ended.

    It waits on where a NameNode's host lost its power, up to two hours after that is back, so that others ask now and then.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: dict[str, tuple[float, Thread]] = {}

    def require_answer(self, storage: Storage, root: Root, seconds: float) -> None:
        with self._lock:
            since, thread = self._asked.get(repr(root), (0.0, None))
            if thread is None or not thread.is_alive() or time.monotonic() - since > _ASK_AGAIN:
                thread = Thread(target=_ask, args=(storage, root.uri), daemon=True, name=f"asks {root.uri}")
                since = time.monotonic()
                self._asked[repr(root)] = since, thread
                thread.start()
        thread.join(max(0.0, since + seconds - time.monotonic()))
        if thread.is_alive():
            waited = time.monotonic() - since
            raise Unreachable(f"{root.uri} has not answered for {waited:.0f} s; hive-repl doctor shows what is slow")


def _ask(storage: Storage, uri: str) -> None:
    with suppress(ReplicationError, OSError):  # whoever needs it says what is wrong
        storage.exists(uri)


_QUESTIONS = _Questions()
