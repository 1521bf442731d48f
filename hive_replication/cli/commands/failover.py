"""``failover``: a replica becomes the source, and the old source its replica."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hive_replication.cli import result_fields
from hive_replication.cli.arguments import LONGEST, CompareOnly, SourceDatabase
from hive_replication.cli.progress import shown
from hive_replication.cli.result_fields import iso_or_none
from hive_replication.cli.settings import Config, Json, Settings, settings
from hive_replication.errors import BadRequest
from hive_replication.units import count, count_figure, duration_figure, time_figure

if TYPE_CHECKING:
    from hive_replication import FailoverReverse, FailoverStatus

app = typer.Typer(help="Makes a replica the source, and the old source its replica.")

Wait = Annotated[
    float | None,
    typer.Option(
        "--wait",
        min=0,
        max=LONGEST,
        metavar="SECONDS",
        help="How long open write transactions may end; acid.open_txn_timeout without.",
        show_default=False,
    ),
]
Abort = Annotated[
    bool | None,
    typer.Option("--abort/--no-abort", help="Abort them then, or stop; as acid.at_timeout says without.", show_default=False),
]
Unplanned = Annotated[
    bool, typer.Option("--unplanned", help="Open the target where it stands, without the source.", show_default=False)
]
Force = Annotated[bool, typer.Option("--force", help="With --unplanned: although the source answers.", show_default=False)]
Drop = Annotated[bool, typer.Option("--drop", help="Drop what only the old source has.", show_default=False)]

_MOST = 200  # events that are shown
_EVENTS = ("event", "time", "type", "tables")


@app.command()
def plan(context: typer.Context, name: SourceDatabase, config: Config = None, json: Json = False) -> None:
    """Shows what a failover would take now, and what would be lost without the source; changes nothing."""
    from hive_replication import failover_plan

    chosen = settings(context, config, json)
    found = failover_plan(chosen.policy(), name)
    rows = ((step.name, step.what, duration_figure(step.seconds), step.basis) for step in found.steps)
    chosen.output.table(("step", "what", "takes", "by"), rows, asdict(found))
    lost = found.status
    if lost.problem:
        chosen.output.remark(f"what would be lost now is not known: {lost.problem}")
    if lost.not_replicated:
        tables = ", ".join(lost.tables) or "the database itself"
        chosen.output.remark(f"lost without the source: {count(len(lost.not_replicated), 'event')}, of {tables}")
    if not (lost.problem or lost.not_replicated):
        chosen.output.remark("nothing would be lost now")
    chosen.output.remark(*(f"held: {table}: {reason}" for table, reason in found.held), *found.problems)


@app.command()
def start(
    context: typer.Context,
    name: SourceDatabase,
    wait: Wait = None,
    abort: Abort = None,
    unplanned: Unplanned = False,
    force: Force = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Closes the source for writers and brings the target to its last event; or opens the target without the source.

    Repeat it after an error or a kill: it goes on.
    """
    from hive_replication import failover_open, failover_start

    if unplanned and (wait is not None or abort is not None):
        raise BadRequest("--wait and --abort are about the source, which --unplanned does without")
    if force and not unplanned:
        raise BadRequest("--force belongs to --unplanned")
    chosen = settings(context, config, json)
    if unplanned:
        _show(chosen, failover_open(chosen.policy(), name, force=force))
        return
    with shown() as progress:
        done = failover_start(chosen.connect(), name, wait=wait, abort=abort, progress=progress)
    chosen.output.remark(*(f"{step}: {seconds} s" for step, seconds in done.seconds))
    if done.aborted:
        chosen.output.remark(f"transactions aborted: {', '.join(map(str, done.aborted))}")
    loads = [result_fields.load_data(one) for one in done.loads]
    _show(chosen, done.status, aborted=list(done.aborted), seconds=dict(done.seconds), loads=loads)


@app.command()
def status(context: typer.Context, name: SourceDatabase, config: Config = None, json: Json = False) -> None:
    """Shows how far a failover is, and what the target does not have of the source.

    Exit code 1 if the target was opened without something that the source has, or unfinished, or that is not known.
    """
    from hive_replication import failover_status

    chosen = settings(context, config, json)
    found = failover_status(chosen.policy(), name)
    _show(chosen, found)
    lacks = found.not_replicated or found.problem or found.unfinished
    raise typer.Exit(1 if found.phase in ("opened", "finished") and lacks else 0)


