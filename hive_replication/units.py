"""Figures for people: sizes, numbers and durations with their units (pure)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure in a cell: with its unit for people, bare for programs.

    Args:
        value: the figure; None where it is not known.
        shown: for people.
    """

    value: object
    shown: str

    def __str__(self) -> str:
        return self.shown


def size(number: float) -> str:
    """A number of bytes, in binary units."""
    value = float(number)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def duration(seconds: float) -> str:
    """A time span in its two largest units: ``3 h 10 min``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    rest, shown = round(seconds), list[str]()
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        number, rest = divmod(rest, length)
        if number or shown:
            shown.append(f"{number} {unit}" if number else "")
    return " ".join(filter(None, shown[:2]))


def count(number: int, noun: str) -> str:
    """``1 file``, ``1,200 files``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def unbroken(text: str) -> str:
    """A figure and its unit, never parted at the end of a line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def when(moment: float) -> str:
    """A time in seconds since the epoch, for people: ``2026-11-23 22:00:05 UTC``."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(moment))


def iso(moment: float) -> str:
    """The same for programs: ``2026-11-23T22:00:05+00:00``."""
    return datetime.fromtimestamp(int(moment), UTC).isoformat()


def size_figure(number: float | None) -> Figure:
    """A cell with a number of bytes."""
    return Figure(number, "unknown" if number is None else size(number))


def duration_figure(seconds: float | None) -> Figure:
    """A cell with a time span."""
    return Figure(seconds if seconds is None else round(seconds, 3), "unknown" if seconds is None else duration(seconds))


def count_figure(number: int | None) -> Figure:
    """A cell with a number of things."""
    return Figure(number, "unknown" if number is None else f"{number:,}")


def time_figure(moment: float | None) -> Figure:
    """A cell with a time; 0 and None where there is none."""
    return Figure(iso(moment) if moment else None, when(moment) if moment else "")
