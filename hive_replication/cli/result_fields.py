"""Results as JSON data, table rows and lines for people (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hive_replication.units import count, iso, size, time_figure, when

if TYPE_CHECKING:
    from hive_replication import DumpResult, HeldTable, LoadReport, PlanReport, Record
    from hive_replication.copy.tasks import CopyResult

NO_DATABASES = "no database of the source matches a pattern in databases of the policy: hive-repl doctor"


def dump_data(result: DumpResult) -> dict[str, Any]:
    """What REPL DUMP answers."""
    data = {
        "directory": result.directory,
        "last_evid": result.last_evid,
        "kind": result.header.kind,
        "from_evid": result.header.from_evid,
        "tables": result.tables,
        "partitions": result.partitions,
        "events": result.events,
        "files": result.files,
        "left_out": result.header.left_out,
    }
    return with_old_names({**data, "dir_name": result.directory}, "dir-name", "last-evid", "from-evid", "left-out")


def load_data(report: LoadReport) -> dict[str, Any]:
    """What REPL LOAD did, with the proof of every file."""
    from hive_replication.load.records import is_unused

    data = {
        "directory": report.directory,
        "database": report.database,
        "window": report.window,
        "report": report.kept,
        "from_evid": report.from_evid,
        "to_evid": report.to_evid,
        "applied": dict(report.applied),
        "files": dict(report.files_by_origin),
        "bytes_copied": report.bytes_copied,
        "copies": [_copy(result) for result in report.copies if not is_unused(report, result)],
        "in_the_way": [asdict(one) for one in report.unexpected],
        "changed_on_target": [asdict(changed) for changed in report.changed_on_target],
        "translated": list(report.translated),
        "broken_views": list(report.broken_views),
        "slowest": [asdict(one) for one in report.slowest],
        "collapsed": asdict(report.collapsed),
        "privileges": dict(report.privileges),
        "skipped": [asdict(skipped) for skipped in report.skipped],
        "held": [asdict(held) for held in report.held],
        "seconds": dict(report.seconds),
        "exit_code": report.exit_code,
    }
    old = with_old_names(data, "from-evid", "to-evid", "bytes-copied", "changed-on-target", "broken-views")
    return {**old, "strangers": data["in_the_way"]}


def load_lines(report: LoadReport) -> Iterator[str]:
    """What REPL LOAD did, for people."""
    from hive_replication.load.records import is_unused

    done = (*sorted(report.applied.items()), *report.privileges.items())
    operations = ", ".join(f"{number} {kind}" for kind, number in done) or "nothing to do"
    yield f"{report.database} loaded from event {report.from_evid} to {report.to_evid}: {operations}"
    if report.copies:
        origins = ", ".join(f"{number} from {origin}" for origin, number in sorted(report.files_by_origin.items()))
        origins = origins.replace("from present", "present already")
        held = sum(is_unused(report, copy) for copy in report.copies)
        of_held = f", {held} of them for tables that are held" if held else ""
        yield f"files: {len(report.copies)} ({origins}), {size(report.bytes_copied)} copied, all proven{of_held}"
    for one in report.unexpected:
        yield f"in the way: {one.object}: {one.outcome}"
    for changed in report.changed_on_target:
        yield f"changed on the target: {changed.object}: {changed.outcome}"
    if report.translated:
        yield f"kept as external tables by the target's metastore: {len(report.translated)} ({', '.join(report.translated)})"
    if report.broken_views:
        yield f"views that read the database by the name that it has at the source: {', '.join(report.broken_views)}"
    if report.collapsed.events:
        yield f"collapsed: {report.collapsed}"
    for skipped in report.skipped:
        yield f"skipped: event {skipped.evid} on {skipped.what}: {skipped.reason}"
    for held in report.held:
        yield f"held: {', '.join(held.tables)} at event {held.after}, event {held.evid} failed: {held.reason}"
    if report.held and report.window:
        yield f"what to do: hive-repl status; the whole report: hive-repl report {report.window}"


def plan_data(report: PlanReport) -> dict[str, Any]:
    """What ``plan`` answers."""
    return with_old_names(report.data(), "from-evid", "to-evid")


HELD_COLUMNS = ("table", "stands at", "failed event", "held since", "attempts", "next attempt", "why")


def with_old_names(data: dict[str, Any], *old: str) -> dict[str, Any]:
    """Data with the names that earlier versions gave some of its keys, which scripts may use: ``last-evid``."""
    return data | {name: data[name.replace("-", "_")] for name in old}


def held_data(held: HeldTable) -> dict[str, Any]:
    """A held table; what is not known is None."""
    data = {
        "table": held.table,
        "after": held.after,
        "evid": held.history.evid or None,
        "since": iso_or_none(held.history.since),
        "attempts": held.history.attempts or None,
        "next_attempt": iso_or_none(held.next_attempt),
        "reason": held.reason,
    }
    return with_old_names(data, "next-attempt")


def held_cells(held: HeldTable) -> tuple[object, ...]:
    """A held table for people, in the order of :data:`HELD_COLUMNS`."""
    history, next_attempt = held.history, time_figure(held.next_attempt)
    numbers = history.evid or None, time_figure(history.since), history.attempts or None
    return (held.table, held.after, *numbers, next_attempt, held.reason)


def held_line(held: HeldTable) -> str:
    """A held table for people."""
    history = held.history
    times = f"; failed {history.attempts} times since {_moment(history.since)}, event {history.evid}" if history.attempts else ""
    times += f"; next attempt after {_moment(held.next_attempt)}" if held.next_attempt else ""
    return f"held: {held.table} at event {held.after}: {held.reason}{times}"


def iso_or_none(seconds: float) -> str | None:
    """A time for programs; None where it is 0."""
    return iso(seconds) if seconds else None


def _moment(seconds: float) -> str | None:
    return when(seconds) if seconds else None


def _copy(result: CopyResult) -> dict[str, Any]:
    from hive_replication.load.layout.directories import as_committed

    return {
        "source": result.task.file.uri,
        "target": as_committed(result.task.target),
        "evid": result.task.evid,
        "object": result.task.object_name,
        "origin": result.origin,
        "size": result.size,
        "attempts": result.attempts,
        "executor": result.executor,
        "proof": asdict(result.proof),
    }


def history_data(record: Record, *, undone: bool = False) -> dict[str, Any]:
    """A load, or what an operator did."""
    return {
        "id": record.id,
        "action": record.action,
        "database": record.database,
        "by": record.by,
        "time": iso(record.time),
        "outcome": record.outcome,
        "window": record.window,
        "to_evid": record.to_evid,
        "tables": list(record.tables),
        "text": record.text,
        "undone": undone,
        "directory": record.directory,
        "report": record.report,
        "figures": asdict(record.figures),
    }


def history_line(record: Record, *, undone: bool = False) -> str:
    """What a load or an operator did, in words."""
    done = record.figures
    parts = [", ".join(record.tables), record.text]
    if record.window and record.outcome != "failed" and record.by:
        parts = [", ".join(record.tables), f"{count(done.operations, 'operation')}, {count(done.files, 'file')}"]
        parts += [size(done.bytes_copied)] if done.bytes_copied else []
        parts += [f"held: {', '.join(done.held)}"] if done.held else []
    return "; ".join(filter(None, (*parts, "undone since" if undone else "")))
