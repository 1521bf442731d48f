"""When a policy may begin new windows: hours of the day, on some days of the week, in a time zone (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"(?:([A-Za-z,-]+) +)?([0-9:]+)-([0-9:]+)")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00")


def valid_hours(text: str) -> str:
    """The text, if it says hours such as ``22:00-06:00`` or ``Sat-Sun 08:00-24:00``.

    Raises:
        ValueError: it does not.
    """
    _parsed(text)
    return text


def quoted_time(time: object) -> object:
    """The time of day as it is given, if YAML has not made a number of it.

    Raises:
        ValueError: it has.
    """
    if isinstance(time, int) and not isinstance(time, bool):
        shown = f"{time // 60:02}:{time % 60:02}"  # two digits, which YAML would not have read so
        raise ValueError(f'YAML reads a time without quotes as the number {time}: put it in quotes, "{shown}"')  # noqa: TRY004
    return time


def valid_zone(name: str) -> str:
    """The name, if it is a time zone such as ``Europe/Berlin``.

    Raises:
        ValueError: there is none of this name here.
    """
    try:
        ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:  # an absent zone is a KeyError, an odd name one of the others
        raise ValueError(f"{name!r} is not a time zone such as UTC or Europe/Berlin") from error
    return name


def opens_at(now: float, hours: Iterable[str], zone: str) -> float | None:
    """When the next hours begin, seconds since the epoch; None where some are running now, or there are none at all.

    Args:
        now: seconds since the epoch.
        hours: each as :func:`valid_hours` takes it; those that end before they begin end on the next day.
        zone: name of the time zone that they are told in.
    """
    hours = list(hours)
    spans = [span for each in hours for span in _spans(now, each, ZoneInfo(zone))]
    if not hours or any(begin <= now < end for begin, end in spans):
        return None
    return min(begin for begin, _ in spans if begin > now)


def told(moment: float, zone: str) -> str:
    """A moment for people: ``Mon 2026-11-23 22:00:00 CET``."""
    return datetime.fromtimestamp(moment, ZoneInfo(zone)).strftime("%a %Y-%m-%d %H:%M:%S %Z")


def _spans(now: float, text: str, zone: ZoneInfo) -> Iterator[tuple[float, float]]:
    """Begin and end of the hours of yesterday, of today and of the week to come."""
    days, (begin, begin_days), (end, end_days) = _parsed(text)
    today = datetime.fromtimestamp(now, zone).date()
    for date in (today + timedelta(days=n) for n in range(-1, 9)):
        if date.weekday() in days:
            overnight = (end_days, end) <= (begin_days, begin)
            last = date + timedelta(days=end_days + overnight)
            yield datetime.combine(date, begin, zone).timestamp(), datetime.combine(last, end, zone).timestamp()


def _parsed(text: str) -> tuple[set[int], tuple[time, int], tuple[time, int]]:
    match = _HOURS.fullmatch(text.strip())
    if match is None or not _TIME.fullmatch(match[2]) or not _TIME.fullmatch(match[3]) or match[2] == "24:00":
        raise ValueError(f"{text!r} does not say hours such as 22:00-06:00 or Sat-Sun 08:00-24:00")
    if match[2] == match[3]:
        raise ValueError(f"{text!r} ends when it begins: 00:00-24:00 is the whole day")
    return set(_days(text, match[1])), _clock(match[2]), _clock(match[3])


def _days(text: str, days: str | None) -> Iterator[int]:
    for part in (days or "mon-sun").lower().split(","):
        first, dash, last = part.partition("-")
        names = (first, last if dash else first)
        if any(name not in _DAYS for name in names):
            raise ValueError(f"{text!r} names days that are none of Mon, Tue, Wed, Thu, Fri, Sat, Sun")
        start, end = map(_DAYS.index, names)
        yield from ((start + n) % 7 for n in range((end - start) % 7 + 1))


def _clock(text: str) -> tuple[time, int]:
    """A time of the day; 24:00 is midnight, one day later."""
    return (time(0), 1) if text == "24:00" else (time.fromisoformat(text), 0)
