"""Marks of a failover: they come back from parameters, and no load changes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.errors import Refused
from hive_replication.load.replica.failover_marks import (
    FailoverMarks,
    counted_failback,
    counted_failover,
    failover_marks,
    read_only,
    with_background,
    with_marks,
)
from hive_replication.load.replica.state import ReplicaState, database_with_state, replica_state
from hive_replication.metastore.types import Database

evids = st.none() | st.integers(0, 2**40)
texts = st.sampled_from(["", "uuid/sales"])
marks = st.builds(
    FailoverMarks,
    endpoint=st.sampled_from(["", "SOURCE", "TARGET"]),
    event=evids,
    origin=texts,
    successor=texts,
    opened=evids,
    settled=evids,
    message_hash=st.sampled_from(["", "0f0f"]),
    kind=st.sampled_from(["", "PLANNED", "UNPLANNED"]),
    read_only_before=st.sampled_from(["", "true", "false"]),
    behind=st.dictionaries(st.from_regex(r"[a-z0-9_]{1,200}", fullmatch=True), st.integers(0, 2**40), max_size=3),
)


@given(marks)
def test_marks_come_back(found: FailoverMarks) -> None:
    assert failover_marks(Database(name="d", parameters=with_marks({"colour": "red"}, found))) == found
    assert with_marks(with_marks({"colour": "red"}, FailoverMarks(event=3)), FailoverMarks()) == {"colour": "red"}


def test_hives_own_keys() -> None:
    parameters = with_marks({}, FailoverMarks(endpoint="TARGET", event=7))
    assert parameters == {"repl.failover.endpoint": "TARGET", "hive_replication.failover.event": "7"}
    assert with_background({}, enabled=True) == {"repl.background.enable": "true"}
    assert with_background({"repl.background.enable": "true"}, enabled=False) == {}
    assert read_only({"a": "b"}, "true") == {"a": "b", "readonly": "true"}
    assert read_only({"readonly": "true"}, "") == {}


def test_counters() -> None:
    once = counted_failover({"repl.metrics.failover.count": "x"}, "PLANNED")
    assert once == {"repl.metrics.failover.count": "1", "repl.metrics.last.failover.type": "PLANNED"}
    assert counted_failover(once, "UNPLANNED") == {
        "repl.metrics.failover.count": "2",
        "repl.metrics.last.failover.type": "UNPLANNED",
    }
    assert counted_failback({}, 1.5, 2.25) == {
        "repl.metrics.failback.count": "1",
        "repl.metrics.last.failback.starttime": "1500",
        "repl.metrics.last.failback.endtime": "2250",
    }


def test_a_malformed_mark_is_refused() -> None:
    with pytest.raises(Refused, match=r"hive_replication\.failover\.event"):
        failover_marks(Database(name="d", parameters={"hive_replication.failover.event": "seven"}))


def test_a_load_changes_no_mark() -> None:
    """Neither the state that it writes nor the properties of the source that it takes over."""
    own = counted_failover(read_only(with_marks({}, FailoverMarks(endpoint="TARGET", event=7)), "true"), "PLANNED")
    target = Database(name="d", parameters={**own, "colour": "red"})
    image = Database(name="d", parameters={"colour": "blue", "readonly": "false", "repl.failover.endpoint": "SOURCE"})
    made = database_with_state(target, ReplicaState(source="u/d", applied=9), image)
    assert own.items() <= made.parameters.items()
    assert made.parameters["colour"] == "blue"
    assert database_with_state(target, ReplicaState(source="u/d")).parameters.items() >= target.parameters.items()


@pytest.mark.parametrize(
    ("found", "role"),
    [
        (FailoverMarks(endpoint="SOURCE"), ""),
        (FailoverMarks(origin="a/d", opened=5), "opened"),
        (FailoverMarks(successor="b/d"), "closed"),
    ],
)
def test_what_a_database_became(found: FailoverMarks, role: str) -> None:
    assert replica_state(Database(name="d", parameters=with_marks({}, found))).failed_over == role
