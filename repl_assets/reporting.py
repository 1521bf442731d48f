"""What a run tells Dagster about a dump and a load: metadata values, small tables, links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from repl_assets.keys import Names, partition_key

if TYPE_CHECKING:
    from hive_replication.dump.records import DumpResult
    from hive_replication.load.report import LoadReport, Touched
    from hive_replication.recover import Recovery

_ROWS = 50  # of a table in metadata; all of it is stored with every event


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> dg.MarkdownMetadataValue:
    """A table of at most fifty rows, with the number of those left out."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for _, row in zip(range(_ROWS), rows, strict=False):
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |")
    if total > _ROWS:
        lines.append(f"\n… and {total - _ROWS} more")
    return dg.MetadataValue.md("\n".join(lines))


def dump_metadata(result: DumpResult) -> dict[str, Any]:
    """Metadata of a dump; ``directory`` and ``kind`` are what its load goes by."""
    header = result.header
    return {
        "directory": dg.MetadataValue.path(result.directory),
        "kind": header.kind,
        "from_evid": header.from_evid,
        "to_evid": header.to_evid,
        "events": result.events,
        "tables": result.tables,
        "partitions": result.partitions,
        "files": result.files,
    } | ({"left out": dict(header.skipped)} if header.skipped else {})


def dump_materializations(
    key: dg.AssetKey, result: DumpResult, partitions: Iterable[str | None]
) -> Iterator[dg.AssetMaterialization]:
    """What says that a table's dump was made, for each of its partition keys (None: for the table)."""
    for partition in partitions:
        yield dg.AssetMaterialization(
            key, partition=partition, metadata=dump_metadata(result), tags={DATA_VERSION_TAG: str(result.last_evid)}
        )


def recovery_metadata(recovery: Recovery) -> dict[str, Any]:
    """What a recovery found; its dump holds what differs."""
    rows = ((found.table, found.state, "; ".join(found.differences)) for found in recovery.different)
    return {
        "gap": f"{recovery.gap.kind}: {recovery.gap.reason}",
        "tables equal": len(recovery.tables) - len(recovery.different),
        "tables not equal": markdown_table(("table", "replica", "differences"), rows, len(recovery.different)),
    }


def load_metadata(report: LoadReport, names: Names, database: str) -> dict[str, Any]:
    """Metadata of a load."""
    metadata: dict[str, Any] = {
        "directory": dg.MetadataValue.path(report.directory),
        "from_evid": report.from_evid,
        "to_evid": report.to_evid,
        "files": len(report.copies),
        "bytes": report.bytes_copied,
        "operations": dict(report.applied),
        "seconds": {phase: round(seconds, 3) for phase, seconds in report.seconds.items()},
    }
    metadata |= {f"files from {origin}": count for origin, count in sorted(report.files_by_origin.items())}
    metadata |= {f"files by {executor}": count for executor, count in sorted(report.files_by_executor.items())}
    if report.collapsed.events:
        metadata["collapsed"] = str(report.collapsed)
    if report.copies:
        metadata["proofs"] = _proofs(report)
    if report.touched:
        metadata["touched"] = _touched(report.touched, names, database)
    for title, found in (("in the way", report.strangers), ("changed on the target", report.changed_on_target)):
        if found:
            metadata[title] = markdown_table(("object", "what"), ((one.object, one.outcome) for one in found), len(found))
    if report.translated:
        rows = ([table] for table in report.translated)
        metadata["kept as external tables"] = markdown_table(("table",), rows, len(report.translated))
    if report.skipped:
        rows = ((skipped.evid, skipped.what, skipped.reason) for skipped in report.skipped)
        metadata["skipped"] = markdown_table(("event", "what", "why"), rows, len(report.skipped))
    if report.held:
        metadata["held"] = held_table(report)
    return metadata


def held_table(report: LoadReport) -> dg.MarkdownMetadataValue:
    """Lanes that failed."""
    rows = ((", ".join(held.tables), held.after, held.evid, held.reason) for held in report.held)
    return markdown_table(("tables", "stand at", "failed event", "why"), rows, len(report.held))


def _proofs(report: LoadReport) -> dg.MarkdownMetadataValue:
    rows = (
        (
            copy.task.object_name,
            copy.task.file.name,
            copy.origin,
            copy.size,
            copy.proof.algorithm,
            copy.proof.value[-16:],
            copy.attempts,
        )
        for copy in report.copies
    )
    return markdown_table(("object", "file", "from", "bytes", "proof", "value (end)", "copies"), rows, len(report.copies))


def _touched(touched: Sequence[Touched], names: Names, database: str) -> dg.MarkdownMetadataValue:
    def row(one: Touched) -> Sequence[object]:
        key = names.table(database, one.source_table, "load")
        link = f"[{one.table}]({asset_url(key, one.partitions[0] if len(one.partitions) == 1 else None)})"
        return (link, one.evid, len(one.partitions), len(one.dropped_partitions), "dropped" if one.dropped else "")

    return markdown_table(("table", "event", "partitions", "dropped partitions", ""), map(row, touched), len(touched))


def asset_url(key: dg.AssetKey, partition: str | None = None) -> str:
    """Path of an asset in Dagster's UI, at a Hive partition where one is given."""
    path = "/assets/" + "/".join(quote(part, safe="") for part in key.path)
    return path + (f"?view=partitions&partition={quote(partition_key(partition), safe='')}" if partition else "")


def text_of(metadata: Mapping[str, Any], name: str) -> str:
    """A text or path in the metadata of a stored event, "" where it is absent."""
    value = metadata.get(name)
    return str(value.value) if value is not None else ""
