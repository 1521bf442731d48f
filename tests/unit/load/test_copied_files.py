"""What a load keeps of the files that it copied."""

from __future__ import annotations

import gc
from itertools import islice

import pytest

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies


def result(number: int) -> CopyResult:
    """Partition ``number``'s file."""
    name = f"db.t/ds={number:06d}"
    task = CopyTask(FileRef(f"hdfs://s/{name}/0", f"{number:064x}"), f"hdfs://t/{name}/0", number, name)
    proof = Proof("MD5-of-0MD5-of-512CRC32C", f"{number:064x}", recorded=number % 2 == 0)
    return CopyResult(task, "present" if number % 3 == 0 else "source", 10, proof, attempts=1)


@pytest.mark.parametrize("size", [0, 1, 999, 1_000, 1_001, 2_000, 4_321])
def test_all_rows_are_there_in_order(size: int) -> None:
    rows = tuple(map(result, range(size)))
    copies = Copies(rows)
    assert (len(copies), bool(copies)) == (size, size > 0)
    assert tuple(copies) == rows
    assert copies == rows
    assert copies == Copies(rows)
    assert copies != (*rows, result(7))
    assert copies[:50] == rows[:50]
    assert copies[size - 2 :] == rows[size - 2 :]
    assert size == 0 or (copies[0], copies[-1]) == (rows[0], rows[-1])


def test_two_readers_do_not_disturb_each_other() -> None:
    rows = [result(number) for number in range(5_000)]
    copies = Copies(rows)
    ahead, behind = iter(copies), iter(copies)
    assert list(islice(ahead, 2_500)) == rows[:2_500]
    for row, later in zip(rows[:2_500], rows[2_500:], strict=True):  # in turns, from different places of the file
        assert (next(behind), next(ahead)) == (row, later)
    assert (list(behind), list(ahead)) == (rows[2_500:], [])


def test_figures() -> None:
    copies = Copies(map(result, range(3_000)))
    assert dict(copies.origins) == {"present": 1_000, "source": 2_000}
    assert dict(copies.executors) == {"threads": 3_000}
    assert dict(copies.algorithms) == {"MD5-of-0MD5-of-512CRC32C": 3_000}
    assert (copies.bytes, copies.unrecorded) == (20_000, 1_500)


def held(size: int) -> int:
    """How many results are in memory after the copies of so many partitions."""
    copies = Copies(map(result, range(size)))
    gc.collect()
    assert len(copies) == size
    return sum(isinstance(one, CopyResult) for one in gc.get_objects())


def test_memory_is_flat() -> None:
    """As many are held of 20,000 partitions as of 2,000; a tuple held ten times as many."""
    assert held(20_000) == held(2_000)
