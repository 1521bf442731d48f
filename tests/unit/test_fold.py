"""A bootstrap dump of a source that changes between any two calls stands at the event that it names, whatever was read when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.dump import listing
from hive_replication.dump.bootstrap import dump_objects
from hive_replication.dump.records import Scope
from hive_replication.progress import Silent
from tests import model
from tests.moving import Draft, moving_source


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """So that a failing example can be repeated."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "_THREADS", 1)
        yield


KINDS = (*model.KINDS, "rename out", "insert unlisted", "relocate", "relocate many")
paces = st.lists(st.sampled_from([0, 0, 0, 1, 1, 2, 5]), max_size=40)


@settings(deadline=None, max_examples=300)
@given(model.actions(), model.actions(KINDS), paces)
def test_the_dump_stands_at_its_last_event(before: model.Actions, meanwhile: model.Actions, pace: list[int]) -> None:
    source = model.Source()
    for action in before:
        source.act(*action)
    begin, draft = source.evid, Draft()
    header = dump_objects(moving_source(source, meanwhile, pace), Scope("db"), draft, Silent()).header
    assert begin <= header.from_evid <= header.to_evid
    assert draft.state() == source.past[header.to_evid]
