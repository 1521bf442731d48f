"""``copy_file`` between two real HDFSes: which version is taken, and what proves it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
import requests

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.proof import checksum_of_content
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Storage
from resources.embedded.cluster import Side
from resources.spark_copier import SparkCopier

pytestmark = pytest.mark.servers
MIB = 1 << 20


@dataclass(frozen=True)
class Pair:
    """Two HDFSes, a folder on each, and a cmroot."""

    source: Storage
    target: Storage
    source_base: str
    target_base: str
    webhdfs: str

    def put(self, name: str, data: bytes = b"123456789", *, block_size: int | None = None) -> CopyTask:
        """Writes a source file; the task that an event at this moment would ask for."""
        uri = f"{self.source_base}/t/{name}"
        self.source.create(uri, [data], block_size=block_size, overwrite=True)
        return self.task(name)

    def task(self, name: str, *, recorded: bool = True) -> CopyTask:
        uri = f"{self.source_base}/t/{name}"
        checksum = self.source.checksum(uri) if recorded else None
        ref = FileRef(uri, checksum.value if checksum else "", f"{self.source_base}/cmroot")
        return CopyTask(ref, f"{self.target_base}/t/{name}", 42, "sales.orders")

    def recycle(self, task: CopyTask) -> None:
        """Moves the file to cmroot, as Hive's change management does when it deletes a file."""
        self.source.rename(task.file.uri, task.file.cm_uri)

    def copy(self, task: CopyTask, source: Storage | None = None) -> CopyResult:
        answer = copy_file(task, source or self.source, self.target)
        assert isinstance(answer, CopyResult), answer
        return answer

    def fail(self, task: CopyTask, source: Storage | None = None) -> CopyFailure:
        answer = copy_file(task, source or self.source, self.target)
        assert isinstance(answer, CopyFailure), answer
        return answer

    def replicas(self) -> dict[str, bytes]:
        """Everything under the target folder, temporary files included."""
        files = self.target.files(self.target_base, hidden=True)
        return {f.uri.removeprefix(f"{self.target_base}/t/"): self.target.read(f.uri) for f in files}


@pytest.fixture
def pair(source: Side, target: Side, unique: str) -> Iterator[Pair]:
    stores = [Storage((Root(uri=side.hdfs, webhdfs=side.webhdfs),)) for side in (source, target)]
    pair = Pair(*stores, f"{source.hdfs}{unique}", f"{target.hdfs}{unique}", source.webhdfs)
    yield pair
    pair.source.delete(pair.source_base, recursive=True)
    pair.target.delete(pair.target_base, recursive=True)


@pytest.mark.parametrize("data", [b"123456789", b""])
def test_plain_copy_is_proven_by_the_recorded_checksum(pair: Pair, data: bytes) -> None:
    task = pair.put("part-0", data)
    result = pair.copy(task)
    assert (result.origin, result.size, result.attempts) == ("source", len(data), 1)
    assert (result.proof.value, result.proof.recorded) == (task.file.checksum, True)
    assert result.proof.algorithm.startswith("MD5-of-0MD5-of-")
    assert pair.replicas() == {"part-0": data}
    again = pair.copy(task)
    assert (again.origin, again.attempts, again.proof) == ("present", 0, result.proof)


@pytest.mark.parametrize("data", [b"", b"1", os.urandom(512), os.urandom(513), os.urandom(256 << 10)], ids=len)
def test_the_checksum_of_content_is_what_hdfs_says(pair: Pair, data: bytes) -> None:
    told = pair.source.checksum(pair.put("part-0", data).file.uri)
    assert told is not None
    found = checksum_of_content(data, told.value)
    assert found is not None
    assert (found.value, found.algorithm) == (told.value, told.algorithm if data else found.algorithm)  # of nothing it says CRC32
    assert checksum_of_content(data + b"0", told.value) is None
    assert not data or checksum_of_content(data[:-1] + bytes([data[-1] ^ 1]), told.value) is None


def test_many_blocks_keep_their_size(pair: Pair) -> None:
    data = os.urandom(5 * MIB + 17)
    task = pair.put("part-0", data, block_size=MIB)
    result = pair.copy(task)
    assert result.proof.algorithm == "MD5-of-2048MD5-of-512CRC32C"
    assert (result.proof.recorded, result.attempts) == (True, 1)
    status = pair.target.status(task.target)
    assert status is not None
    assert status.block_size == MIB
    assert pair.replicas() == {"part-0": data}


