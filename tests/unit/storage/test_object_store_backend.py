"""Stores through fsspec: what is refused leaves what is there, and no link leads out of a root."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.asyn import get_loop
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.tasks import CopyResult, CopyTask
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import AlreadyExists, Storage, object_moves, object_store_backend
from hive_replication.storage.client_errors import Answers
from hive_replication.storage.object_store_backend import FsspecBackend
from tests.bucket import _Bucket, bucket_storage

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class _Upload(AbstractBufferedFile):
    """A file that becomes an object, or is refused, when it is closed: as with S3."""

    def _upload_chunk(self, final: bool = False) -> bool:
        if final and "x" in self.mode and self.path in self.fs.objects:
            raise FileExistsError(self.path)
        if final:
            self.fs.objects[self.path] = self.buffer.getvalue()
        return final

    def _initiate_upload(self) -> None:
        pass


class _Objects(AbstractFileSystem):
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.objects: dict[str, bytes] = {}

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        if mode == "rb":
            return BytesIO(self.objects[path])
        made = _Upload(self, path, "wb")
        made.mode = mode
        return made

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def rm_file(self, path: str) -> None:
        del self.objects[path]


class _Azure(_Bucket):
    """A container whose copies are pending for a while, and end so; the object is as large as it says only where they succeed."""

    def __init__(self, *statuses: str) -> None:
        super().__init__()
        self.statuses, self.loop, self.service_client = list(statuses), get_loop(), self

    def split_path(self, path: str) -> tuple[str, str, None]:
        container, _, blob = path.partition("/")
        return container, blob, None

    def get_blob_client(self, container: str, blob: str) -> Any:
        async def properties() -> Any:
            name = f"{container}/{blob}"
            status = self.statuses.pop(0) if self.statuses else "success"
            if status != "success":
                self.objects[name] = b"" if status == "failed" else self.objects[name][0], 0.0
            return SimpleNamespace(copy=SimpleNamespace(status=status))

        return SimpleNamespace(get_blob_properties=properties)


@pytest.mark.parametrize(("statuses", "moved"), [(["pending", "pending", "success"], True), (["pending", "failed"], False)])
def test_a_copy_of_azure_that_is_pending_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, statuses: list[str], *, moved: bool
) -> None:
    """The source was deleted at once, which fails the copy: the file that had been proven was empty under its name."""
    monkeypatch.setattr("hive_replication.storage.azure_copies.time.sleep", lambda _: None)
    files = _Azure(*statuses)
    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda *_, **__: files)
    files.objects["data/t/.f.tmp"] = b"123", 0.0
    storage = Storage((Root(uri="abfs://data/"),))
    if moved:
        storage.rename("abfs://data/t/.f.tmp", "abfs://data/t/f")
    else:
        with pytest.raises(ReplicationError, match=r"did not copy it whole to data/t/f \(failed\)"):
            storage.rename("abfs://data/t/.f.tmp", "abfs://data/t/f")
    assert {name: data for name, (data, _) in files.objects.items()} == {"data/t/f" if moved else "data/t/.f.tmp": b"123"}
    assert files.statuses == []


@pytest.mark.parametrize("name", ["t/f", "t"])
def test_what_is_not_copied_whole_keeps_its_source(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    storage = bucket_storage(monkeypatch)
    files: Any = storage._backend("memory://bucket/", storage.roots[0])._files  # type: ignore[attr-defined]
    before = files.objects | {"bucket/t/e": (b"1", 0.0), "bucket/t/f": (b"123", 0.0)}
    files.objects |= before
    copy = files.cp_file

    def short(source: str, target: str) -> None:
        copy(source, target)
        if source.endswith("/f"):
            files.objects[target] = b"", 0.0

    monkeypatch.setattr(files, "cp_file", short)
    with pytest.raises(ReplicationError, match="did not copy it whole"):
        storage.rename(f"memory://bucket/{name}", "memory://bucket/u")
    assert files.objects == before


@pytest.mark.parametrize("what", ["cp_file", "info", "rm_file"])
def test_a_rename_meets_a_store_that_is_busy_once(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """It was repeated as a whole and found its own copy in the way: the name was taken, and the file was there twice."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage = bucket_storage(monkeypatch)
    files, met = busy(monkeypatch, storage, what)
    files.objects |= {f"bucket/t/{name}": (b"1", 0.0) for name in "ab"}
    storage.rename("memory://bucket/t/a", "memory://bucket/a")
    storage.rename("memory://bucket/t", "memory://bucket/u")
    storage.write_once("memory://bucket/d/mark", b"1")
    assert sorted(files.objects) == ["bucket/a", "bucket/d/mark", "bucket/u/b"]
    assert len(met) >= 2


