"""``undo`` and ``retention``: going back, and giving up what going back needs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hive_replication.cli.completion import replicas
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.cli.words import object_named
from hive_replication.errors import BadRequest
from hive_replication.units import size

Name = Annotated[
    str, typer.Argument(metavar="DB[.TABLE]", help="Name on the target.", autocompletion=replicas, show_default=False)
]
Database = Annotated[
    str | None,
    typer.Argument(
        metavar="[DB]", help="Database on the target; all of the policy without one.", autocompletion=replicas, show_default=False
    ),
]
To = Annotated[int | None, typer.Option("--to", metavar="EVID", help="A loaded event id to go back to.", show_default=False)]
Release = Annotated[bool, typer.Option("--release", help="Load later events again after an undo.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.", show_default=False)]


def undo(
    context: typer.Context,
    name: Name,
    to: To = None,
    release: Release = False,
    dry_run: DryRun = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Brings a replica back to the state it had at a loaded event id, or releases it.

    It stays there until released, repaired or rebuilt. Possible as long as retention keeps the old data.
    """
    from hive_replication.load.undo import release as release_of
    from hive_replication.load.undo import undo as undo_of

    parsed = object_named(name)
    if release == (to is not None):
        raise BadRequest("undo takes either --to with an event id, or --release")
    chosen = settings(context, config, json)
    target = chosen.connect().target
    if to is None:
        released = release_of(target, parsed.database, parsed.table)
        chosen.output.remark(f"{name} loads later events again" if released else f"{name} was not undone")
        chosen.output.table((), (), {"released": released})
        return
    with shown() as progress:
        done = undo_of(target, parsed.database, parsed.table, to, dry_run=dry_run, progress=progress)
    rows = ((step.evid, step.kind, step.name) for step in done.steps)
    chosen.output.table(("event", "taken back", "object"), rows, asdict(done) | {"dry_run": dry_run})
    what = ", ".join(f"{done.database}.{table}" for table in done.tables) or done.database
    chosen.output.remark(
        f"{what} {'would stand' if dry_run else 'stands'} at event {to} again, {done.loads} loads taken back; "
        f"later events wait for: hive-repl undo {name} --release"
    )


def retention(
    context: typer.Context, database: Database = None, dry_run: DryRun = False, config: Config = None, json: Json = False
) -> None:
    """Moves old data aside after the grace time, and deletes it after the retention time, with journals and dumps.

    Never touches what a location of the target database points at.
    """
    from hive_replication.load.retention import sweep

    chosen = settings(context, config, json)
    connection = chosen.connect()
    names = [database] if database else list(connection.target.policy.databases.values())
    with shown() as progress:
        swept = [
            (name, one)
            for name in names
            if database or connection.target.metastore.database(name) is not None
            for one in sweep(connection.target, name, connection.store, dry_run=dry_run, progress=progress)
        ]
    rows = ((name, one.what, size(one.size), one.path, one.moved_to or "deleted") for name, one in swept)
    data = {"dry_run": dry_run, "done": [{"database": name, **asdict(one)} for name, one in swept]}
    chosen.output.table(("database", "what", "size", "path", "to"), rows, data)
    freed = sum(one.size for _, one in swept if not one.moved_to)
    moved = sum(one.size for _, one in swept if one.moved_to)
    would = "would be " if dry_run else ""
    chosen.output.remark(f"{size(moved)} {would}moved aside, {size(freed)} {would}deleted")