def test_special_names(pair: Pair) -> None:
    names = ["h#1", "q?x=1", "p%20c", "a b", "é", "st*r", "ds=2026-01-01 00%3A00/part-0"]
    for name in names:
        task = pair.put(name, name.encode())
        assert pair.copy(task).proof.recorded
        pair.recycle(task)
        pair.target.delete(task.target)
        assert pair.copy(task).origin == "cmroot"
    assert pair.replicas() == {name: name.encode() for name in names}


def test_a_changed_file_is_taken_from_cmroot(pair: Pair) -> None:
    task = pair.put("part-0", b"old content")
    pair.recycle(task)
    pair.put("part-0", b"new content")  # As long as the old one.
    result = pair.copy(task)
    assert (result.origin, result.proof.value, result.proof.recorded) == ("cmroot", task.file.checksum, True)
    assert pair.replicas() == {"part-0": b"old content"}


def test_a_deleted_file_is_taken_from_cmroot(pair: Pair) -> None:
    task = pair.put("part-0")
    pair.recycle(task)
    result = pair.copy(task)
    assert (result.origin, result.proof.recorded, result.attempts) == ("cmroot", True, 1)
    assert pair.replicas() == {"part-0": b"123456789"}


def test_gone_from_both_places(pair: Pair) -> None:
    task = pair.put("part-0")
    pair.source.delete(task.file.uri)
    failure = pair.fail(task)
    assert failure.kind == "gone"
    assert all(word in failure.reason for word in (task.file.uri, task.file.cm_uri, "42", "sales.orders", "absent"))
    assert pair.replicas() == {}


def test_another_version_in_both_places(pair: Pair) -> None:
    task = pair.put("part-0", b"old")
    other = pair.put("part-0", b"new")
    pair.source.create(task.file.cm_uri, [b"not what its name says"])
    failure = pair.fail(task)
    assert failure.kind == "gone"
    assert f"another version (checksum {other.file.checksum} instead of {task.file.checksum})" in failure.reason
    assert pair.replicas() == {}