@pytest.mark.parametrize(
    ("what", "about", "said", "left"),
    [
        ("info", "bucket/b", "Slow down", ["bucket/a", "bucket/b"]),
        ("rm_file", "bucket/a", "is copied whole to bucket/b, and cannot be deleted", ["bucket/a", "bucket/b"]),
    ],
)
def test_a_rename_says_so_where_the_store_stays_busy(
    monkeypatch: pytest.MonkeyPatch, what: str, about: str, said: str, left: list[str]
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage = bucket_storage(monkeypatch)
    files, _ = busy(monkeypatch, storage, what, about, times=100)
    files.objects["bucket/a"] = b"1", 0.0
    with pytest.raises(Unreachable, match=said):
        storage.rename("memory://bucket/a", "memory://bucket/b")
    assert sorted(files.objects) == left


@pytest.mark.parametrize(("times", "error"), [(1, AlreadyExists), (100, Unreachable)])
def test_a_name_is_not_free_because_the_store_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, times: int, error: type[Exception]
) -> None:
    """What another process had there was overwritten: fsspec's own ``exists`` says no whatever it met."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage = bucket_storage(monkeypatch)
    files, _ = busy(monkeypatch, storage, "info", "bucket/b", times=times)
    before = {"bucket/a": (b"1", 0.0), "bucket/b": (b"2", 0.0)}
    files.objects |= before
    with pytest.raises(error):
        storage.rename("memory://bucket/a", "memory://bucket/b")
    assert files.objects == before


def test_a_copy_whose_answer_is_lost_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects |= {"bucket/a": (b"1", 0.0), "bucket/t/a": (b"2", 0.0), "bucket/t/b": (b"3", 0.0)}
    copying(monkeypatch, files, before=files.cp_file)
    storage.rename("memory://bucket/a", "memory://bucket/b")
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/b": b"1", "bucket/u/a": b"2", "bucket/u/b": b"3"}


def test_a_move_that_fails_leaves_the_same_file_of_another_copy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its twin had told that the file is proven, and it was gone: a table without rows that its load had copied."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    (tmp_path / "f").write_bytes(b"123")
    task = CopyTask(FileRef(f"{tmp_path.as_uri()}/f"), "memory://bucket/f", 1, "db.t")
    source, storage = Storage((Root(uri=tmp_path.as_uri()),)), bucket_storage(monkeypatch)
    files, answers = objects(storage), list[object]()
    copy = files.cp_file

    def twin(*_: str) -> None:
        monkeypatch.setattr(files, "cp_file", copy)
        answers.append(copy_file(task, source, storage))
        copying(monkeypatch, files, before=lambda *_: None)

    copying(monkeypatch, files, before=twin)
    answers.append(copy_file(task, source, storage))
    assert [type(answer) for answer in answers] == [CopyResult, CopyResult]
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/f": b"123"}


def test_of_two_that_find_a_name_free_one_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both did, as two databases that took the same directory: the second one's copy overwrote what the first had written."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    ask = files.info

    def before_the_other(path: str) -> dict[str, Any]:
        if path != "bucket/d/mark":
            return ask(path)
        try:
            return ask(path)
        finally:
            files.objects.setdefault(path, (b"theirs", 0.0))

    monkeypatch.setattr(files, "info", before_the_other)
    with pytest.raises(AlreadyExists):
        storage.write_once("memory://bucket/d/mark", b"ours")
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/d/mark": b"theirs"}


def test_what_is_written_once_by_a_call_whose_answer_is_lost_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage = bucket_storage(monkeypatch)
    files, lost = objects(storage), list[str]()
    make = files.open

    def written(path: str, mode: str = "rb", **options: Any) -> Any:
        file = make(path, mode, **options)
        if mode != "rb" and not lost:
            lost.append(path)
            close = file.close

            def closed() -> None:
                close()
                file.close = close
                raise OSError(errno.EBUSY, "Slow down")

            file.close = closed
            monkeypatch.setattr(files, "rm_file", lambda _: None)  # of a bucket nothing is removed that could not be written
        return file

    monkeypatch.setattr(files, "open", written)
    storage.write_once("memory://bucket/d/mark", b"ours")
    assert lost
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/d/mark": b"ours"}
    with pytest.raises(AlreadyExists):
        storage.write_once("memory://bucket/d/mark", b"ours")


@pytest.mark.parametrize("other", [b"2", None])
def test_what_another_has_at_the_name_of_a_move_that_fails_stays(monkeypatch: pytest.MonkeyPatch, other: bytes | None) -> None:
    """Also where it cannot be read."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects["bucket/a"] = b"1", 0.0

    def twin(_: str, target: str) -> None:
        files.objects[target] = other or b"1", 0.0
        if other is None:
            monkeypatch.setattr(files, "open", failed)

    def failed(*_: str, **__: object) -> None:
        raise ConnectionResetError("the store went down")

    copying(monkeypatch, files, before=twin)
    with pytest.raises(Unreachable, match="nobody knows"):
        storage.rename("memory://bucket/a", "memory://bucket/b")
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/a": b"1", "bucket/b": other or b"1"}


