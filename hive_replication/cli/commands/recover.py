"""``recover``: gaps in what a replica can follow."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from hive_replication.cli import result_fields
from hive_replication.cli.arguments import CompareOnly, SourceDatabase
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings

if TYPE_CHECKING:
    from hive_replication.recover import Recovery


def recover(
    context: typer.Context, name: SourceDatabase, dry_run: CompareOnly = False, config: Config = None, json: Json = False
) -> None:
    """Brings a replica over a gap: missing events, or a restored source or target.

    Compares all tables with the source and bootstraps again those that differ. Where there is no gap it does nothing.
    """
    from hive_replication.recover import recover as recover_database

    chosen = settings(context, config, json)
    with shown() as progress:
        found = recover_database(chosen.connect(), name.lower(), dry_run=dry_run, progress=progress)
    if found is None:
        chosen.output.data({"gap": None})
        chosen.output.remark(f"{name} has no gap: the next events can be applied")
        return
    chosen.output.remark(f"{found.gap.kind}: {found.gap.reason}")
    rows = ((table.table, table.state, "\n".join(table.differences)) for table in found.tables)
    chosen.output.table(("table", "replica", "differences"), rows, _data(found))
    if found.load is not None:
        chosen.output.remark(*result_fields.load_lines(found.load))
        raise typer.Exit(found.load.exit_code)


def _data(found: Recovery) -> dict[str, Any]:
    done = {"dump": result_fields.dump_data(found.dump)} if found.dump else {}
    done |= {"load": result_fields.load_data(found.load)} if found.load else {}
    return {"gap": asdict(found.gap), "tables": [asdict(table) for table in found.tables], **done}
