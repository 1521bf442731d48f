"""Metadata of dumps, loads, recoveries and lags: figures, small tables and links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import dagster as dg

from hive_replication.load.records import is_unused
from hive_replication.markdown import link, table
from hive_replication.units import count, size, unbroken
from repl_assets.catalog.keys import Names, partition_name
from repl_assets.dagster_private import DATA_VERSION_TAG
from repl_assets.recording.object_metadata import LoadName

if TYPE_CHECKING:
    from hive_replication import DumpResult
    from hive_replication.copy.tasks import CopyResult
    from hive_replication.failover import ReplicaRole
    from hive_replication.lag import Lag, TableLag
    from hive_replication.load.report import Commit, LoadReport, Touched
    from hive_replication.recover import Recovery

_ORIGINS = {"source": "files from source", "cmroot": "files from cmroot", "present": "files present already"}
_ROWS = 50  # of a table in metadata; all of it is stored with every event
_TOO_LOW = "events waiting: at least so many, the source's log was not read to its end"
_PROOFS = 10  # files; the report has all of them
_WIDTH = 28  # characters of a name among the proofs: an asset's page cuts off what is wider than its column


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], total: int, most: int = _ROWS
) -> dg.MarkdownMetadataValue:
    """A Markdown table of at most fifty rows, or ``most``, with the number of those left out."""
    return dg.MetadataValue.md(table(head, rows, total, most))


def dump_metadata(result: DumpResult) -> dict[str, Any]:
    """Metadata of a dump; its load reads ``directory``, ``kind`` and ``events`` again."""
    header = result.header
    return {
        "directory": dg.PathMetadataValue(result.directory),
        "kind": header.kind,
        "from_evid": header.from_evid,
        "to_evid": header.to_evid,
        "events": result.events,
        "tables": result.tables,
        "partitions": result.partitions,
        "files": result.files,
    } | ({"left out": markdown_table(("object", "why"), sorted(left), len(left))} if (left := header.left_out.items()) else {})


def is_dump(made: dg.AssetMaterialization) -> bool:
    """Whether an entry of a table's dump is of one that a step made, with :func:`dump_metadata`, and not of a load."""
    return text_of(made.metadata, "kind") == "bootstrap"


def dump_materializations(
    key: dg.AssetKey, result: DumpResult, partitions: Iterable[str | None]
) -> Iterator[dg.AssetMaterialization]:
    """Materializations of a table's dump, one for each partition key (None: for the table) but those that the source lacks."""
    table, skipped = result.header.scope.table, result.header.skipped
    for partition in partitions:
        if partition and f"{table}/{partition_name(partition)}" in skipped:
            continue
        yield dg.AssetMaterialization(
            key, partition=partition, metadata=dump_metadata(result), tags={DATA_VERSION_TAG: str(result.last_evid)}
        )


def window_metadata(report: LoadReport, names: Names, database: str, dump: dg.AssetMaterialization) -> dict[str, Any]:
    """Metadata of the load of a database's dump, with the number of events in the dump."""
    return {"events": dump.metadata["events"], **load_metadata(report, names, database)}


def recovery_metadata(recovery: Recovery) -> dict[str, Any]:
    """Metadata of a recovery: the gap, and the tables that differ."""
    rows = ((found.table, found.state, "; ".join(found.differences)) for found in recovery.different)
    return {
        "gap": f"{recovery.gap.kind}: {recovery.gap.reason}",
        "tables equal": len(recovery.tables) - len(recovery.different),
        "tables not equal": markdown_table(("table", "replica", "differences"), rows, len(recovery.different)),
    }


def load_metadata(report: LoadReport, names: Names, database: str) -> dict[str, Any]:
    """Metadata of a load. Figures are numbers, which Dagster plots; what it did in detail are tables."""
    metadata: dict[str, Any] = {
        **LoadName.of(report, report.directory).metadata,
        "from_evid": report.from_evid,
        "to_evid": report.to_evid,
        "operations": sum(report.applied.values()),
        "files": len(report.copies),
        "copied (MB)": round(report.bytes_copied / 1e6, 6),
        "duration (s)": round(sum(report.seconds.values()), 3),
    }
    metadata |= {f"{phase} (s)": seconds for phase, seconds in report.seconds.items()}
    metadata |= {_ORIGINS[origin]: count for origin, count in sorted(report.files_by_origin.items())}
    metadata |= {f"files by {executor}": count for executor, count in sorted(report.files_by_executor.items())}
    if report.collapsed.events:
        spared = report.collapsed
        metadata |= {
            "events collapsed": spared.events,
            "operations of collapsed events": spared.operations,
            "files not copied": spared.files,
        }
        metadata |= {"not copied (MB)": round(spared.bytes / 1e6, 6)} if spared.bytes >= 0 else {}
    return metadata | dict(report.privileges) | _details(report, names, database)