def test_a_move_of_a_directory_that_fails_leaves_what_is_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two loads that moved the same directory the slower one deleted what the other had moved."""
    storage, files = a_directory(monkeypatch)
    copy = files.cp_file

    def faster(source: str, target: str) -> None:
        if source == "bucket/t/b":
            for name in "ab":
                files.objects[f"bucket/u/{name}"] = files.objects.pop(f"bucket/t/{name}")
        copy(source, target)

    monkeypatch.setattr(files, "cp_file", faster)
    with pytest.raises(FileNotFoundError):
        storage.rename("memory://bucket/t", "memory://bucket/u")
    assert sorted(files.objects) == ["bucket/u/a", "bucket/u/b"]


def test_a_move_of_a_directory_makes_anew_what_another_one_that_failed_took_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source of a copy is there for as long as both move the directory; the one that ended deleted it then."""
    storage, files = a_directory(monkeypatch)
    copy = files.cp_file

    def taken_back(source: str, target: str) -> None:
        copy(source, target)
        if source == "bucket/t/b":
            monkeypatch.setattr(files, "cp_file", copy)
            del files.objects["bucket/u/a"]

    monkeypatch.setattr(files, "cp_file", taken_back)
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert {name: data for name, (data, _) in files.objects.items()} == {"bucket/u/a": b"a", "bucket/u/b": b"b"}


def test_a_move_of_a_directory_looks_at_each_copy_right_before_it_deletes_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may take copies back for as long as it deletes, one by one, thousands of objects."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects |= {f"bucket/t/{name}": (name.encode(), 0.0) for name in "abc"}
    remove = files.rm_file

    def taken_back(key: str) -> None:
        monkeypatch.setattr(files, "rm_file", remove)
        remove(key)
        remove("bucket/u/c")

    monkeypatch.setattr(files, "rm_file", taken_back)
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert {name: data for name, (data, _) in files.objects.items()} == {f"bucket/u/{name}": name.encode() for name in "abc"}


