"""Alarms that begin and end, and which channels were notified (pure): once of each, repeated only until delivered."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from pydantic import AliasChoices, Field, TypeAdapter, ValidationError

Kind = Literal["run failure", "failed check", "lag", "held table", "gap", "low retention", "unreachable", "invalid policy"]
State = Literal["begins", "ends"]

_FIGURES = ("lag", "low retention")  # kinds whose text grows older with each tick: shown anew, each would answer the check again


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that needs an operator's attention.

    Args:
        kind: the kind of condition.
        about: the object concerned, e.g. ``sales.orders``; together with ``kind`` it identifies the alarm.
        title: what is wrong, one sentence.
        advice: what to do.
        path: of the asset or run in Dagster.
        database: source database, "" for the whole policy.
        tables: of it that runs were to repair, and have not.
        parts: of these tables, each with a Hive partition or "" for all of it, and ``("", "")`` for runs that name no table; none
            where it is all of the tables.
    """

    kind: Kind
    about: str
    title: str
    advice: str
    path: str = ""
    database: str = ""
    tables: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Identifies the alarm."""
        return f"{self.kind}: {self.about}"


@dataclass(frozen=True, slots=True)
class Open:
    """An alarm that has begun.

    Args:
        alarm: as it was observed last; one of a lag as it was when it began.
        since: when it began, seconds since the epoch.
        notified: channels that were notified of its begin, and not yet of its end.
        ended: when it ended; None while it lasts.
        held: whether the tables that the last failed run was to repair were held at a time since.
    """

    alarm: Alarm
    since: float
    #: Cursors of earlier versions have it as ``told``.
    notified: Annotated[tuple[str, ...], Field(validation_alias=AliasChoices("notified", "told"))] = ()
    ended: float | None = None
    held: bool = False


@dataclass(frozen=True, slots=True)
class SeenRuns:
    """The finished runs that a tick has seen.

    Args:
        since: the next tick asks for those that changed after that, seconds since the epoch.
        ends: when the last ones of the policy ended, by run id.
    """

    since: float
    ends: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class AlarmCursor:
    """The state that a tick keeps for the next one.

    Args:
        alarms: by key.
        finished: the runs that were seen; None before the first tick.
        time: of the tick, seconds since the epoch.
        replicas: those that have been there, each with its place (``replica_alarms.with_replicas``).
        gone: databases that the source did not have when it was asked last.
    """

    alarms: Mapping[str, Open] = field(default_factory=dict[str, Open])
    finished: SeenRuns | None = None
    time: float = 0.0
    replicas: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def to_json(self) -> str:
        """As compact JSON."""
        return _CURSOR.dump_json(self).decode()


_CURSOR = TypeAdapter(AlarmCursor)


def read_cursor(text: str | None) -> AlarmCursor:
    """The cursor of the last tick; an empty one if there is none or it is unreadable."""
    try:
        return _CURSOR.validate_json(text or "")
    except ValidationError:
        return AlarmCursor()


def updated(known: Mapping[str, Open], present: Mapping[str, Alarm], ended: Collection[str], now: float) -> dict[str, Open]:
    """The alarms after an observation; one that lasts has the reason and advice of now.

    Args:
        known: the alarms before it.
        present: the conditions that were observed.
        ended: keys of conditions that no longer hold. Keys in neither are unknown and stay as they are.
        now: seconds since the epoch.
    """
    alarms = dict(known)
    for key, alarm in present.items():
        old = alarms.get(key)
        shown = old.alarm if old and old.ended is None and alarm.kind in _FIGURES else alarm
        held = old is not None and old.held and old.alarm == shown
        since = now if old is None or old.ended is not None else old.since  # an end of which not all channels know is one
        alarms[key] = Open(shown, since, old.notified if old else (), held=held)
    for key in ended:
        if key in alarms and key not in present and alarms[key].ended is None:
            alarms[key] = replace(alarms[key], ended=now)
    return alarms


def undelivered(alarms: Mapping[str, Open], channel: str) -> Iterator[tuple[Open, State]]:
    """Begins and ends of alarms that a channel was not notified of yet."""
    for one in alarms.values():
        if one.ended is None and channel not in one.notified:
            yield one, "begins"
        elif one.ended is not None and channel in one.notified:
            yield one, "ends"


def delivered(alarms: Mapping[str, Open], channel: str) -> dict[str, Open]:
    """The alarms after a channel was notified of all of them."""
    return {key: _delivered(one, channel) for key, one in alarms.items()}


def _delivered(one: Open, channel: str) -> Open:
    others = tuple(name for name in one.notified if name != channel)
    return replace(one, notified=(*others, channel) if one.ended is None else others)


def without_closed(alarms: Mapping[str, Open]) -> dict[str, Open]:
    """Without the alarms whose end all notified channels know of."""
    return {key: one for key, one in alarms.items() if one.ended is None or one.notified}
