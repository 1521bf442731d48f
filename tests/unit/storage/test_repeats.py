"""A move whose answer was lost is repeated without harm, and nothing else is taken for its result."""

from __future__ import annotations

from pathlib import Path

import pytest
from tenacity import RetryCallState, after_nothing

from hive_replication.policy import Root
from hive_replication.storage.backend import Backend
from hive_replication.storage.local_backend import LocalBackend
from hive_replication.storage.repeats import moving, repeated


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
    repeated(
        moving(str(root / "from"), str(root)), store, str(root / "to"), "hdfs://ns/to", Root(uri="hdfs://ns/"), after_nothing
    )


@pytest.mark.parametrize("done", [True, False])
def test_a_move_whose_answer_is_lost_is_done_once(files: Path, done: bool) -> None:
    move(Unanswering(files, done=done), files)
    assert {one.name: one.read_text() for one in files.iterdir()} == {"to": "mine"}


def test_a_move_of_what_is_absent_fails_even_where_its_target_is_there(files: Path) -> None:
    (files / "from").rename(files / "to")
    with pytest.raises(FileExistsError):
        move(LocalBackend({}, [str(files)]), files)


def test_a_single_namenode_is_not_waited_for(files: Path) -> None:
    store, root = Unanswering(files, done=True), Root(uri="hdfs://nn:8020/")
    with pytest.raises(OSError, match="disconnected"):
        repeated(moving(str(files / "from"), str(files)), store, str(files / "to"), "hdfs://nn:8020/to", root, after_nothing)


def test_a_passing_trouble_is_met_four_times(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    """The first attempt is one of them."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    asked: list[str] = []
    told: list[int] = []

    def after(state: RetryCallState) -> None:
        told.append(state.attempt_number)

    def down(_: Backend, path: str) -> None:
        asked.append(path)
        raise RuntimeError("SafeModeException")

    with pytest.raises(RuntimeError, match="SafeMode"):
        repeated(down, LocalBackend({}, [str(files)]), "/x", "hdfs://nn:8020/x", Root(uri="hdfs://nn:8020/"), after)
    assert (asked, told) == (["/x"] * 4, [1, 2, 3, 4])
