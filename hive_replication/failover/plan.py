"""What a failover would take now, step by step, and what would be lost without the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hive_replication.connect import Connection, Reachable
from hive_replication.errors import Refused
from hive_replication.failover.phases import Phase
from hive_replication.failover.promised import stays_left
from hive_replication.failover.role import HALF_MADE
from hive_replication.failover.sides import Sides
from hive_replication.failover.status import FailoverStatus, status
from hive_replication.lag import Lag, lags_reachable
from hive_replication.load.copy_rate import rates_of
from hive_replication.load.replica.open_writers import writers
from hive_replication.load.replica.ownership import why_incompatible
from hive_replication.plans.estimate import Estimate, estimate
from hive_replication.units import count


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of a planned failover.

    Args:
        name: of the step.
        what: what it does, one sentence.
        seconds: how long it may take; None where nothing tells.
        basis: what that was calculated from.
    """

    name: str
    what: str
    seconds: float | None = None
    basis: str = ""


@dataclass(frozen=True, slots=True)
class FailoverPlan:
    """What a failover would do now; nothing is changed.

    Args:
        status: where it stands; ``status.not_replicated`` would be lost if the target were opened now, without the source.
        steps: what is left of a planned failover.
        bytes_waiting: bytes of the events that the target does not have; None where that is not known.
        seconds_behind: since the oldest of them was committed; None as above.
        writers: open transactions that write to the source database.
        held: held tables of the target, which a planned failover does not accept, with the reason.
        problems: what else is in the way, one sentence each.
    """

    status: FailoverStatus
    steps: tuple[PlannedStep, ...]
    bytes_waiting: int | None = None
    seconds_behind: float | None = None
    writers: tuple[int, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def plan(connection: Connection, name: str, reach: Reachable) -> FailoverPlan:
    """Plans a failover as it would be now.

    Args:
        connection: both sides.
        name: source database.
        reach: which sides answer.

    Raises:
        BadRequest: there is no finished replica.
        Unreachable: the target does not answer.
    """
    sides = Sides.now(connection, name, reach)
    if sides.phase == "no replica":
        sides.require_replica()
    found = status(connection, name, reach)
    lag = lags_reachable(connection, reach, [name])[0]
    open_now = writers(connection.source.metastore, name) if sides.source is not None and connection.source.acid else ()
    rates = rates_of(connection.target.storage, (sides.target and sides.target.locationUri) or "")
    window = estimate(0, lag.bytes_waiting or 0, len(found.not_replicated), rates, connection.target.policy.bandwidth)
    tables = len(connection.target.metastore.table_names(sides.target_name)) if sides.target is not None else 0
    acid = connection.source.policy.acid
    ends = f"{'aborted' if acid.at_timeout == 'abort' else 'refused'} after {acid.open_txn_timeout:g} s"
    return FailoverPlan(
        replace(found, problem=found.problem or _untold_of_stayed(found, lag)),
        tuple(steps_left(found, open_now, ends, window, tables)),
        lag.bytes_waiting,
        lag.seconds_behind,
        open_now,
        tuple((table, reason) for table, reason in lag.held if not stays_left(reason)),
        tuple(_problems(sides, lag)),
    )


def steps_left(
    found: FailoverStatus, open_now: tuple[int, ...], ends: str, window: Estimate, tables: int
) -> Iterator[PlannedStep]:
    """The steps of a planned failover that are not done yet (pure).

    Args:
        found: where it stands.
        open_now: open write transactions.
        ends: what becomes of those that stay open.
        window: of the last window.
        tables: number of tables to compare.
    """
    phase: Phase = found.phase
    name, target = found.database, found.target_database
    if phase == "replicating":
        yield PlannedStep("mark the source", f"readonly and repl.failover.endpoint=SOURCE on {name}", 0.0, "one call")
    if phase in ("replicating", "started"):
        what = f"wait for {count(len(open_now), 'open write transaction')}, {ends}" if open_now else "none writes to it now"
        yield PlannedStep(
            "end transactions", what, None if open_now else 0.0, "how long writers go on is not known" if open_now else ""
        )
        waiting = count(len(found.not_replicated), "event")
        yield PlannedStep("last window", f"dump and load {waiting} after {found.event}", window.seconds, window.basis)
        yield PlannedStep(
            "compare", f"compare {count(tables, 'table')} with the source", None, "as long as hive-repl verify takes"
        )
    if phase in ("replicating", "started", "ready"):
        yield PlannedStep("finish: open the target", f"repl.target.for and readonly are removed from {target}", 0.0, "one call")
        yield PlannedStep("finish: close the source", f"{name} waits to become a replica of {target}", 0.0, "one call")
    if phase == "opened":
        yield PlannedStep("finish: close the source", f"{name} waits to become a replica of {target}", 0.0, "one call")


def _untold_of_stayed(found: FailoverStatus, lag: Lag) -> str:
    """Of replicas that stay as they were nothing is compared before a start: the source's may be replicated again."""
    stayed = [table for table, reason in lag.held if stays_left(reason)]
    if not stayed or found.phase not in ("replicating", "started"):
        return ""
    return f"of tables that were left out, and stay as they were until a repair: {', '.join(stayed)}"


def _problems(sides: Sides, lag: Lag) -> Iterator[str]:
    if not sides.answers:
        yield "the source does not answer: only hive-repl failover start --unplanned can open the target"
    if sides.phase in ("replicating", "started", "ready", "opened"):
        try:
            sides.require_closable()
        except Refused as error:
            yield str(error)
        yield from _older(sides)
    if lag.without_data:
        yield "the replica has no data (metadata_only): it cannot take the place of its source"
    if marked := why_incompatible(sides.target):
        yield marked
    if lag.gap:
        yield lag.gap
    elif lag.loading:
        yield HALF_MADE.format(lag.loading)
    if lag.stopped:
        yield f"it is {lag.stopped}"
    metastore = sides.connection.target.metastore
    if metastore.config_value("hive.repl.cm.enabled", "false").lower() != "true":
        yield (
            "change management is off on the target's metastore (hive.repl.cm.enabled): once it is the source, deleted files are "
            "not kept for its replicas"
        )


def _older(sides: Sides) -> Iterator[str]:
    """That the way back leads to a version to which none is replicated."""
    if not sides.answers:
        return
    ours, theirs = sides.connection.source.metastore.features, sides.connection.target.metastore.features
    if theirs.later_than(ours):
        yield (
            f"the target is of Hive {theirs.version}, the source of {ours.version}: the failback would lead to an older version, "
            "to which nothing was tried; upgrade the source first, or stay with the target"
        )