class Swapping(Storage):
    """The file is replaced by another of the same size while its first half is read, with or without change management."""

    def __init__(self, roots: tuple[Root, ...], task: CopyTask, cm_uri: str) -> None:
        super().__init__(roots)
        self.uri, self.cm_uri, self.new = task.file.uri, cm_uri, b""

    def stream(self, uri: str, size: int = 4 * MIB) -> Iterator[bytes]:
        if uri != self.uri or self.new:
            yield from super().stream(uri, size)
            return
        old = self.read_plain(uri)
        self.new = bytes(len(old))
        yield old[: len(old) // 2]
        if self.cm_uri:
            self.rename(uri, self.cm_uri)
        self.write(uri, self.new)
        yield self.new[len(old) // 2 :]

    def read_plain(self, uri: str) -> bytes:
        return b"".join(super().stream(uri))


@pytest.mark.parametrize("kept", [True, False], ids=["in cmroot", "lost"])
@pytest.mark.parametrize("block_size", [None, MIB], ids=["one block", "blocks"])
def test_a_file_replaced_while_being_copied(pair: Pair, kept: bool, block_size: int | None) -> None:
    old = os.urandom(2 * MIB)
    task = pair.put("part-0", old, block_size=block_size)
    swapping = Swapping(pair.source.roots, task, task.file.cm_uri if kept else "")
    if kept:
        assert pair.copy(task, swapping).origin == "cmroot"
        assert pair.replicas() == {"part-0": old}
    else:
        assert pair.fail(task, swapping).kind == "gone"
        assert pair.replicas() == {}
    assert swapping.new  # It was swapped.


def test_another_file_of_the_name_is_a_conflict(pair: Pair) -> None:
    task = pair.put("part-0", b"123456789")
    for content in (b"987654321", b"1", b""):
        pair.target.write(task.target, content)
        assert pair.fail(task).kind == "conflict"
        assert pair.replicas() == {"part-0": content}
    pair.recycle(task)
    pair.source.delete(task.file.cm_uri)
    assert pair.fail(task).kind == "conflict"


def odd_blocks(pair: Pair, name: str) -> tuple[CopyTask, bytes]:
    """A file whose blocks have 1, 1/2, 1 and 1/2 MiB: no plain copy has its checksum."""
    halves = [os.urandom(3 * MIB // 2) for _ in range(2)]
    first, second = (
        pair.put(f"{name}{suffix}", half, block_size=MIB).file.uri for suffix, half in zip(("", "-2"), halves, strict=True)
    )
    path = first.removeprefix(pair.source.roots[0].uri.rstrip("/"))
    sources = second.removeprefix(pair.source.roots[0].uri.rstrip("/"))
    params = {"op": "CONCAT", "sources": sources, "user.name": "root"}
    response = requests.post(f"{pair.webhdfs}/webhdfs/v1{quote(path)}", params=params, timeout=30)
    assert response.status_code == 200, response.text
    return pair.task(name), b"".join(halves)


def test_odd_blocks_are_proven_by_reading(pair: Pair) -> None:
    task, data = odd_blocks(pair, "part-0")
    result = pair.copy(task)
    assert (result.proof.algorithm, result.proof.recorded, result.origin) == ("CRC32C", True, "source")
    assert pair.replicas() == {"part-0": data}
    replica = pair.target.checksum(task.target)
    assert replica is not None
    assert replica.value != task.file.checksum  # Else this test tests nothing.
    assert pair.copy(task).origin == "present"
    pair.recycle(task)
    assert pair.copy(task).origin == "present"
    pair.target.delete(task.target)
    assert (pair.copy(task).origin, pair.replicas()) == ("cmroot", {"part-0": data})


def test_odd_blocks_replaced_while_being_copied(pair: Pair) -> None:
    task, data = odd_blocks(pair, "part-0")
    assert pair.copy(task, Swapping(pair.source.roots, task, task.file.cm_uri)).origin == "cmroot"
    assert pair.replicas() == {"part-0": data}


def test_without_a_recorded_checksum(pair: Pair) -> None:
    pair.put("part-0")
    task = pair.task("part-0", recorded=False)
    result = pair.copy(task)
    assert (result.proof.algorithm, result.proof.value, result.proof.recorded) == ("CRC32C", "e3069283", False)
    assert pair.copy(task).origin == "present"
    pair.put("part-0", b"987654321")
    assert pair.fail(task).kind == "conflict"


@pytest.mark.parametrize(("times", "algorithm"), [(1, "MD5-of-0MD5-of-512CRC32C"), (100_000, "CRC32C")])
def test_to_a_store_without_checksums(pair: Pair, tmp_path: Path, times: int, algorithm: str) -> None:
    old = b"old" * times
    task = pair.put("part-0", old)
    pair.recycle(task)
    pair.put("part-0", b"new")
    local = Storage((Root(uri=tmp_path.as_uri()),))
    task = CopyTask(task.file, f"{tmp_path.as_uri()}/part-0", 42, "sales.orders")
    result = copy_file(task, pair.source, local)
    assert isinstance(result, CopyResult)
    assert (result.origin, result.proof.algorithm, result.proof.recorded) == ("cmroot", algorithm, True)
    assert (tmp_path / "part-0").read_bytes() == old
    pair.source.delete(task.file.cm_uri)
    again = copy_file(task, pair.source, local)
    if algorithm == "CRC32C":  # nothing is left to prove the replica with
        assert isinstance(again, CopyFailure)
        assert again.kind == "gone"
    else:
        assert isinstance(again, CopyResult)
        assert (again.origin, again.proof) == ("present", result.proof)


def test_replaced_while_being_copied_to_a_store_without_checksums(pair: Pair, tmp_path: Path) -> None:
    old = os.urandom(MIB)
    task = pair.put("part-0", old)
    swapping = Swapping(pair.source.roots, task, task.file.cm_uri)
    local = Storage((Root(uri=tmp_path.as_uri()),))
    result = copy_file(CopyTask(task.file, f"{tmp_path.as_uri()}/part-0", 42, "sales.orders"), swapping, local)
    assert isinstance(result, CopyResult)
    assert (result.origin, result.attempts, swapping.new) == ("cmroot", 2, bytes(MIB))
    assert (tmp_path / "part-0").read_bytes() == old


class Restoring(Storage):
    """The recorded version comes back after another one was read."""

    old = b"old" * 100_000  # more than is read back instead

    def stream(self, uri: str, size: int = 4 * MIB) -> Iterator[bytes]:
        yield from super().stream(uri, size)
        self.write(uri, self.old)


def test_restored_while_being_copied_to_a_store_without_checksums(pair: Pair, tmp_path: Path) -> None:
    task = pair.put("part-0", Restoring.old)
    pair.put("part-0", b"new" * 100_000)
    local = Storage((Root(uri=tmp_path.as_uri()),))
    answer = copy_file(CopyTask(task.file, f"{tmp_path.as_uri()}/part-0", 42, "x"), Restoring(pair.source.roots), local)
    assert isinstance(answer, CopyFailure)
    assert (answer.kind, list(tmp_path.iterdir())) == ("gone", [])


def test_a_target_outside_the_roots(pair: Pair) -> None:
    task = pair.put("part-0")
    failure = pair.fail(CopyTask(task.file, "file:///etc/part-0", 42, "sales.orders"))
    assert failure.kind == "failed"
    assert "outside the storage roots" in failure.reason


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkCopier]:
    copier = SparkCopier.from_settings({"spark.app.name": "test"})
    yield copier
    copier.spark_context().stop()


@pytest.fixture(params=["threads", "spark"])
def copier(request: pytest.FixtureRequest, pair: Pair) -> Copier:
    if request.param == "threads":
        return ThreadCopier(pair.source, pair.target)
    return request.getfixturevalue("spark").copier(pair.source, pair.target, description="Repl#test")


def test_every_kind_of_file_at_once(pair: Pair, copier: Copier, request: pytest.FixtureRequest) -> None:
    tasks = {name: pair.put(name, name.encode()) for name in ("plain", "h#1 é", "from cmroot", "gone", "conflict", "present")}
    pair.recycle(tasks["from cmroot"])
    pair.source.delete(tasks["gone"].file.uri)
    pair.target.write(tasks["conflict"].target, b"stranger")
    pair.target.write(tasks["present"].target, b"present")
    tasks["odd"], odd = odd_blocks(pair, "odd")
    answers = {a.task.target: a for a in copier.copy(iter(tasks.values()))}
    outcome = {
        name: getattr(a := answers[task.target], "origin", None) or getattr(a, "kind", None) for name, task in tasks.items()
    }
    assert outcome == {
        "plain": "source",
        "h#1 é": "source",
        "from cmroot": "cmroot",
        "gone": "gone",
        "conflict": "conflict",
        "present": "present",
        "odd": "source",
    }
    assert {a.executor for a in answers.values() if isinstance(a, CopyResult)} == {request.node.callspec.params["copier"]}
    own = {name: name.encode() for name in tasks if name not in ("gone", "conflict", "odd")}
    assert pair.replicas() == own | {"conflict": b"stranger", "odd": odd}


@pytest.mark.parametrize("copier", ["threads", pytest.param("spark", marks=pytest.mark.long)], indirect=True)
def test_500_tiny_files_do_not_wait_for_each_other(pair: Pair, copier: Copier) -> None:
    writing = ThreadCopier(pair.source, pair.source)
    seed = pair.put("seed", b"tiny")
    made = [CopyTask(seed.file, f"{pair.source_base}/t/{n}", 1, "seed") for n in range(500)]
    assert all(isinstance(a, CopyResult) for a in writing.copy(made))
    tasks = [
        CopyTask(FileRef(t.target, seed.file.checksum), f"{pair.target_base}/t/{n}", 42, "sales.orders")
        for n, t in enumerate(made)
    ]
    start = time.monotonic()
    answers = list(copier.copy(tasks))
    seconds = time.monotonic() - start
    assert {a.task for a in answers if isinstance(a, CopyResult) and a.proof.recorded} == set(tasks)
    assert seconds < 125  # One after the other they would wait 250 s for HDFS to close them, however fast the machine.
    assert len(pair.target.files(pair.target_base, hidden=True)) == 500


def test_spark_twins_leave_one_file(pair: Pair, spark: SparkCopier) -> None:
    task = pair.put("part-0", os.urandom(MIB))
    answers = list(spark.copier(pair.source, pair.target, description="Repl#twins").copy([task] * 8))
    assert sorted(a.origin for a in answers if isinstance(a, CopyResult)) == ["present"] * 7 + ["source"]
    assert list(pair.replicas()) == ["part-0"]


def test_nothing_to_copy_starts_no_spark(pair: Pair) -> None:
    copier = SparkCopier.from_settings({"spark.master": "no such master"}).copier(
        pair.source, pair.target, description="Repl#none"
    )
    assert list(copier.copy([])) == []
