"""Which directories of a transactional table a reader needs, and what it sees of them."""

from __future__ import annotations

from random import Random

import pytest

from hive_replication.acid.directories import AcidDirectory, base_name, read_by
from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import needed
from hive_replication.events.files import FileRef
from tests.crash.hive_reading import directories_read

SEEN = WriteIds(9, aborted=frozenset({4}))


def test_write_ids_as_the_metastore_and_hive_write_them() -> None:
    found = WriteIds.of(13, [2, 5, 7, *range(8, 14)], b"\x05\x01")
    assert found == WriteIds(13, open=frozenset({5, 8, 9, 10, 11, 12}), aborted=frozenset({2, 7, 13}))
    assert found.encode("db.t") == "db.t:13:5:5,8,9,10,11,12:2,7,13"
    assert WriteIds.parsed(found.encode("db.t")) == found
    assert WriteIds(3).encode("db.t") == "db.t:3:9223372036854775807::"
    assert WriteIds.parsed("db.t:3:9223372036854775807::") == WriteIds(3)


def test_what_a_reader_sees() -> None:
    assert [SEEN.sees(one) for one in (1, 4, 9, 10)] == [True, False, True, False]
    assert [SEEN.sees_any(*one) for one in ((4, 4), (4, 5), (9, 12), (10, 12))] == [False, True, True, False]
    opened = WriteIds(9, open=frozenset({6}))
    assert [opened.sees_base(one) for one in (5, 6, 9, 10)] == [True, False, False, False]
    assert SEEN.sees_base(5)  # an aborted write is in no base


@pytest.mark.parametrize("name", ["base_5x", "delta_1", "delta_1_2_3", "bucket_0", "_tmp", "delta_a_b", "base_0000005_v"])
def test_other_names(name: str) -> None:
    assert AcidDirectory.parsed(name) is None


def test_names_are_taken_apart() -> None:
    made = AcidDirectory.parsed("delete_delta_0000003_0000007_v0000123")
    assert made == AcidDirectory(
        "delete_delta_0000003_0000007_v0000123", "delete_delta_0000003_0000007", "delete_delta", 3, 7, -1, 123
    )
    written = AcidDirectory.parsed("delta_0000003_0000003_0000")
    assert written is not None
    assert (written.statement, written.visibility, written.plain) == (0, 0, "delta_0000003_0000003_0000")
    assert base_name(7) == "base_0000007"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param("delta_1_1_0000 delta_4_4_0000 delta_10_10_0000", "delta_1_1_0000", id="committed only"),
        pytest.param("base_3 delta_3_3_0000 delta_5_5_0000 base_2", "base_3 delta_5_5_0000", id="the last base"),
        pytest.param("base_12 delta_1_1_0000", "delta_1_1_0000", id="a base of later writes"),
        pytest.param("base_4 delta_1_1_0000", "delta_1_1_0000", id="an aborted overwrite"),
        pytest.param("delta_1_5_v7 delta_1_1_0000 delta_5_5_0000 delta_6_6_0000", "delta_1_5_v7 delta_6_6_0000", id="minor"),
        pytest.param("delta_1_5_v8 delta_1_1_0000 delta_5_5_0000", "delta_1_1_0000 delta_5_5_0000", id="minor not committed"),
        pytest.param("base_5_v8 delta_5_5_0000", "delta_5_5_0000", id="major not committed"),
        pytest.param("delta_5_5_0000 delta_5_5_0001", "delta_5_5_0000 delta_5_5_0001", id="statements"),
        pytest.param("delta_5_5_0001 delete_delta_5_5_0000", "delta_5_5_0001 delete_delta_5_5_0000", id="an update"),
    ],
)
def test_directories_that_a_reader_needs(names: str, expected: str) -> None:
    assert sorted(read_by(names.split(), SEEN, hidden=[8])) == sorted(expected.split())
    assert directories_read(names.split(), SEEN, hidden=[8]) == set(expected.split())


def test_any_history_is_read_as_hive_reads_it() -> None:
    """Writes of all kinds and a compaction of some of them; compared with Hive's own loop, which the crash tests use."""
    for seed in range(1000):
        random = Random(seed)
        names, seen = _history(random)
        hidden = {50} if random.random() < 0.2 else set[int]()
        assert set(read_by(names, seen, hidden)) == directories_read(names, seen, hidden), (seed, sorted(names), seen)


