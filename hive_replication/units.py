"""Figures for people: sizes, numbers and durations with their units (pure)."""

from __future__ import annotations

import time


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
    """A time in seconds since the epoch: ``2026-11-23 22:00 UTC``."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(moment))
