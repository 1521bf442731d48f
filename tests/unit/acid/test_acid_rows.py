"""What rows of transactional tables add up to: what compaction makes of them is the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc

from hive_replication.acid.rows import File, Rows, kind_of, rows_of
from hive_replication.acid.write_ids import WriteIds

BUCKET = 1 << 29
ALL = WriteIds(9)


def _file(path: str, table: pa.Table) -> File:
    sink = pa.BufferOutputStream()
    orc.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    return path, lambda: data


def acid(path: str, *events: tuple[int, int, int | None], bucket: int = BUCKET) -> File:
    """A file of events: the write id that made the row, its number there, and its value (None: deleted by write id 3)."""
    rows = [
        {
            "operation": 0 if value is not None else 2,
            "originalTransaction": made,
            "bucket": bucket,
            "rowId": number,
            "currentTransaction": made if value is not None else 3,
            "row": None if value is None else {"a": value},
        }
        for made, number, value in events
    ]
    kinds = [("operation", pa.int32()), ("originalTransaction", pa.int64()), ("bucket", pa.int32()), ("rowId", pa.int64())]
    schema = pa.schema([*kinds, ("currentTransaction", pa.int64()), ("row", pa.struct([("a", pa.int32())]))])
    return _file(path, pa.Table.from_pylist(rows, schema=schema))


def raw(path: str, *values: int) -> File:
    return _file(path, pa.table({"a": pa.array(values, pa.int32())}))


DELTAS = [
    acid("delta_0000001_0000001_0000/bucket_00000", (1, 0, 10), (1, 1, 11)),
    acid("delta_0000002_0000002_0000/bucket_00000", (2, 0, 20)),
    acid("delete_delta_0000003_0000003_0000/bucket_00000", (1, 0, None)),
]


@pytest.mark.parametrize(
    "compacted",
    [
        [acid("base_0000003/bucket_00000", (1, 1, 11), (2, 0, 20))],
        [
            acid("delta_0000001_0000003/bucket_00000", (2, 0, 20), (1, 0, 10), (1, 1, 11)),
            acid("delete_delta_0000001_0000003/bucket_00000", (1, 0, None)),
        ],
    ],
)
def test_compaction_changes_nothing(compacted: list[File]) -> None:
    found = rows_of(DELTAS, "acid", ALL)
    assert found.number == 2
    assert rows_of(compacted, "acid", ALL) == found


@pytest.mark.parametrize(
    "other",
    [
        [acid("base_0000003/bucket_00000", (1, 1, 11))],
        [acid("base_0000003/bucket_00000", (1, 1, 12), (2, 0, 20))],
        [acid("base_0000003/bucket_00000", (1, 2, 11), (2, 0, 20))],
    ],
)
def test_other_rows_and_other_row_ids_are_other(other: list[File]) -> None:
    assert rows_of(other, "acid", ALL) != rows_of(DELTAS, "acid", ALL)


def test_rows_of_writes_that_the_reader_does_not_see() -> None:
    seen = WriteIds(9, aborted=frozenset({3}))
    assert rows_of(DELTAS, "acid", seen).number == 3


def test_files_of_before_the_conversion_are_numbered_by_bucket() -> None:
    copies = [raw("000000_0_copy_10", 4), raw("000000_0_copy_2", 3), raw("000000_0", 1, 2)]
    before = [*copies, acid("delete_delta_0000003_0000003/b", (0, 1, None))]
    assert rows_of(before, "acid", ALL) == rows_of(
        [acid("base_0000003/bucket_00000", (0, 0, 1), (0, 2, 3), (0, 3, 4))], "acid", ALL
    )


def test_rows_that_load_data_brought_have_the_ids_that_a_compaction_gives_them() -> None:
    """Its files have none: comparing them with a compacted side ended with a KeyError."""
    loaded = [
        raw("delta_0000004_0000004_0002/000000_0_copy_1", 3),
        raw("delta_0000004_0000004_0002/000000_0", 1, 2),
        acid("delete_delta_0000005_0000005/bucket_00000", (4, 1, None), bucket=BUCKET | 2),
    ]
    compacted = [acid("base_0000005/bucket_00000", (4, 0, 1), (4, 2, 3), bucket=BUCKET | 2)]
    assert rows_of(loaded, "acid", ALL) == rows_of(compacted, "acid", ALL)
    overwritten = rows_of([raw("base_0000004/000001_0", 1)], "acid", ALL)
    assert overwritten == rows_of([acid("base_0000004/bucket_00001", (4, 0, 1), bucket=BUCKET | 1 << 16)], "acid", ALL)
    with pytest.raises(ValueError, match="has no row ids, and is of no bucket"):
        rows_of([raw("base_0000004/part", 1)], "acid", ALL)


def test_columns_that_were_added_or_renamed_after_a_file_was_written_change_nothing() -> None:
    """A compaction writes all files anew, with the columns of its time: what it had not touched was told as another table."""

    def rows(name: str, *columns: tuple[str, int | None]) -> Rows:
        inner = pa.array([dict(columns)], pa.struct([(one, pa.int32()) for one, _ in columns]))
        added = {} if name == "a" else {"c": pa.array([None], pa.int32())}
        return rows_of(
            [_file("000000_0", pa.table({name: pa.array([7], pa.int32()), "s": pa.array([[*inner]])} | added))], "orc", ALL
        )

    assert rows("a", ("x", 1)) == rows("b", ("y", 1), ("z", None))
    assert rows("a", ("x", 1)) != rows("b", ("y", 1), ("z", 0))
    assert rows("a", ("x", None), ("y", 1)) != rows("b", ("y", 1))


def test_insert_only_tables() -> None:
    def text(path: str, data: bytes) -> File:
        return path, lambda: data

    lines = [text("delta_0000001_0000001_0000/000000_0", b"1\n2\n"), text("delta_0000002_0000002_0000/000000_0", b"3\n")]
    assert rows_of(lines, "text", ALL) == rows_of([text("base_0000002/000000_0", b"3\n1\n2\n")], "text", ALL)
    assert rows_of([raw("delta_0000001_0000001_0000/000000_0", 1, 2)], "orc", ALL).number == 2


@pytest.mark.parametrize(
    ("input_format", "insert_only", "kind"),
    [
        ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", False, "acid"),
        ("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat", True, "orc"),
        ("org.apache.hadoop.mapred.TextInputFormat", True, "text"),
        ("org.apache.hadoop.mapred.SequenceFileInputFormat", True, None),
    ],
)
def test_formats(input_format: str, insert_only: bool, kind: str | None) -> None:
    assert kind_of(input_format, insert_only=insert_only) == kind
