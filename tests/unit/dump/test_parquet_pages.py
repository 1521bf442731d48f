"""Footers and page headers of Parquet files, also of damaged ones."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO

import pyarrow.parquet as pq
import pytest

from hive_replication.dump.format import parquet_pages
from hive_replication.dump.format.packed_parquet import part_of
from hive_replication.dump.format.parquet_pages import columns, page
from hive_replication.dump.format.record_types import PartitionRecord
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Partition, StorageDescriptor

_STATISTICS = """
import sys
from hive_replication.dump.format.packed_parquet import SCHEMA
from hive_replication.dump.format.packed_parquet_sizes import require_small

data = bytearray(sys.stdin.buffer.read())
begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
for place in range(begin, len(data) - 8, int(sys.argv[1])):
    kept = data[place]
    for value in {(kept + 16) % 256, kept ^ 1, 0} - {kept}:
        data[place] = value
        try:
            require_small(bytes(data), SCHEMA)
        except ValueError:
            pass
    data[place] = kept
print("survived")
"""


@pytest.fixture(scope="module")
def part() -> bytes:
    files = (FileRef("hdfs://nn/w/t/ds=1/f", "ab", "hdfs://nn/cmroot", ""),)
    partition = Partition(values=["1"], dbName="db", tableName="t", sd=StorageDescriptor(location="hdfs://nn/w/t/ds=1"))
    return part_of([PartitionRecord("t", f"ds={number}", partition, files) for number in range(3)])


def test_columns_lie_where_arrow_says(part: bytes) -> None:
    meta = pq.ParquetFile(BytesIO(part)).metadata
    chunks = [meta.row_group(0).column(number) for number in range(meta.num_columns)]
    starts = [min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset))) for chunk in chunks]
    assert [column.start for column in columns(part)] == starts
    assert [column.end - column.start for column in columns(part)] == [chunk.total_compressed_size for chunk in chunks]
    for column in columns(part):
        place, uncompressed = column.start, 0
        while place < column.end:
            found = page(part, place)
            place, uncompressed = place + found.length + found.compressed, uncompressed + found.length + found.uncompressed
        assert place == column.end
        assert uncompressed > 0


def test_a_footer_of_wrong_length_is_refused(part: bytes) -> None:
    for length in (0, len(part), 2**32 - 1):
        with pytest.raises(ValueError, match="footer"):
            columns(part[:-8] + length.to_bytes(4, "little") + b"PAR1")


def test_a_footer_of_more_columns_than_any_is_refused(part: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each, which may be one byte of a footer, Arrow makes an object of some 500 bytes."""
    found = len(columns(part))
    monkeypatch.setattr(parquet_pages, "_STRUCTS", found + 1)
    assert len(columns(part)) == found
    monkeypatch.setattr(parquet_pages, "_STRUCTS", found)
    with pytest.raises(ValueError, match="row groups and columns that are read"):
        columns(part)


@pytest.mark.no_cover
@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
def test_no_damaged_footer_ends_the_process(part: bytes, step: int) -> None:
    """Arrow's C++ ends it at wrong statistics of sizes, where Python asks for a column of the footer."""
    done = subprocess.run(
        [sys.executable, "-c", _STATISTICS, str(step)], input=part, capture_output=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout.decode().strip()) == (0, "survived"), done.stderr[-500:]
