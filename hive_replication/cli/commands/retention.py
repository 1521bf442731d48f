"""``retention``: deletes old data, journals and dumps."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hive_replication.cli.arguments import DryRun, database_name
from hive_replication.cli.completion import replicas
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.units import size, size_figure

Database = Annotated[
    str | None,
    typer.Argument(
        metavar="[DB]",
        help="Database on the target; all of the policy without one.",
        autocompletion=replicas,
        callback=database_name,
        show_default=False,
    ),
]


def retention(
    context: typer.Context, database: Database = None, dry_run: DryRun = False, config: Config = None, json: Json = False
) -> None:
    """Moves old data aside after the grace time, and deletes it after the retention time, with journals and dumps.

    Never touches what a location of the target database points at.
    """
    from hive_replication.load.retention.sweep import Swept, sweep
    from hive_replication.plans.approval import Approvals

    chosen = settings(context, config, json)
    connection = chosen.connect_target(every=True)
    target, store = connection.target, connection.store
    planned = Approvals.of(target.policy).dumps
    names = [database.lower()] if database else list(target.policy.databases.values())
    with shown() as progress:
        swept: list[tuple[str, Swept]] = []
        refused: dict[str, str] = {}
        failed = False
        for name in names:
            try:
                done = sweep(target, name, store, planned=planned, dry_run=dry_run, progress=progress)
                swept += [(name, one) for one in done]
            except Unreachable:
                raise
            except ReplicationError as error:  # of this database only
                if database:
                    raise
                if isinstance(error, BadRequest):  # not there yet
                    continue
                failed |= not isinstance(error, Refused)
                refused[name] = str(error)
                chosen.output.remark(f"{name}: {error}")
    rows = ((name, one.what, size_figure(one.size), one.path, one.problem or one.moved_to or "deleted") for name, one in swept)
    data = {"dry_run": dry_run, "done": [{"database": name, **asdict(one)} for name, one in swept], "refused": refused}
    chosen.output.table(("database", "what", "size", "path", "to"), rows, data)
    freed = sum(one.size for _, one in swept if not (one.moved_to or one.problem))
    moved = sum(one.size for _, one in swept if one.moved_to and not one.problem)
    would = "would be " if dry_run else ""
    chosen.output.remark(f"{size(moved)} {would}moved aside, {size(freed)} {would}deleted")
    left = [one for _, one in swept if one.problem]
    if left and chosen.json:  # each is in the one document, with its problem
        raise typer.Exit(1)
    if left:
        raise ReplicationError(f"{len(left)} of these are left, the first is {left[0].path}: {left[0].problem}")
    if failed:  # said above
        raise typer.Exit(1)
