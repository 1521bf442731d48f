from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.load.replica.held_retries import Quarantine
from hive_replication.load.replica.state import (
    ReplicaState,
    database_with_state,
    is_ours,
    is_state,
    object_id,
    replica_state,
    with_state,
)
from hive_replication.load.source_history import without_mark
from hive_replication.metastore.types import Database, Partition, PrincipalType, Table

names = st.from_regex(r"[a-z0-9_]{1,8}", fullmatch=True)
evids = st.integers(0, 2**40)
states = st.builds(
    ReplicaState,
    source=st.just("uuid/db"),
    applied=evids,
    applied_time=st.integers(0, 2**31),
    applied_hash=st.from_regex("[0-9a-f]{0,16}", fullmatch=True),
    at=st.dictionaries(names, evids, max_size=3),
    held=st.dictionaries(names, st.text(st.characters(codec="latin-1"), max_size=20), max_size=3),
    quarantines=st.dictionaries(names, st.builds(Quarantine, evids, evids, evids, evids), max_size=3),
    checkpoint=st.sampled_from(["", "hdfs://d/x"]),
    fresh=st.booleans(),
    origins=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda one: f"u/{one}"), max_size=3).map(
        tuple
    ),
)


@given(states, st.dictionaries(names, st.text(max_size=3), max_size=3))
def test_a_state_comes_back_beside_other_parameters(state: ReplicaState, others: dict[str, str]) -> None:
    parameters = with_state(others, state)
    assert replica_state(Database(parameters=parameters)) == state
    assert others.items() <= parameters.items()
    assert with_state(parameters, ReplicaState()) == others
    assert parameters["repl.last.id"] == str(min([state.applied or 0, *filter(None, state.at.values())]))


def test_the_marks_of_others_outlast_every_write_of_the_state() -> None:
    """That nothing may be loaded any more, until somebody removes it, and that Hive dumps the database."""
    marks = {"repl.incompatible": "true", "bootstrap.dump.state.7f": "ACTIVE", "readonly": "true"}
    parameters = with_state({**marks, "repl.last.id": "3", "hive.repl.ckpt.key": "x"}, ReplicaState())
    assert parameters == marks
    image = Database("db", parameters={"comment": "new", "repl.incompatible": "false", "bootstrap.dump.state.1": "ACTIVE"})
    made = database_with_state(Database("db", parameters=parameters), ReplicaState(), image)
    assert made.parameters == {"comment": "new", **marks}


def test_a_database_without_an_owner_takes_none_from_its_replica() -> None:
    """Hive 3 has such; Hive 4 has none, and every load of a change of one failed there."""
    replica = Database("db", parameters={}, ownerName="hive", ownerType=PrincipalType.USER)
    made = database_with_state(replica, ReplicaState(), Database("db", parameters={"note": "3"}))
    assert (made.ownerName, made.ownerType, made.parameters) == ("hive", PrincipalType.USER, {"note": "3"})
    made = database_with_state(replica, ReplicaState(), Database("db", ownerName="etl", ownerType=PrincipalType.ROLE))
    assert (made.ownerName, made.ownerType) == ("etl", PrincipalType.ROLE)


def test_origins_that_hold_a_comma() -> None:
    """The identity of a source without a uuid is its address, which may name several servers."""
    chain = ("thrift://a:9083,thrift://b:9083/sales", "uuid/sales")
    parameters = ReplicaState(source="s", origins=chain).parameters()
    assert replica_state(Database(parameters=parameters)).origins == chain


def test_origins_of_earlier_versions() -> None:
    key = next(iter(ReplicaState(origins=("one/db", "two/db")).parameters()))
    assert ReplicaState(origins=("one/db", "two/db")).parameters() == {key: "one/db,two/db"}
    assert replica_state(Database(parameters={key: "one/db,two/db"})).origins == ("one/db", "two/db")


def test_what_is_in_the_way_of_an_interrupted_load_goes_with_its_mark() -> None:
    state = ReplicaState("uuid/db", 40, checkpoint="hdfs://d/x", obstacle="there is no dump")
    assert replica_state(Database(parameters=state.parameters())) == state
    for after in (state.advanced(50, 5, "ab"), without_mark(state, "hdfs://d/x")):
        assert replica_state(Database(parameters=after.parameters())).obstacle == ""


def test_no_replica() -> None:
    for database in (None, Database(), Database(parameters={"repl.source.for": "x", "owner": "y"})):
        state = replica_state(database)
        assert (state, state.last_id, state.position("a")) == (ReplicaState(), None, 0)
    assert ReplicaState().parameters() == {}


