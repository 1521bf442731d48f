"""Results as JSON data, table rows and lines for people (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hive_replication.units import size, when

if TYPE_CHECKING:
    from hive_replication.copy.tasks import CopyResult
    from hive_replication.dump.records import DumpResult
    from hive_replication.load.report import LoadReport
    from hive_replication.load.status import HeldTable


def dump_data(result: DumpResult) -> dict[str, Any]:
    """What REPL DUMP answers."""
    return {
        "dir-name": result.directory,
        "last-evid": result.last_evid,
        "kind": result.header.kind,
        "from-evid": result.header.from_evid,
        "tables": result.tables,
        "partitions": result.partitions,
        "events": result.events,
        "files": result.files,
        "left-out": dict(result.header.skipped),
    }


def load_data(report: LoadReport) -> dict[str, Any]:
    """What REPL LOAD did, with the proof of every file."""
    return {
        "directory": report.directory,
        "database": report.database,
        "from-evid": report.from_evid,
        "to-evid": report.to_evid,
        "applied": dict(report.applied),
        "files": dict(report.files_by_origin),
        "bytes-copied": report.bytes_copied,
        "copies": [_copy(result) for result in report.copies],
        "strangers": [asdict(stranger) for stranger in report.strangers],
        "changed-on-target": [asdict(changed) for changed in report.changed_on_target],
        "translated": list(report.translated),
        "collapsed": asdict(report.collapsed),
        "skipped": [asdict(skipped) for skipped in report.skipped],
        "held": [asdict(held) for held in report.held],
        "seconds": dict(report.seconds),
        "exit_code": report.exit_code,
    }


def load_lines(report: LoadReport) -> Iterator[str]:
    """What REPL LOAD did, for people."""
    operations = ", ".join(f"{number} {kind}" for kind, number in sorted(report.applied.items())) or "nothing to do"
    yield f"{report.database} loaded from event {report.from_evid} to {report.to_evid}: {operations}"
    if report.copies:
        origins = ", ".join(f"{number} from {origin}" for origin, number in sorted(report.files_by_origin.items()))
        origins = origins.replace("from present", "present already")
        yield f"files: {len(report.copies)} ({origins}), {size(report.bytes_copied)} copied, all proven"
    for stranger in report.strangers:
        yield f"in the way: {stranger.object}: {stranger.outcome}"
    for changed in report.changed_on_target:
        yield f"changed on the target: {changed.object}: {changed.outcome}"
    if report.translated:
        yield f"kept as external tables by the target's metastore: {len(report.translated)} ({', '.join(report.translated)})"
    if report.collapsed.events:
        yield f"collapsed: {report.collapsed}"
    for skipped in report.skipped:
        yield f"skipped: event {skipped.evid} on {skipped.what}: {skipped.reason}"
    for held in report.held:
        yield f"held: {', '.join(held.tables)} at event {held.after}, event {held.evid} failed: {held.reason}"


HELD_COLUMNS = ("table", "stands at", "failed event", "held since", "attempts", "next attempt", "why")


def held_data(held: HeldTable) -> dict[str, Any]:
    """A held table; what is not known is None."""
    return {
        "table": held.table,
        "after": held.after,
        "evid": held.history.evid or None,
        "since": _moment(held.history.since),
        "attempts": held.history.attempts or None,
        "next-attempt": _moment(held.next_attempt),
        "reason": held.reason,
    }


def held_line(held: HeldTable) -> str:
    """A held table for people."""
    history = held.history
    times = f"; failed {history.attempts} times since {_moment(history.since)}, event {history.evid}" if history.attempts else ""
    times += f"; next attempt after {_moment(held.next_attempt)}" if held.next_attempt else ""
    return f"held: {held.table} at event {held.after}: {held.reason}{times}"


def _moment(seconds: float) -> str | None:
    return when(seconds) if seconds else None


def _copy(result: CopyResult) -> dict[str, Any]:
    return {
        "source": result.task.file.uri,
        "target": result.task.target,
        "evid": result.task.evid,
        "object": result.task.object_name,
        "origin": result.origin,
        "size": result.size,
        "attempts": result.attempts,
        "executor": result.executor,
        "proof": asdict(result.proof),
    }
