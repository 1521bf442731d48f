"""Local files: names that are no UTF-8, directories that may not be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hive_replication.dump.listing import Lister
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import AlreadyExists, Denied, Storage
from hive_replication.verify.listing_digest import observe
from tests.faults import unreadable_directories


def test_names_of_local_files_that_are_no_utf8(tmp_path: Path) -> None:
    """Python's surrogates cannot be written into a dump, nor added up in a digest: a dump or check ended in a traceback."""
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\xfe")).write_text("1")
    (tmp_path / "plain").write_text("1")
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    odd, plain = (status.uri for status in storage.files(f"file://{tmp_path}"))
    assert (odd, plain) == (f"file://{tmp_path}/a\0ff\0fe", f"file://{tmp_path}/plain")
    assert len(observe(storage, f"file://{tmp_path}", 0).digest) == 16
    found = Lister(storage).files(f"file://{tmp_path}")
    assert found == (FileRef(odd), FileRef(plain))
    assert FileRef.decode(found[0].encode()) == found[0]
    with pytest.raises(Refused, match="NUL character"):
        storage.read(odd)


def test_a_link_to_a_local_directory_is_one(tmp_path: Path) -> None:
    """It was listed as a file, which no copy found: its table was held as long as the link was there."""
    table, outside = tmp_path / "root" / "t", tmp_path / "outside"
    for directory in (table / "ds=1", table.parent / "other", outside):
        directory.mkdir(parents=True)
        (directory / "f").write_text("123")
    (table / "ds=2").symlink_to(table.parent / "other")
    (table / "ds=3").symlink_to(table / "ds=1")
    (table / "g").symlink_to(table / "ds=1" / "f")
    (table / ".hidden").symlink_to(table.parent / "other")
    for ring in (table / "again", table / "ds=1" / "up", table.parent / "other" / "ring"):
        ring.symlink_to(table)
    storage, uri = Storage((Root(uri=table.parent.as_uri()),)), table.as_uri()
    found = storage.named_files(uri)
    assert list(found) == ["ds=1/f", "ds=2/f", "ds=3/f", "g"]
    assert {one.size for one in found.values()} == {3}
    assert [storage.status(one.uri) for one in found.values()] == list(found.values())
    assert {one.uri.rpartition("/")[2]: one.is_dir for one in storage.ls(uri)} == {
        **dict.fromkeys((".hidden", "again", "ds=1", "ds=2", "ds=3"), True),
        "g": False,
    }


def test_a_link_to_a_directory_above_makes_nothing_else_there_data_of_the_table(tmp_path: Path) -> None:
    table, other = tmp_path / "root" / "db" / "t", tmp_path / "root" / "other"
    for directory in (table, table.parent / "secret", other / "ds=1", other / "secret"):
        directory.mkdir(parents=True)
        (directory / "f").write_text("123")
    (table / "up").symlink_to("..")
    (table / "root").symlink_to("../..")
    (table / "ds=1").symlink_to(other / "ds=1")
    (other / "ds=1" / "up").symlink_to(other)
    storage = Storage((Root(uri=(tmp_path / "root").as_uri()),))
    assert list(storage.named_files(table.as_uri())) == ["ds=1/f", "f"]


@pytest.mark.parametrize("leads_to", ["outside", "root/t/missing", "root/t/link"])
def test_a_link_that_cannot_be_followed_stays_a_file_that_cannot_be_read(tmp_path: Path, leads_to: str) -> None:
    """The table is held for it: the listing of one table must not end a dump."""
    (tmp_path / "root" / "t").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "t" / "link").symlink_to(tmp_path / leads_to)
    storage, uri = Storage((Root(uri=f"file://{tmp_path}/root"),)), f"file://{tmp_path}/root/t"
    assert [(one.uri, one.is_dir) for one in storage.files(uri)] == [(f"{uri}/link", False)]
    with pytest.raises((ReplicationError, FileNotFoundError)):
        storage.read(f"{uri}/link")


def test_a_local_directory_that_may_not_be_read_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """fsspec leaves it out. Of a hidden one nothing is needed."""
    for name in ("f", "delta_1/f", ".staging/f"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    storage, uri = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    with unreadable_directories(".staging"):
        assert [status.uri.removeprefix(f"{uri}/") for status in storage.files(uri)] == ["delta_1/f", "f"]
        with pytest.raises(Denied):
            storage.files(uri, hidden=True)
    with unreadable_directories("delta_1"), pytest.raises(Denied):
        storage.files(uri)


def test_nothing_exists_below_a_file(tmp_path: Path) -> None:
    """What was to be written there passed for something that somebody else has written already."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ReplicationError, match="Not a directory") as raised:
        Storage((Root(uri=tmp_path.as_uri()),)).write(f"{tmp_path.as_uri()}/file/new", b"1")
    assert not isinstance(raised.value, AlreadyExists)
