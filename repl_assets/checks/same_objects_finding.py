"""What the witness found, as the result of the check ``same_objects``; the next round reads its differences there again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.verify.witness import Remembered, Round
from repl_assets.checks.findings import Finding
from repl_assets.recording.metadata import markdown_table

_REMEMBERED = "for the next round"
_MOST = 1_000  # differences that are remembered; there are more only where much else is wrong
_STORED = TypeAdapter(list[Remembered])


def round_finding(found: Round) -> Finding:
    """A round of the witness as the finding of a check. It fails for what is wrong, not for what may only wait."""
    if found.applied is None:
        return Finding(undecided="no bootstrap of the database is finished")
    counts = found.counts
    metadata: dict[str, Any] = {
        "tables at source": counts.tables[0],
        "tables at target": counts.tables[1],
        "partitions at source": counts.partitions[0],
        "partitions at target": counts.partitions[1],
        "names at source": found.digests[0],
        "names at target": found.digests[1],
        "partitions described": counts.described,
        "directories listed": counts.directories,
        "files at source": counts.files[0],
        "files at target": counts.files[1],
        "checksums compared": counts.checksums,
        "applied event id": found.applied,
        "source event id": found.current,
        "wrong": len(found.wrong),
        "may wait for events": len(found.waiting),
    }
    differences = [(one.difference, "" if one.wrong else "may wait for events") for one in found.differences]
    rows = sorted((bool(state), one.table, one.partition, one.text, state) for one, state in differences)
    if rows:
        head = ("table", "partition", "difference", "")
        metadata["differences"] = markdown_table(head, (row[1:] for row in rows), len(rows))
        metadata[_REMEMBERED] = dg.MetadataValue.json(_STORED.dump_python(list(found.differences[:_MOST]), mode="json"))
    texts = tuple(f"{one.table}{f'/{one.partition}' if one.partition else ''}: {one.text}" for one in found.wrong)
    return Finding(metadata, (), texts, passed=not texts)


def remembered(metadata: Mapping[str, Any]) -> Sequence[Remembered]:
    """The differences of the last round; none where it left none that can be read."""
    value = metadata.get(_REMEMBERED)
    try:
        return _STORED.validate_python(value.value) if value is not None else []
    except ValidationError:
        return []
