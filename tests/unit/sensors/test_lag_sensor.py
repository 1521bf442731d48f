"""When the sensor observes lags: few events, and none that is missed; lags are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.failover import ReplicaRole
from hive_replication.lag import Lag, TableLag
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import WHAT_TO_DO
from sensors.lag import outage, tick
from tests.lags import HELD, POLICY, WELL

ORDERS = TableLag("orders", 100, 3, 50.0, 7)
LATE = replace(
    WELL, current=150, waiting=5, seconds_behind=1200.0, bytes_waiting=9, tables=(ORDERS, replace(ORDERS, table="no_asset"))
)


class Sensor:
    """The sensor over ticks."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.now = 1_000_000.0

    def tick(self, lag: Lag, *, later: float = 0.0) -> list[tuple[str, object]]:
        """Assets with their seconds behind, and answers of the check."""
        self.now += later
        said = tick(self.cursor, [lag], Specs(POLICY), {"sales/orders", "sales/items"}, self.now, lambda _: None)
        if isinstance(said, dg.SkipReason):
            return []
        self.cursor = said.cursor
        return [_shown(event) for event in said.asset_events]


def _shown(event: object) -> tuple[str, object]:
    if isinstance(event, dg.AssetCheckEvaluation):
        return "check", event.passed
    assert isinstance(event, dg.AssetObservation)
    behind = event.metadata.get("behind (s)")
    return event.asset_key.path[-1], behind and behind.value


@pytest.fixture
def sensor() -> Sensor:
    return Sensor()


def test_what_is_level_is_observed_once_an_hour(sensor: Sensor) -> None:
    assert sensor.tick(replace(WELL, applied=None, waiting=None, seconds_behind=None)) == []
    assert sensor.tick(WELL) == [("sales__load", 0.0), ("check", True)]
    assert sensor.tick(WELL, later=3_000) == []
    assert sensor.tick(WELL, later=700) == [("sales__load", 0.0), ("check", True)]


GONE = replace(WELL, applied=None, waiting=None, seconds_behind=None)


def test_a_replica_that_is_gone_is_not_up_to_date(sensor: Sensor) -> None:
    assert sensor.tick(GONE) == []
    sensor.tick(WELL)
    assert sensor.tick(GONE, later=1) == [("sales__load", None), ("check", False)]
    assert sensor.tick(GONE, later=30) == []
    assert sensor.tick(GONE, later=30) == [("sales__load", None), ("check", False)]
    assert sensor.tick(WELL, later=1) == [("sales__load", 0.0), ("check", True)]


def test_a_database_that_the_source_dropped_is_not_missed(sensor: Sensor) -> None:
    sensor.tick(WELL)
    assert sensor.tick(replace(GONE, in_source=False), later=1) == []
    assert sensor.tick(GONE, later=1) == [], "it was created again: as before the first bootstrap"


def test_a_state_that_cannot_be_read_is_not_up_to_date(sensor: Sensor) -> None:
    damaged = replace(GONE, gap="the parameter hive_replication.applied.id is no number")
    assert sensor.tick(damaged) == [("sales__load", None), ("check", False)]
    assert sensor.tick(damaged, later=30) == []


def test_what_an_operator_stops_is_told_at_once(sensor: Sensor) -> None:
    role = ReplicaRole("sales of a to sales of b", "replica", "not ready: paused")
    sensor.tick(WELL)
    paused = tick(
        sensor.cursor, [replace(WELL, stopped="paused since *noon*")], Specs(POLICY), (), sensor.now + 1, lambda _: role
    )
    assert isinstance(paused, dg.SensorResult)
    observed, check = paused.asset_events
    assert isinstance(check, dg.AssetCheckEvaluation)
    assert (check.passed, check.description) == (True, "paused since \\*noon\\*")
    assert observed.metadata["stopped by an operator"].value == "paused since *noon*"
    shown = [observed.metadata[key].value for key in ("direction", "role", "failover")]
    assert shown == [role.direction, role.role, role.readiness]
    sensor.cursor = paused.cursor
    assert sensor.tick(WELL, later=2) == [("sales__load", 0.0), ("check", True)]


def test_what_is_behind_is_observed_once_a_minute_and_when_it_is_level(sensor: Sensor) -> None:
    sensor.tick(WELL)
    assert sensor.tick(LATE, later=1) == [("sales__load", 1200.0), ("check", False), ("orders", 50.0)]
    assert sensor.tick(LATE, later=30) == []
    assert sensor.tick(LATE, later=30) == [("sales__load", 1200.0), ("check", False), ("orders", 50.0)]
    assert sensor.tick(WELL, later=1) == [("sales__load", 0.0), ("check", True), ("orders", 0.0)]
    assert sensor.tick(WELL, later=100) == []


def test_the_check_turns_at_once(sensor: Sensor) -> None:
    sensor.tick(WELL)
    assert sensor.tick(HELD, later=1) == [("sales__load", 0.0), ("check", False)]
    assert sensor.tick(WELL, later=1) == [("sales__load", 0.0), ("check", True)]