@pytest.mark.parametrize("times", [1, 3, 100])
def test_a_move_of_a_directory_takes_what_is_written_meanwhile(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """It went by the first listing, and what came later stayed behind, where nobody looks any more."""
    (storage, files), late = a_directory(monkeypatch), iter(range(times))
    remove = files.rm_file

    def written(key: str) -> None:
        remove(key)
        for number in late:
            files.objects[f"bucket/t/late{number}"] = b"late", 0.0
            return

    monkeypatch.setattr(files, "rm_file", written)
    if times == 100:
        with pytest.raises(ReplicationError, match="somebody writes to bucket/t while it is moved to bucket/u"):
            storage.rename("memory://bucket/t", "memory://bucket/u")
        assert len(files.objects) > 2
        return
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert sorted(files.objects) == sorted(f"bucket/u/{name}" for name in ("a", "b", *(f"late{one}" for one in range(times))))


def test_a_move_of_a_directory_overwrites_no_copy_by_what_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, files = a_directory(monkeypatch)
    remove = files.rm_file

    def written(key: str) -> None:
        remove(key)
        if key == "bucket/t/a":
            files.objects[key] = b"again", 0.0

    monkeypatch.setattr(files, "rm_file", written)
    with pytest.raises(ReplicationError, match="bucket/t/a was written again while it was moved to bucket/u"):
        storage.rename("memory://bucket/t", "memory://bucket/u")
    assert {name: data for name, (data, _) in files.objects.items()} == {
        "bucket/t/a": b"again",
        "bucket/u/a": b"a",
        "bucket/u/b": b"b",
    }


@pytest.mark.parametrize("again", [b"again", b"A"])
def test_a_move_of_a_directory_deletes_nothing_that_is_written_again_before(
    monkeypatch: pytest.MonkeyPatch, again: bytes
) -> None:
    """While the others were copied: the copy is the older one, and what was new was lost."""
    storage, files = a_directory(monkeypatch)
    copy = files.cp_file

    def written(source: str, target: str) -> None:
        copy(source, target)
        if source == "bucket/t/b":
            files.objects["bucket/t/a"] = again, 5.0

    monkeypatch.setattr(files, "cp_file", written)
    with pytest.raises(ReplicationError, match="bucket/t/a was written again while it was moved to bucket/u"):
        storage.rename("memory://bucket/t", "memory://bucket/u")
    assert files.objects["bucket/t/a"][0] == again


@pytest.mark.parametrize("again", [b"again", b"A"])
def test_a_move_of_an_object_does_not_delete_what_is_written_again_before(monkeypatch: pytest.MonkeyPatch, again: bytes) -> None:
    """While it was copied; the copy goes, and is not in the way of another move."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects["bucket/t"] = b"a", 0.0
    with monkeypatch.context() as patch:
        copy = files.cp_file

        def written(source: str, target: str) -> None:
            copy(source, target)
            files.objects[source] = again, 5.0

        patch.setattr(files, "cp_file", written)
        with pytest.raises(ReplicationError, match="bucket/t was written again while it was moved to bucket/u"):
            storage.rename("memory://bucket/t", "memory://bucket/u")
    assert files.objects == {"bucket/t": (again, 5.0)}
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert [(name, data) for name, (data, _) in files.objects.items()] == [("bucket/u", again)]


def test_a_move_of_an_object_makes_anew_what_another_one_that_failed_took_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nothing of it was left."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects["bucket/t"] = b"a", 0.0
    info, took_back = files.info, iter([True])

    def asked(path: str) -> dict[str, Any]:
        found = info(path)
        if path == "bucket/u" and next(took_back, False):
            del files.objects[path]
        return found

    monkeypatch.setattr(files, "info", asked)
    storage.rename("memory://bucket/t", "memory://bucket/u")
    assert [(name, data) for name, (data, _) in files.objects.items()] == [("bucket/u", b"a")]


@pytest.mark.parametrize(
    ("listed", "now", "differs"),
    [
        ({"ETag": '"1"'}, {"ETag": '"1"'}, False),
        ({"etag": "0x1"}, {"etag": '"0x1"'}, False),
        ({"ETag": '"1"'}, {"ETag": '"2"'}, True),
        ({"ETag": '"1"', "LastModified": NOON.replace(microsecond=7)}, {"ETag": '"1"', "LastModified": NOON}, False),
        ({"LastModified": NOON.replace(microsecond=7)}, {"LastModified": NOON}, False),
        ({"LastModified": NOON}, {"LastModified": NOON.replace(second=1)}, True),
        ({"size": 2}, {}, True),
        ({"mtime": 1.0}, {}, False),
        ({}, {}, False),
    ],
)
def test_an_object_that_a_listing_tells_of_in_another_way_is_the_same(
    listed: dict[str, Any], now: dict[str, Any], differs: bool
) -> None:
    """Else no directory could be moved on a store whose listings have milliseconds, or tags without quotes."""
    assert object_moves._differs({"size": 1} | listed, {"size": 1} | now) == differs


def test_no_option_of_a_policy_makes_listings_come_from_a_cache() -> None:
    backend = FsspecBackend("memory", "bucket", {"use_listings_cache": "true", "listings_expiry_time": "600"})
    files: Any = backend._files
    assert not files.dircache.use_listings_cache


def copying(monkeypatch: pytest.MonkeyPatch, files: Any, before: Callable[[str, str], object]) -> None:
    """A bucket whose copies have no answer, whatever there was before."""

    def lost(source: str, target: str) -> None:
        before(source, target)
        raise ConnectionResetError("nobody knows")

    monkeypatch.setattr(files, "cp_file", lost)


def objects(storage: Storage) -> Any:
    """The bucket of a storage."""
    backend: Any = storage._backend("memory://bucket/", storage.roots[0])  # type: ignore[attr-defined]
    return backend._files


def a_directory(monkeypatch: pytest.MonkeyPatch) -> tuple[Storage, Any]:
    """A storage whose bucket has the directory t with the files a and b, and the bucket."""
    storage = bucket_storage(monkeypatch)
    files = objects(storage)
    files.objects |= {f"bucket/t/{name}": (name.encode(), 0.0) for name in "ab"}
    return storage, files


def busy(
    monkeypatch: pytest.MonkeyPatch, storage: Storage, what: str, about: str = "", *, times: int = 1
) -> tuple[Any, list[str]]:
    """A bucket that asks for fewer requests at the first calls about each object, or one, though it may do what is asked."""
    files, met = objects(storage), list[str]()
    call = getattr(files, what)
    backend: Any = storage._backend("memory://bucket/", storage.roots[0])  # type: ignore[attr-defined]
    backend._files = Answers(files)

    def asked(*names: str, **options: Any) -> Any:
        answer = call(*names, **options) if what != "rm_file" else None
        if met.count(names[-1]) < times and about in ("", names[-1]) and names[-1] in files.objects:
            met.append(names[-1])
            raise OSError(errno.EBUSY, "Slow down")
        return answer if what != "rm_file" else call(*names)

    monkeypatch.setattr(files, what, asked)
    return files, met


@pytest.fixture
def store() -> FsspecBackend:
    made = FsspecBackend("memory", "bucket", {})
    made._files = _Objects()  # type: ignore[assignment]
    return made


def failing() -> Iterator[bytes]:
    yield b"half"
    raise OSError("the source went away")


def test_a_refused_exclusive_create_leaves_the_object(store: FsspecBackend) -> None:
    """A7: it deleted the object that was in the way."""
    store.create("/a", [b"first"], overwrite=False)
    with pytest.raises(FileExistsError):
        store.create("/a", [b"second"], overwrite=False)
    assert store._files.objects == {"bucket/a": b"first"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_was_not_written_whole_is_no_object_and_removes_none(store: FsspecBackend, *, overwrite: bool) -> None:
    store.create("/a", [b"first"], overwrite=False)
    for name in ("/a", "/b"):
        with pytest.raises(OSError, match="went away"):
            store.create(name, failing(), overwrite=overwrite)
    assert store._files.objects == {"bucket/a": b"first"}  # type: ignore[attr-defined]


def test_local_files_not_written_whole_are_removed(tmp_path: Path) -> None:
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    with pytest.raises(Exception, match="went away"):
        storage.create(f"file://{tmp_path}/a", failing())
    assert list(tmp_path.iterdir()) == []
    storage.create(f"file://{tmp_path}/a", [b"first"])
    with pytest.raises(AlreadyExists):
        storage.create(f"file://{tmp_path}/a", [b"second"])
    assert (tmp_path / "a").read_bytes() == b"first"


def test_links_lead_out_of_no_local_root(tmp_path: Path) -> None:
    """C12."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "db.db" / ".repl" / "journal").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("s")
    (root / "away").symlink_to(outside)
    (root / "one").symlink_to(outside / "secret")
    (root / "own").symlink_to(root / "db.db" / ".repl")
    (root / "near").symlink_to(root / "db.db")
    storage = Storage((Root(uri=f"file://{root}"),))
    for name in ("away/secret", "one", "away", "away/new", "own/journal/x"):
        uri = f"file://{root}/{name}"
        calls = (storage.read, storage.status, storage.files, storage.delete, storage.mkdirs)
        for call in (*calls, lambda one: storage.write(one, b"x")):
            with pytest.raises(Refused, match="by a symbolic link"):
                call(uri)
    storage.write(f"file://{root}/near/t", b"inside")
    assert storage.read(f"file://{root}/db.db/t") == b"inside"
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "root").symlink_to(tmp_path / "real")
    storage = Storage((Root(uri=f"file://{tmp_path}/root"),))
    storage.write(f"file://{tmp_path}/root/a", b"1")
    assert storage.read(f"file://{tmp_path}/root/a") == b"1"


