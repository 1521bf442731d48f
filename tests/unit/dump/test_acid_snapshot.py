"""Which files of a transactional table a bootstrap takes."""

from __future__ import annotations

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import needed
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef

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