def test_a_held_table_without_an_asset_of_its_own_is_linked_to_where_it_is_repaired() -> None:
    """The link led to an asset that does not exist, while a run of the check had the right one."""
    said = tick(None, [HELD], Specs(POLICY, overflow=frozenset({"sales"})), (), 1.0, lambda _: None)
    assert isinstance(said, dg.SensorResult)
    (check,) = (event for event in said.asset_events if isinstance(event, dg.AssetCheckEvaluation))
    shown = str(check.metadata[WHAT_TO_DO].value)
    assert "[repair](/assets/default/sales__tables?" in shown
    assert "partition=orders" in shown


def test_a_table_is_not_called_level_while_nobody_knows(sensor: Sensor) -> None:
    sensor.tick(LATE)
    gap = replace(WELL, waiting=None, seconds_behind=None, gap="events were purged")
    assert [name for name, _ in sensor.tick(gap, later=61) if name == "orders"] == []
    part = replace(LATE, complete=False, tables=())  # its events may come in the part of the log that is not read yet
    assert [name for name, _ in sensor.tick(part, later=61) if name == "orders"] == []
    assert ("orders", 0.0) in sensor.tick(WELL, later=61)


def test_an_outage_fails_the_check_once_a_minute_and_ends_at_once(sensor: Sensor) -> None:
    def down(later: float) -> list[tuple[str, object]]:
        sensor.now += later
        said = outage(sensor.cursor, Unreachable("get_database at thrift://s:9083: refused"), POLICY, sensor.now)
        assert "thrift://s:9083" in str(said.skip_reason)
        sensor.cursor = said.cursor
        for event in said.asset_events:
            assert isinstance(event, dg.AssetCheckEvaluation)
            assert event.severity == dg.AssetCheckSeverity.ERROR
            assert event.description == "the lag is not known: get_database at thrift://s:9083: refused"
        return [_shown(event) for event in said.asset_events]

    sensor.tick(WELL)
    assert down(30) == [("check", False)]
    assert down(30) == []
    assert down(30) == [("check", False)]
    assert sensor.tick(WELL, later=1) == [("sales__load", 0.0), ("check", True)]
    sensor.tick(LATE, later=1)
    assert down(1) == [("check", False)], "the check failed before, for another reason"


def test_many_databases_with_events_waiting_are_observed_less_often() -> None:
    """Their observations would fill Dagster's storage faster than retention empties it."""
    names = [f"db{number}" for number in range(200)]
    policy = POLICY.model_copy(update={"databases": {name: name for name in names}})
    lags = [replace(WELL, database=name, target_database=name, waiting=5, seconds_behind=9.0) for name in names]
    for lost in (False, True):
        cursor, rows = "", 0
        for now in range(0, 7_200, 30):
            if lost:
                said = outage(cursor, Unreachable("gone"), policy, now)
            else:
                said = tick(cursor, lags, Specs(policy), (), now, lambda _: None)
            if isinstance(said, dg.SensorResult):
                cursor, rows = said.cursor or cursor, rows + len(said.asset_events)
        assert 200 * 12 <= rows <= 2 * 20 * 120, "an observation and an answer each, of twenty a minute"


def test_databases_that_are_behind_and_level_in_turn_are_not_observed_at_each_turn() -> None:
    """Each window of a busy database is one: hundreds of them filled Dagster's storage, though few waited at a time."""
    names = [f"db{number}" for number in range(40)]
    policy = POLICY.model_copy(update={"databases": {name: name for name in names}})
    cursor, rows = "", list[str]()
    for turn in range(20):
        waits = [(number + turn) % 2 for number in range(40)]
        lags = [
            replace(WELL, database=name, target_database=name, waiting=waiting, seconds_behind=9.0 * waiting)
            for name, waiting in zip(names, waits, strict=True)
        ]
        said = tick(cursor, lags, Specs(policy), (), turn * 30, lambda _: None)
        if isinstance(said, dg.SensorResult):
            cursor = said.cursor or cursor
            rows += [_shown(event)[0] for event in said.asset_events]
    assert 40 * 5 <= rows.count("check") <= 2 * 20 * 10, "each in ten minutes of at most twenty a minute, and their ends"


def test_what_replicas_are_is_asked_for_together() -> None:
    """Of hundreds of databases one call after another took longer than a tick may."""
    asked: list[list[str]] = []

    def each(_: object, lags: Sequence[Lag]) -> Iterator[ReplicaRole | None]:
        asked.append([one.database for one in lags])
        return iter([None] * len(lags))

    lags = [replace(LATE, database=name) for name in ("a", "b", "c")]
    said = tick(None, lags, Specs(POLICY), set(), 1.0, lambda _: None, each)
    assert isinstance(said, dg.SensorResult)
    assert (asked, len(said.asset_events)) == ([["a", "b", "c"]], 6)
