"""Digests of listings: what changes them, and which files are still being written."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hive_replication.policy import Root
from hive_replication.storage import Denied, FileStatus, Storage
from hive_replication.verify.listing_digest import is_being_written, is_unfinished, listing_digest, observe

NOW = time.time()


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=f"file://{tmp_path}"),))


def write(path: Path, *, age: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x", encoding="utf-8")
    os.utime(path, (NOW - age, NOW - age))


def test_names_sizes_and_times_make_the_digest_and_order_does_not() -> None:
    files = {"a": (1, 10.0), "b": (2, 20.0)}
    digest = listing_digest(files)
    assert len(digest) == 16
    assert listing_digest(dict(reversed(files.items()))) == digest
    others = [{"a": (1, 10.0)}, files | {"c": (1, 1.0)}, files | {"a": (3, 10.0)}, files | {"a": (1, 10.5)}]
    assert digest not in map(listing_digest, others)


def test_hidden_files_are_no_data_and_an_absent_directory_is_empty(storage: Storage, tmp_path: Path) -> None:
    for name in ("part-0", "_SUCCESS", ".part-0.crc", "sub/part-1"):
        write(tmp_path / "t" / name)
    found = observe(storage, f"file://{tmp_path}/t", NOW)
    assert (set(found.files), found.writing) == ({"part-0", "sub/part-1"}, "")
    assert observe(storage, f"file://{tmp_path}/absent", NOW).digest == listing_digest({})


@pytest.mark.parametrize("table", ["t", "t_"])
def test_names_are_the_same_however_the_metastore_spells_the_directory(storage: Storage, tmp_path: Path, table: str) -> None:
    """Hadoop writes ``file:/w``: names had the end of the directory's before them, and so did those that were compared."""
    write(tmp_path / table / "part-0")
    found = [
        set(observe(storage, f"{scheme}{tmp_path}/{table}{end}", NOW).files)
        for scheme in ("file:", "file://")
        for end in ("", "/")
    ]
    assert found == [{"part-0"}] * 4


@pytest.mark.parametrize(
    "name", ["_temporary/0/part-0", "_tmp.-ext-10000/000000_0", ".hive-staging_hive_1/f", ".spark-staging-1/f", "f._COPYING_"]
)
def test_unfinished_files_show_a_write_in_progress_for_a_day(storage: Storage, tmp_path: Path, name: str) -> None:
    assert is_unfinished(name)
    write(tmp_path / "t" / name)
    assert observe(storage, f"file://{tmp_path}/t", NOW).writing == name
    later = observe(storage, f"file://{tmp_path}/t", NOW + 90_000.0)
    assert (later.writing, dict(later.files)) == ("", {})  # a job that died left it


def test_scratch_directories_beside_the_partitions(storage: Storage, tmp_path: Path) -> None:
    write(tmp_path / "t" / "ds=1" / "part-0")
    assert not is_being_written(storage, f"file://{tmp_path}/t", NOW)
    write(tmp_path / "t" / ".hive-staging_hive_1" / "part-0", age=90_000.0)
    assert not is_being_written(storage, f"file://{tmp_path}/t", NOW)
    write(tmp_path / "t" / "_temporary" / "0" / "part-0")
    assert is_being_written(storage, f"file://{tmp_path}/t", NOW)


def test_scratch_directories_may_be_for_their_owners_alone(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stand for what is written in them."""
    write(tmp_path / "t" / "part-0")
    files = storage.files
    scratch = tmp_path / "t" / ".hive-staging_hive_1"

    def denied(uri: str, *, hidden: bool = False) -> list[FileStatus]:
        if scratch.exists() and (hidden or uri.endswith(scratch.name)):
            raise Denied("no right to read .hive-staging_hive_1")
        return files(uri, hidden=hidden)

    monkeypatch.setattr(storage, "files", denied)
    for now, writing in ((NOW, ""), (NOW, scratch.name), (NOW + 90_000.0, "")):
        if writing:
            scratch.mkdir()
        found = observe(storage, f"file://{tmp_path}/t", now)
        assert (set(found.files), found.writing) == ({"part-0"}, writing)
        assert is_being_written(storage, f"file://{tmp_path}/t", now) is bool(writing)
