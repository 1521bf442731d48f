"""A recovery's dump: together with the tables that it leaves out it is the source at one event, whatever happens meanwhile."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hive_replication.dump.bootstrap.dump_objects import dump_objects
from hive_replication.dump.format.record_types import Known, Scope
from hive_replication.progress import Silent
from tests import model
from tests.moving import MOVING_KINDS, Draft, moving_source, paces


@settings(deadline=None, max_examples=150)
@given(
    model.actions(),
    model.actions(MOVING_KINDS, least=0),
    model.actions(MOVING_KINDS),
    paces,
    st.sets(st.sampled_from(model.NAMES), min_size=1),
)
def test_what_is_left_out_stands_where_the_dump_does(
    before: model.Actions, compared: model.Actions, meanwhile: model.Actions, pace: list[int], equal: set[str]
) -> None:
    """Some tables are found equal; events before, while and after they are compared may concern them."""
    source = model.Source()
    for action in before:
        source.act(*action)
    noted, state = source.evid, source.state()
    for action in compared:
        source.act(*action)
    draft, known = Draft(), Known(noted, frozenset(equal & state.keys()), "token")
    header = dump_objects(moving_source(source, meanwhile, pace), Scope("db"), draft, Silent(), known).header
    assert (header.from_evid, header.recovery) == (noted, "token")
    assert draft.state().keys().isdisjoint(header.equal)
    assert draft.state() | {name: state[name] for name in header.equal} == source.past[header.to_evid]
