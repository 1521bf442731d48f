"""What the journal records of a lane: its steps, images before, and directories left, put into use and added to."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.lane_recorder import lane_records
from hive_replication.load.journal.lane_record import LaneRecord, Step, record_texts
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import KeepPartitionsAside
from hive_replication.load.operations.statistics import Columns, DeleteStatistics, SetStatistics
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica import target_view
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table

BASE = "hdfs://dst/w/db.db"
NO_FILES = op.Content((), "1-0")


class Metastore:
    """Table ``t`` and table ``p`` with partitions ``ds=1`` and ``ds=2``, the second outside of the table's directory."""

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        keys = {"t": [], "p": [FieldSchema(name="ds", type="string")]}
        return (
            Table(tableName=name, sd=StorageDescriptor(location=f"{BASE}/{name}"), partitionKeys=keys[name])
            for name in names
            if name in keys
        )

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        assert table == "p"
        places = {"ds=1": f"{BASE}/p/ds=1", "ds=2": f"{BASE}/.repl/7-0/ds=2"}
        for name in places if names is None else names:
            if name in places:
                claims = {"COLUMN_STATS_ACCURATE": '{"COLUMN_STATS":{"a":"true"}}'}
                sd = StorageDescriptor(location=places[name])
                yield Partition(values=[name.removeprefix("ds=")], sd=sd, parameters=claims)


class Storage:
    """Each directory has one file."""

    def named_files(self, _: str) -> dict[str, Any]:
        return {"f": None}


def records(*operations: op.Operation, **places: Any) -> Iterator[LaneRecord]:
    placed = LanePlacement(LanePlan(("t", "p"), 0, operations), **places)
    known = KnownObjects(Metastore(), "db", ReplicaState())  # type: ignore[arg-type]
    return lane_records(Storage(), known, placed, operations)  # type: ignore[arg-type]


def record(*operations: op.Operation, **places: Any) -> LaneRecord:
    (found,) = records(*operations, **places)
    return found


def test_a_created_table_has_no_image_but_a_directory() -> None:
    found = record(op.CreateTable(5, "n", Table(tableName="n"), NO_FILES, f"{BASE}/n"), directories={(0, ""): f"{BASE}/n"})
    assert found.steps == (Step("CreateTable", 5, "n", directory=f"{BASE}/n"),)
    assert (found.tables, found.left, found.placed) == ({}, (), (f"{BASE}/n",))


def test_a_renamed_and_dropped_table_is_recorded_under_its_names_before() -> None:
    found = record(op.RenameTable(5, "t", Table(tableName="u")), op.DropTable(6, "u"))
    assert found.steps == (
        Step("RenameTable", 5, "t", new_name="u"),
        Step("DropTable", 6, "u", origin="t", chain=(("t", 5),)),
    )
    assert (list(found.tables), found.left) == (["t"], (f"{BASE}/t",))


def test_a_table_created_and_dropped_in_the_lane_has_no_origin() -> None:
    create = op.CreateTable(5, "n", Table(tableName="n"), NO_FILES, f"{BASE}/n")
    found = record(create, op.DropTable(6, "n"), directories={(0, ""): f"{BASE}/n"})
    assert found.steps[1] == Step("DropTable", 6, "n")
    assert (found.tables, found.left, found.kept) == ({}, (f"{BASE}/n",), set())


def test_a_dropped_table_leaves_its_directory_and_partitions_outside_of_it() -> None:
    found = record(op.DropTable(5, "p"))
    assert set(found.partitions["p"]) == {"ds=1", "ds=2"}
    assert set(found.left) == {f"{BASE}/p", f"{BASE}/.repl/7-0/ds=2"}


