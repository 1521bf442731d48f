"""Schedules: cron expressions of five fields, in a time zone (pure)."""

from __future__ import annotations

import math
import re
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_DAGSTER_LACKS = re.compile(r"\dL|LW", re.IGNORECASE)  # the last Friday, the last working day


def valid_cron(text: str) -> str:
    """The text, if it is a cron expression such as ``*/15 * * * *`` or ``0 2 * * Mon-Fri``.

    Raises:
        ValueError: it is none, or none that Dagster takes.
    """
    example = "minute, hour, day, month and weekday, e.g. */15 * * * * or 0 2 * * Mon-Fri"
    if len(text.split()) != 5 or _DAGSTER_LACKS.search(text):
        raise ValueError(f"{text!r} is not a cron expression: {example}")
    try:
        next(CronSim(text, datetime(2024, 1, 1)))  # noqa: DTZ001 (any time will do)
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"{text!r} is not a cron expression ({str(error) or 'it never comes'}): {example}") from error
    return text


def last_time(cron: str, now: float, zone: str) -> float:
    """The schedule's latest time up to ``now``, both seconds since the epoch."""
    return next(CronSim(cron, datetime.fromtimestamp(math.floor(now) + 1, ZoneInfo(zone)), reverse=True)).timestamp()


def next_time(cron: str, now: float, zone: str) -> float:
    """The schedule's first time after ``now``, both seconds since the epoch."""
    return next(CronSim(cron, datetime.fromtimestamp(now, ZoneInfo(zone)))).timestamp()
