"""Files of a directory and of its replica, compared for drift by checksums, or by content where these tell nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hive_replication.drift.directories import CLOCKS_APART, difference, is_copy
from hive_replication.drift.findings import Scanned
from hive_replication.storage import FileChecksum, FileStatus

PLACE = Scanned("s3a://ours/t", "s3a://theirs/t", 5)


class Store:
    """A store with a directory of one side, whose checksums are of a kind."""

    def __init__(self, uri: str, checksum: str, **files: str) -> None:
        self._uri, self._checksum, self.held, self.read = uri, checksum, files, list[str]()

    def files(self, uri: str, *, hidden: bool = False) -> list[FileStatus]:
        del hidden
        return [FileStatus(f"{uri}/{name}", len(content), False, 1.0) for name, content in self.held.items()]

    def checksum(self, uri: str) -> FileChecksum | None:
        content = self.held[uri.removeprefix(f"{self._uri}/")]
        found = {
            "of the content": FileChecksum("CRC", content),
            "of encrypted bytes": FileChecksum("CRC", f"{self._uri}{content}"),
            "of blocks": FileChecksum(f"CRC of {self._uri}", f"{self._uri}{content}"),
        }
        return found.get(self._checksum)

    def about_webhdfs(self, *_: object, again: bool) -> bool:
        return again and self._checksum == "of encrypted bytes"

    def stream(self, uri: str) -> Iterator[bytes]:
        self.read.append(uri.rpartition("/")[2])
        return iter([self.held[self.read[-1]].encode()])


def compared(checksum: str, ours: dict[str, str], theirs: dict[str, str]) -> tuple[object, list[str]]:
    """What differs, and what was read to tell that."""
    source: Any = Store(PLACE.source, checksum, **ours)
    target: Any = Store(PLACE.target, checksum, **theirs)
    listing = {name: (len(content), 2.0) for name, content in ours.items()}
    return difference(source, target, "db", (PLACE, listing)), source.read


@pytest.mark.parametrize("checksum", ["none", "of encrypted bytes", "of blocks"])
def test_content_decides_where_checksums_tell_nothing_of_each_other(checksum: str) -> None:
    """All of a replica was copied again after a failback: the source's files are copies of it, and therefore later."""
    assert compared(checksum, {"a": "1", "b": "2"}, {"a": "1", "b": "2"})[0] == ""
    assert compared(checksum, {"a": "1", "b": "2"}, {"a": "1", "b": "3"})[0] == "1 changed"


@pytest.mark.parametrize("checksum", ["none", "of encrypted bytes", "of blocks"])
def test_nothing_is_read_where_all_is_copied_in_any_case(checksum: str) -> None:
    assert compared(checksum, {"a": "1", "b": "2"}, {"a": "1"}) == ("1 new, 1 changed", [])


def test_nothing_is_read_where_checksums_tell() -> None:
    assert compared("of the content", {"a": "1", "b": "2"}, {"a": "1", "b": "2"}) == ("", [])
    assert compared("of the content", {"a": "1", "b": "2"}, {"a": "1", "b": "3"}) == ("1 changed", [])


@pytest.mark.parametrize(("later", "is_told"), [(CLOCKS_APART + 0.1, True), (CLOCKS_APART, False), (0.1, False), (-1.0, False)])
def test_times_of_two_clusters_tell_a_copy_only_where_they_are_further_apart_than_clocks_may_be(
    later: float, is_told: bool
) -> None:
    """A file that was rewritten at once, with the same size, counted as copied where the target's clock was a second ahead."""
    assert is_copy({"a": (1, 1e9 - 50), "b": (1, 1e9)}, {"a": (1, 1e9 + 50), "b": (1, 1e9 + later)}) == is_told
    assert not is_copy({"a": (1, 1e9)}, {"a": (2, 1e9 + later)})