@pytest.mark.parametrize("planted", ["file", "inside", "outside", "nothing"])
def test_no_planted_name_is_written_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: str) -> None:
    """C12: a link under the name that a file has until it is whole, wherever it leads; and the name cannot be known."""
    root, (inside, outside) = tmp_path / "root", (tmp_path / "root" / "journal", tmp_path / "outside")
    root.mkdir()
    for file in (inside, outside):
        file.write_text("before")
    storage = Storage((Root(uri=f"file://{root}"),))
    (root / ".f.new").symlink_to(inside)
    storage.write_once(f"file://{root}/f", b"mine")
    monkeypatch.setattr("hive_replication.storage.storage.secrets.token_hex", lambda _: "0" * 16)
    name = root / f".g.{'0' * 16}.new"
    if planted == "file":
        name.write_text("planted")
    else:
        name.symlink_to({"inside": inside, "outside": outside, "nothing": root / "nothing"}[planted])
    with pytest.raises((AlreadyExists, Refused)):
        storage.write_once(f"file://{root}/g", b"mine")
    assert [file.read_text() for file in (root / "f", inside, outside)] == ["mine", "before", "before"]
    assert not (root / "g").exists()
    assert not (root / "nothing").exists()


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({"LastModified": datetime(2026, 1, 1, tzinfo=UTC)}, 1767225600),
        ({"last_modified": datetime(2026, 1, 1, tzinfo=UTC)}, 1767225600),  # as adlfs has it
        ({"modified": "2026-01-01T00:00:00Z"}, 1767225600),
    ],
)
def test_the_time_of_an_object_is_found_whatever_its_file_system_calls_it(
    store: FsspecBackend, told: dict[str, object], seconds: int
) -> None:
    assert store._status({"name": "bucket/a", "size": 1, "type": "file", **told}).modified == seconds


