"""When a policy's schedule is due."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from dagster._utils.schedules import is_valid_cron_string

from hive_replication.policy.cron import last_time, next_time, valid_cron

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("cron", "now", "last", "following"),
    [
        ("*/15 * * * *", "2026-05-05T12:15:00", "2026-05-05T12:15:00+02:00", "2026-05-05T12:30:00+02:00"),
        ("*/15 * * * *", "2026-05-05T12:14:59.9", "2026-05-05T12:00:00+02:00", "2026-05-05T12:15:00+02:00"),
        # an hour that does not come, and one that comes twice
        ("30 2 * * *", "2026-03-29T12:00:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"),
        ("30 2 * * *", "2026-10-25T12:00:00", "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"),
    ],
)
def test_times(cron: str, now: str, last: str, following: str) -> None:
    moment = datetime.fromisoformat(now).replace(tzinfo=BERLIN).timestamp()
    found = (last_time(cron, moment, "Europe/Berlin"), next_time(cron, moment, "Europe/Berlin"))
    assert tuple(datetime.fromtimestamp(one, BERLIN).isoformat() for one in found) == (last, following)


@pytest.mark.parametrize(
    "text", ["*/15 * * * *", "0 2 * * Mon-Fri", "0 2 L * *", "0 2 * * MON#2", "5/15 22 * JAN *", "0 0 * * 7"]
)
def test_what_is_taken_here_is_taken_by_dagster(text: str) -> None:
    assert valid_cron(text) == text
    assert is_valid_cron_string(text)


@pytest.mark.parametrize("text", ["", "daily", "* * * *", "* * * * * *", "61 * * * *", "0 0 31 2 *", "0 2 * * 5L", "0 2 LW * *"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a cron expression"):
        valid_cron(text)
