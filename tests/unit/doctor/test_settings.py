"""Judging settings."""

from __future__ import annotations

import pytest

from hive_replication.doctor.settings import LISTENER, seconds, source_settings, target_settings

GOOD = {
    "hive.metastore.transactional.event.listeners": LISTENER,
    "hive.metastore.dml.events": "true",
    "hive.repl.cm.enabled": "true",
    "hive.repl.cmrootdir": "hdfs://nn/cmroot",
    "hive.repl.cm.retain": "240h",
    "hive.metastore.event.db.listener.timetolive": "10d",
}
HOUR = 3600.0


def judged(changes: dict[str, str], lag: float = 0.0) -> dict[str, tuple[str, str]]:
    """Verdict and advice of each check that is not ok."""
    values = {**GOOD, **changes}
    found = source_settings(lambda name, default: values.get(name) or default, lag)
    return {one.check: (one.verdict, one.advice) for one in found if one.verdict != "ok"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10d", 864_000),
        ("240h", 864_000),
        ("86400s", 86_400),
        ("86400", 86_400),
        ("5min", 300),
        ("2 hours", 7200),
        ("86400000ms", 86_400),
        ("5 msecs", 0.005),
        ("3m", 180),
        ("1 s", 1),
        ("soon", None),
    ],
)
def test_times_as_hive_writes_them(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


def test_a_good_source_is_told_nothing() -> None:
    assert judged({}) == {}


@pytest.mark.parametrize(
    ("changes", "check", "verdict", "advice"),
    [
        ({"hive.metastore.transactional.event.listeners": ""}, "notification log", "error", LISTENER),
        (
            {"hive.metastore.transactional.event.listeners": "", "hive.metastore.event.listeners": LISTENER},
            "notification log",
            "warning",
            "hive.metastore.transactional.event.listeners instead",
        ),
        ({"metastore.catalog.default": "spark"}, "catalog", "error", "metastore.catalog.default=hive"),
        ({"hive.metastore.dml.events": "false"}, "insert events", "warning", "hive.metastore.dml.events=true"),
        ({"hive.repl.cm.enabled": "false"}, "change management", "warning", "hive.repl.cm.enabled=true"),
        ({"hive.repl.cmrootdir": ""}, "change management", "error", "hive.repl.cmrootdir"),
        ({"hive.repl.cm.retain": "24h"}, "cmroot retention", "warning", "hive.repl.cm.retain=10d"),
        ({"hive.metastore.event.db.listener.timetolive": "1d"}, "event retention", "warning", "timetolive=10d"),
        (
            {"hive.repl.event.db.listener.timetolive": "1d"},
            "event retention",
            "warning",
            "hive.repl.event.db.listener.timetolive",
        ),
    ],
)
def test_each_setting_with_what_to_change(changes: dict[str, str], check: str, verdict: str, advice: str) -> None:
    assert judged(changes).keys() == {check}
    assert judged(changes)[check][0] == verdict
    assert advice in judged(changes)[check][1]


def test_retention_against_the_lag() -> None:
    assert {name: verdict for name, (verdict, _) in judged({}, lag=130 * HOUR).items()} == {
        "cmroot retention": "warning",
        "event retention": "warning",
    }
    assert {verdict for verdict, _ in judged({}, lag=250 * HOUR).values()} == {"error"}


def test_parameters_that_events_lack() -> None:
    (verdict, advice) = judged({"hive.metastore.notification.parameters.exclude.patterns": r"impala\..*"})["parameters"]
    assert (verdict, "repair what hive-repl verify names" in advice) == ("warning", True)


def test_a_source_that_may_hide_tables() -> None:
    hides, hook = {"metastore.server.filter.enabled": "true"}, "org.apache.HiveMetaStoreAuthorizer"
    assert judged(hides) == {}
    assert judged({"metastore.filter.hook": hook}) == {}
    assert judged(hides | {"metastore.filter.hook": hook})["hidden tables"][0] == "warning"


def test_a_target_that_may_hide_tables() -> None:
    hides = {"metastore.server.filter.enabled": "true"}

    def found(settings: dict[str, str]) -> list[str]:
        return [one.check for one in target_settings(lambda name, default: settings.get(name, default), 4)]

    assert found(hides | {"metastore.filter.hook": "org.apache.HiveMetaStoreAuthorizer"}) == ["hidden tables", "lock timeout"]
    assert found(hides) == ["lock timeout"]


@pytest.mark.parametrize(("major", "name"), [(3, "hive.compactor.initiator.on"), (4, "metastore.housekeeping.threads.on")])
def test_locks_of_dead_loads_must_end(major: int, name: str) -> None:
    assert [one.verdict for one in target_settings(lambda asked, default: "true" if asked == name else default, major)] == ["ok"]
    (found,) = target_settings(lambda _, default: default, major)
    assert found.verdict == "warning"
    assert f"{name}=true" in found.advice
