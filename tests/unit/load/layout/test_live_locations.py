"""Directories in use: what retention and placement must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.layout.move_to_retired import retire
from hive_replication.policy import Root
from hive_replication.storage import Storage

BASE = "hdfs://dst/w/db.db"
LOCATIONS = Locations([f"{BASE}/a", f"{BASE}/p/ds=1"], bases=[f"{BASE}/p"])


@pytest.mark.parametrize(
    ("path", "contains", "any_below"),
    [
        ("a", True, True),
        ("a/f", True, False),
        ("ab", False, False),
        ("p", False, True),
        ("p/ds=1", True, True),
        ("p/ds=2", False, False),
        ("p/ds=10", False, False),
    ],
)
def test_what_is_in_use(path: str, contains: bool, any_below: bool) -> None:
    assert (LOCATIONS.contains(f"{BASE}/{path}"), LOCATIONS.any_below(f"{BASE}/{path}")) == (contains, any_below)


def test_above_a_directory_with_data() -> None:
    assert (LOCATIONS.contains(BASE), LOCATIONS.any_below(BASE)) == (False, True)


def test_the_largest_unused_parts(tmp_path: Path) -> None:
    base, storage = f"{tmp_path.as_uri()}/db.db", Storage((Root(uri=tmp_path.as_uri()),))
    for name in ("p/ds=1/f", "p/ds=2/f", "p/ds=2/g", "old/f"):
        storage.write(f"{base}/{name}", b"1")
    live = Locations([f"{base}/p/ds=1"], bases=[f"{base}/p"])
    assert sorted(live.unused_parts(storage, base)) == [f"{base}/old", f"{base}/p/ds=2"]
    assert list(live.unused_parts(storage, f"{base}/old")) == [f"{base}/old"]
    assert list(live.unused_parts(storage, f"{base}/p/ds=1/f")) == []


def test_a_directory_is_retired_once_and_only_inside_the_database(tmp_path: Path) -> None:
    base, storage = f"{tmp_path.as_uri()}/db.db", Storage((Root(uri=tmp_path.as_uri()),))
    for uri in (f"{base}/t/f", f"{tmp_path.as_uri()}/outside/f"):
        storage.write(uri, b"1")
    for directory in (f"{base}/t/", f"{base}/t", f"{tmp_path.as_uri()}/outside", "", None):
        retire(storage, base, directory, 170)
    assert storage.exists(f"{tmp_path.as_uri()}/outside/f")
    assert not storage.exists(f"{base}/t")
    assert [status.uri.rpartition("-")[0] for status in storage.ls(f"{base}/.repl/retired/170")] == [
        f"{base}/.repl/retired/170/t"
    ]
