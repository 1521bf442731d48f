"""``repair``: brings what differs to the state of the source."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hive_replication.cli import result_fields
from hive_replication.cli.arguments import CompareOnly, SourceObject
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest

if TYPE_CHECKING:
    from hive_replication import RepairResult, TableComparison

Partitions = Annotated[
    list[str] | None, typer.Argument(metavar="[PARTITION]...", help="Partitions of the table, e.g. ds=1/h=2", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before the repair.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Repair also what compares as equal.", show_default=False)]


def repair(
    context: typer.Context,
    name: SourceObject,
    partitions: Partitions = None,
    dry_run: CompareOnly = False,
    yes: Yes = False,
    force: Force = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Brings a database, a table or partitions to the present state of the source.

    Compares metadata and checksums of files on both sides, replaces what differs, and compares again. It ends the hold of a held
    table. On a terminal it asks before it changes anything.

    Exit code 1 if something still differs, or, with --dry-run, would be repaired.
    """
    from hive_replication import repair as repair_of

    if dry_run and force:
        raise BadRequest("--force repairs whatever a comparison finds, and --dry-run only compares: leave one of them out")
    chosen, parts = settings(context, config, json), partitions or []
    connection = chosen.connect()
    with shown() as progress:
        found = repair_of(connection, name, parts, dry_run=True, progress=progress)
    rows = [*_rows(found.found), *((table, "it is held") for table in found.held)]
    if not chosen.json:
        chosen.output.table(("table", "found"), rows, None)
    if found.needed and not (dry_run or yes or chosen.json) and sys.stdin.isatty() and sys.stdout.isatty():
        dry_run = not typer.confirm(f"Repair {name}?", err=True)
    if (found.needed or force) and not dry_run:
        with shown() as progress:
            found = repair_of(connection, name, parts, force=force, found=found, progress=progress)
        if not chosen.json and found.left:
            chosen.output.table(("table", "still differs"), _rows(found.left), None)
    if chosen.json:  # else the files of a large load would be read for nothing
        chosen.output.data(_data(found, dry_run=dry_run))
    chosen.output.remark(*_remarks(found, " ".join([name, *parts])))
    raise typer.Exit(found.exit_code)


def _rows(found: Iterable[TableComparison]) -> list[tuple[object, ...]]:
    return [(one.table, difference) for one in found for difference in one.differences]


def _remarks(found: RepairResult, name: str) -> Iterable[str]:
    if found.repaired is None:
        yield f"{name} is to be repaired" if found.needed else f"{name} is equal to the source: there is nothing to repair"
        return
    yield from result_fields.load_lines(found.repaired)
    yield f"{name} still differs" if found.exit_code else f"{name} is equal to the source now"


def _data(found: RepairResult, *, dry_run: bool) -> dict[str, Any]:
    return {
        "name": found.name,
        "dry_run": dry_run,
        "needed": found.needed,
        "found": [asdict(one) for one in found.found],
        "held": list(found.held),
        "repaired": result_fields.load_data(found.repaired) if found.repaired else None,
        "left": [asdict(one) for one in found.left],
        "exit_code": found.exit_code,
    }
