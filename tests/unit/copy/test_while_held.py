"""Copying ends when the lock of its load is lost: what is copied then may be visible at once, beside another load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.copy import while_held
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.copy.threshold_copier import ThresholdCopier
from hive_replication.copy.while_held import WhileHeld
from hive_replication.errors import LockLost, LockSilent
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage


def _lost_at(*numbers: int) -> Callable[[], None]:
    """A check of the lock that finds it lost at these calls."""
    calls = list[None]()

    def check() -> None:
        calls.append(None)
        if len(calls) in numbers:
            raise LockLost("the lock on sales was lost")

    return check


def _tasks(tmp_path: Path, number: int) -> list[CopyTask]:
    (tmp_path / "source").mkdir(exist_ok=True)
    for name in range(number):
        (tmp_path / f"source/{name}").write_bytes(b"123")
    base = tmp_path.as_uri()
    return [CopyTask(FileRef(f"{base}/source/{name}"), f"{base}/target/{name}", 1, "db.t") for name in range(number)]


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=tmp_path.as_uri()),))


class _Simple:
    """A copier that cannot ask itself."""

    def __init__(self, copier: ThreadCopier) -> None:
        self.copier = copier

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            yield from self.copier.copy([task])


def test_no_further_file_is_copied(tmp_path: Path, storage: Storage) -> None:
    """The lock was looked at before changes in the metastore only, which may be hours later."""
    copier = WhileHeld(_Simple(ThreadCopier(storage, storage)), _lost_at(2))
    answers = list[object]()
    with pytest.raises(LockLost):
        answers.extend(copier.copy(_tasks(tmp_path, 5)))
    assert sorted(file.name for file in (tmp_path / "target").iterdir()) == ["0", "1"]


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("bandwidth", [None, 1e9])
def test_a_file_on_its_way_gets_no_name(tmp_path: Path, storage: Storage, at: int, bandwidth: float | None) -> None:
    """While it is read, and before it gets its name; also where a heartbeat comes through afterwards."""
    threads = ThreadCopier(storage, storage, bandwidth=bandwidth)
    copier = WhileHeld(ThresholdCopier(threads, lambda: threads, max_files=1, max_bytes=1000), _lost_at(at))
    with pytest.raises(LockLost):
        list(copier.copy(_tasks(tmp_path, 1)))
    assert storage.files(f"{tmp_path.as_uri()}/target", hidden=True) == []


def test_spark_is_asked_to_end_while_it_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "InheritableThread", threading.Thread)  # its own needs an application once there was one
    from resources.spark_copier import _Job  # pyright: ignore[reportPrivateUsage]

    cancelled, groups = threading.Event(), list[str]()

    def cancel(group: str) -> None:
        groups.append(group)
        cancelled.set()

    context: Any = SimpleNamespace(
        accumulator=lambda *_: SimpleNamespace(value=[]), setJobGroup=lambda *_, **__: None, cancelJobGroup=cancel
    )
    partitions: Any = SimpleNamespace(foreachPartition=lambda _: cancelled.wait(30))
    worker: Any = None
    with pytest.raises(LockLost):
        list(_Job(context, ("Repl#sales", "1 file"), partitions, worker).answers(_lost_at(2)))
    assert groups == ["Repl#sales"]


def _silent_at(*numbers: int, then: type[LockLost] = LockSilent) -> Callable[[], None]:
    """A check of a lock of which nothing is heard at these calls, and which is lost in another way at the last of them."""
    calls = list[None]()

    def check() -> None:
        calls.append(None)
        if len(calls) in numbers:
            raise (then if len(calls) == max(numbers) else LockSilent)("no heartbeat")

    return check


@pytest.mark.parametrize("at", [1, 2, 3, 7])
@pytest.mark.parametrize("itself", [False, True])
def test_a_metastore_that_is_away_for_a_minute_ends_no_copy(
    tmp_path: Path, storage: Storage, at: int, monkeypatch: pytest.MonkeyPatch, *, itself: bool
) -> None:
    """The lock's age alone ended a copy of hours, though nobody had taken the lock over."""
    monkeypatch.setattr(while_held, "_POLL", 0.01)
    threads, tasks = ThreadCopier(storage, storage, threads=2), _tasks(tmp_path, 5)
    copier = WhileHeld(threads if itself else _Simple(threads), _silent_at(at, at + 1, at + 2))
    answers = list(copier.copy([*tasks, tasks[0]]))  # a file of two objects is copied for each
    assert sorted(answer.task.target for answer in answers) == sorted(task.target for task in [*tasks, tasks[0]])
    assert all(isinstance(answer, CopyResult) for answer in answers)


def test_of_two_files_with_one_path_the_one_without_an_answer_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(while_held, "_POLL", 0.01)
    one, other = (CopyTask(FileRef(f"hdfs://src/{name}"), "hdfs://dst/a", 1, f"db.{name}") for name in "tu")
    asked = list[list[CopyTask]]()

    def copy(tasks: Iterable[CopyTask]) -> Iterator[CopyFailure]:
        asked.append(list(tasks))
        yield from (CopyFailure(task, "it is gone") for task in reversed(asked[-1]))

    answers = list(WhileHeld(SimpleNamespace(copy=copy), _silent_at(2)).copy([one, other]))
    assert ([answer.task for answer in answers], asked) == ([other, one], [[one, other], [one]])


@pytest.mark.parametrize("lost", [LockLost, LockSilent])
def test_nothing_gets_a_name_while_nothing_is_heard_of_the_lock(
    tmp_path: Path, storage: Storage, lost: type[LockLost], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends where the lock turns out to be another's, and where it takes too long."""
    monkeypatch.setattr(while_held, "_POLL", 0.01)
    monkeypatch.setattr(while_held, "_PATIENCE", 60.0 if lost is LockLost else 0.05)
    copier = WhileHeld(ThreadCopier(storage, storage), _silent_at(*range(1, 100 if lost is LockSilent else 5), then=lost))
    with pytest.raises(lost):
        list(copier.copy(_tasks(tmp_path, 1)))
    assert storage.files(f"{tmp_path.as_uri()}/target", hidden=True) == []


def test_all_that_wait_for_a_heartbeat_have_one_patience(
    tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What asks when it is used up waits no more; where a heartbeat gets through it begins anew."""
    now, answers = [0.0], [True]
    monkeypatch.setattr(while_held, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: later(seconds)))

    def later(seconds: float) -> None:
        now[0] += seconds

    def ask() -> None:
        if not answers[0]:
            raise LockSilent("no heartbeat")

    patient = while_held.Patient(ask)
    for begun in 0.0, 1000.0:
        now[0], answers[0] = begun, False
        for _ in range(2):
            with pytest.raises(LockSilent):
                patient()
            with pytest.raises(LockSilent):
                list(WhileHeld(ThreadCopier(storage, storage), patient).copy(_tasks(tmp_path, 1)))
        assert now[0] == begun + 600
        answers[0] = True
        patient()
