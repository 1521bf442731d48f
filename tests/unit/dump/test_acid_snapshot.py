"""Which files of a transactional table a bootstrap takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import Compactions, needed, seen_files
from hive_replication.dump.listing import Lister
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.faults import unreadable_directories

ORIGINAL = FileRef("hdfs://s/t/000000_0")


def file(directory: str) -> FileRef:
    return FileRef(f"hdfs://s/t/{directory}/bucket_00000", subdir=directory)


def taken(write_ids: WriteIds, *directories: str) -> list[str]:
    found = needed([ORIGINAL, *map(file, directories)], directories, write_ids, ())
    return [one.uri.removeprefix("hdfs://s/t/").partition("/")[0] for one in found]


def test_committed_writes_and_what_was_there_before() -> None:
    names = [f"delta_000000{n}_000000{n}_0000" for n in (1, 2, 3)]
    assert taken(WriteIds(3, frozenset({3}), frozenset({2})), *names) == ["000000_0", names[0]]


def test_a_base_hides_what_came_before_it() -> None:
    names = ["delta_0000001_0000001_0000", "base_0000002", "delta_0000003_0000003_0000"]
    assert taken(WriteIds(3), *names) == names[1:]


def test_rows_of_aborted_writes_between_others_are_refused() -> None:
    with pytest.raises(ReplicationError, match="COMPACT 'major'"):
        taken(WriteIds(3, aborted=frozenset({2})), "delta_0000001_0000003")


@pytest.mark.parametrize("marker", [FileRef.unreadable_directory("hdfs://s/t"), FileRef.missing_directory("hdfs://s/t")])
def test_what_stands_for_a_directory_that_could_not_be_listed_is_kept_beside_a_base(marker: FileRef) -> None:
    """One directory below could not be read, and the table was dumped as empty."""
    assert list(needed([marker], ["base_0000005", "delta_0000006_0000006"], WriteIds(6), ())) == [marker]


def test_a_directory_below_that_may_not_be_read_stands_for_all_of_it_unless_it_is_hidden(tmp_path: Path) -> None:
    for name in ("base_0000005", "delta_0000006_0000006", ".hive-staging_1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "bucket_00000").write_text("1")
    storage, location = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()

    def seen() -> list[str]:
        files = seen_files(storage, Lister(storage, holds=True), WriteIds(6), Compactions(lambda: Hidden(9)), location)
        return [f"{file.subdir} {file.is_unlisted_directory}" for file in files]

    with unreadable_directories(".hive-staging_1"):
        assert seen() == ["base_0000005 False", "delta_0000006_0000006 False"]
    for name in ("base_0000005", tmp_path.name):
        with unreadable_directories(name):
            assert seen() == ["denied True"]


def test_a_compaction_that_ends_while_directories_are_listed_is_seen() -> None:
    """The cleaner may delete what it made needless; one that goes on is not, and one that took in later writes shows that."""
    answers = iter([Hidden(12, frozenset({7})), Hidden(14, frozenset({13})), Hidden(15)])
    compactions = Compactions(lambda: next(answers))
    assert 13 in compactions.hidden(["delta_1_1", "base_1_v12"], WriteIds(1))  # nothing is asked
    assert 13 in compactions.hidden(["delta_1_1", "base_1_v13"], WriteIds(1))
    assert 13 not in compactions.hidden(["base_1_v13"], WriteIds(1))
    compactions.hidden(["delta_1_1", "base_2_v14"], WriteIds(1))
    assert not compactions.outdated
    compactions.hidden(["base_2_v14"], WriteIds(1))
    assert compactions.outdated
