"""Records of what operators do, without servers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.errors import BadRequest, LockLost, Refused, Unreachable
from hive_replication.load.records import RecordStore
from hive_replication.policy import Root
from hive_replication.recorded import recorded
from hive_replication.storage import Storage
from tests.lags import POLICY


@pytest.fixture
def connection(tmp_path: Path) -> Any:
    store = SimpleNamespace(storage=Storage((Root(uri=f"file://{tmp_path}/"),)), root=f"file://{tmp_path}/dumps")
    return SimpleNamespace(target=SimpleNamespace(policy=POLICY), store=store)


def kept(connection: Any) -> list[tuple[str, str]]:
    """Outcome and text of the records."""
    return [(one.outcome, one.text) for one in RecordStore.of(POLICY, connection.store, "sales").newest()]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (LockLost("the lock was lost"), "the lock was lost"),
        (Unreachable("the target does not answer"), "the target does not answer"),
        (OSError("a file of this machine"), "a file of this machine"),
        (KeyboardInterrupt(), "interrupted"),
        (BadRequest("no load ended there"), None),
        (Refused("another load runs"), None),
    ],
)
def test_what_ended_half_way_is_recorded(connection: Any, error: BaseException, text: str | None) -> None:
    """Nobody could tell who had changed the half of it; what is refused at once has changed nothing."""
    with pytest.raises(type(error)), recorded(connection, "undo", "sales", None):
        raise error
    assert kept(connection) == ([] if text is None else [("failed", text)])


def test_what_is_refused_after_it_has_begun_is_recorded(connection: Any) -> None:
    with pytest.raises(Refused), recorded(connection, "failover start", "sales", None, begun=lambda: True):
        raise Refused("tables differ")
    assert kept(connection) == [("failed", "tables differ")]


def test_what_changed_nothing_is_not(connection: Any) -> None:
    with recorded(connection, "release", "sales", None) as notes:
        notes.changed = False
    assert kept(connection) == []
