"""What the doctor says of HDFS: answers of WebHDFS for what the embedded servers are not."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from hive_replication.doctor.finding import Finding
from hive_replication.doctor.hdfs import defaults, kinds
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.webhdfs import WebHdfs

ROOT = Root(uri="hdfs://127.0.0.1:1/", webhdfs="http://127.0.0.1:1")
KEYS = "hadoop.security.key.provider.path"


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What WebHDFS answers to an operation."""
    found: dict[str, Any] = {"GETFILESTATUS": {"type": "DIRECTORY"}}

    def asked(_: WebHdfs, path: str, op: str, name: str, **parameters: str) -> Mapping[str, Any]:
        answer = found[op]
        return answer.pop(0) if isinstance(answer, list) else answer

    monkeypatch.setattr(WebHdfs, "asked", asked)
    return found


def listed(*tables: tuple[str, dict[str, Any]], left: int = 0) -> dict[str, Any]:
    statuses = [{"pathSuffix": name, "type": "DIRECTORY", **more} for name, more in tables]
    return {"partialListing": {"FileStatuses": {"FileStatus": statuses}}, "remainingEntries": left}


def of_tables(root: Root = ROOT) -> Iterator[Finding]:
    return kinds(Storage((root,)), "source", "sales", f"{root.uri}w/sales.db", lambda name: name != "left_out")


def test_tables_in_encryption_zones_are_held_without_keys(answers: dict[str, Any]) -> None:
    zone = {"encBit": True}
    pages = [listed(("plain", {}), ("left_out", zone), left=2), listed((".repl", zone), ("secret", zone))]
    answers["LISTSTATUS_BATCH"] = list(pages)
    (found,) = of_tables()
    assert (found.verdict, found.found) == ("warning", "in an encryption zone: /w/sales.db/secret")
    assert f"set {KEYS} in options of the root hdfs://127.0.0.1:1/" in found.advice
    answers["LISTSTATUS_BATCH"] = list(pages)
    (found,) = of_tables(ROOT.model_copy(update={"options": {KEYS: "kms://http@kms:9600/kms"}}))
    assert found.verdict == "ok"
    answers |= {"GETFILESTATUS": {"type": "DIRECTORY", **zone}, "LISTSTATUS_BATCH": listed(("secret", zone))}
    (found,) = of_tables()
    assert (found.verdict, found.found) == ("error", "in an encryption zone: /w/sales.db")


@pytest.mark.parametrize(
    ("changes", "mode", "advice"),
    [
        ({}, "MD5MD5CRC", ""),
        ({"bytesPerChecksum": 4096}, "MD5MD5CRC", "set dfs.bytes-per-checksum=512 and dfs.checksum.type=CRC32C"),
        ({"checksumType": 1}, None, "set dfs.bytes-per-checksum=512 and dfs.checksum.type=CRC32C"),
        ({}, "COMPOSITE_CRC", "set dfs.checksum.combine.mode alike for DataNodes, metastores and HiveServer2"),
    ],
)
def test_other_checksums(
    answers: dict[str, Any], changes: dict[str, int], mode: str | None, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module(defaults.__module__), "namenode_setting", lambda *_: mode)
    plain = {"bytesPerChecksum": 512, "checksumType": 2, "trashInterval": 60, "encryptDataTransfer": False}
    answers["GETSERVERDEFAULTS"] = {**plain, **changes}
    (found,) = defaults(Storage((ROOT,)), "source")
    assert found.verdict == ("warning" if advice else "ok")
    assert advice in found.advice
    assert "fs.trash.interval=60" in found.found
