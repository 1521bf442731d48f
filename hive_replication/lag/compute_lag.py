"""How far a database and its tables are behind (pure; design: Dagster, "seconds behind")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from hive_replication.events.files import FileRef
from hive_replication.lag.waiting_events import Waiting, WaitingEvents
from hive_replication.load.replica.held_reasons import UNDONE_REASON, joined_to
from hive_replication.load.replica.state import ReplicaState

#: Of an old source that was made a replica: nothing is loaded until its failback, which was stopped half-way, is complete.
HALF_REVERSED: Final = "closed by a failover, and its failback is not complete"
#: Bytes of files together; None where that is not known.
Total = Callable[[Iterable[FileRef]], int | None]


@dataclass(frozen=True, slots=True)
class TableLag:
    """The lag of a table, or of a function ``f()``.

    Args:
        table: source name.
        applied: its last applied event id.
        waiting: its events that are not applied.
        seconds_behind: seconds since the commit of the oldest of these, 0 if there is none.
        bytes_waiting: bytes of their files; None if not known.
        held: why it is held, or "".
    """

    table: str
    applied: int
    waiting: int
    seconds_behind: float
    bytes_waiting: int | None
    held: str = ""


_EDITED = "set the parameter back to what it was, or drop the replica and bootstrap it again: until then nothing is loaded"
#: What to do where the metastore of a ``{side}`` refuses to show a database.
HIDDEN = (
    "let this account see the database on the {side}, whose metastore refuses it: its own rights, or those on the database's "
    "directory; until then nothing is loaded"
)


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of one database.

    Args:
        database: source name.
        target_database: its name on the target.
        applied: last applied event id of the target (REPL STATUS); None before the bootstrap is finished.
        current: newest event id of the source; None where it does not answer.
        waiting: events of the policy that are not applied, None where that is not known (no bootstrap yet, or a gap).
            Those of tables that were undone by request count neither here nor below, but in ``tables``.
        seconds_behind: 0 if nothing waits, else seconds since the commit of the oldest event not applied; None as above.
        held: tables that are held, with the reason.
        bytes_waiting: bytes of the files that the waiting events bring; None where a size is not known.
        tables: those of which an event waits, or that are held.
        gap: why the source's events cannot be applied to the replica, or "".
        stopped: why an operator stopped it: failed over, paused or undone; else "".
        changed: why a load is due, though no event waits: the policy takes other tables than the replica was made with, or a load
            of objects was killed; or "".
        left: replicas that the policy no longer includes: nothing is loaded into them any more.
        unreadable: whether that is since the replica's state cannot be read (a parameter edited by hand): no load mends that.
        hidden: the side whose metastore refuses to show the database, which no load mends either; or "".
        in_source: whether the source has the database, not a remote one; asked where there is no finished replica, else assumed.
        complete: whether the log was read to its end; else the figures are of its older part, and too low.
        without_data: whether it has its tables without their data (``metadata_only``).
        loading: dump of a load of objects that runs, or was interrupted, so that tables may be half made; or "".
        problem: which side does not answer, so that figures are not known, or "".
    """

    database: str
    target_database: str
    applied: int | None
    current: int | None
    waiting: int | None
    seconds_behind: float | None
    held: tuple[tuple[str, str], ...] = ()
    bytes_waiting: int | None = None
    tables: tuple[TableLag, ...] = ()
    gap: str = ""
    stopped: str = ""
    complete: bool = True
    problem: str = ""
    changed: str = ""
    left: tuple[str, ...] = ()
    in_source: bool = True
    unreadable: bool = False
    hidden: Literal["", "source", "target"] = ""
    without_data: bool = False
    loading: str = ""

    @property
    def cure(self) -> str:
        """What somebody has to do about the gap; "" where the next load closes it."""
        if self.hidden:
            return HIDDEN.format(side=self.hidden)
        return _EDITED if self.unreadable else ""

    @property
    def late(self) -> tuple[str, ...]:
        """Held tables but for those that stand with an undo by request."""
        return tuple(table for table, reason in self.held if not joined_to(reason)[1].startswith(UNDONE_REASON))

    @property
    def lacks_replica(self) -> bool:
        """Whether the target has no finished replica of a database that the source has: before its bootstrap, or it is gone."""
        return self.applied is None and self.in_source and not (self.gap or self.stopped or self.problem)


def stopped(state: ReplicaState) -> str:
    """Why nothing is loaded: a failover ended this direction, an operator undid loads or paused the database; else "".

    Of several the gravest, as ``hive-repl status`` and the sensors tell it.
    """
    if state.failed_over and state.source:
        return HALF_REVERSED
    if state.failed_over:
        return f"{state.failed_over} by a failover"
    if state.undone is not None:
        return f"undone to event {state.undone}"
    return f"paused {state.paused}" if state.paused else ""


def start_of(state: ReplicaState, *, undone: bool = False) -> int | None:
    """Event id after which the log has to have all events; None before the bootstrap is finished.

    Args:
        state: where the replica stands.
        undone: count also what stands with an undo by request, and may stand still for longer than the log goes back.
    """
    if state.applied is None:
        return None
    lost, at = bool(state.lost), (evid for name, evid in state.at.items() if undone or not state.stands_with_undo(name))
    return min((evid for evid in (state.applied, *at) if evid or not lost), default=0)


def starts_of(state: ReplicaState) -> set[int]:
    """Event ids after which the log is to be read, as far as it goes back; none before the bootstrap is finished."""
    return {start for undone in (True, False) if (start := start_of(state, undone=undone)) is not None}


def not_applied(state: ReplicaState, events: Mapping[str, WaitingEvents]) -> dict[str, Waiting]:
    """What waits of a database, by name and the position of each name."""
    found = {name: some.after(state.position(name)) for name, some in events.items()}
    return {name: waiting for name, waiting in found.items() if waiting.events}


def table_lags(state: ReplicaState, waiting: Mapping[str, Waiting], now: float, total: Total) -> tuple[TableLag, ...]:
    """The tables that are behind or held, by name.

    Args:
        state: where the replica stands.
        waiting: what waits, by name; "" has the database's own events.
        now: seconds since the epoch.
        total: sizes of files.
    """
    return tuple(
        TableLag(
            name,
            state.position(name),
            (found := waiting.get(name, Waiting())).events,
            behind(found, now),
            bytes_of(found, total),
            state.held.get(name, ""),
        )
        for name in sorted(waiting.keys() - {""} | state.held.keys())
    )


def behind(waiting: Waiting, now: float) -> float:
    """Seconds since the commit of the oldest of these events; 0 without any."""
    return 0.0 if waiting.oldest is None else max(0.0, now - waiting.oldest)


def bytes_of(waiting: Waiting, total: Total) -> int | None:
    """Bytes of the files that events bring; None where that is not known."""
    if waiting.size is None:
        return None
    looked_up = total(dict.fromkeys(waiting.files))
    return None if looked_up is None else waiting.size + looked_up
