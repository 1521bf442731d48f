"""A bootstrap dump of a source that changes between any two calls stands at the event that it names, whatever was read when."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.dump.bootstrap import dump_objects
from hive_replication.dump.records import Scope
from hive_replication.progress import Silent
from tests import model
from tests.moving import MOVING_KINDS, Draft, moving_source, paces

pytestmark = pytest.mark.usefixtures("one_thread")


@settings(deadline=None, max_examples=300)
@given(model.actions(), model.actions(MOVING_KINDS), paces, st.frozensets(st.integers(1, 12), max_size=3))
def test_the_dump_stands_at_its_last_event(
    before: model.Actions, meanwhile: model.Actions, pace: list[int], unreadable: frozenset[int]
) -> None:
    """Also where some events of that time cannot be read: what they may be about is read again."""
    source = model.Source()
    for action in before:
        source.act(*action)
    begin, draft = source.evid, Draft()
    moving = moving_source(source, meanwhile, pace, frozenset(begin + number for number in unreadable))
    header = dump_objects(moving, Scope("db"), draft, Silent()).header
    assert begin <= header.from_evid <= header.to_evid
    assert draft.state() == source.past[header.to_evid]
