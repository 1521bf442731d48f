"""Alarms that begin and end, and who has been told (pure): each channel is told once of either, and again only until it was."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from pydantic import TypeAdapter, ValidationError

Kind = Literal["run failure", "lag", "held table", "gap", "low retention", "unreachable"]
State = Literal["begins", "ends"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that an operator has to look at.

    Args:
        kind: what it is about.
        about: what it concerns, e.g. ``sales.orders``; with ``kind``, what tells one alarm from another.
        title: what is wrong, one sentence.
        advice: what to do.
        path: of the asset or run in Dagster.
    """

    kind: Kind
    about: str
    title: str
    advice: str
    path: str = ""

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.kind}: {self.about}"


@dataclass(frozen=True, slots=True)
class Open:
    """An alarm that has begun.

    Args:
        alarm: as it was then.
        since: when, seconds since the epoch.
        told: names of channels that know that it began, and not yet that it ended.
        ended: when it ended; None while it lasts.
    """

    alarm: Alarm
    since: float
    told: tuple[str, ...] = ()
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class AlarmCursor:
    """What a tick leaves for the next one.

    Args:
        alarms: by key.
        runs: the last finished run by subject; None before the first tick.
    """

    alarms: Mapping[str, Open] = field(default_factory=dict[str, Open])
    runs: Mapping[str, str] | None = None

    def to_json(self) -> str:
        """As compact JSON."""
        return _CURSOR.dump_json(self).decode()


_CURSOR = TypeAdapter(AlarmCursor)


def read_cursor(text: str | None) -> AlarmCursor:
    """The cursor of the last tick; an empty one where there is none, or it is unreadable."""
    try:
        return _CURSOR.validate_json(text or "")
    except ValidationError:
        return AlarmCursor()


def after(known: Mapping[str, Open], present: Mapping[str, Alarm], ended: Collection[str], now: float) -> dict[str, Open]:
    """The alarms after a look.

    Args:
        known: those before it.
        present: those that it found.
        ended: keys of those that it found not to be so any more; of all others nothing is known.
        now: seconds since the epoch.
    """
    alarms = dict(known)
    for key, alarm in present.items():
        old = alarms.get(key)
        alarms[key] = Open(alarm, now) if old is None else replace(old, ended=None)
    for key in ended:
        if key in alarms and key not in present and alarms[key].ended is None:
            alarms[key] = replace(alarms[key], ended=now)
    return alarms


def to_tell(alarms: Mapping[str, Open], channel: str) -> Iterator[tuple[Open, State]]:
    """What a channel does not know yet."""
    for one in alarms.values():
        if one.ended is None and channel not in one.told:
            yield one, "begins"
        elif one.ended is not None and channel in one.told:
            yield one, "ends"


def told(alarms: Mapping[str, Open], channel: str) -> dict[str, Open]:
    """The alarms when a channel knows of all of them."""
    return {
        key: replace(one, told=tuple(name for name in one.told if name != channel) + ((channel,) if one.ended is None else ()))
        for key, one in alarms.items()
    }


def left(alarms: Mapping[str, Open]) -> dict[str, Open]:
    """Without those that ended, once every channel that was told of them knows."""
    return {key: one for key, one in alarms.items() if one.ended is None or one.told}
