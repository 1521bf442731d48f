"""Packs, the choice of a copier, and when a checksum can be reproduced: nothing here touches a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.copy.packing import pack, partition_packs
from hive_replication.copy.proof import Crc32c, is_of_one_block, is_reproducible
from hive_replication.copy.tasks import CopyFailure, CopyTask
from hive_replication.copy.threshold_copier import ThresholdCopier
from hive_replication.events.files import FileRef
from hive_replication.storage import FileStatus


def task(number: int, size: int = -1) -> CopyTask:
    return CopyTask(FileRef(f"hdfs://nn:1/{number}"), f"hdfs://nn:2/{number}", 1, "db.t", size)


@given(st.lists(st.integers(-1, 300)), st.integers(1, 200), st.integers(1, 7))
def test_every_task_is_in_one_pack_within_the_limits(sizes: list[int], max_bytes: int, max_files: int) -> None:
    tasks = [task(number, size) for number, size in enumerate(sizes)]
    packs = pack(tasks, max_bytes=max_bytes, max_files=max_files)
    assert Counter(t for p in packs for t in p) == Counter(tasks)
    assert all(len(p) == 1 or (len(p) <= max_files and sum(t.size for t in p) <= max_bytes) for p in packs)
    known = [t.size for p in packs for t in p if t.size >= 0]
    assert known == sorted(known, reverse=True)


def test_files_of_unknown_size_do_not_pile_up() -> None:
    assert [len(p) for p in pack([task(n) for n in range(64)])] == [32, 32]


class Recorder:
    """A copier that only notes how many tasks it got."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyFailure]:
        window = list(tasks)
        self.seen.append(len(window))
        return (CopyFailure(t, "not copied") for t in window)


@pytest.mark.parametrize(
    ("sizes", "spark"), [([10, 10], False), ([10, 11], True), ([1, 1, 1], True), ([-1, 20], False), ([], False)]
)
def test_spark_is_made_only_beyond_a_limit(sizes: list[int], spark: bool) -> None:
    threads, made = Recorder(), list[Recorder]()

    def factory() -> Recorder:
        made.append(Recorder())
        return made[-1]

    copier = ThresholdCopier(threads, factory, max_files=2, max_bytes=20)
    for _ in range(2):
        assert len(list(copier.copy(task(n, size) for n, size in enumerate(sizes)))) == len(sizes)
    assert [r.seen for r in made] == ([[len(sizes)] * 2] if spark else [])
    assert threads.seen == ([] if spark else [len(sizes)] * 2)


MIB = 1 << 20
ONE_BLOCK = "00000200" + "0" * 16 + "2ebac5fafc444475c9720587791d7412"
MANY_BLOCKS = "00000200" + f"{MIB // 512:016x}" + "72160924aebab10c326ef52658242f3e"
EMPTY = "0" * 24 + "70bc8f4b72a86921468bf8e8441dce51"


def status(size: int, block_size: int | None = MIB, replication: int | None = 3) -> FileStatus:
    return FileStatus("hdfs://nn:1/x", size, False, 0.0, block_size, replication)


@pytest.mark.parametrize(
    ("recorded", "file", "expected"),
    [
        (ONE_BLOCK, status(5), True),
        (MANY_BLOCKS, status(5 * MIB), True),
        (EMPTY, status(0), True),
        (MANY_BLOCKS, status(5 * MIB, block_size=2 * MIB), False),
        ("00000400" + ONE_BLOCK[8:], status(5), False),
        (ONE_BLOCK, status(5, replication=None), False),
        (ONE_BLOCK, status(5, block_size=None), False),
        ("d41d8cd98f00b204e9800998ecf8427e", status(5), False),
        ("", status(5), False),
        ("z" * 56, status(5), False),
    ],
)
def test_when_a_checksum_can_be_reproduced(recorded: str, file: FileStatus, expected: bool) -> None:
    assert is_reproducible(recorded, file) is expected
    assert is_of_one_block(recorded) is recorded.startswith(("00000200" + "0" * 16, "00000400" + "0" * 16, "0" * 24))


def test_crc32c_is_castagnolis() -> None:
    assert Crc32c.of([b"1234", b"56789"]).hex == "e3069283"  # The check value of CRC-32C in its definition (RFC 3720).
    assert Crc32c.of([]).hex == "00000000"


@pytest.mark.parametrize(("packs", "most", "hands"), [(5, 9, 5), (5, 5, 5), (5, 2, 2), (1, 1, 1)])
def test_no_more_spark_tasks_than_allowed_and_large_packs_apart(packs: int, most: int, hands: int) -> None:
    made = pack([task(n, 10 + n) for n in range(packs)], max_files=1)
    partitions = partition_packs(made, most)
    assert len(partitions) == hands
    assert sorted(p[0].size for some in partitions for p in some) == [10 + n for n in range(packs)]
    assert [some[0] for some in partitions] == made[:hands]


def test_sizes_are_known_before_the_choice() -> None:
    threads, spark = Recorder(), Recorder()
    looked_up = ThresholdCopier(
        threads, lambda: spark, lambda tasks: [replace(t, size=21) for t in tasks], max_files=2, max_bytes=20
    )
    assert len(list(looked_up.copy([task(1)]))) == 1
    assert (threads.seen, spark.seen) == ([], [1])
