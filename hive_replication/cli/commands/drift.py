"""``drift``: writes to the source that left no event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli.arguments import LONGEST, SourceObject
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings

if TYPE_CHECKING:
    from hive_replication.drift import TableDrift

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
    from hive_replication.drift import DriftScan
    from hive_replication.drift.repairs import repair_drift, stands
    from hive_replication.errors import BadRequest
    from hive_replication.statements import parse_name

    database, table = parse_name(name)
    chosen = settings(context, config, json)
    connection = chosen.connect()
    scan = DriftScan(connection.source, connection.target, database, settle)
    stood = stands(connection.target, database)
    with shown() as progress:
        names = [table] if table else scan.names()
        found = [one for one in map(scan.table, progress.over(names, f"drift of {database}")) if one is not None]
        if not table:
            scan.finish()
        if table and not found:
            if connection.source.metastore.table(database, table) is None:
                raise BadRequest(f"the source {connection.source.metastore.uri} has no table {name}")
            raise BadRequest(f"{name} has no files, or no replica: nothing can drift")
        repaired = partial(repair_drift, connection, database, stood=stood, progress=progress)
        held = [reason for one in found if repair for reason in _held(one, repaired)]
    columns = ("table", "looked at", "partition", "files", "being written", "not told")
    rows = ((one.table, one.looked, drifted.partition, drifted.reason, "", "") for one in found for drifted in one.drifted)
    quiet = (
        (one.table, one.looked, "", "", len(one.writing) or None, one.waiting) for one in found if one.waiting or not one.drifted
    )
    made = {"created": scan.snapshots.created, "deleted": scan.snapshots.deleted}
    data = {"repaired": repair and not held, "tables": [asdict(one) for one in found], "snapshots": made, "not_repaired": held}
    chosen.output.table(columns, [*rows, *quiet], data)
    chosen.output.remark(*scan.told(found), *held)
    remains = any(one.is_unread or (one.drifted and not repair) for one in found)
    raise typer.Exit(1 if held or remains else 0)


def _held(drifted: TableDrift, repair: Callable[[TableDrift], list[str]]) -> list[str]:
    """Why a table is not repaired; what concerns one table does not stop the repair of others."""
    from hive_replication.errors import ReplicationError, Unreachable

    try:
        return repair(drifted)
    except Unreachable:
        raise
    except (ReplicationError, FileNotFoundError) as error:
        return [f"{drifted.table} is not repaired: {error}"]
