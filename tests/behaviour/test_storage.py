"""What every store does alike: one suite over local files and a real HDFS."""

from __future__ import annotations

import os
import pickle
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_message, stop_after_attempt

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.storage import AlreadyExists, Storage

NAMES = ["a b", "h#1", "q?x=1", "p%20c", "é", "st*r", "[x]", "{a,b}", "~", "+", "&a=b;c"]


@dataclass(frozen=True)
class Place:
    storage: Storage
    base: str

    def uri(self, name: str) -> str:
        return f"{self.base}/{name}"

    def names(self, below: str = "", *, hidden: bool = False) -> list[str]:
        return [s.uri.removeprefix(f"{self.base}/") for s in self.storage.files(self.base + below, hidden=hidden)]


@pytest.fixture(params=["file", pytest.param("hdfs", marks=pytest.mark.servers)])
def place(request: pytest.FixtureRequest, tmp_path: Path, unique: str) -> Iterator[Place]:
    if request.param == "file":
        yield Place(Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/{unique}")
        return
    side = request.getfixturevalue("source")
    storage = Storage((Root(uri=side.hdfs, webhdfs=side.webhdfs),))
    yield Place(storage, f"{side.hdfs}{unique}")
    storage.delete(f"{side.hdfs}{unique}", recursive=True)


def test_names_are_literal(place: Place) -> None:
    for number, name in enumerate(NAMES):
        place.storage.write(place.uri(name), bytes([number]))
    assert sorted(place.names()) == sorted(NAMES)
    assert [place.storage.read(place.uri(name)) for name in NAMES] == [bytes([n]) for n in range(len(NAMES))]
    for name in NAMES:
        place.storage.rename(place.uri(name), place.uri(f"to/{name}/x"))
    assert sorted(place.names()) == sorted(f"to/{name}/x" for name in NAMES)
    assert place.storage.delete(place.uri("to/st*r"), recursive=True)
    assert place.storage.delete(place.uri("to/[x]/x"))
    assert sorted(place.names()) == sorted(f"to/{name}/x" for name in NAMES if name not in ("st*r", "[x]"))


def test_status(place: Place) -> None:
    before = time.time()
    place.storage.write(place.uri("d/x"), b"12345")
    status = place.storage.status(place.uri("d/x/"))
    assert status is not None
    assert (status.uri, status.size, status.is_dir) == (place.uri("d/x"), 5, False)
    assert before - 2 < status.modified < time.time() + 2
    directory = place.storage.status(place.uri("d"))
    assert directory is not None
    assert (directory.uri, directory.size, directory.is_dir, directory.block_size) == (place.uri("d"), 0, True, None)
    assert place.storage.exists(place.uri("d/x"))
    assert place.storage.status(place.uri("d/y")) is None
    assert not place.storage.exists(place.uri("d/y"))


def test_listing(place: Place) -> None:
    for name in ["b/2", "b/1", "a", "_SUCCESS", ".staging/x", "b/_tmp/y"]:
        place.storage.write(place.uri(name), b"1")
    assert place.names() == ["a", "b/1", "b/2"]
    assert place.names("/b") == ["b/1", "b/2"]
    assert place.names("/.staging") == [".staging/x"]  # Hidden is what is hidden below.
    assert place.names(hidden=True) == [".staging/x", "_SUCCESS", "a", "b/1", "b/2", "b/_tmp/y"]
    assert [s.uri.removeprefix(place.base) for s in place.storage.ls(place.base)] == ["/.staging", "/_SUCCESS", "/a", "/b"]
    assert [s.uri for s in place.storage.ls(place.uri("a"))] == [place.uri("a")]
    assert place.storage.ls(place.uri("none")) == []
    assert place.storage.files(place.uri("none")) == []


def test_what_is_written_once_is_whole_and_never_replaced(place: Place) -> None:
    place.storage.write_once(place.uri("d/x"), b"1")
    assert (place.names("/d", hidden=True), place.storage.read(place.uri("d/x"))) == (["d/x"], b"1")
    with pytest.raises(AlreadyExists):
        place.storage.write_once(place.uri("d/x"), b"2")
    assert place.storage.read(place.uri("d/x")) == b"1"
    assert place.names("/d", hidden=True) == ["d/x"]


def test_of_two_that_write_a_name_at_once_each_publishes_its_own_content(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One stops between writing and renaming while the other begins to write the same name."""
    rename, begun = Storage.rename, list[str]()

    def slow(storage: Storage, source: str, target: str) -> None:
        if not begun:
            begun.append(source)
            with pytest.raises(AlreadyExists):  # once the first has renamed its own
                storage.write_once(target, b"second")
            return
        if len(begun) == 1:
            begun.append(source)
            rename(storage, begun[0], target)
        rename(storage, source, target)

    monkeypatch.setattr(Storage, "rename", slow)
    place.storage.write_once(place.uri("d/x"), b"first")
    assert place.storage.read(place.uri("d/x")) == b"first"


def test_contents_in_pieces(place: Place) -> None:
    data = os.urandom(3 * 2**20 + 17)
    pieces = [data[i : i + 100_000] for i in range(0, len(data), 100_000)]
    assert place.storage.create(place.uri("x"), iter(pieces)) == len(data)
    assert b"".join(place.storage.stream(place.uri("x"), 2**20)) == data
    assert max(map(len, place.storage.stream(place.uri("x"), 2**20))) <= 2**20
    assert place.storage.create(place.uri("empty"), []) == 0
    assert list(place.storage.stream(place.uri("empty"))) == []


def test_nothing_is_overwritten_unasked(place: Place) -> None:
    place.storage.write(place.uri("x"), b"old")
    place.storage.write(place.uri("y"), b"new")
    place.storage.mkdirs(place.uri("d/e"))
    with pytest.raises(AlreadyExists):
        place.storage.create(place.uri("x"), [b"new"])
    for old, new in [("y", "x"), ("y", "d"), ("d", "x")]:
        with pytest.raises(AlreadyExists):
            place.storage.rename(place.uri(old), place.uri(new))
    assert (place.storage.read(place.uri("x")), place.storage.read(place.uri("y"))) == (b"old", b"new")
    place.storage.write(place.uri("x"), b"newer")
    assert place.storage.read(place.uri("x")) == b"newer"


def test_a_directory_is_renamed_with_all_it_holds(place: Place) -> None:
    place.storage.write(place.uri("a/b/x"), b"1")
    place.storage.rename(place.uri("a"), place.uri("new/parents/a"))
    assert place.names() == ["new/parents/a/b/x"]
    assert not place.storage.exists(place.uri("a"))


def test_absent_files(place: Place) -> None:
    for action in (
        lambda: place.storage.read(place.uri("none")),
        lambda: place.storage.rename(place.uri("none"), place.uri("x")),
        lambda: place.storage.create(place.uri("x"), place.storage.stream(place.uri("none"))),
    ):
        with pytest.raises(FileNotFoundError):
            action()
    assert not place.storage.exists(place.uri("x"))
    assert place.storage.delete(place.uri("none")) is False


def test_delete(place: Place) -> None:
    place.storage.write(place.uri("d/x"), b"1")
    with pytest.raises(ReplicationError, match=r"(not|non) empty"):
        place.storage.delete(place.uri("d"))
    assert place.storage.exists(place.uri("d/x"))
    assert place.storage.delete(place.uri("d"), recursive=True) is True
    assert not place.storage.exists(place.uri("d"))
    place.storage.mkdirs(place.uri("e/f"))
    place.storage.mkdirs(place.uri("e/f"))
    assert place.storage.delete(place.uri("e/f")) is True
    with pytest.raises(Refused):
        place.storage.delete(place.storage.roots[0].uri, recursive=True)


def test_a_file_not_written_whole_is_removed(place: Place) -> None:
    def breaking() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.storage.create(place.uri("x"), breaking())
    assert not place.storage.exists(place.uri("x"))


def test_checksum_is_what_hadoop_computes(place: Place) -> None:
    for attempt in Retrying(
        retry=retry_if_exception_message(match=".*NotReplicatedYet.*"), stop=stop_after_attempt(5), reraise=True
    ):
        with attempt:  # a busy NameNode has not heard of the last block when it is asked for the next: copies try again, too
            place.storage.create(place.uri("x"), [bytes(5 * 2**20 + 1)], block_size=2**20)
    place.storage.write(place.uri("empty"), b"")
    many, none = place.storage.checksum(place.uri("x")), place.storage.checksum(place.uri("empty"))
    assert place.storage.has_checksums(place.base) is (many is not None)
    if place.base.startswith("file"):
        assert (many, none) == (None, None)
        return
    assert many is not None
    assert none is not None
    # As `hadoop fs -checksum` prints them.
    assert many.algorithm == "MD5-of-2048MD5-of-512CRC32C"
    assert many.value == "00000200000000000000080072160924aebab10c326ef52658242f3e"
    assert none.value == "00000000000000000000000070bc8f4b72a86921468bf8e8441dce51"
    with pytest.raises(FileNotFoundError):
        place.storage.checksum(place.uri("none"))


def test_block_size_and_replication_are_kept(place: Place) -> None:
    place.storage.create(place.uri("x"), [b"1"], block_size=2**20, replication=1)
    status = place.storage.status(place.uri("x"))
    assert status is not None
    expected = (None, None) if place.base.startswith("file") else (2**20, 1)
    assert (status.block_size, status.replication) == expected


def test_pickled_in_use(place: Place) -> None:
    place.storage.write(place.uri("x"), b"1")
    assert pickle.loads(pickle.dumps(place.storage)).read(place.uri("x")) == b"1"


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    root = f"hdfs://127.0.0.1:{port}/"
    storage = Storage((Root(uri=root, webhdfs=f"http://127.0.0.1:{port}"),))
    for action in (storage.status, storage.checksum):
        with pytest.raises(Unreachable, match=root):
            action(f"{root}x")
