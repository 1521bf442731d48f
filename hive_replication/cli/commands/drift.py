"""``drift``: writes to the source that left no event."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hive_replication.cli.arguments import LONGEST, SourceObject
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings

Repair = Annotated[bool, typer.Option("--repair", help="Replicate what has drifted.", show_default=False)]
Settle = Annotated[
    float,
    typer.Option("--settle", metavar="SECONDS", min=0, max=LONGEST, help="Time between the first and the second listing."),
]


def drift(
    context: typer.Context,
    name: SourceObject,
    repair: Repair = False,
    settle: Settle = 10.0,
    config: Config = None,
    json: Json = False,
) -> None:
    """Looks for files that changed on the source without an event.

    Such as writes of Spark datasources, hdfs dfs -put, files deleted by hand. Files that are being written, and tables with
    events that are not applied yet, are left out. Exit code 1 if drift remains, or a table
    cannot be read.
    """
    from hive_replication.drift import drift as drift_of

    chosen = settings(context, config, json)
    with shown() as progress:
        report = drift_of(chosen.connect(), name, repair=repair, settle=settle, progress=progress)
    found, held = report.tables, report.not_repaired
    columns = ("table", "looked at", "partition", "files", "being written", "not told")
    rows = ((one.table, one.looked, drifted.partition, drifted.reason, "", "") for one in found for drifted in one.drifted)
    quiet = (
        (one.table, one.looked, "", "", len(one.writing) or None, one.waiting) for one in found if one.waiting or not one.drifted
    )
    made = {"created": report.created, "deleted": report.deleted}
    tables = [asdict(one) for one in found]
    data = {"repaired": repair and not held, "tables": tables, "snapshots": made, "not_repaired": list(held)}
    chosen.output.table(columns, [*rows, *quiet], data)
    chosen.output.remark(*report.spared, *held)
    raise typer.Exit(report.exit_code)
