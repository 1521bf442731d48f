"""One answer of the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found about one thing.

    Args:
        side: ``source``, ``target``, ``dump root``, or ``policy`` for what keeps all from being examined or is of no side.
        check: what was looked at, e.g. ``event retention``.
        verdict: ``ok``; ``warning``: works, but not for long or not everywhere; ``error``: replication cannot work.
        found: what is there now.
        advice: what to change, with the exact setting; "" where nothing has to.
    """

    side: str
    check: str
    verdict: Verdict
    found: str
    advice: str = ""


def ok(side: str, check: str, found: str) -> Finding:
    """All is well."""
    return Finding(side, check, "ok", found)


def warning(side: str, check: str, found: str, advice: str) -> Finding:
    """Works, but not for long or not everywhere."""
    return Finding(side, check, "warning", found, advice)


def error(side: str, check: str, found: str, advice: str) -> Finding:
    """Replication cannot work so."""
    return Finding(side, check, "error", found, advice)
