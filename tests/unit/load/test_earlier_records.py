"""Records that earlier versions wrote are read as they were meant, without servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.load.journal.lane_record import record_of, record_text
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.earlier import VERSIONS, Recorded

RECORDED = [(version, name) for version in VERSIONS for name in ("replica", "acid")]


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_lanes_of_a_journal(version: str, name: str) -> None:
    recorded = Recorded.read(version, name)
    lanes = {
        uri: data
        for snapshot in recorded.value["replica"].values()
        for uri, data in recorded.files(snapshot["files"]).items()
        if "/.repl/journal/" in uri and uri.endswith(".json")
    }
    kinds = {step.kind for data in lanes.values() for step in record_of(data).steps}
    assert kinds >= (
        {"OpenTransactions", "AllocateWriteIds", "CommitTransaction", "AbortTransaction"}
        if name == "acid"
        else {"CreateTable", "RenameTable", "DropTable", "AddPartitions", "RenamePartition", "DropPartitions", "AppendData"}
    )
    for data in lanes.values():
        assert json.loads(record_text(record_of(data))) == json.loads(data)


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_dumps(version: str, name: str, tmp_path: Path) -> None:
    """Both layouts hold the same."""
    recorded, root = Recorded.read(version, name), tmp_path.as_uri()
    store = PackedStore(Storage((Root(uri=root),)), root)
    for kind, header in (("bootstrap", "bootstrap"), ("window", "incremental")):
        read: list[object] = []
        for layout in ("tree", "packed"):
            dump = recorded.value["dumps"][f"{kind} {layout}"]
            directory = f"{root}/{kind}-{layout}"
            for uri, data in recorded.files(dump["files"]).items():
                store.storage.write(uri.replace(dump["directory"], directory), data)
            reader = store.open(directory)
            assert reader.header.kind == header
            tables = list(reader.tables())
            parts = [part for table in tables for part in reader.partitions(table.name)]
            read.append((tables, parts, list(reader.functions()), list(reader.events())))
            assert any(map(len, (tables, list(reader.events()))))
        assert read[0] == read[1]
