"""Files with the schemas of Avro tables come with the tables that name them."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock
from zlib import crc32

import pytest

from hive_replication.dump.format.record_types import FileGroup, PartitionRecord, TableRecord
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events import event_records as r
from hive_replication.load.operations import avro_schemas
from hive_replication.load.operations.avro_schemas import CopySchemas
from hive_replication.load.plan.bootstrap_objects import ObjectPlanner
from hive_replication.load.plan.lane_planner import LanePlanner, LaneSettings
from hive_replication.load.plan.lanes import WindowEvent, segments
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.types import Database, Partition, SerDeInfo, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage, TooLarge
from hive_replication.verify import NOT_COMPARED
from hive_replication.verify.avro_schemas import SchemaFiles
from tests import model
from tests.faults import Killed
from tests.moving import POLICY
from tests.replica import MAPPING, TARGET

URI = "hdfs://src/schemas/a.avsc"
FILES = ((f"{TARGET}/.repl/external/.schemas/of=db-{crc32(TARGET.encode()):08x}/at=src/schemas/a.avsc", URI),)


def with_schema(table: Table) -> Table:
    table.parameters["avro.schema.url"] = URI
    return table


def test_a_window_brings_each_once_before_the_first_table_that_names_it() -> None:
    source = model.Source()
    for action in (("create", 0, 0, 0), ("alter", 0, 0, 0), ("insert", 0, 0, 0)):
        source.act(*action)
    created, altered, inserted = source.events
    assert isinstance(created, r.CreateTable)
    assert isinstance(altered, r.AlterTable)
    assert isinstance(inserted, r.Insert)
    for image in (created.after, altered.before, altered.after, inserted.table_object):
        with_schema(image)
    (segment,) = segments(source.window(0, 3))
    plan, _ = LanePlanner(segment.lanes[0], LaneSettings(TargetView(ReplicaState("uuid/db", 0)), MAPPING, model.includes)).plan()
    assert [one.kind for one in plan.operations] == ["CopySchemas", "CreateTable", "AlterTable", "AppendData"]
    assert plan.operations[0] == CopySchemas(1, "a", FILES)


def test_what_is_applied_already_brings_none() -> None:
    source = model.Source()
    source.act("create", 0, 0, 0)
    created = source.events[0]
    assert isinstance(created, r.CreateTable)
    with_schema(created.after)
    row = r.Notification(1, 1, created.type, "db", "a", "")
    (segment,) = segments([WindowEvent(row, created, (FileGroup("", ()),))])
    plan, skipped = LanePlanner(
        segment.lanes[0], LaneSettings(TargetView(ReplicaState("uuid/db", 1)), MAPPING, model.includes)
    ).plan()
    assert (plan.operations, len(skipped)) == ((), 1)


def test_a_bootstrap_brings_those_of_tables_and_of_partitions() -> None:
    table = with_schema(model.table_image("t", model.Tab(7, f"{model.ROOT}/t", partitioned=True)))
    part = model.partition_image("t", "p=0", model.Part(7, f"{model.ROOT}/t/p=0"))
    part.sd.serdeInfo.parameters = {"avro.schema.url": "hdfs://src/schemas/b.avsc"}
    planner = ObjectPlanner(MAPPING, TargetView(ReplicaState("uuid/db")), 50, "hdfs://d/dump")
    ((lane, _),) = planner.plan(TableRecord(table), [PartitionRecord("t", "p=0", part)])
    assert [one.kind for one in lane.operations] == ["CopySchemas", "CreateTable", "CopySchemas", "AddPartitions", "AlterTable"]
    assert [one.files[0][1] for one in lane.operations if isinstance(one, CopySchemas)] == [URI, "hdfs://src/schemas/b.avsc"]


@pytest.fixture
def target(tmp_path: Path) -> Target:
    """Two local directories."""
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    ours, theirs = (Storage((Root(uri=(tmp_path / name).as_uri()),)) for name in ("source", "target"))
    database = Database(name="db", locationUri=f"{(tmp_path / 'target').as_uri()}/db")
    metastore = SimpleNamespace(database=lambda _: database, config_value=lambda _, default: default)
    return Target(metastore, theirs, POLICY, ours)  # type: ignore[arg-type]


def test_a_file_comes_as_it_is_now_and_one_that_the_source_lacks_is_left(tmp_path: Path, target: Target) -> None:
    source, place = tmp_path / "source" / "a.avsc", tmp_path / "target" / "db" / ".repl" / "external" / "a.avsc"
    brings = CopySchemas(7, "t", ((place.as_uri(), source.as_uri()),))
    brings.carry_out(target, "db")
    assert not place.exists()
    for content in ("{}", "[]", "[1]"):
        source.write_text(content)
        brings.carry_out(target, "db")
        assert place.read_text() == content
    written = place.stat().st_mtime_ns
    brings.carry_out(target, "db")
    assert place.stat().st_mtime_ns == written
    with pytest.raises(Refused, match=r"the schema file:///.*a.avsc is not written"):
        CopySchemas(7, "t", ((f"{tmp_path.as_uri()}/target/other/a", source.as_uri()),)).carry_out(target, "db")


def test_lanes_that_name_the_same_file_write_it_once(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    source, place, writes = tmp_path / "source" / "a", tmp_path / "target" / "db" / "x" / "a", list[str]()
    source.write_text("{}")
    write = Storage.write

    def slow(self: Storage, uri: str, data: bytes, **options: Any) -> None:
        writes.append(uri)
        time.sleep(0.05)
        write(self, uri, data, **options)

    monkeypatch.setattr(Storage, "write", slow)
    with ThreadPoolExecutor(4) as threads:
        for done in [
            threads.submit(CopySchemas(7, t, ((place.as_uri(), source.as_uri()),)).carry_out, target, "db") for t in "abcd"
        ]:
            done.result()
    assert (len(writes), place.read_text()) == (1, "{}")


def test_a_kill_while_a_file_is_replaced_leaves_nothing_half_written(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, place = tmp_path / "source" / "a", tmp_path / "target" / "db" / "x" / "a"
    brings = CopySchemas(7, "t", ((place.as_uri(), source.as_uri()),))
    for number, call in enumerate(("write", "delete", "rename")):
        source.write_text("x" * number)
        with monkeypatch.context() as patch:
            patch.setattr(Storage, call, Mock(side_effect=Killed))
            with pytest.raises(Killed):
                brings.carry_out(target, "db")
        assert not place.exists() or place.read_text() == "x" * (number - 1)
        brings.carry_out(target, "db")
        assert [(one.name, one.read_text()) for one in place.parent.iterdir()] == [("a", "x" * number)]


def test_a_database_that_the_metastore_spells_as_hive_does(tmp_path: Path, target: Target) -> None:
    (tmp_path / "source" / "a").write_text("{}")
    target.metastore.database("db").locationUri = f"file:{tmp_path}/target/db"  # type: ignore[union-attr]
    place = f"file:{tmp_path}/target/db/.repl/external/.schemas/a"
    CopySchemas(7, "t", ((place, f"{tmp_path.as_uri()}/source/a"),)).carry_out(target, "db")
    assert target.storage.read(place) == b"{}"


def test_a_file_that_is_too_large_for_a_schema_holds_its_table(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_schemas, "MOST", 3)
    (tmp_path / "source" / "a").write_text("long")
    place, uri = f"{tmp_path.as_uri()}/target/db/x/a", f"{tmp_path.as_uri()}/source/a"
    with pytest.raises(ReplicationError, match="more than the 3 bytes"):
        CopySchemas(7, "t", ((place, uri),)).carry_out(target, "db")


def test_comparisons_name_a_file_that_the_replica_names_and_that_is_not_there(
    tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SchemaFiles(target.source_storage, target.storage)
    roots = [f"{tmp_path.as_uri()}/{side}" for side in ("source", "target")]

    def named(side: str, name: str) -> Partition:
        serde = SerDeInfo(parameters={"avro.schema.url": f"{side}/{name}" if name != "none" else name})
        return Partition(values=["1"], sd=StorageDescriptor(serdeInfo=serde), parameters=None)

    def differences(name: str) -> list[str]:
        return list(files.differences(*(cast("Partition", named(side, name)) for side in roots)))

    for name, contents in {"lost": ("1", None), "equal": ("1", "1"), "other": ("1", "2"), "nowhere": (None, None)}.items():
        for side, content in zip(("source", "target"), contents, strict=True):
            if content:
                (tmp_path / side / name).write_text(content)
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "read", Mock(side_effect=Denied("may not")))
        for _ in "ab":  # nor is the second table equal
            with pytest.raises(Denied):
                differences("equal")
    assert [differences(name) for name in ("equal", "nowhere", "none")] == [[], [], []]
    assert differences("lost") == [f"serde parameter avro.schema.url names {roots[1]}/lost, which is missing on the target"]
    assert differences("other") == differences("other")
    assert differences("other")[0].endswith(f"which has other content than {roots[0]}/other at the source")


def test_a_comparison_reads_no_more_of_a_schema_than_a_load_brings(tmp_path: Path, target: Target) -> None:
    """What is larger is told of its table alone: it is one of the errors of which a comparison goes on with the others."""
    files = SchemaFiles(target.source_storage, target.storage)
    sides = [tmp_path / side / "a.avsc" for side in ("source", "target")]
    for one in sides:
        one.write_text("{}")
    tables = [model.table_image("t", model.Tab(7, f"{model.ROOT}/t", partitioned=False)) for _ in sides]
    for table, one in zip(tables, sides, strict=True):
        table.parameters["avro.schema.url"] = one.as_uri()
    os.truncate(sides[1], avro_schemas.MOST + 1)
    (said,) = files.differences(*tables)
    assert said.endswith(f"which has other content than {sides[0].as_uri()} at the source")
    os.truncate(sides[0], avro_schemas.MOST + 1)
    with pytest.raises(TooLarge, match=r"/source/a.avsc has more than the 16,777,216 bytes that are read of such a file"):
        list(SchemaFiles(target.source_storage, target.storage).differences(*tables))
    assert TooLarge in NOT_COMPARED
