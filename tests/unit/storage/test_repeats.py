"""A move whose answer was lost is repeated without harm, and nothing else is taken for its result."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.policy import Root
from hive_replication.storage.backend import Backend
from hive_replication.storage.local_backend import LocalBackend
from hive_replication.storage.repeats import moving, repeating


class Unanswering(LocalBackend):
    """Loses the answer to its first rename, which was done, or not.

    Args:
        root: of the files.
        done: whether it was.
    """

    def __init__(self, root: Path, *, done: bool) -> None:
        super().__init__({}, [str(root)])
        self._done, self._first = done, True

    def rename(self, source: str, target: str) -> None:
        first, self._first = self._first, False
        if not first or self._done:
            super().rename(source, target)
        if first:
            raise OSError("RPC listener disconnected")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "from").write_text("mine")
    return tmp_path


def move(store: Backend, root: Path) -> None:
    call = moving(str(root / "from"), str(root))
    repeating("hdfs://ns/to", Root(uri="hdfs://ns/"))(call, store, str(root / "to"))


@pytest.mark.parametrize("done", [True, False])
def test_a_move_whose_answer_is_lost_is_done_once(files: Path, done: bool) -> None:
    move(Unanswering(files, done=done), files)
    assert {one.name: one.read_text() for one in files.iterdir()} == {"to": "mine"}


def test_a_move_of_what_is_absent_fails_even_where_its_target_is_there(files: Path) -> None:
    (files / "from").rename(files / "to")
    with pytest.raises(FileExistsError):
        move(LocalBackend({}, [str(files)]), files)


def test_a_single_namenode_is_not_waited_for(files: Path) -> None:
    with pytest.raises(OSError, match="disconnected"):
        repeating("hdfs://nn:8020/to", Root(uri="hdfs://nn:8020/"))(
            moving(str(files / "from"), str(files)), Unanswering(files, done=True), str(files / "to")
        )
