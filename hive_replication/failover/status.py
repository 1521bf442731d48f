"""Where a failover stands, and what the opened target does not have of its old source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hive_replication.connect import Connection, Reachable
from hive_replication.errors import MissingEvents
from hive_replication.failover.changes import Change, changes, untold
from hive_replication.failover.phases import Phase, advice
from hive_replication.failover.sides import Sides
from hive_replication.load.replica.failover_marks import READ_ONLY
from hive_replication.metastore.types import Database


@dataclass(frozen=True, slots=True)
class FailoverStatus:
    """A failover of one database.

    Args:
        database: source name.
        target_database: its name on the target.
        phase: how far it is.
        advice: what to do next, one sentence.
        event: last event of the source that the target has; None where that is not known.
        opened: newest event id of the target's own log when it was opened; None before.
        kind: ``PLANNED`` or ``UNPLANNED`` once the target is open, else "".
        read_only: whether the source is marked as read-only; None where it does not answer.
        not_replicated: events of the source that the target does not have.
        problem: why that, or a part of it, is not known, or "".
        unfinished: tables and functions whose bootstrap or recovery had failed when the target was opened, or that stayed as they
            were until then, being left out.
    """

    database: str
    target_database: str
    phase: Phase
    advice: str
    event: int | None = None
    opened: int | None = None
    kind: str = ""
    read_only: bool | None = False
    not_replicated: tuple[Change, ...] = ()
    problem: str = ""
    unfinished: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """Tables with events that the target does not have."""
        return tuple(sorted({name for change in self.not_replicated for name in change.tables}))


def status(connection: Connection, name: str, reach: Reachable | None = None) -> FailoverStatus:
    """Where a failover stands, by the marks of both databases and the source's log.

    Args:
        connection: both sides.
        name: source database.
        reach: which sides answer; both where None.

    Raises:
        Unreachable: the target does not answer.
    """
    sides = Sides.now(connection, name, reach)
    _, target = sides.marks
    state = sides.replica
    stands = _Position(state.applied, state.at, state.applied_hash)
    if target.role == "opened":
        stands = _Position(target.event, target.behind, target.message_hash)
    elif target.role == "closed":  # the source is the opened database
        stands = _Position(target.opened)
    lost, problem = _not_replicated(sides, stands)
    return FailoverStatus(
        name,
        sides.target_name,
        sides.phase,
        advice(sides.phase, name, known=sides.answers),
        stands.event,
        target.opened,
        target.kind,
        read_only=_read_only(sides.source) if sides.answers else None,
        not_replicated=lost,
        problem=problem,
        unfinished=tuple(sorted(table for table, at in target.behind.items() if not at)) if target.role == "opened" else (),
    )


def _read_only(source: Database | None) -> bool:
    return bool(source and (source.parameters or {}).get(READ_ONLY, "").lower() == "true")


@dataclass(frozen=True, slots=True)
class _Position:
    """Event of the source that the target has, tables that stand at an earlier one, and the hash of the event."""

    event: int | None
    behind: Mapping[str, int] = field(default_factory=dict[str, int])
    message_hash: str = ""


def _not_replicated(sides: Sides, stands: _Position) -> tuple[tuple[Change, ...], str]:
    if sides.phase == "no replica":
        return (), "the target has no finished replica"
    if not sides.answers:
        return (), "the source's metastore does not answer"
    if sides.source is None or stands.event is None or sides.phase == "failed back":
        return (), ""
    try:
        source = sides.connection.source
        found = tuple(changes(source, sides.name, stands.event, stands.behind, stands.message_hash))
        gone = untold(source, stands.event, stands.behind)
        return found, f"the log lacks events of tables that stand before {stands.event}: {', '.join(gone)}" if gone else ""
    except MissingEvents as error:
        return (), str(error)
