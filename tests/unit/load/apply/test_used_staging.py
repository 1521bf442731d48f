"""Staging directories after the source's log began again: their names have event ids, which other events had before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.errors import MetastoreError
from hive_replication.load.apply import taken_places
from hive_replication.load.apply.change_data import with_data
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.placement import Placer
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.storage import Storage
from tests.unit.load.apply.fakes import Metastore, content, replica

#: What content() is staged in.
STAGED = ".repl/7-1"


def placer(storage: Storage, base: str, metastore: Metastore) -> Placer:
    known = KnownObjects(metastore, "sales", ReplicaState())  # type: ignore[arg-type]
    return Placer(replica(metastore, storage), "sales", base, lambda: Locations(()), known)


def image(location: str) -> Table:
    return Table(tableName="v", dbName="sales", sd=StorageDescriptor(location=location), partitionKeys=[])


@pytest.mark.parametrize("has", ["nothing", "the same file"])
@pytest.mark.parametrize("spelled", ["{}", "{}/", "hdfs://nn1:8020{}"])
@pytest.mark.parametrize("kind", ["replace", "append", "table"])
def test_nothing_is_staged_where_another_table_lies(storage: Storage, base: str, kind: str, has: str, spelled: str) -> None:
    """Event 7 of before truncated u, which lives there; that of the new log writes to v: two tables had one directory."""
    storage.write(f"{base}/v/old", b"old")
    storage.mkdirs(f"{base}/{STAGED}")
    if has != "nothing":
        storage.write(f"{base}/{STAGED}/one", b"one")
    path = f"{base}/{STAGED}"
    metastore = Metastore({"u": spelled.format(path if spelled[0] == "{" else path.removeprefix("file://")), "v": f"{base}/v"})
    operations: dict[str, Any] = {
        "replace": op.ReplaceData(7, "v", "", image(f"{base}/v"), content("one")),
        "append": op.AppendData(7, "v", "", image(f"{base}/v"), content("one")),
        "table": op.CreateTable(7, "v", image(f"{base}/v"), content("one"), f"{base}/v"),
    }
    placed = placer(storage, base, metastore).place(LanePlan(("v",), 0, (operations[kind],)))
    assert placed.directories == {(0, ""): f"{base}/{STAGED}-1"}
    assert [task.target for _, task in placed.tasks] == [f"{base}/{STAGED}-1/one"]


@pytest.mark.parametrize("has", ["nothing", "the same file"])
def test_no_partition_is_staged_where_another_tables_lies(storage: Storage, base: str, has: str) -> None:
    storage.write(f"{base}/v/ds=1/old", b"old")
    storage.mkdirs(f"{base}/{STAGED}/ds=1")
    if has != "nothing":
        storage.write(f"{base}/{STAGED}/ds=1/one", b"one")
    metastore = Metastore({"u": f"{base}/u"}, [Partition(values=["1"], sd=StorageDescriptor(location=f"{base}/{STAGED}/ds=1"))])
    metastore.keys = [FieldSchema("ds", "string", "")]
    new = op.NewPartition("ds=1", Partition(values=["1"], sd=StorageDescriptor()), content("one"))
    placed = placer(storage, base, metastore).place(LanePlan(("v",), 0, (op.AddPartitions(7, "v", (new,)),)))
    assert placed.directories == {(0, "ds=1"): f"{base}/{STAGED}-1/ds=1"}


def test_where_the_places_of_tables_are_not_known_it_is_staged_elsewhere(
    storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica whose partitions the metastore refuses held all tables whose loads had been killed."""
    storage.mkdirs(f"{base}/{STAGED}")
    metastore = Metastore({"u": f"{base}/u", "v": f"{base}/v"})
    refused = Mock(side_effect=MetastoreError("get_tables: refused"))
    monkeypatch.setattr(taken_places, "partition_places", refused)
    monkeypatch.setattr(metastore, "keys", [FieldSchema("ds", "string", "")])
    lane = LanePlan(("v",), 0, (op.ReplaceData(7, "v", "", image(f"{base}/v"), content("one")),))
    assert placer(storage, base, metastore).place(lane).directories == {(0, ""): f"{base}/{STAGED}-1"}


def test_what_a_killed_load_has_staged_is_used_again_with_one_read_of_the_tables(storage: Storage, base: str) -> None:
    storage.mkdirs(f"{base}/v")
    metastore = Metastore({"u": f"{base}/u", "v": f"{base}/v"})
    places = placer(storage, base, metastore)
    one, two = (op.ReplaceData(7, "v", "", image(f"{base}/v"), content(*names)) for names in (["one"], ["one", "two"]))
    known = metastore.read["u"]
    found: list[dict[DataKey, str]] = []
    for operation in (one, two):
        found.append(places.place(LanePlan(("v",), 0, (operation,))).directories)
        assert metastore.read["u"] == known, "nobody asks where nothing is staged"
    storage.write(f"{base}/{STAGED}/one", b"one")
    found += [places.place(LanePlan(("v",), 0, (operation,))).directories for operation in (one, two, two)]
    assert found == [{(0, ""): f"{base}/{STAGED}"}] * 5
    assert metastore.read["u"] == known + 1


def test_an_append_deletes_what_is_its_own_alone(storage: Storage, base: str) -> None:
    """The whole directory went, with whatever another table had put there by then."""
    staged = f"{base}/{STAGED}"
    storage.write(f"{staged}/one", b"one")
    storage.write(f"{staged}/sub/.one.0123456789abcdef.tmp", b"o")
    storage.write(f"{staged}/others", b"")
    storage.mkdirs(f"{base}/v")
    insert = op.AppendData(7, "v", "", None, content("one"))
    boundary = TargetBoundary(replica(Metastore({}), storage), "sales", base)
    with_data(storage, boundary, image(f"{base}/v"), insert, "sales.v", staged, "append")
    assert [file.uri for file in storage.files(base, hidden=True)] == [f"{staged}/others", f"{base}/v/one"]
    assert not storage.exists(f"{staged}/sub")
    storage.delete(f"{staged}/others")
    storage.write(f"{staged}/one", b"one")
    storage.write(f"{staged}/sub/.one.0123456789abcdef.tmp", b"o")
    with_data(storage, boundary, image(f"{base}/v"), replace(insert, evid=8), "sales.v", staged, "append")
    assert not storage.exists(staged)