def test_a_bootstrap_under_way_stands_nowhere() -> None:
    state = ReplicaState("uuid/db", None, checkpoint="hdfs://d/x")
    assert state.last_id is None
    assert state.parameters() == {
        "hive_replication.source": "uuid/db",
        "repl.target.for": "true",
        "hive.repl.ckpt.key": "hdfs://d/x",
    }
    assert state.advanced(7, 0, "") == ReplicaState("uuid/db", 7)


def test_a_metastore_takes_changes_of_a_replica_for_those_of_replication() -> None:
    """A16: it asks for a value of this key, which a database loses neither with its bootstrap nor with a window."""
    loaded = ReplicaState("uuid/db", None, checkpoint="hdfs://d/x").advanced(7, 0, "")
    for state in (loaded, loaded.advanced(9, 0, "")):
        found = state.parameters()
        assert found["hive.repl.ckpt.key"]
        assert replica_state(Database(parameters=found)).checkpoint == ""


def test_hive_compacts_a_replica_after_its_first_window() -> None:
    begun = ReplicaState("uuid/db", None, checkpoint="hdfs://d/x", fresh=True)
    loaded = begun.advanced(7, 0, "")
    pending = [state.parameters().get("hive.repl.first.inc.pending") for state in (begun, loaded, loaded.advanced(9, 0, ""))]
    assert pending == ["true", "true", None]


def test_names_that_stand_elsewhere() -> None:
    state = ReplicaState("s", 10).quarantine("behind", 5, "why").at_position("ahead", 20)
    assert (state.position("behind"), state.position("ahead"), state.position("other")) == (5, 20, 10)
    assert (state.last_id, state.held) == (5, {"behind": "why"})
    assert state.at_position("behind", 10) == ReplicaState("s", 10, at={"ahead": 20})
    assert ReplicaState("s", 10, at={"ahead": 20}).last_id == 10


def test_a_hold_is_tried_with_growing_delay_and_forgotten_once_it_works() -> None:
    state = ReplicaState("s", 10).quarantine("t", 5, "why").failed("t", 7, 1_000.5)
    assert state.quarantines == {"t": Quarantine(7, 1000, 1, 1000)}
    assert state.quarantines["t"].next_attempt == 1060
    state = state.quarantine("t", 6, "why else").failed("t", 8, 1_100)
    assert state.quarantines["t"] == Quarantine(8, since=1000, attempts=2, tried=1100)
    assert state.quarantines["t"].next_attempt == 1220
    assert Quarantine(8, 1000, 99, 2000).next_attempt == 5600
    assert Quarantine().next_attempt == 0
    assert state.at_position("t", 10) == ReplicaState("s", 10)
    assert Quarantine.parse("of a later version") == Quarantine()


def test_raising_drops_the_entries_of_names_that_are_level() -> None:
    state = ReplicaState("s", 10).quarantine("behind", 5, "why").at_position("ahead", 20).at_position("further", 40)
    raised = state.advanced(30, 99, "ff")
    assert (raised.applied, raised.applied_time, raised.applied_hash) == (30, 99, "ff")
    assert raised.at == {"behind": 5, "further": 40}
    assert state.advanced(10, 99, "ff") is state
    assert state.advanced(9, 99, "ff") is state


def test_a_reason_is_cut_to_what_a_metastore_keeps() -> None:
    kept = replica_state(Database(parameters=ReplicaState("s", 1).quarantine("a", 0, "x" * 9999).parameters()))
    assert len(kept.held["a"]) == 1000


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("repl.last.id", True),
        ("hive.repl.ckpt.key", True),
        ("hive_replication.at.x", True),
        ("bootstrap.dump.state.1", True),
        ("replica", False),
        ("hive.x", False),
    ],
)
def test_keys_of_replication(key: str, expected: bool) -> None:
    assert is_state(key) is expected


def test_ids_of_objects() -> None:
    found = [None, Table(), Table(parameters={"repl.last.id": "17"}), Partition(parameters={"repl.last.id": "{17}"})]
    assert [object_id(thing) for thing in [*found, Table(parameters={"repl.last.id": ""})]] == [0, 0, 17, 17, 0]
    ours = Table(parameters={"hive_replication.source": "uuid/db"})
    assert (is_ours(ours, "uuid/db"), is_ours(ours, "uuid/x"), is_ours(Table(), "uuid/db")) == (True, False, False)
