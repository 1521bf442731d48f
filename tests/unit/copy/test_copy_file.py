"""``copy_file`` and the threads between local folders: no checksums are recorded there, CRC32C proves."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.proof import Crc32c
from hive_replication.copy.spark_answers import copy_partition
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, FileStatus, Late, Storage

CHECK = "e3069283"  # CRC-32C of 123456789


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=tmp_path.as_uri()),))


def task(tmp_path: Path, name: str = "part-0", checksum: str = "", target: str = "") -> CopyTask:
    ref = FileRef(f"{tmp_path.as_uri()}/source/{name}", checksum, f"{tmp_path.as_uri()}/cmroot")
    return CopyTask(ref, target or f"{tmp_path.as_uri()}/target/{name}", 42, "sales.orders")


def put(tmp_path: Path, name: str, content: bytes = b"123456789") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(tmp_path: Path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "target").iterdir())


def test_copy_then_present(tmp_path: Path, storage: Storage) -> None:
    put(tmp_path, "source/part-0")
    first = copy_file(task(tmp_path), storage, storage)
    assert isinstance(first, CopyResult)
    assert (first.origin, first.size, first.attempts, first.executor) == ("source", 9, 1, "threads")
    assert (first.proof.algorithm, first.proof.value, first.proof.recorded) == ("CRC32C", CHECK, False)
    again = copy_file(task(tmp_path), storage, storage)
    assert isinstance(again, CopyResult)
    assert (again.origin, again.attempts, again.proof) == ("present", 0, first.proof)
    assert names(tmp_path) == ["part-0"]


@pytest.mark.parametrize("content", [b"987654321", b"1"])
def test_another_file_is_never_overwritten(tmp_path: Path, storage: Storage, content: bytes) -> None:
    put(tmp_path, "source/part-0")
    put(tmp_path, "target/part-0", content)
    failure = copy_file(task(tmp_path), storage, storage)
    assert isinstance(failure, CopyFailure)
    assert failure.kind == "conflict"
    assert (tmp_path / "target/part-0").read_bytes() == content


def test_absent_source_names_object_event_and_path(tmp_path: Path, storage: Storage) -> None:
    failure = copy_file(task(tmp_path), storage, storage)
    assert isinstance(failure, CopyFailure)
    assert failure.kind == "gone"
    assert all(word in failure.reason for word in ("sales.orders", "42", f"{tmp_path.as_uri()}/source/part-0", "no cmroot"))
    assert not (tmp_path / "target").exists()


def test_recorded_checksum_without_a_way_to_read_it(tmp_path: Path, storage: Storage) -> None:
    put(tmp_path, "source/part-0")
    failure = copy_file(task(tmp_path, checksum="ab" * 28), storage, storage)
    assert isinstance(failure, CopyFailure)
    assert failure.kind == "failed"
    assert "webhdfs" in failure.reason


def test_a_place_outside_the_roots_is_refused(tmp_path: Path, storage: Storage) -> None:
    put(tmp_path, "source/part-0")
    failure = copy_file(task(tmp_path, target="file:///etc/part-0"), storage, storage)
    assert isinstance(failure, CopyFailure)
    assert failure.kind == "failed"
    assert "outside the storage roots" in failure.reason


def test_twins_leave_one_file(tmp_path: Path, storage: Storage) -> None:
    put(tmp_path, "source/part-0", b"x" * 100_000)
    answers = list(ThreadCopier(storage, storage, threads=8).copy([task(tmp_path)] * 16))
    assert sorted(a.origin for a in answers if isinstance(a, CopyResult)) == ["present"] * 15 + ["source"]
    assert names(tmp_path) == ["part-0"]


@pytest.mark.parametrize(
    ("source", "said"),
    [({"uri": "webdav://s/", "options": {"x": "${env:NOT_SET_HERE}"}}, "NOT_SET_HERE"), ({"uri": "no://s/"}, "no://")],
)
def test_what_this_process_lacks_is_no_fault_of_a_file(tmp_path: Path, storage: Storage, source: Any, said: str) -> None:
    """An executor without a variable or a package held every table of the window."""
    put(tmp_path, "source/part-0")
    good, bad = (
        task(tmp_path),
        CopyTask(FileRef(f"{source['uri']}part-1"), f"{tmp_path.as_uri()}/target/part-1", 42, "sales.orders"),
    )
    executor = ThreadCopier(Storage((*storage.roots, Root(**source))), storage)
    answers: list[Any] = []
    with pytest.raises(ReplicationError, match=said):
        copy_partition(executor, SimpleNamespace(add=answers.extend), [[[good, bad]]])
    assert answers == []
    assert [type(answer) for answer in executor.copy([good])] == [CopyResult]


class Damaging(Storage):
    """Flips a byte of what is written, the first ``times`` times: a broken network card or disk."""

    times = 0

    def create(self, uri: str, chunks: Iterator[bytes], **options: object) -> int:  # type: ignore[override]
        data = b"".join(chunks)
        if type(self).times > 0:
            type(self).times -= 1
            data = bytes([data[0] ^ 1]) + data[1:]
        return super().create(uri, [data], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("times", "copied"), [(1, True), (9, False)])
def test_damage_on_the_way_is_seen(tmp_path: Path, storage: Storage, times: int, copied: bool) -> None:
    put(tmp_path, "source/part-0")
    Damaging.times = times
    answer = copy_file(task(tmp_path), storage, Damaging(storage.roots))
    if copied:
        assert isinstance(answer, CopyResult)
        assert (answer.attempts, (tmp_path / "target/part-0").read_bytes()) == (2, b"123456789")
    else:
        assert isinstance(answer, CopyFailure)
        assert "reads back" in answer.reason
    assert names(tmp_path) == (["part-0"] if copied else [])


class LikeHdfs(Storage):
    """Checksums and blocks as HDFS has them; one with ``least`` refuses smaller blocks, as a NameNode does."""

    least = 0

    def status(self, uri: str) -> FileStatus | None:
        found = super().status(uri)
        return found and replace(found, block_size=4096, replication=1)

    def has_checksums(self, uri: str) -> bool:
        return True

    def checksum(self, uri: str) -> FileChecksum:
        return FileChecksum("MD5-of-0MD5-of-512CRC32C", f"{512:08x}{0:016x}{Crc32c.of(self.stream(uri)).hex:0>32}")

    def create(self, uri: str, chunks: Iterator[bytes], **options: object) -> int:  # type: ignore[override]
        block = options.pop("block_size", None)
        if isinstance(block, int) and block < self.least:
            text = "Specified block size is less than configured minimum value (dfs.namenode.fs-limits.min-block-size)"
            raise ReplicationError(f"{uri}: {text}: {block} < {self.least}")
        return super().create(uri, chunks, **options)  # type: ignore[arg-type]


def test_blocks_that_the_target_refuses_as_too_small(tmp_path: Path, storage: Storage) -> None:
    put(tmp_path, "source/part-0", b"123456789" * 100_000)  # more than is read back instead
    source, target = LikeHdfs(storage.roots), LikeHdfs(storage.roots)
    recorded = source.checksum(f"{tmp_path.as_uri()}/source/part-0").value
    proofs = {"part-0": "MD5-of-0MD5-of-512CRC32C", "part-1": "CRC32C"}
    for name, algorithm in proofs.items():
        target.least = 0 if name == "part-0" else 1 << 20
        answer = copy_file(task(tmp_path, checksum=recorded, target=f"{tmp_path.as_uri()}/target/{name}"), source, target)
        assert isinstance(answer, CopyResult), answer
        assert (answer.proof.algorithm, answer.proof.recorded) == (algorithm, True)
    assert names(tmp_path) == [*proofs]


class Slow(LikeHdfs):
    """An HDFS that does not tell a checksum in time."""

    created = 0

    def checksum(self, uri: str) -> FileChecksum:
        raise Late(f"{uri} has no checksum within 1084 s: no answer from WebHDFS")

    def create(self, uri: str, chunks: Iterator[bytes], **options: object) -> int:  # type: ignore[override]
        self.created += 1
        return super().create(uri, chunks, **options)


def test_a_replica_whose_checksum_does_not_come_in_time_is_not_written_again(tmp_path: Path, storage: Storage) -> None:
    """One of a terabyte was deleted and copied again, three times an attempt."""
    content = os.urandom(300 << 10)  # more than is read back
    put(tmp_path, "source/part-0", content)
    hdfs, slow = LikeHdfs(storage.roots), Slow(storage.roots)
    checksum = hdfs.checksum(f"{tmp_path.as_uri()}/source/part-0").value
    answer = copy_file(task(tmp_path, checksum=checksum), hdfs, slow)
    assert isinstance(answer, CopyFailure)
    assert (answer.kind, slow.created, names(tmp_path)) == ("failed", 1, [])
    assert "has no checksum within 1084 s" in answer.reason
    assert isinstance(copy_file(task(tmp_path, checksum=checksum), hdfs, hdfs), CopyResult)


def test_long_names_have_room_for_the_temporary_one(tmp_path: Path, storage: Storage) -> None:
    name = "é" * 127
    put(tmp_path, f"source/{name}")
    assert isinstance(copy_file(task(tmp_path, name), storage, storage), CopyResult)
    assert names(tmp_path) == [name]


def test_tasks_are_taken_lazily_and_each_gets_one_answer(tmp_path: Path, storage: Storage) -> None:
    taken = list[int]()

    def tasks() -> Iterator[CopyTask]:
        for number in range(50):
            taken.append(number)
            if number % 5:
                put(tmp_path, f"source/{number}")
            yield task(tmp_path, str(number))

    answers = ThreadCopier(storage, storage, threads=2).copy(tasks())
    first = next(answers)
    assert len(taken) == 4
    seen = [first, *answers]
    assert {a.task.target for a in seen} == {task(tmp_path, str(n)).target for n in range(50)}
    assert sum(isinstance(a, CopyFailure) for a in seen) == 10
    assert len(seen) == 50


class Broken(Storage):
    def status(self, uri: str) -> None:
        raise ZeroDivisionError(uri)


def test_an_unexpected_error_is_an_answer_too(tmp_path: Path, storage: Storage) -> None:
    (answer,) = ThreadCopier(storage, Broken(storage.roots)).copy([task(tmp_path)])
    assert isinstance(answer, CopyFailure)
    assert "ZeroDivisionError" in answer.reason


def test_leaving_early_ends_the_threads(tmp_path: Path, storage: Storage) -> None:
    before = threading.active_count()
    answers = ThreadCopier(storage, storage, threads=4).copy(task(tmp_path, str(n)) for n in range(1000))
    next(answers)
    answers.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_the_command_that_is_advised_runs_nothing_that_a_name_contains(tmp_path: Path) -> None:
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    place = f"{tmp_path.as_uri()}/a;b|sh"
    failure = copy_file(CopyTask(FileRef.unreadable_directory(place), f"{tmp_path.as_uri()}/t/f", 1, "a.b"), storage, storage)
    assert isinstance(failure, CopyFailure)
    assert f":r-x '{tmp_path}/a;b|sh')" in failure.reason


class Replacing(Storage):
    """The source file is replaced after the first piece of it is read, the first ``times`` times."""

    times = 1

    def stream(self, uri: str, size: int = 4) -> Iterator[bytes]:
        pieces = super().stream(uri, size)
        yield next(pieces)
        if "/source/" in uri and self.times:
            self.times -= 1
            path = Path(uri.removeprefix("file://"))
            with path.open("r+b") as file:
                file.write(b"ABCDEFGHI")
            os.utime(path, (1 + self.times,) * 2)
        yield from pieces


@pytest.mark.parametrize(("times", "copied"), [(1, True), (3, False)])
@pytest.mark.parametrize("place", ["free", "taken"])
def test_a_file_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, times: int, *, copied: bool
) -> None:
    """Where no checksum was recorded, the replica was half of the one version and half of the other, and proven."""
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    put(tmp_path, "source/part-0")
    if place == "taken":
        put(tmp_path, "target/part-0", b"ABCDEFGHI")
    storage = Replacing((Root(uri=tmp_path.as_uri()),))
    storage.times = times
    answer = copy_file(task(tmp_path), storage, storage)
    if copied:
        assert isinstance(answer, CopyResult)
        assert answer.proof.value == Crc32c.of([b"ABCDEFGHI"]).hex
        assert (tmp_path / "target/part-0").read_bytes() == b"ABCDEFGHI"
        return
    assert isinstance(answer, CopyFailure)
    assert (answer.kind, "part-0 was changed while it was read" in answer.reason) == ("failed", True)
    assert place == "taken" or names(tmp_path) == []


def test_a_file_that_is_replaced_while_it_is_read_is_read_again_where_its_stores_clock_is_ahead(tmp_path: Path) -> None:
    class Ahead(Replacing):
        def status(self, uri: str) -> FileStatus | None:
            found = super().status(uri)
            return found and replace(found, modified=found.modified + 10**10)

    put(tmp_path, "source/part-0")
    storage = Ahead((Root(uri=tmp_path.as_uri()),))
    assert isinstance(copy_file(task(tmp_path), storage, storage), CopyResult)
    assert (tmp_path / "target/part-0").read_bytes() == b"ABCDEFGHI"


def test_a_store_that_tells_no_time_of_a_file_is_read_all_the_same(tmp_path: Path, storage: Storage) -> None:
    class Undated(Storage):
        def status(self, uri: str) -> FileStatus | None:
            found = super().status(uri)
            return found and replace(found, modified=time.time())

    put(tmp_path, "source/part-0")
    assert isinstance(copy_file(task(tmp_path), Undated(storage.roots), storage), CopyResult)
