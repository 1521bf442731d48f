"""When a policy's hours are."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from hive_replication.policy.hours import opens_at, told, valid_hours, valid_zone

BERLIN = "Europe/Berlin"


def at(text: str, zone: str = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


def opening(now: str, *hours: str) -> str | None:
    found = opens_at(at(now), hours, BERLIN)
    return None if found is None else told(found, BERLIN)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-11-23T21:59", "Mon 2026-11-23 22:00:00 CET"),
        ("2026-11-23T22:00", None),
        ("2026-11-24T05:59", None),
        ("2026-11-24T06:00", "Tue 2026-11-24 22:00:00 CET"),
        ("2026-07-01T12:00", "Wed 2026-07-01 22:00:00 CEST"),
        ("2026-10-25T05:30", None),  # the night in which the clocks go back
    ],
)
def test_a_night(now: str, expected: str | None) -> None:
    assert opening(now, "22:00-06:00") == expected


def test_days_and_whole_days() -> None:
    assert opening("2026-11-23T12:00", "Sat-Sun 00:00-24:00") == "Sat 2026-11-28 00:00:00 CET"
    assert opening("2026-11-29T23:59", "Sat-Sun 00:00-24:00") is None
    assert opening("2026-11-27T12:00", "Fri-Mon,Wed 13:00-14:00") == "Fri 2026-11-27 13:00:00 CET"
    assert opening("2026-11-24T12:00", "Fri-Mon,Wed 13:00-14:00") == "Wed 2026-11-25 13:00:00 CET"
    assert opening("2026-11-24T01:00", "Mon 22:00-06:00") is None  # begun on Monday


def test_the_first_of_several_and_none_at_all() -> None:
    assert opening("2026-11-23T12:00", "22:00-06:00", "18:00-19:00") == "Mon 2026-11-23 18:00:00 CET"
    assert opening("2026-11-23T12:00") is None


@pytest.mark.parametrize(
    "text", ["", "22-06", "25:00-06:00", "24:00-06:00", "22:00", "Xyz 22:00-06:00", "Mon- 01:00-02:00", "01:00-01:00"]
)
def test_what_says_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"hours such as|names days|ends when it begins"):
        valid_hours(text)


@pytest.mark.parametrize("name", ["Nowhere", "", "../etc/passwd", "Europe/"])
def test_an_unknown_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone"):
        valid_zone(name)