def test_an_object_of_unknown_age_is_never_old(store: FsspecBackend) -> None:
    began = time.time()
    assert store._status({"name": "bucket/a", "size": 1, "type": "file"}).modified >= began


@pytest.mark.parametrize("account", ["@acc.dfs.core.windows.net", ""])
@pytest.mark.parametrize("scheme", ["abfs", "abfss"])
def test_names_of_azure_begin_with_the_container(monkeypatch: pytest.MonkeyPatch, scheme: str, account: str) -> None:
    """Every URI of a listing lay outside of the roots where its root named the account, as Hive's URIs do."""
    made: list[dict[str, str]] = []
    files = _Azure()  # which, unlike adlfs, takes no name with an account

    def filesystem(_: str, **options: Any) -> _Bucket:
        made.append({name: value for name, value in options.items() if isinstance(value, str)})
        return files

    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", filesystem)
    root = f"{scheme}://data{account}"
    storage = Storage((Root(uri=f"{root}/w", options={"location_mode": "primary"}),))
    storage.write(f"{root}/w/t/f", b"123")
    storage.rename(f"{root}/w/t/f", f"{root}/w/t/ds=1/g")
    assert list(files.objects) == ["data/w/t/ds=1/g"]
    assert [one.uri for one in storage.ls(f"{root}/w/t")] == [f"{root}/w/t/ds=1"]
    assert [one.uri for one in storage.files(f"{root}/w")] == [f"{root}/w/t/ds=1/g"]
    assert [one.uri for one in storage.files(f"{root}/w/t/ds=1/g")] == [f"{root}/w/t/ds=1/g"]
    assert storage.read(f"{root}/w/t/ds=1/g") == b"123"
    assert made == [{"account_name": "acc", "location_mode": "primary"} if account else {"location_mode": "primary"}]


@pytest.mark.parametrize("account", ["123456", "1e5"])
def test_the_name_of_an_account_of_azure_may_be_a_number(monkeypatch: pytest.MonkeyPatch, account: str) -> None:
    made: dict[str, Any] = {}
    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda _, **options: made.update(options) or _Azure())
    FsspecBackend("abfs", f"c@{account}.dfs.core.windows.net", {})
    assert made["account_name"] == account


