"""How far a failover is, and what is left of it, by marks alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.failover.finish import opened
from hive_replication.failover.phases import advice, phase_of
from hive_replication.failover.plan import steps_left
from hive_replication.failover.status import FailoverStatus
from hive_replication.load.replica.failover_marks import FailoverMarks, failover_marks
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore.types import Database
from hive_replication.plans.estimate import Estimate

LEVEL = ReplicaState(source="a/sales", applied=100)
SOURCE, TARGET = FailoverMarks(endpoint="SOURCE"), FailoverMarks(endpoint="TARGET", event=100)
OPENED = FailoverMarks(endpoint="TARGET", event=100, origin="a/sales", opened=50)
CLOSED = FailoverMarks(endpoint="SOURCE", event=100, successor="b/sales", opened=50)


@pytest.mark.parametrize(
    ("source", "target", "replica", "expected"),
    [
        (FailoverMarks(), FailoverMarks(), LEVEL, "replicating"),
        (None, FailoverMarks(), LEVEL, "replicating"),
        (FailoverMarks(), FailoverMarks(), ReplicaState(), "no replica"),
        (SOURCE, FailoverMarks(), LEVEL, "started"),
        (SOURCE, TARGET, LEVEL, "ready"),
        (None, TARGET, LEVEL, "ready"),
        (FailoverMarks(), TARGET, LEVEL, "replicating"),  # a rollback that was killed half-way
        (SOURCE, OPENED, ReplicaState(), "opened"),
        (None, OPENED, ReplicaState(), "opened"),
        (FailoverMarks(), OPENED, ReplicaState(), "opened"),
        (CLOSED, OPENED, ReplicaState(), "finished"),
    ],
)
def test_phases(source: FailoverMarks | None, target: FailoverMarks, replica: ReplicaState, expected: str) -> None:
    assert phase_of(source, target, replica, follows=False, replaced=False) == expected


def test_after_a_failback() -> None:
    assert phase_of(FailoverMarks(), FailoverMarks(), ReplicaState(), follows=True, replaced=False) == "failed back"
    # seen by the policy with the sides swapped
    assert phase_of(OPENED, CLOSED, ReplicaState(), follows=False, replaced=True) == "to be reversed"
    assert phase_of(OPENED, FailoverMarks(), ReplicaState(), follows=False, replaced=True) == "to be reversed"
    assert phase_of(FailoverMarks(), FailoverMarks(), LEVEL, follows=False, replaced=False) == "replicating"


def test_advice_names_the_next_command() -> None:
    assert "failover finish sales" in advice("ready", "sales")
    assert "failover start sales" in advice("started", "sales")
    assert "closes the old source" in advice("opened", "sales")
    assert "once the old source answers" in advice("opened", "sales", known=False)


def test_an_opened_database_is_no_replica_and_remembers_what_it_was() -> None:
    state = replace(LEVEL, applied_hash="0f0f", fresh=True, at={"behind": 90, "ahead": 110}, held={"behind": "no space"})
    before = {**state.parameters(), "colour": "red", "readonly": "true", "repl.metrics.failover.count": "1"}
    after = opened(before, state, "nightly", 50, 55, "PLANNED")
    assert (
        after.keys() & {"repl.target.for", "repl.last.id", "hive.repl.first.inc.pending", "hive.repl.ckpt.key", "readonly"}
        == set()
    )
    expected = {
        "colour": "red",
        "repl.failover.endpoint": "TARGET",
        "repl.background.enable": "true",
        "repl.source.for": "nightly",
        "repl.metrics.failover.count": "2",
        "repl.metrics.last.failover.type": "PLANNED",
    }
    assert expected.items() <= after.items()
    database = Database(name="sales", parameters=after)
    marks = failover_marks(database)
    assert (marks.origin, marks.event, marks.opened, marks.behind) == ("a/sales", 100, 50, {"behind": 90})
    assert marks.message_hash == "0f0f"
    assert replica_state(database) == ReplicaState(failed_over="opened")


def test_the_source_of_another_replica_keeps_its_mark() -> None:
    assert (
        opened({**LEVEL.parameters(), "repl.source.for": "first"}, LEVEL, "nightly", 50, 55, "UNPLANNED")["repl.source.for"]
        == "first"
    )


@pytest.mark.parametrize(
    ("phase", "names"),
    [
        (
            "replicating",
            [
                "mark the source",
                "end transactions",
                "last window",
                "compare",
                "finish: open the target",
                "finish: close the source",
            ],
        ),
        ("started", ["end transactions", "last window", "compare", "finish: open the target", "finish: close the source"]),
        ("ready", ["finish: open the target", "finish: close the source"]),
        ("opened", ["finish: close the source"]),
        ("finished", []),
    ],
)
def test_steps_that_are_left(phase: str, names: list[str]) -> None:
    found = FailoverStatus("sales", "sales", phase, "", event=100)  # type: ignore[arg-type]
    steps = list(steps_left(found, (7, 9), "aborted after 60 s", Estimate(2.5, "measured"), 3))
    assert [step.name for step in steps] == names
    by_name = {step.name: step for step in steps}
    if phase == "started":
        assert by_name["last window"].seconds == 2.5
        assert by_name["end transactions"].seconds is None
        assert "2 open write transactions, aborted after 60 s" in by_name["end transactions"].what
