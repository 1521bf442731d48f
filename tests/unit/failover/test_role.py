"""What an operator reads of a replica: its direction, its role, and whether it can be opened."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from hive_replication.failover.phases import Phase
from hive_replication.failover.role import readiness, role_of
from hive_replication.lag import Lag
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from tests.lags import HELD, LATE, NOWHERE, POLICY, WELL


@pytest.mark.parametrize(
    ("lag", "expected"),
    [
        (WELL, "ready: nothing would be lost now, even without the source"),
        (LATE, "ready for a planned failover; without the source 50 events would be lost now"),
        (replace(LATE, complete=False), "ready for a planned failover; without the source 50 events or more would be lost now"),
        (replace(WELL, complete=False), "ready for a planned failover; without the source 0 events or more would be lost now"),
        (HELD, "not ready: 2 tables held: orders, old"),
        (
            replace(WELL, held=(("old", f"{LEFT_OUT_REASON}tables of Iceberg"),)),
            "ready for a planned failover; without the source 0 events would be lost now; of 1 table that is not known, since it "
            "stays as it was, being left out: old",
        ),
        (
            replace(LATE, held=(("a", f"{LEFT_OUT_REASON}x"), ("b", f"{LEFT_OUT_REASON}y"))),
            "ready for a planned failover; without the source 50 events would be lost now; of 2 tables that is not known, since "
            "they stay as they were, being left out: a, b",
        ),
        (replace(WELL, without_data=True), "not ready: it has no data"),
        (replace(WELL, without_data=True, waiting=None, problem="the source does not answer"), "not ready: it has no data"),
        (replace(HELD, gap="events were purged"), "not ready: events were purged"),
        (
            replace(WELL, loading="hdfs://d/1"),
            "not ready: the load of hdfs://d/1 runs, or was interrupted: a table may be half made",
        ),
        (replace(WELL, stopped="paused since noon"), "not ready: paused since noon"),
        (replace(WELL, waiting=None, problem="the source does not answer"), "not known: the source does not answer"),
    ],
)  # fmt: skip
def test_readiness(lag: Lag, expected: str) -> None:
    assert readiness(lag) == expected


def test_each_phase_has_a_role_and_tells_what_is_next() -> None:
    found = {phase: role_of(POLICY, phase, "sales", WELL) for phase in get_args(Phase)}
    assert {one.direction for one in found.values()} == {f"sales of {NOWHERE} to sales of {NOWHERE}"}
    assert len({one.role for one in found.values()}) == len(found)
    assert found["replicating"].role == "replica"
    assert "failover finish sales" in found["ready"].readiness
    assert "failover reverse sales" in found["finished"].readiness
