"""Sizes of files in events: read once, from the path or from cmroot, so many at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hive_replication.events.files import FileRef
from hive_replication.lag.sizes import FileSizes
from hive_replication.policy import Root
from hive_replication.storage import FileStatus, Storage


class Counted(Storage):
    """Storage that records which files were looked up."""

    asked: list[str]

    def status(self, uri: str, **options: Any) -> FileStatus | None:
        self.asked.append(uri.rsplit("/", 1)[-1])
        return super().status(uri, **options)


@pytest.fixture
def storage(tmp_path: Path) -> Counted:
    found = Counted((Root(uri=f"file://{tmp_path}"),))
    found.asked = []
    for name, size in (("one", 1), ("two", 2)):
        (tmp_path / name).write_bytes(b"x" * size)
    return found


def ref(folder: Path, name: str, cm_root: str = "") -> FileRef:
    return FileRef(f"file://{folder}/{name}", "sum", cm_root)


def test_each_file_is_looked_up_once(storage: Counted, tmp_path: Path) -> None:
    sizes = FileSizes(storage, 10)
    files = [ref(tmp_path, "one"), ref(tmp_path, "two"), ref(tmp_path, "one")]
    for _ in range(2):
        sizes.look_up(files)
        assert sizes.total(files[:2]) == 3
    assert sorted(filter(None, storage.asked)) == ["one", "two"], "beside the root"
    assert sizes.total([]) == 0


def test_a_deleted_file_has_its_size_in_cmroot_and_a_lost_one_none(storage: Counted, tmp_path: Path) -> None:
    sizes, deleted, lost = FileSizes(storage, 10), ref(tmp_path, "gone", f"file://{tmp_path}/cmroot"), ref(tmp_path, "gone")
    storage.write(str(deleted.cm_uri), b"xxxx")
    outside = FileRef("file:///outside/of/the/roots", "sum", "")
    sizes.look_up([deleted, lost, outside])
    assert sizes.total([deleted]) == 4
    assert (sizes.total([deleted, lost]), sizes.total([outside])) == (None, None)


def test_so_many_files_at_a_time(storage: Counted, tmp_path: Path) -> None:
    sizes, files = FileSizes(storage, 1), [ref(tmp_path, "one"), ref(tmp_path, "two")]
    sizes.look_up(files)
    assert sizes.total(files) is None
    sizes.look_up(files)
    assert sizes.total(files) == 3
    sizes.look_up(files[:1])
    assert sizes.total(files[1:]) is None  # forgotten with its event
