"""What a run tells Dagster about a dump and a load: metadata values, small tables, links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG

from hive_replication.units import count, size, unbroken
from repl_assets.keys import Names

if TYPE_CHECKING:
    from hive_replication.copy.tasks import CopyResult
    from hive_replication.dump.records import DumpResult
    from hive_replication.load.report import Commit, LoadReport, Touched
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
    """Metadata of a dump; ``directory``, ``kind`` and ``events`` are what its load goes by."""
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
    } | ({"left out": markdown_table(("object", "why"), sorted(left), len(left))} if (left := header.skipped.items()) else {})


def dump_materializations(
    key: dg.AssetKey, result: DumpResult, partitions: Iterable[str | None]
) -> Iterator[dg.AssetMaterialization]:
    """What says that a table's dump was made, for each of its partition keys (None: for the table)."""
    for partition in partitions:
        yield dg.AssetMaterialization(
            key, partition=partition, metadata=dump_metadata(result), tags={DATA_VERSION_TAG: str(result.last_evid)}
        )


def window_metadata(report: LoadReport, names: Names, database: str, dump: dg.AssetMaterialization) -> dict[str, Any]:
    """Metadata of the load of a database's dump: also what its dump counted."""
    return {"events": dump.metadata["events"], **load_metadata(report, names, database)}


def recovery_metadata(recovery: Recovery) -> dict[str, Any]:
    """What a recovery found; its dump holds what differs."""
    rows = ((found.table, found.state, "; ".join(found.differences)) for found in recovery.different)
    return {
        "gap": f"{recovery.gap.kind}: {recovery.gap.reason}",
        "tables equal": len(recovery.tables) - len(recovery.different),
        "tables not equal": markdown_table(("table", "replica", "differences"), rows, len(recovery.different)),
    }


def load_metadata(report: LoadReport, names: Names, database: str) -> dict[str, Any]:
    """Metadata of a load. Figures are numbers, which Dagster plots; what it did in detail are tables."""
    metadata: dict[str, Any] = {
        "directory": dg.MetadataValue.path(report.directory),
        "from_evid": report.from_evid,
        "to_evid": report.to_evid,
        "operations": sum(report.applied.values()),
        "files": len(report.copies),
        "copied (MB)": round(report.bytes_copied / 1e6, 6),
        "duration (s)": round(sum(report.seconds.values()), 3),
    }
    metadata |= {f"{phase} (s)": seconds for phase, seconds in report.seconds.items()}
    metadata |= {f"files from {origin}": count for origin, count in sorted(report.files_by_origin.items())}
    metadata |= {f"files by {executor}": count for executor, count in sorted(report.files_by_executor.items())}
    if report.collapsed.events:
        spared = report.collapsed
        metadata |= {"events collapsed": spared.events, "into operations": spared.operations, "files not copied": spared.files}
        metadata |= {"not copied (MB)": round(spared.bytes / 1e6, 6)} if spared.bytes >= 0 else {}
    return metadata | _details(report, names, database)


def _details(report: LoadReport, names: Names, database: str) -> dict[str, dg.MarkdownMetadataValue]:
    """What a load did, as tables; those without rows are left out."""
    strangers, changed = ([(one.object, one.outcome) for one in found] for found in (report.strangers, report.changed_on_target))
    tables: dict[str, tuple[Sequence[str], Sequence[Sequence[object]]]] = {
        "touched": (("table", "event", "changed"), [_touched(one, names, database) for one in report.touched]),
        "operations by kind": (("operation", "number"), sorted(report.applied.items())),
        "proven by": (("checksum", "files"), sorted(Counter(copy.proof.algorithm for copy in report.copies).items())),
        "proofs": (("object", "file", "size", "from", "checksum ends with"), [_proof(copy) for copy in report.copies[:_ROWS]]),
        "in the way": (("object", "what"), strangers),
        "changed on the target": (("object", "what"), changed),
        "kept as external tables": (("table",), [(table,) for table in report.translated]),
        "skipped": (("event", "what", "why"), [(one.evid, one.what, one.reason) for one in report.skipped]),
    }
    totals = {"proofs": len(report.copies)}
    made = {title: markdown_table(head, rows, totals.get(title, len(rows))) for title, (head, rows) in tables.items() if rows}
    return made | ({"held": held_table(report)} if report.held else {})


def commits_metadata(commits: Sequence[Commit]) -> dict[str, Any]:
    """The transactions that wrote to a table or partition, in order; nothing where there are none."""
    if not commits:
        return {}
    rows = [(one.write_id, one.transaction, one.evid) for one in reversed(commits)]
    head = ("write id (both sides)", "transaction (source)", "commit (event)")
    return {"write id": commits[-1].write_id, "transactions": markdown_table(head, rows, len(rows))}


def held_table(report: LoadReport) -> dg.MarkdownMetadataValue:
    """Lanes that failed."""
    rows = ((", ".join(held.tables), held.after, held.evid, held.reason) for held in report.held)
    return markdown_table(("tables", "stand at", "failed event", "why"), rows, len(report.held))


def _proof(copy: CopyResult) -> Sequence[object]:
    origin = f"{copy.origin}, {copy.attempts} attempts" if copy.attempts > 1 else copy.origin
    return copy.task.object_name, copy.task.file.name, unbroken(size(copy.size)), origin, copy.proof.value[-8:]


def _touched(one: Touched, names: Names, database: str) -> Sequence[object]:
    asset, partition = names.shown(database, one.source_table, one.partitions[0] if len(one.partitions) == 1 else None)
    link = f"[{one.table}]({asset_url(asset, partition)})"
    numbers = ((one.partitions, ""), (one.dropped_partitions, " dropped"))
    changed = ", ".join(count(len(parts), "partition") + what for parts, what in numbers if parts)
    return link, one.evid, "dropped" if one.dropped else changed or "table"


def asset_url(key: dg.AssetKey, partition: str | None = None) -> str:
    """Path of an asset in Dagster's UI, at a partition where its key is given."""
    path = "/assets/" + "/".join(quote(part, safe="") for part in key.path)
    return path + (f"?view=partitions&partition={quote(partition, safe='')}" if partition else "")


def text_of(metadata: Mapping[str, Any], name: str) -> str:
    """A text or path in the metadata of a stored event, "" where it is absent."""
    value = metadata.get(name)
    return str(value.value) if value is not None else ""
