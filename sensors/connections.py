"""Connections of ticks, which soon give up on a metastore or an HDFS that does not answer.

Dagster ends a tick after 60 s and drops its cursor, while the tick's thread goes on in the code server and is missed by the
sensors of all policies there. So a server is given less time here than in a run, which may wait.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Lock, Thread

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import Storage
from repl_assets.catalog.keys import Names
from repl_assets.steps.engine import connection_resource

TIMEOUT = 15.0  # seconds for the answer of one call
ATTEMPTS = 2


def connect_for_tick(context: dg.SensorEvaluationContext, names: Names) -> Connection:
    """Both sides of a sensor's policy.

    Raises:
        BadRequest: see :func:`hive_replication.connect.connect`.
        Unreachable: the policy has patterns of databases, and the source does not answer.
    """
    return connection_resource(context, names).connect(timeout=TIMEOUT, retries=ATTEMPTS)


def require_answers(storage: Storage) -> None:
    """Makes sure, before a tick reads from HDFS, that it answers, if only that it refuses.

    Raises:
        Unreachable: one of the storage's roots does not.
    """
    for root in storage.roots:
        if root.uri.startswith("hdfs:"):
            _QUESTIONS.require_answer(storage, root)


class _Questions:
    """One question to each root at a time: the client of HDFS waits for ever, and a thread that waits cannot be ended."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._asked: dict[str, tuple[float, Thread]] = {}

    def require_answer(self, storage: Storage, root: Root) -> None:
        """See :func:`require_answers`."""
        with self._lock:
            since, thread = self._asked.get(repr(root), (0.0, None))
            if thread is None or not thread.is_alive():
                since, thread = (
                    time.monotonic(),
                    Thread(target=_ask, args=(storage, root.uri), daemon=True, name=f"asks {root.uri}"),
                )
                self._asked[repr(root)] = since, thread
                thread.start()
        thread.join(max(0.0, since + TIMEOUT - time.monotonic()))
        if thread.is_alive():
            waited = time.monotonic() - since
            raise Unreachable(f"{root.uri} has not answered for {waited:.0f} s; hive-repl doctor shows what is slow")


def _ask(storage: Storage, uri: str) -> None:
    with suppress(ReplicationError, OSError):  # whoever needs it says what is wrong
        storage.exists(uri)


_QUESTIONS = _Questions()
