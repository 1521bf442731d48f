"""Stores of any kind that hang, refuse connections or deny, for those who cannot wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_replication.connect.hanging_storage import require_answers, require_reachable
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage

Require = Callable[[Storage, float], None]


class Store(Storage):
    """A store that is no HDFS.

    Args:
        directory: its root.
        problem: why it shows nothing.
    """

    def __init__(self, directory: Path, problem: ReplicationError | None = None) -> None:
        super().__init__((Root(uri=directory.as_uri()),))
        self._problem, self.answers = problem, threading.Event()
        self.asked = 0

    def exists(self, uri: str) -> bool:
        self.asked += 1
        assert self.answers.wait(30)
        if self._problem:
            raise self._problem
        return super().exists(uri)


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path)
    yield store
    store.answers.set()


@pytest.mark.parametrize("require", [require_answers, require_reachable])
def test_a_store_of_any_kind_that_hangs_is_given_up(hanging: Store, require: Require) -> None:
    """An object store's client tries an endpoint for longer than Dagster lets a tick last."""
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(Unreachable, match="has not answered for"):
            require(hanging, 0.1)
    assert time.monotonic() - began < 5
    assert hanging.asked == 1


def test_a_store_that_refuses_connections_is_told_from_one_that_denies(tmp_path: Path) -> None:
    down, denies = Store(tmp_path / "down", Unreachable("connection refused")), Store(tmp_path / "denies", Denied("may not"))
    for store in (down, denies):
        store.answers.set()
        require_answers(store, 5)
    require_reachable(denies, 5)
    with pytest.raises(Unreachable, match="connection refused"):
        require_reachable(down, 5)
    assert down.asked == 2, "once each"