def _history(random: Random) -> tuple[set[str], WriteIds]:
    """Directories, and what a reader sees. No overwrite is open: Hive would read that of the lowest open write."""
    names, ends = set[str](), {one: random.choices(["committed", "aborted", "open"], [6, 2, 1])[0] for one in range(1, 8)}
    for one, end in ends.items():
        rows, deleted = f"delta_{one}_{one}_000", f"delete_delta_{one}_{one}_0000"
        kinds = [(), (f"{rows}0",), (f"{rows}1", deleted), (f"{rows}0", f"{rows}1", f"{rows}2", deleted), (f"base_{one}",)]
        names |= set(random.choice(kinds[: -1 if end == "open" else None]))
    opened, aborted = (frozenset(one for one, end in ends.items() if end == what) for what in ("open", "aborted"))
    last = random.randint(0, min(opened, default=8) - 1)
    bases = [one for one in range(1, last + 1) if f"base_{one}" in names and one not in aborted]
    first = max(bases, default=0) + 1
    if last and random.random() < 0.4:
        names.add(f"base_{last}_v50")
    elif first < last:
        deletes = any(f"delete_delta_{one}_{one}_0000" in names for one in range(first, last + 1))
        names |= {f"delta_{first}_{last}_v50", *([f"delete_delta_{first}_{last}_v50"] if deletes else [])}
    return names, WriteIds(7, opened, aborted)


def test_an_overwrite_that_is_open_is_read_by_hive_alone() -> None:
    """If nothing before it is: its readers wait for the writer's lock. A dump takes none."""
    names, opened = ["delta_1_1_0000", "base_2"], WriteIds(2, open=frozenset({2}))
    assert list(read_by(names, opened)) == ["delta_1_1_0000"]
    assert directories_read(names, opened) == {"base_2"}
    assert directories_read(names, WriteIds(2, open=frozenset({1, 2}))) == set()


def test_a_compaction_that_began_after_the_reader_is_not_read() -> None:
    """It works directly in its base, which may be empty still."""
    assert list(read_by(["delta_1_1", "base_1_v13"], WriteIds(1), Hidden(12, frozenset({7})))) == ["delta_1_1"]
    assert list(read_by(["delta_1_1", "base_1_v7"], WriteIds(1), Hidden(12, frozenset({7})))) == ["delta_1_1"]
    assert list(read_by(["delta_1_1", "base_1_v12"], WriteIds(1), Hidden(12, frozenset({7})))) == ["base_1_v12"]


def test_an_overwrite_is_read_though_earlier_writes_are_open() -> None:
    opened = WriteIds(9, open=frozenset({3}))
    assert list(read_by(["base_5", "delta_2_2_0000", "delta_3_3_0000"], opened)) == ["base_5"]
    assert list(read_by(["base_5_v7", "delta_2_2_0000"], opened)) == ["delta_2_2_0000"]


def test_a_compacted_base_is_called_after_its_last_committed_write() -> None:
    """A reader of the replica takes it for a writer's, and does not read that of an aborted write."""
    assert read_by(["base_0000004_v0000007"], SEEN) == {"base_0000004_v0000007": "base_0000003"}
    assert read_by(["base_0000005_v0000007"], SEEN) == {"base_0000005_v0000007": "base_0000005"}


def test_files_are_called_as_a_writer_would_have_called_them() -> None:
    paths = ["", "base_5_v7", "base_5_v7/HIVE_UNION_SUBDIR_1", "delta_1_1_0000", "delta_6_6_0000"]
    files = [FileRef(f"hdfs://s/t/{path}/f", subdir=path) for path in paths]
    names = {path.partition("/")[0] for path in paths} - {""}
    found = [one.relative for one in needed(files, names, SEEN, [])]
    assert found == ["base_5/f", "base_5/HIVE_UNION_SUBDIR_1/f", "delta_6_6_0000/f"]
    before = [one.relative for one in needed(files, names - {"base_5_v7"}, SEEN, [])]
    assert before == ["f", "delta_1_1_0000/f", "delta_6_6_0000/f"]


def test_the_first_compaction_of_a_converted_table_without_deltas_hides_its_original_files() -> None:
    """Hive's reader calls the last write of it Long.MIN_VALUE: the base was taken for original files, and copied with its _v."""
    name = "base_-9223372036854775808"
    files = [
        FileRef("hdfs://s/t/000000_0"),
        *(FileRef(f"hdfs://s/t/{one}/f", subdir=one) for one in (f"{name}_v12", "delta_1_1")),
    ]

    def found(*hidden: int) -> list[str]:
        return [one.relative for one in needed(files, [f"{name}_v12", "delta_1_1"], SEEN, hidden)]

    assert found() == [f"{name}/f", "delta_1_1/f"]
    assert found(12) == ["000000_0", "delta_1_1/f"]
    assert read_by([name, "delta_1_1"], SEEN) == {name: name, "delta_1_1": "delta_1_1"}


def test_a_truncated_table_has_no_files() -> None:
    """TRUNCATE leaves a base without files that a listing shows."""
    file = FileRef("hdfs://s/t/delta_1_1_0000/f", subdir="delta_1_1_0000")
    assert list(needed([file], ["delta_1_1_0000", "base_2"], SEEN, [])) == []
