"""A bootstrap that begins again with another dump, or comes over a replica that events have made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.load import bootstrap
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.kept_with_rebuilt import KeptWithRebuilt
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Held
from hive_replication.metastore.types import Database
from tests import model
from tests.bootstraps import SOURCE, Loading, header, loaded, loading, record, replica

FIRST = ReplicaState(SOURCE, None, checkpoint="hdfs://dst/dumps/db/first")


@pytest.mark.parametrize("state", [FIRST, ReplicaState(SOURCE, 50), ReplicaState()], ids=["interrupted", "older", "made by hand"])
def test_the_database_gets_the_properties_of_the_dump(state: ReplicaState) -> None:
    """It kept the owner, comment and properties with which the first dump had made it, or those of events before the dump."""
    altered = Database("db", "second", model.ROOT, {"k": "2"}, ownerName="finance")
    load = loaded(state, replace(header(60), source_database=altered), [], [record("e")], repair=False)
    (alter,) = (one for plan in load.planned for one in plan.alters)
    assert (alter.evid, alter.image.description, alter.image.ownerName) == (60, "second", "finance")
    assert (alter.image.parameters, alter.image.locationUri) == ({"k": "2"}, None)


def test_a_load_of_one_table_leaves_the_database_as_it_is() -> None:
    load = loaded(ReplicaState(SOURCE, 50), header(60, "e"), [], [record("e")], repair=False)
    assert [one for plan in load.planned for one in plan.alters] == []


def test_no_foreign_key_of_another_dump_comes_back_with_a_table_that_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metastore dropped it with the table that it pointed at, and the dump does not have it."""
    settled: list[object] = []
    monkeypatch.setattr(KeptWithRebuilt, "give_back", lambda _, names: settled.append(names))
    loaded(FIRST, header(60), [], [record("e")], repair=False)
    assert settled == [{"e"}]


@pytest.mark.parametrize("table", [None, "e"], ids=["the database", "a table"])
@pytest.mark.parametrize("stop", [True, False], ids=["held", "done"])
def test_a_load_over_a_replica_leaves_a_mark_until_it_is_done(
    monkeypatch: pytest.MonkeyPatch, table: str | None, stop: bool
) -> None:
    """Whatever is loaded next goes by it, where the load was killed."""
    seen: list[str] = []
    carried = Loading.carry_out

    def carry_out(session: Loading, plan: SegmentPlan, *more: object) -> None:
        seen.append(session.state.checkpoint)
        carried(session, plan, *more)
        if stop and plan.lanes and not session.held:
            session.held.append(Held(("e",), 50, 60, "no space"))

    monkeypatch.setattr(Loading, "carry_out", carry_out)
    monkeypatch.setattr(Loading, "dry", False)
    load = loading(ReplicaState(SOURCE, 50), header(60, table), [replica("e", 30)], [record("e")])
    load_objects(load, repair=True)
    assert set(seen) == {load.reader.directory}
    assert load.state.checkpoint == ""


@pytest.mark.parametrize(
    ("stood", "stands", "mark", "lost"),
    [
        (30, 0, "", True),
        (30, None, "", True),
        (30, 60, "", True),
        (30, 30, "", False),
        (60, 60, "", False),
        (None, None, "", False),
        (30, 30, "hdfs://dst/dumps/db/killed", True),
    ],
    ids=[
        "made anew",
        "dropped for that",
        "without what follows its data",
        "as it was",
        "at the dump's event",
        "new",
        "after a kill",
    ],
)
def test_a_table_whose_load_fails_between_two_states_is_lost(
    monkeypatch: pytest.MonkeyPatch, stood: int | None, stands: int | None, mark: str, *, lost: bool
) -> None:
    """Windows went on with it as if it was whole: at state id 0 all events apply, and at that of the dump none of its keys."""
    monkeypatch.setattr(Loading, "dry", False)
    ids = iter((stood, stands))
    monkeypatch.setattr(bootstrap, "_table_id", lambda _: next(ids))
    state = ReplicaState(SOURCE, 50, checkpoint=mark)
    load = loading(state, header(60, "e"), [replica("e", 30)], [record("e")])
    load.held.append(Held(("e",), 50, 60, "no space"))
    load_objects(load, repair=True)
    assert (load.state.lost, load.state.checkpoint) == (["e"] if lost else [], "")