@app.command()
def finish(context: typer.Context, name: SourceDatabase, config: Config = None, json: Json = False) -> None:
    """Opens the target of a failover that is ready, and closes the source; or closes the old source after an unplanned one."""
    from hive_replication import failover_finish

    chosen = settings(context, config, json)
    _show(chosen, failover_finish(chosen.policy(), name))


@app.command()
def rollback(context: typer.Context, name: SourceDatabase, config: Config = None, json: Json = False) -> None:
    """Takes back a failover whose target is not open: replication goes on."""
    from hive_replication import failover_rollback

    chosen = settings(context, config, json)
    _show(chosen, failover_rollback(chosen.policy(), name))


@app.command()
def reverse(
    context: typer.Context,
    name: SourceDatabase,
    dry_run: CompareOnly = False,
    drop: Drop = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Makes the old source the replica of the database that was opened; only what differs is copied.

    Takes a policy whose sides are swapped: its source is the database that was opened. With --dry-run it lists what both sides
    changed, what differs, and what would be dropped.
    """
    from hive_replication import failover_reverse

    chosen = settings(context, config, json)
    with shown() as progress:
        found = failover_reverse(chosen.connect(), name, dry_run=dry_run, drop=drop, progress=progress)
    rows = ((one.table, one.state, "\n".join(one.differences)) for one in found.tables)
    chosen.output.table(("table", "old source", "differences"), rows, _reversed(found))
    chosen.output.remark(*_said(found))
    for load in found.loads:
        chosen.output.remark(*result_fields.load_lines(load))
    raise typer.Exit(1 if found.held else 0)


def _said(found: FailoverReverse) -> Iterable[str]:
    if found.done:
        yield f"{found.target_database} is a replica of {found.database} already"
    if found.problem:
        yield f"what was changed since the failover is not known: {found.problem}"
    if found.changed:
        tables = ", ".join(sorted({name for change in found.changed for name in change.tables})) or "the database itself"
        yield f"changed on {found.database} since the failover: {tables} ({count(len(found.changed), 'event')})"
    if found.conflicting or found.conflicts:
        tables = ", ".join(found.conflicting) or "the database itself"
        counted = "counted as changed" if found.problem else "changed"
        yield f"{counted} on the old source {found.target_database}, never replicated: {tables}"
    if found.never_equal:
        yield f"never on {found.database} as the old source has it: {', '.join(found.never_equal)}"
    if found.dropped:
        yield f"dropped on the old source: {', '.join(found.dropped)}"


def _show(chosen: Settings, found: FailoverStatus, **more: Any) -> None:
    rows = [
        ("state", found.phase),
        ("target", found.target_database),
        ("last event that the target has", count_figure(found.event)),
        ("source is read-only", {None: "not known", True: "yes", False: "no"}[found.read_only]),
        ("not replicated", found.problem or count_figure(len(found.not_replicated))),
    ]
    chosen.output.table((found.database, ""), rows, {**_status(found), **more})
    lost = [(one.evid, time_figure(one.time), one.type, ", ".join(one.tables)) for one in found.not_replicated[:_MOST]]
    if lost and not chosen.json:
        chosen.output.table(_EVENTS, lost, None)
    if found.unfinished:
        chosen.output.remark(f"unfinished when it was opened: {', '.join(found.unfinished)}")
    chosen.output.remark(found.advice)


def _status(found: FailoverStatus) -> dict[str, Any]:
    return {**asdict(found), "not_replicated": [{**asdict(one), "time": iso_or_none(one.time)} for one in found.not_replicated]}


def _reversed(found: FailoverReverse) -> dict[str, Any]:
    return {
        "database": found.database,
        "target_database": found.target_database,
        "done": found.done,
        "changed": [asdict(one) for one in found.changed],
        "conflicts": [asdict(one) for one in found.conflicts],
        "dropped": list(found.dropped),
        "problem": found.problem,
        "tables": [asdict(one) for one in found.tables],
        "conflicting": list(found.conflicting),
        "never_equal": list(found.never_equal),
        "loads": [result_fields.load_data(one) for one in found.loads],
    }