@pytest.mark.parametrize("together", [1, 2])
def test_the_images_of_a_dropped_table_come_some_at_a_time_if_they_are_many(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """What the lane touched before the drop stays with the steps, and the whole says what one record says."""
    monkeypatch.setattr(target_view, "_IMAGES", together)
    added = op.AddPartitions(4, "p", (op.NewPartition("ds=3", Partition(), NO_FILES),))
    operations = (added, op.AlterPartitions(5, "p", (("ds=1", Partition()),)), op.DropTable(6, "p"))
    *pieces, last = records(*operations, directories={(0, "ds=3"): f"{BASE}/p/ds=3"})
    assert len(pieces) == (2 if together == 1 else 0)
    assert all((one.names, one.steps) == (("t", "p"), ()) for one in pieces)
    assert all(dict(one.tables) == {"p": last.tables["p"]} for one in pieces), "which is the users'"
    images = [(name, part) for one in (*pieces, last) for name, part in one.partitions.get("p", {}).items()]
    assert sorted(name for name, _ in images) == ["ds=1", "ds=2", "ds=3"]
    assert [name for name, part in images if part is None] == ["ds=3"]
    assert [step.kind for step in last.steps] == ["AddPartitions", "AlterPartitions", "DropTable"]
    assert {place for one in (*pieces, last) for place in one.left} == {f"{BASE}/p", f"{BASE}/.repl/7-0/ds=2"}
    assert {place for one in (*pieces, last) for place in one.kept} == {f"{BASE}/p", f"{BASE}/.repl/7-0/ds=2"}


def test_memory_does_not_grow_with_the_partitions_of_a_dropped_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their images, and their text, took 10 KB for each: the run was killed, and the window came again for ever."""
    monkeypatch.setattr(target_view, "_IMAGES", 200)

    def partitions(number: int) -> Iterator[Partition]:
        for one in range(number):
            yield Partition(values=[str(one)], sd=StorageDescriptor(location=f"{BASE}/p/ds={one}"), parameters={})

    def peak(number: int) -> int:
        monkeypatch.setattr(Metastore, "partitions", lambda *_: partitions(number))
        gc.collect()
        tracemalloc.start()
        written = sum(text.count(b"/p/ds=") for one in records(op.DropTable(5, "p")) for text in record_texts(one))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert written == number
        return found

    peak(400)
    small, large = peak(600), peak(2_400)
    assert (large - small) / 1_800 < 40  # bytes a partition


def test_a_partition_that_did_not_exist_is_recorded_as_absent() -> None:
    added = op.AddPartitions(5, "p", (op.NewPartition("ds=3", Partition(), NO_FILES),))
    found = record(added, directories={(0, "ds=3"): f"{BASE}/p/ds=3"})
    assert (found.partitions, found.placed, found.left) == ({"p": {"ds=3": None}}, (f"{BASE}/p/ds=3",), ())


def test_partitions_that_are_kept_aside_leave_no_image() -> None:
    """An undo added them again, at the directories that were emptied: the data is in another table."""
    added = op.AddPartitions(5, "p", (op.NewPartition("ds=2", Partition(), NO_FILES),))
    places: dict[str, Any] = {"directories": {(1, "ds=2"): f"{BASE}/.repl/5-0/ds=2"}}
    found = record(KeepPartitionsAside(5, "p", ("ds=2",), "p_kept_5"), added, **places)
    assert found.steps[0] == Step("KeepPartitionsAside", 5, "p", partitions=("ds=2",))
    assert (found.partitions, found.left, found.placed) == ({"p": {"ds=2": None}}, (), (f"{BASE}/.repl/5-0/ds=2",))


@pytest.mark.parametrize("together", [1, 2])
def test_nor_do_they_where_their_table_is_dropped(monkeypatch: pytest.MonkeyPatch, together: int) -> None:
    monkeypatch.setattr(target_view, "_IMAGES", together)
    found = [*records(KeepPartitionsAside(5, "p", ("ds=2",), "p_kept_5"), op.DropTable(5, "p"))]
    images = [(name, part is None) for one in found for name, part in one.partitions.get("p", {}).items()]
    assert sorted(images) == [("ds=1", False), ("ds=2", True)]
    assert {place for one in found for place in one.left} == {f"{BASE}/p"}


def test_what_is_not_the_users_any_more_is_not_kept_aside_and_has_its_image(monkeypatch: pytest.MonkeyPatch) -> None:
    part = Partition(values=["2"], sd=StorageDescriptor(location=f"{BASE}/p/ds=2"), parameters={SOURCE: "uuid/db"})
    monkeypatch.setattr(Metastore, "partitions", lambda *_: iter([part]))
    found = record(KeepPartitionsAside(5, "p", ("ds=2",), "p_kept_5"))
    assert found.partitions == {"p": {"ds=2": part}}


def test_replaced_data_leaves_the_old_directory() -> None:
    replaced = op.ReplaceData(5, "p", "ds=1", Partition(), NO_FILES)
    places: dict[str, Any] = {"directories": {(0, "ds=1"): f"{BASE}/.repl/5-0/ds=1"}, "modes": {(0, "ds=1"): "replace"}}
    found = record(replaced, **places)
    assert (found.left, found.placed) == ((f"{BASE}/p/ds=1",), (f"{BASE}/.repl/5-0/ds=1",))
    assert found.kept == {f"{BASE}/p/ds=1"}
    assert found.files == {}


def test_an_append_records_the_files_of_before_under_a_new_name_too() -> None:
    renamed = op.RenameTable(5, "t", Table(tableName="u"))
    places: dict[str, Any] = {"directories": {(1, ""): f"{BASE}/.repl/6-0"}, "modes": {(1, ""): "append"}}
    found = record(renamed, op.AppendData(6, "u", "", Table(), NO_FILES), **places)
    assert (found.files, found.left, found.placed) == ({f"{BASE}/t": ("f",)}, (), ())


def test_partitions_that_get_statistics_only_are_recorded() -> None:
    """An undo left them their state ids, and claims of statistics that it does not know."""
    change = Columns("ds=1", (), "")
    found = record(SetStatistics(5, "p", (change, Columns("", (), ""))), DeleteStatistics(6, "p", "ds=2", "a"))
    assert {name: sorted(parts) for name, parts in found.partitions.items()} == {"p": ["ds=1", "ds=2"]}
    assert [step.partitions for step in found.steps] == [("ds=1",), ("ds=2",)]
    assert [part.parameters for part in found.partitions["p"].values() if part] == [{}, {}]
