"""Gaps: whether the source's log is the one that a replica follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.replica.state import ReplicaState
from hive_replication.recover import history_gap

STATE = ReplicaState(source="s/db", applied=100, applied_time=5, applied_hash="ab")


def source(time: int = 5, message_hash: str = "ab") -> Any:
    """A source whose log has one event 100; without a hash it is purged."""
    return SimpleNamespace(reach=lambda _: (time, message_hash))


@pytest.mark.parametrize("current", [100, 150])
def test_the_event_that_was_applied_last_is_in_the_log(current: int) -> None:
    assert history_gap(source(), STATE, current) is None


@pytest.mark.parametrize(("time", "message_hash"), [(5, "cd"), (6, "ab")])
def test_another_event_of_the_same_id_is_another_history(time: int, message_hash: str) -> None:
    found = history_gap(source(time, message_hash), STATE, 150)
    assert found is not None
    assert (found.kind, found.applied) == ("other history", 100)


def test_a_log_that_ends_before_the_replica_is_another_history() -> None:
    found = history_gap(source(), STATE, 99)
    assert found is not None
    assert found.kind == "other history"
    assert "ends at event 99" in found.reason


def test_a_purged_event_is_a_gap_only_if_later_ones_exist() -> None:
    found = history_gap(source(0, ""), STATE, 150)
    assert found is not None
    assert found.kind == "missing events"
    assert history_gap(source(0, ""), STATE, 100) is None  # nothing to apply: nothing can be missing


def test_nothing_is_known_without_a_remembered_event() -> None:
    assert history_gap(source(9, "ff"), ReplicaState(source="s/db", applied=100), 150) is None
