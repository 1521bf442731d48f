"""A dump decodes each message at most once, whoever asks what it says."""

from __future__ import annotations

from collections import Counter

import pytest

from hive_replication.dump.bootstrap.dump_objects import dump_objects
from hive_replication.dump.format.record_types import Scope
from hive_replication.dump.incremental import dump_events as incremental
from hive_replication.dump.incremental.dump_events import dump_events
from hive_replication.progress import Silent
from tests import model
from tests.counting import count_decoded
from tests.moving import Draft, moving_source

CREATE, INSERT, ADD, RENAME = ("create", 0, 0, 0), ("insert unlisted", 0, 0, 1), ("create", 1, 0, 1), ("rename", 0, 0, 2)
RELOCATE, DROP = ("relocate", 1, 0, 0), ("drop", 1, 0, 0)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    return count_decoded(monkeypatch)


def test_a_dump_of_events(decoded: Counter[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of three events: questions of the first lead through the log of all later ones."""
    monkeypatch.setattr(incremental, "_BATCH", 3)
    source, draft = model.Source(), Draft()
    for action in (CREATE, ADD, INSERT, RELOCATE, RENAME, ("insert unlisted", 2, 0, 2), ("rename", 2, 0, 0), RELOCATE, DROP):
        source.act(*action)
    result = dump_events(moving_source(source, [], []), Scope("db"), 0, None, 0, draft, Silent())
    assert result.last_evid == len(draft.events) == source.evid
    assert {evid: number for evid, number in decoded.items() if number > 1} == {}
    assert len(decoded) > source.evid / 2  # those that need no look into the message are not decoded at all


def test_a_dump_of_objects(decoded: Counter[int]) -> None:
    source, draft = model.Source(), Draft()
    for action in (CREATE, ADD):
        source.act(*action)
    pending = [INSERT, RELOCATE, RENAME, ("insert unlisted", 2, 0, 2), DROP]
    dump_objects(moving_source(source, pending, [0, 1, 1, 1, 1, 1]), Scope("db"), draft, Silent())
    assert decoded
    assert {evid: number for evid, number in decoded.items() if number > 1} == {}
