# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false
# (pyarrow has no types)
"""The whole report of a load as rows of a Parquet file: every file with its proof, every table, and what was held or skipped.

Rows are written and read in batches, so that memory holds one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from mmap import ACCESS_READ, mmap
from typing import IO, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from hive_replication.copy.tasks import CopyResult
from hive_replication.dump.format.packed_parquet_sizes import MIB, small_row_groups
from hive_replication.dump.format.parquet_pages import footer_length
from hive_replication.errors import ReplicationError
from hive_replication.load.layout.directories import as_committed
from hive_replication.load.records.record import is_unused
from hive_replication.load.report import LoadReport, Touched, object_of
from hive_replication.storage import TooLarge

#: What a row is about.
Section = Literal["table", "partition", "file", "held", "skipped", "in the way", "changed on the target"]

_BATCH = 5_000  # rows
_FOOTER = 64 * MIB  # some 300 million rows; 130 million of a report with statistics, which earlier versions wrote
_OUTCOME = 4_096  # characters: long reasons in all rows of a batch would make more bytes than are read at once
_RECORD = b"hive_replication.record"
_SCHEMA = pa.schema(
    [
        ("section", pa.string()),
        ("table", pa.string()),
        ("partition", pa.string()),
        ("evid", pa.int64()),
        ("outcome", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("origin", pa.string()),
        ("size", pa.int64()),
        ("checksum_algorithm", pa.string()),
        ("checksum", pa.string()),
        ("checksum_recorded", pa.bool_()),
        ("attempts", pa.int32()),
        ("executor", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One row of a report; what does not belong to its section is None.

    Args:
        section: what the row is about.
        table: on the target.
        partition: its name, None for the table itself.
        evid: the event.
        outcome: what became of it: of a file ``in use``, or ``table held`` where the change that it belongs to failed.
            What is longer than 4,096 characters is cut where rows are written.
        source: path of a file at the source.
        target: path of its replica.
        origin: ``source``, ``cmroot`` or ``present``.
        size: bytes.
        checksum_algorithm: of the proof.
        checksum: the replica's, lowercase hex.
        checksum_recorded: whether the source had recorded the file's checksum in its event.
        attempts: copies made.
        executor: ``threads`` or ``spark``.
    """

    section: Section
    table: str | None = None
    partition: str | None = None
    evid: int | None = None
    outcome: str | None = None
    source: str | None = None
    target: str | None = None
    origin: str | None = None
    size: int | None = None
    checksum_algorithm: str | None = None
    checksum: str | None = None
    checksum_recorded: bool | None = None
    attempts: int | None = None
    executor: str | None = None


def report_rows(report: LoadReport) -> Iterator[ReportRow]:
    """All rows of a report: what failed first, then tables, then files."""
    for held in report.held:
        for table in held.tables:
            yield ReportRow("held", table, evid=held.evid, outcome=held.reason)
    for one in report.unexpected:
        yield ReportRow("in the way", *object_of(one.object), outcome=one.outcome)
    for one in report.changed_on_target:
        yield ReportRow("changed on the target", *object_of(one.object), outcome=one.outcome)
    for skipped in report.skipped:
        yield ReportRow("skipped", skipped.what, evid=skipped.evid, outcome=skipped.reason)
    for touched in report.touched:
        yield from _touched(touched)
    for copy in report.copies:
        yield _file(copy, used=not is_unused(report, copy))


def write_rows(sink: IO[bytes], rows: Iterable[ReportRow], record: bytes) -> None:
    """Writes a Parquet file.

    Args:
        sink: where to.
        rows: of the report.
        record: the load's record, kept in the file's metadata.
    """
    schema = _SCHEMA.with_metadata({_RECORD: record})
    with pq.ParquetWriter(sink, schema, compression="zstd", write_statistics=False) as writer:
        waiting = iter(rows)
        while batch := list(islice(waiting, _BATCH)):
            columns = {name: [getattr(row, name) for row in batch] for name in _SCHEMA.names}
            columns["outcome"] = [outcome and outcome[:_OUTCOME] for outcome in columns["outcome"]]
            writer.write_table(pa.Table.from_pydict(columns, schema=schema))


def read_rows(source: IO[bytes], columns: Sequence[str] | None = None) -> Iterator[ReportRow]:
    """Reads :func:`write_rows`.

    Args:
        source: a file of this machine.
        columns: all without; else the others are None, and cost no time: few of them are read twice as fast as all.

    Raises:
        TooLarge: its footer is larger than is read.
        ReplicationError: the file is damaged, or some of its rows take more memory than any that are written at once.
    """
    try:
        data = mmap(source.fileno(), 0, access=ACCESS_READ)
        _require_small_footer(data)
        schema = pa.schema([_SCHEMA.field(name) for name in columns or _SCHEMA.names])
        for rows in small_row_groups(data, schema, _FOOTER):
            for batch in rows.to_batches(max_chunksize=_BATCH):
                for row in batch.to_pylist():
                    yield ReportRow(**row)
    except TooLarge:
        raise
    except (TypeError, ValueError, OSError) as error:
        raise ReplicationError(f"the report is unreadable: {error}") from error


def _require_small_footer(data: mmap) -> None:
    if _FOOTER < (length := footer_length(data)) < len(data):  # else it is damaged
        raise TooLarge(f"the report's footer has {length:,} bytes, more than the {_FOOTER:,} that are read: read it with Spark")


def _touched(one: Touched) -> Iterator[ReportRow]:
    yield ReportRow("table", one.table, evid=one.evid, outcome="dropped" if one.dropped else "changed")
    for names, outcome in ((one.partitions, "changed"), (one.dropped_partitions, "dropped")):
        for name in names:
            yield ReportRow("partition", one.table, name, one.evid, outcome)


def _file(copy: CopyResult, *, used: bool) -> ReportRow:
    return ReportRow(
        "file",
        *object_of(copy.task.object_name),
        copy.task.evid,
        "in use" if used else "table held",
        copy.task.file.uri,
        as_committed(copy.task.target) if used else copy.task.target,
        copy.origin,
        copy.size,
        copy.proof.algorithm,
        copy.proof.value,
        copy.proof.recorded,
        copy.attempts,
        copy.executor,
    )
