"""Marks of a failover: parameters of the databases of both sides, under Hive's own keys where it has them (pure).

Hive 4 sets ``repl.failover.endpoint`` on both databases of a planned failover, ``repl.background.enable`` on the one that is
opened, and counts in ``repl.metrics.*`` (``ReplConst``); ``EnforceReadOnlyDatabaseHook`` goes by ``readonly``. What Hive keeps
in files of a dump (the last event, whose replica it was) is kept here too, since there need not be any dump.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from hive_replication.dump.source import OPENED
from hive_replication.load.replica.parameters import Parameters, number_of
from hive_replication.load.replica.table_parameters import by_table, of_tables
from hive_replication.metastore.types import Database

#: Writers are refused by Hive's hook while a database has it with the value ``true``. Of each side's own, never replicated.
READ_ONLY: Final = "readonly"
ENDPOINT: Final = "repl.failover.endpoint"
_BACKGROUND = "repl.background.enable"
_METRICS = "repl.metrics."
_OWN = "hive_replication.failover."
_EVENT = _OWN + "event"
_HASH = _OWN + "hash"
#: Of a database that was opened, the identity of the one that it replaced.
ORIGIN: Final = _OWN + "from"
#: Of an old source, the identity of the database that replaced it.
SUCCESSOR: Final = _OWN + "to"
_KIND = _OWN + "type"
_READ_ONLY_BEFORE = _OWN + "readonly"
_SETTLED = _OWN + "settled"
_BEHIND = _OWN + "at."

Kind = Literal["", "PLANNED", "UNPLANNED"]
#: ``opened``: a replica that became a source; ``closed``: the source that it replaced.
Role = Literal["", "opened", "closed"]


@dataclass(frozen=True, slots=True)
class FailoverMarks:
    """What a database says of a failover.

    Args:
        endpoint: ``SOURCE`` or ``TARGET`` of a failover that was started, else "".
        event: last event of the old source that the replica has; None before the last window was loaded.
        message_hash: of that event, to recognise another history; "" where it is not known.
        origin: of a database that was opened, the identity of the source that it was a replica of; else "".
        successor: of an old source, the identity of the database that replaced it; else "".
        opened: newest event id of the opened database's own log when it was opened.
        kind: of a failover that was finished.
        read_only_before: value of ``readonly`` before the failover, "" where there was none.
        behind: tables that stood at an earlier event than the database when it was opened; of an old source whose failback began,
            with 0, tables that it had changed itself.
        settled: of an old source whose failback began, its own newest event id then.
    """

    endpoint: str = ""
    event: int | None = None
    origin: str = ""
    successor: str = ""
    opened: int | None = None
    kind: str = ""
    read_only_before: str = ""
    behind: Mapping[str, int] = field(default_factory=dict[str, int])
    settled: int | None = None
    message_hash: str = ""

    @property
    def role(self) -> Role:
        """What the database became by a failover, "" where none was finished."""
        return "opened" if self.origin else "closed" if self.successor else ""

    def parameters(self) -> dict[str, str]:
        """These marks as database parameters."""
        texts = {
            ENDPOINT: self.endpoint,
            ORIGIN: self.origin,
            SUCCESSOR: self.successor,
            _KIND: self.kind,
            _READ_ONLY_BEFORE: self.read_only_before,
            _HASH: self.message_hash,
            _EVENT: "" if self.event is None else str(self.event),
            OPENED: "" if self.opened is None else str(self.opened),
            _SETTLED: "" if self.settled is None else str(self.settled),
        }
        return {key: value for key, value in texts.items() if value} | by_table(
            _BEHIND, {name: str(evid) for name, evid in self.behind.items()}
        )


def failover_marks(database: Database | None) -> FailoverMarks:
    """Reads the marks of a database; empty ones where there is no database.

    Raises:
        Refused: a parameter was edited into something that no failover writes.
    """
    found = Parameters((database and database.name) or "", (database.parameters if database else None) or {})
    return FailoverMarks(
        endpoint=found.text(ENDPOINT),
        event=found.number(_EVENT),
        origin=found.text(ORIGIN),
        successor=found.text(SUCCESSOR),
        opened=found.number(OPENED),
        kind=found.text(_KIND),
        read_only_before=found.text(_READ_ONLY_BEFORE),
        settled=found.number(_SETTLED),
        message_hash=found.text(_HASH),
        behind={name: found.number_in(_BEHIND + name, value) for name, value in of_tables(_BEHIND, found.values)},
    )


def is_kept(key: str) -> bool:
    """Whether a parameter belongs to a failover or to its side, so that no load changes it."""
    return key in (READ_ONLY, ENDPOINT, _BACKGROUND) or key.startswith((_METRICS, _OWN))


def with_marks(parameters: Mapping[str, str] | None, marks: FailoverMarks) -> dict[str, str]:
    """Parameters with other marks of a failover; counters stay."""
    kept = {key: value for key, value in (parameters or {}).items() if not (key == ENDPOINT or key.startswith(_OWN))}
    return kept | marks.parameters()


def with_background(parameters: Mapping[str, str], *, enabled: bool) -> dict[str, str]:
    """Parameters by which Hive's background tasks (compaction, statistics, partition discovery) work on the database, or not."""
    kept = {key: value for key, value in parameters.items() if key != _BACKGROUND}
    return kept | ({_BACKGROUND: "true"} if enabled else {})


def read_only(parameters: Mapping[str, str] | None, value: str) -> dict[str, str]:
    """Parameters with another value of ``readonly``, without it where the value is ""."""
    kept = {key: one for key, one in (parameters or {}).items() if key != READ_ONLY}
    return kept | ({READ_ONLY: value} if value else {})


def counted_failover(parameters: Mapping[str, str], kind: Kind) -> dict[str, str]:
    """Parameters with one more failover, as Hive counts them."""
    return {**parameters, **_one_more(parameters, "failover.count"), f"{_METRICS}last.failover.type": kind}


def counted_failback(parameters: Mapping[str, str], began: float, ended: float) -> dict[str, str]:
    """Parameters with one more failback, as Hive counts them; times are seconds since the epoch, Hive's are milliseconds."""
    times = {"last.failback.starttime": began, "last.failback.endtime": ended}
    found = {f"{_METRICS}{key}": str(int(value * 1000)) for key, value in times.items()}
    return {**parameters, **_one_more(parameters, "failback.count"), **found}


def _one_more(parameters: Mapping[str, str], key: str) -> dict[str, str]:
    return {f"{_METRICS}{key}": str((number_of(parameters.get(f"{_METRICS}{key}") or "") or 0) + 1)}
