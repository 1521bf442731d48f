"""Files as the witness compares them, where a store has no checksum of one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, NoChecksum, StillOpen, Storage, StorageError
from hive_replication.verify.witness.files import Directories, file_facts

SAME = FileChecksum("MD5", "ab")
LOST = NoChecksum("its blocks are lost")


@pytest.mark.parametrize(
    ("source", "target", "same"),
    [
        (SAME, SAME, True),
        (SAME, FileChecksum("MD5", "cd"), False),
        (SAME, LOST, False),
        (LOST, SAME, True),
        (LOST, LOST, True),
        (StillOpen("it is written"), SAME, True),
        (None, LOST, False),
        (None, SAME, True),
    ],
)
def test_a_copy_whose_blocks_are_lost_is_none(
    tmp_path: Path, source: FileChecksum | NoChecksum | None, target: FileChecksum | NoChecksum, *, same: bool
) -> None:
    storages: list[Storage] = []
    for side, checksum in (("source", source), ("target", target)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "f").write_text("1")
        storages.append(Store(tmp_path / side, checksum))
    found = file_facts(*storages, Directories(f"{tmp_path.as_uri()}/source", f"{tmp_path.as_uri()}/target", 2))
    assert (found.source == found.target) is same


@pytest.mark.parametrize(("size", "compared"), [(4, 1), ((1 << 20) + 1, 0)])
def test_content_of_small_files_is_compared_where_stores_have_no_checksums(tmp_path: Path, size: int, compared: int) -> None:
    """Any content of the same size was equal, and its checksum counted as compared."""
    sides = [tmp_path / "source", tmp_path / "target"]
    for side, content in zip(sides, (b"a", b"b"), strict=True):
        side.mkdir()
        (side / "f").write_bytes(content * size)
    storages = [Storage((Root(uri=side.as_uri()),)) for side in sides]
    found = file_facts(*storages, Directories(sides[0].as_uri(), sides[1].as_uri(), 2))
    assert (found.source != found.target, found.checksums) == (bool(compared), compared)


def test_a_directory_outside_the_roots_is_told_and_ends_no_round(tmp_path: Path) -> None:
    storage = Store(tmp_path, SAME)
    found = file_facts(storage, storage, Directories("s3a://lake/x", tmp_path.as_uri(), 2))
    assert "'s3a://lake/x' lies outside the storage roots" in found.source[""]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_file_that_its_store_cannot_read_ends_no_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    """One whose key was taken from the account left the check of its whole database undecided."""
    sides = {name: tmp_path / name for name in ("source", "target")}
    for folder in sides.values():
        folder.mkdir()
        (folder / "f").write_text("1")
    stores = {name: Storage((Root(uri=folder.as_uri()),)) for name, folder in sides.items()}

    def unread(uri: str) -> Iterator[bytes]:
        raise StorageError(f"{uri}: KMS request failed (403 Forbidden)")

    monkeypatch.setattr(stores[side], "stream", unread)
    found = file_facts(*stores.values(), Directories(sides["source"].as_uri(), sides["target"].as_uri(), 2))
    assert found.source != found.target
    told = f"{sides['source'].as_uri()}/f: KMS request failed (403 Forbidden)"
    assert found.source.get("") == told if side == "source" else found.target["f"].endswith("checksum none")


class Store(Storage):
    """A directory whose files have a checksum, or none."""

    def __init__(self, folder: Path, found: FileChecksum | NoChecksum | None) -> None:
        super().__init__((Root(uri=folder.as_uri()),))
        self._found = found

    def checksum(self, _: str) -> FileChecksum | None:
        if isinstance(self._found, NoChecksum):
            raise self._found
        return self._found