def _details(report: LoadReport, names: Names, database: str) -> dict[str, dg.MarkdownMetadataValue]:
    """What a load did, as tables; those without rows are left out."""
    strangers, changed = ([(one.object, one.outcome) for one in found] for found in (report.unexpected, report.changed_on_target))
    tables: dict[str, tuple[Sequence[str], Sequence[Sequence[object]]]] = {
        "changed": (("table", "event", "changed"), [_touched(one, names, database) for one in report.touched]),
        "operations by kind": (("operation", "number"), sorted(report.applied.items())),
        "slowest operations": (("operation", "table", "event", "number", "seconds"), [astuple(one) for one in report.slowest]),
        "proven by": (("checksum", "files"), sorted(report.copies.algorithms.items())),
        "proofs": (("object", "file", "size", "proof"), _proofs(report)),
        "in the way": (("object", "what"), strangers),
        "changed on the target": (("object", "what"), changed),
        "kept as external tables": (("table",), [(table,) for table in report.translated]),
        "views that read the database by its name at the source": (("view",), [(view,) for view in report.broken_views]),
        "skipped": (("event", "what", "why"), [(one.evid, one.what, one.reason) for one in report.skipped]),
    }
    limits = {"proofs": (_proven(report), _PROOFS)}
    made = {
        title: markdown_table(head, rows, *limits.get(title, (len(rows), _ROWS)))
        for title, (head, rows) in tables.items()
        if rows
    }
    return made | ({"held": held_table(report)} if report.held else {})


def commits_metadata(commits: Sequence[Commit]) -> dict[str, Any]:
    """The transactions that wrote to a table or partition, the last one first; empty without transactions."""
    if not commits:
        return {}
    rows = [(one.write_id, one.transaction, one.evid) for one in reversed(commits)]
    head = ("write id (both sides)", "transaction (source)", "commit (event)")
    return {"write id": commits[-1].write_id, "transactions": markdown_table(head, rows, len(rows))}


def held_table(report: LoadReport) -> dg.MarkdownMetadataValue:
    """Held lanes, with the event that failed and the reason."""
    rows = ((", ".join(held.tables), held.after, held.evid, held.reason) for held in report.held)
    return markdown_table(("tables", "stand at", "failed event", "why"), rows, len(report.held))


def _proofs(report: LoadReport) -> list[Sequence[object]]:
    """The first files that are in use; those that were brought for a change that failed are no proof of anything yet."""
    return [_proof(copy) for copy in islice((copy for copy in report.copies if not is_unused(report, copy)), _PROOFS)]


def _proven(report: LoadReport) -> int:
    if not report.held:
        return len(report.copies)
    return sum(not is_unused(report, copy) for copy in report.copies)


def _proof(copy: CopyResult) -> Sequence[object]:
    origin = "" if copy.origin == "source" else f", from {copy.origin}"
    attempts = f", {copy.attempts} attempts" if copy.attempts > 1 else ""
    proof = f"…{copy.proof.value[-8:]}{origin}{attempts}"
    return _shortened(copy.task.object_name), _shortened(copy.task.file.name), unbroken(size(copy.size)), proof


def _shortened(name: str) -> str:
    """Both ends of a long name."""
    half = _WIDTH // 2
    return name if len(name) <= _WIDTH else f"{name[:half]}…{name[-half + 1 :]}"


def _touched(one: Touched, names: Names, database: str) -> Sequence[object]:
    asset, partition = names.replica(database, one.source_table, one.partitions[0] if len(one.partitions) == 1 else None)
    shown = link(one.table, asset_url(asset, partition))
    numbers = ((one.partitions, ""), (one.dropped_partitions, " dropped"))
    changed = ", ".join(count(len(parts), "partition") + what for parts, what in numbers if parts)
    return shown, one.evid, "dropped" if one.dropped else changed or "table"


def lag_figures(found: Lag | TableLag) -> dict[str, int | float]:
    """Figures of a lag as far as they are known: numbers, which Dagster plots, with units as in the metadata of loads."""
    known = {
        "behind (s)": None if found.seconds_behind is None else round(found.seconds_behind, 3),
        "events waiting": found.waiting,
        "waiting (MB)": None if found.bytes_waiting is None else round(found.bytes_waiting / 1e6, 6),
        "applied event id": found.applied,
    }
    return {name: value for name, value in known.items() if value is not None}


def lag_metadata(found: Lag) -> dict[str, Any]:
    """Metadata of a database's lag: its figures, held tables, a gap, and whether an operator stopped it."""
    metadata: dict[str, Any] = {**lag_figures(found), "source event id": found.current, "tables held": len(found.held)}
    if found.held:
        metadata["held"] = markdown_table(("table", "why"), found.held, len(found.held))
    texts = {"gap": found.gap, "policy": found.changed, "not replicated any more": _first(found.left)}
    texts["stopped by an operator"] = found.stopped
    return metadata | {name: text for name, text in texts.items() if text} | so_far(found)


def _first(names: Sequence[str]) -> str:
    """The first fifty names, with the number of those left out."""
    return ", ".join(names[:_ROWS]) + (f" … and {len(names) - _ROWS:,} more" if len(names) > _ROWS else "")


def so_far(found: Lag) -> dict[str, str]:
    """Metadata of a lag whose figures are too low."""
    return {} if found.complete or found.waiting is None else {"so far": _TOO_LOW}


def role_metadata(role: ReplicaRole | None) -> dict[str, Any]:
    """Metadata of a database: its direction, role and readiness for a failover."""
    return {} if role is None else {"direction": role.direction, "role": role.role, "failover": role.readiness}


def asset_url(key: dg.AssetKey, partition: str | None = None) -> str:
    """Path of an asset in Dagster's UI, at a partition where its key is given."""
    path = "/assets/" + "/".join(quote(part, safe="") for part in key.path)
    return path + (f"?view=partitions&partition={quote(partition, safe='')}" if partition else "")


def text_of(metadata: Mapping[str, Any], name: str) -> str:
    """A text or path in the metadata of a stored event, "" where it is absent."""
    value = metadata.get(name)
    return str(value.value) if value is not None else ""
