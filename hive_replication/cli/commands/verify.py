"""``verify``: source and target as they are now."""

from __future__ import annotations

from dataclasses import asdict

import typer

from hive_replication.cli.arguments import SourceObject
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings


def verify(context: typer.Context, name: SourceObject, config: Config = None, json: Json = False) -> None:
    """Compares source and target as they are now.

    Partitions, files, checksums, schema, and whether anything on the target points at the source. Exit code 1 if they differ.
    """
    from hive_replication import verify as compare
    from hive_replication.statements import parse_name

    parse_name(name)  # a malformed name is reported before the policy is read
    chosen = settings(context, config, json)
    with shown() as progress:
        found = compare(chosen.connect(), name, progress=progress)
    columns = ("table", "partitions", "on target", "files", "on target", "proven", "differences")
    rows = [
        (
            c.table,
            c.partitions_source,
            c.partitions_target,
            c.files_source,
            c.files_target,
            c.files_proven,
            "\n".join(c.differences),
        )
        for c in found
    ]
    different = any(comparison.differences for comparison in found)
    if chosen.output.terminal:  # a column of all differences would be too narrow to be read
        chosen.output.table(columns[:-1], [row[:-1] for row in rows], None)
        columns, rows = ("table", "difference"), [(c.table, difference) for c in found for difference in c.differences]
    if rows or not chosen.output.terminal:
        chosen.output.table(columns, rows, {"equal": not different, "tables": [asdict(comparison) for comparison in found]})
    translated = [comparison.table for comparison in found if comparison.translated]
    if translated:
        names = ", ".join(translated)
        chosen.output.remark(f"kept as external tables by the target's metastore, which is equal: {len(translated)} ({names})")
    if kept := [comparison.table for comparison in found if comparison.keeps_text]:
        chosen.output.remark(f"views that read databases by their names at the source, as the policy says: {', '.join(kept)}")
    if by_rows := [f"{comparison.table} ({comparison.by_rows})" for comparison in found if comparison.by_rows]:
        chosen.output.remark(f"compared by rows, since one side was compacted: {', '.join(by_rows)}")
    raise typer.Exit(1 if different else 0)
