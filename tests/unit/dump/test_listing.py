"""Listings for a dump: one file or directory of which not all can be known concerns its table alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import seen_files
from hive_replication.dump.cm_roots import CmRoots
from hive_replication.dump.functions import function_record
from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import ANYWHERE
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.replica.target import Target
from hive_replication.load.untrusted_dump import validate_files
from hive_replication.metastore.types import Function, ResourceUri
from hive_replication.policy import Root
from hive_replication.storage import Denied, FileChecksum, FileStatus, Late, NoChecksum, StillOpen, Storage
from hive_replication.storage.boundary import Boundary
from tests.bucket import bucket_storage

AT = "hdfs://s/t"


class _Directory:
    """A directory with two files; asking for the checksum of the second ends so."""

    def __init__(self, problem: Exception) -> None:
        self._problem = problem

    def files(self, _: str) -> list[FileStatus]:
        return [FileStatus(f"{AT}/{name}", 1, False, 0) for name in "ab"]

    def checksum(self, uri: str) -> FileChecksum:
        if uri.endswith("b"):
            raise self._problem
        return FileChecksum("MD5", "0a")

    def check(self, uri: str) -> str:
        return uri


def lister(problem: Exception, *, holds: bool = True, copies: bool = False) -> Lister:
    return Lister(cast("Storage", _Directory(problem)), CmRoots("hdfs://s/cm"), holds=holds, copies=copies)


@pytest.mark.parametrize(
    "problem",
    [NoChecksum("No active nodes contain this block"), StillOpen("b is still being written"), Late("no checksum within 92 s")],
)
def test_a_file_without_a_checksum_is_dumped_without_one(problem: Exception) -> None:
    """One damaged file, or one of many GiB, ended the dump of the whole database."""
    assert lister(problem).files(AT) == (FileRef(f"{AT}/a", "0a", "hdfs://s/cm"), FileRef(f"{AT}/b"))


@pytest.mark.parametrize("problem", [Unreachable("nobody answers"), ReplicationError("no WebHDFS answers there")])
def test_what_concerns_all_files_ends_the_dump(problem: Exception) -> None:
    with pytest.raises(type(problem), match=str(problem)):
        lister(problem).files(AT)


@pytest.mark.parametrize("at", ["hdfs://NN:8020/w/db.db/t", "hdfs://ns3/lake/t"], ids=["another case", "in source.paths alone"])
def test_a_directory_outside_the_storage_roots_concerns_its_table_alone(at: str) -> None:
    """Each dump of its database ended at it, of windows for good: the event keeps its location, whatever is mended."""
    storage = Storage((Root(uri="hdfs://nn:8020/"),))
    boundary = Boundary("source.paths", ("hdfs://nn:8020/w/db.db", "hdfs://ns3/lake"))
    marked = (FileRef.unreadable_directory(at),)
    listing = Lister(storage, boundary=boundary, holds=True)
    assert listing.files(at) == marked
    assert seen_files(storage, listing, WriteIds(3), Hidden(9), at).files == marked
    with pytest.raises(Refused, match=r"lies outside the source's storage roots: .* of the policy \(hdfs://nn:8020/\)"):
        validate_files(cast("Target", SimpleNamespace(source_storage=storage)), marked, "db.t")
    with pytest.raises(Refused, match="lies outside the storage roots"):
        Lister(storage, boundary=boundary).files(at)


def test_a_link_out_of_the_storage_roots_concerns_its_table_alone(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/t").symlink_to(tmp_path)
    at = (tmp_path / "root/t").as_uri()
    assert Lister(Storage((Root(uri=(tmp_path / "root").as_uri()),)), holds=True).files(at) == (FileRef.unreadable_directory(at),)


def test_a_directory_that_changes_all_the_time_is_marked() -> None:
    assert lister(FileNotFoundError("b")).files(AT) == (FileRef.unreadable_directory(AT),)


@pytest.mark.parametrize("problem", [NoChecksum("lost"), Late("no checksum within 92 s"), FileNotFoundError("b")])
def test_comparisons_take_no_such_listing(problem: Exception) -> None:
    with pytest.raises(ReplicationError):
        lister(problem, holds=False).files(AT)


def test_a_copy_whose_blocks_are_lost_is_listed_so_that_it_differs() -> None:
    """It ended comparisons, and the recovery that would have brought it again."""
    found = lister(NoChecksum("lost"), holds=False, copies=True).files(AT)
    assert [(file.name, file.checksum) for file in found] == [("a", "0a"), ("b", "")]
    with pytest.raises(Denied):
        lister(Denied("the account lacks r"), holds=False, copies=True).files(AT)


@pytest.mark.parametrize("problem", [NoChecksum("lost"), StillOpen("b is still being written"), Late("no checksum within 92 s")])
def test_a_function_whose_jar_has_no_checksum_is_dumped(problem: Exception) -> None:
    uris = [ResourceUri(uri=f"{AT}/{name}") for name in "ab"]
    source: Any = SimpleNamespace(storage=_Directory(problem))
    found = function_record(cast("Source", source), Function("f", "db", resourceUris=uris), CmRoots("hdfs://s/cm"), ANYWHERE)
    assert [(file.uri, file.checksum) for file in found.files] == [(f"{AT}/a", "0a"), (f"{AT}/b", "")]


@pytest.mark.parametrize("holds", [True, False])
def test_an_object_that_no_path_names_concerns_its_table_alone(monkeypatch: pytest.MonkeyPatch, *, holds: bool) -> None:
    """As jobs write to S3 that put a slash too many between directory and name: all dumps of the database failed."""
    storage = bucket_storage(monkeypatch)
    files: Any = storage._backend("memory://bucket/", storage.roots[0])._files  # type: ignore[attr-defined]
    for name in ("t//part-1", "t/part-0", "u/part-0"):
        files.objects[f"bucket/db/{name}"] = (b"1", 0.0)
    odd, sound = Lister(storage, holds=holds).many(["memory://bucket/db/t", "memory://bucket/db/u"])
    assert [one.uri for one in odd] == ["memory://bucket/db/t//part-1", "memory://bucket/db/t/part-0"]
    target: Any = SimpleNamespace(source_storage=storage)
    validate_files(target, sound, "db.u")
    with pytest.raises(Refused, match=r"part-1 for db.t.* has an empty, '.' or '..' segment"):
        validate_files(target, odd, "db.t")


@pytest.mark.parametrize("table", ["t", "t_"])
def test_names_are_the_same_however_the_metastore_spells_the_directory(tmp_path: Path, table: str) -> None:
    """Hadoop writes ``file:/w``: each file came into a directory named by its own one's last letter, where Hive reads none."""
    (tmp_path / table / "p=1").mkdir(parents=True)
    (tmp_path / table / "p=1" / "f").write_text("1\n")
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    spelled = [f"{scheme}{tmp_path}/{table}{end}" for scheme in ("file:", "file://") for end in ("", "/")]
    found = {one for location in spelled for one in Lister(storage).files(location)}
    assert [(one.uri, one.subdir) for one in found] == [(f"file://{tmp_path}/{table}/p=1/f", "p=1")]
