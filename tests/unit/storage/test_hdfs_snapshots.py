"""From the difference of a snapshot to the directories that may have changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.storage.hdfs_snapshots import difference, since_snapshot, snapshottable
from hive_replication.storage.webhdfs import WebHdfs

PARTS = ("t/ds=1", "t/ds=2", "t/ds=3")


def entry(kind: str, source: str, target: str | None = None) -> dict[str, Any]:
    return {"type": kind, "sourcePath": source, "targetPath": target}


@pytest.mark.parametrize(
    ("entries", "touched"),
    [
        ([], ()),
        ([entry("MODIFY", ""), entry("MODIFY", "t"), entry("CREATE", "t/ds=4")], ()),
        ([entry("MODIFY", "t/ds=1/f")], ("t/ds=1",)),
        ([entry("MODIFY", "t/ds=1"), entry("CREATE", "t/ds=1/f")], ("t/ds=1",)),
        ([entry("MODIFY", "t/ds=1/deep/er"), entry("DELETE", "t/ds=1/deep/er/f")], ("t/ds=1",)),
        ([entry("MODIFY", "t"), entry("DELETE", "t/ds=2"), entry("CREATE", "t/ds=2")], ("t/ds=2",)),
        ([entry("MODIFY", ""), entry("CREATE", "t")], PARTS),  # all that lies below is new, and has no entries
        ([entry("MODIFY", ""), entry("RENAME", "old", "t"), entry("MODIFY", "old/ds=3")], PARTS),
        ([entry("RENAME", "t/ds=1/f", "t/ds=3/f"), entry("MODIFY", "t/ds=1"), entry("MODIFY", "t/ds=3")], ("t/ds=1", "t/ds=3")),
        ([entry("RENAME", "t/ds=1", "elsewhere")], ("t/ds=1",)),
        ([entry("CREATE", "t/ds=10"), entry("MODIFY", "t/ds=11/f"), entry("CREATE", "u")], ()),
    ],
)
def test_directories_that_a_difference_touches(entries: list[dict[str, Any]], touched: tuple[str, ...]) -> None:
    found = difference(entries)
    assert tuple(part for part in PARTS if found.touches(part)) == touched
    assert found.touches("") == bool(entries)  # of a table that is the snapshottable directory itself


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"snapshotRoot": "/r", "fromSnapshot": "s", "diffList": [entry("TRUNCATE", "f")]},
        {"snapshotRoot": "/r", "fromSnapshot": "s", "diffList": [{"type": "CREATE"}]},
        {"snapshotRoot": "/r", "fromSnapshot": "s", "diffList": None},
        {"snapshotRoot": "/other", "fromSnapshot": "s", "diffList": []},
        {"snapshotRoot": "/r", "fromSnapshot": "other", "diffList": []},
    ],
)
def test_a_difference_that_is_not_understood_is_none(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WebHdfs, "told", lambda *_, **__: json.dumps({"SnapshotDiffReport": report}).encode())
    with pytest.raises(ReplicationError, match="GETSNAPSHOTDIFF of /r is answered without"):
        since_snapshot(WebHdfs("http://127.0.0.1:1"), "/r", "s")


def test_snapshottable_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (("/", ""), ("/", "w"), ("/w x", "a%b"))
    found: list[dict[str, Any]] | None = [
        {"parentFullPath": above, "dirStatus": {"pathSuffix": name}, "snapshotNumber": number}
        for number, (above, name) in enumerate(names)
    ]
    monkeypatch.setattr(WebHdfs, "told", lambda *_, **__: json.dumps({"SnapshottableDirectoryList": found}).encode())
    assert snapshottable(WebHdfs("http://127.0.0.1:1"), "/") == {"/": 0, "/w": 1, "/w x/a%b": 2}
    found = None
    assert snapshottable(WebHdfs("http://127.0.0.1:1"), "/") == {}
