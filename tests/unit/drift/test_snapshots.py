"""Where no snapshots can be had: stores without, servers that are too old, and answers that are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.drift.snapshots import NoSnapshots, Snapshots, Snapshotted
from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.webhdfs import WebHdfs

HDFS = Root(uri="hdfs://127.0.0.1:1/", webhdfs="http://127.0.0.1:1")


def of(root: Root, location: str) -> str:
    with pytest.raises(NoSnapshots) as failure:
        Snapshots(Storage((root,)), "default", "sales", "there/sales", 0.0).of(location, deleted=False)
    return str(failure.value)


def test_stores_without_snapshots(tmp_path: Path) -> None:
    assert "has no snapshots" in of(Root(uri=f"file://{tmp_path}"), f"file://{tmp_path}/t")
    assert "or its root in the policy no webhdfs" in of(Root(uri="hdfs://127.0.0.1:1/"), "hdfs://127.0.0.1:1/t")


def test_servers_that_do_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*_: object, **__: object) -> bytes:
        raise ReplicationError("WebHDFS answered 400: Invalid value for webhdfs parameter op")

    monkeypatch.setattr(WebHdfs, "told", told)
    assert of(HDFS, "hdfs://127.0.0.1:1/t").endswith(
        "snapshottable directories: WebHDFS answered 400: Invalid value for webhdfs parameter op"
    )


@pytest.mark.parametrize(("allowed", "location"), [([], "/w/t"), (["/w/t"], "/w/t2"), (["/w/t/ds=1"], "/w/t"), (["/w"], "/x")])
def test_directories_that_are_not_snapshottable(allowed: list[str], location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [{"parentFullPath": "/", "dirStatus": {"pathSuffix": path[1:]}, "snapshotNumber": 0} for path in allowed]
    monkeypatch.setattr(WebHdfs, "told", lambda *_, **__: json.dumps({"SnapshottableDirectoryList": found}).encode())
    assert "allows snapshots to this account" in of(HDFS, f"hdfs://127.0.0.1:1{location}")


def test_marks_hold_for_one_directory_and_one_snapshot() -> None:
    found = Snapshotted(Storage((HDFS,)), "hdfs://h/w", ["s.1", "s.2"])
    old, new = found.mark("hdfs://h/w/t", "s.1"), found.mark("hdfs://h/w/t/")
    assert [found.snapshot_of("hdfs://h/w/t", mark) for mark in (old, new, "", "0123456789abcdef")] == ["s.1", "s.2", "", ""]
    assert found.snapshot_of("hdfs://h/w/t2", new) == ""
    assert found.mark("hdfs://h/w2") == found.snapshot_of("hdfs://h/w2", "") == ""
    assert Snapshotted(Storage((HDFS,)), "hdfs://h/", ["s.1", "s.2"]).snapshot_of("hdfs://h/w/t", new) == ""