def test_objects_that_stand_for_directories_are_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As S3A makes and keeps them: an empty table had a file that could not be copied."""
    storage = bucket_storage(monkeypatch)
    files: Any = storage._backend("memory://bucket/", storage.roots[0])._files  # type: ignore[attr-defined]
    for name in ("w/t/", "w/t/ds=1/", "w/t/ds=1/f", "w/empty/"):
        files.objects[f"bucket/{name}"] = (b"", 0.0)
    w = "memory://bucket/w"
    assert [(one.uri, one.is_dir) for one in storage.ls(w)] == [(f"{w}/empty", True), (f"{w}/t", True)]
    assert [(one.uri, one.is_dir) for one in storage.ls(f"{w}/t")] == [(f"{w}/t/ds=1", True)]
    assert storage.files(f"{w}/empty") == storage.ls(f"{w}/empty") == []
    assert [one.uri for one in storage.files(w, hidden=True)] == [f"{w}/t/ds=1/f"]
    storage.rename(f"{w}/t", f"{w}/moved")
    assert list(files.objects) == ["bucket/w/empty/", "bucket/w/moved/ds=1/f"]
    with pytest.raises(ReplicationError, match="not empty"):
        storage.delete(f"{w}/moved")
    assert storage.delete(f"{w}/empty")
    assert storage.delete(f"{w}/moved", recursive=True)
    assert files.objects == {}


def test_a_directory_that_lists_itself_is_not_in_itself(store: FsspecBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As gcsfs gives the object that stands for it."""
    told = [{"name": "bucket/t", "size": 0, "type": "directory"}, {"name": "bucket/t/a", "size": 1, "type": "file"}]
    monkeypatch.setattr(store._files, "ls", lambda *_, **__: told)
    assert [one.uri for one in store.ls("/t")] == ["memory://bucket/t/a"]


def test_options_arrive_with_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """``anon: "false"`` was true, a block size as a text ended in a TypeError, and ``client_kwargs`` could not be written."""
    made: dict[str, Any] = {}
    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda _, **options: made.update(options) or _Bucket())
    options = {
        "anon": "false",
        "default_block_size": "8388608",
        "client_kwargs": '{"region_name": "eu-west-1"}',
        "endpoint_url": "http://store:9000",
        "project": '"12"',
        "secret": "0123",
        "username": "1234",
        "gcp_project": "123456789012",
        "requests_timeout": "2.5",
        "max_concurrency": "4",
        "port": "22",
        "config_kwargs": "[" * 100_000,
        "requester_pays": "true",
        "key": "4567",
        "token": '{"type": "service_account"}',
    }
    FsspecBackend("s3", "bucket", options)
    assert {name: made[name] for name in options} == options | {
        "anon": False,
        "default_block_size": 8388608,
        "client_kwargs": {"region_name": "eu-west-1"},
        "project": "12",
        "requests_timeout": 2.5,
        "max_concurrency": 4,
        "port": 22,
        "requester_pays": True,
        "token": {"type": "service_account"},
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, [8 << 20, 8 << 20, 59 << 20, None]), ({"default_block_size": "6000000"}, [None] * 4)],
)
def test_blocks_of_objects_are_as_small_as_their_size_allows(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], expected: list[int | None]
) -> None:
    """With s3fs each file in flight took 100 MiB of memory, and none of more than 500 GB could be written."""
    asked: list[int | None] = []

    class Asked(_Bucket):
        def open(self, path: str, mode: str = "rb", block_size: int | None = None, **_: Any) -> Any:
            asked.append(block_size)
            return super().open(path, mode)

    monkeypatch.setattr(object_store_backend.fsspec, "filesystem", lambda *_, **__: Asked())
    storage = Storage((Root(uri="s3://bucket/", options=options),))
    storage.create("s3://bucket/f", [b"1"], expected=1)
    assert storage.read("s3://bucket/f") == b"1"
    storage.create("s3://bucket/large", [b"1"], expected=550 * 10**9)
    storage.create("s3://bucket/unknown", [b"1"])
    assert asked == expected


def test_a_copy_says_how_large_its_replica_will_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[object] = []

    class Told(Storage):
        def create(self, uri: str, chunks: Any, **options: Any) -> int:
            told.append(options["expected"])
            return super().create(uri, chunks, **options)

    (tmp_path / "f").write_bytes(b"123")
    storage = Told((Root(uri=tmp_path.as_uri()),))
    copy_file(CopyTask(FileRef(f"{tmp_path.as_uri()}/f"), f"{tmp_path.as_uri()}/g", 1, "db.t"), storage, storage)
    assert told == [3]
