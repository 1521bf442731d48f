"""Commits of what nobody noted in the metastore, as Trino does not: told from those of no rows by the directory of the write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.beginnings import Allocated, OpenedInLog, UnnamedEnds
from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.dump.incremental.commits import TransactionReader
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.errors import MetastoreError, Unreachable
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import CommitTransaction
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import FileStatus, Storage
from tests.faults import unreadable_directories
from tests.messages import row

BEGUN, GIVEN, ENDED = 3, 4, 9
DELTA = "delta_0000005_0000005_0000"


def event(evid: int, kind: str, table: str = "", **message: object) -> NotificationEvent:
    return NotificationEvent(evid, evid, kind, "db" if table else "", table, json.dumps(message))


def opened(evid: int = BEGUN) -> NotificationEvent:
    return event(evid, "OPEN_TXN", fromTxnId=3, toTxnId=3)


def allocated(table: str = "t", evid: int = GIVEN) -> NotificationEvent:
    return event(evid, "ALLOC_WRITE_ID_EVENT", table, dbName="db", tableName=table, txnIdList=[3], writeIdList=[5])


def committed(databases: list[str] | None = None) -> NotificationEvent:
    return event(ENDED, "COMMIT_TXN", txnid=3, databases=["db"] if databases is None else databases)


@dataclass
class Warehouse:
    """A source with transactional tables; its log, and what was read of it."""

    root: Path
    log: list[NotificationEvent] = field(default_factory=lambda: [opened(), allocated(), committed()])
    shown: dict[str, Table] = field(default_factory=dict[str, Table])
    parts: dict[str, Partition] = field(default_factory=dict[str, Partition])
    notes: tuple[WriteEvent, ...] = ()
    asked: list[str] = field(default_factory=list[str])

    def make(self, name: str = "t", *, keys: tuple[str, ...] = (), created: int = 1, **parameters: str) -> Table:
        place = StorageDescriptor(location=(self.root / name).as_uri(), cols=[])
        kept = {"transactional": "true", **parameters}
        self.shown[name] = Table(
            tableName=name,
            dbName="db",
            sd=place,
            parameters=kept,
            createTime=created,
            tableType="MANAGED_TABLE",
            partitionKeys=[FieldSchema(key, "string") for key in keys],
        )
        return self.shown[name]

    def partition(self, name: str, table: str = "t", write_id: int = -1) -> Partition:
        place = StorageDescriptor(location=f"file://{self.root}/{table}/{name}", cols=[])
        made = Partition(values=[name.partition("=")[2]], dbName="db", tableName=table, sd=place, writeId=write_id)
        self.parts[name] = made
        return made

    def write(self, directory: str, file: str = "bucket_00000") -> str:
        (self.root / directory).mkdir(parents=True)
        if file:
            (self.root / directory / file).write_text("rows")
        return f"file://{self.root}/{directory}/"

    def record(self, start: int = 0, *, replica: bool = False, excluded: str = "") -> EventRecord | None:
        reader, end = self.reader(start, replica=replica, excluded=excluded)
        return reader.record(end)

    def reader(self, start: int, *, replica: bool = False, excluded: str = "") -> tuple[TransactionReader, LogEvent]:
        metastore: Any = self
        source: Any = SimpleNamespace(
            acid=True,
            metastore=self,
            storage=Storage((Root(uri=self.root.as_uri()),)),
            unnamed_ends=UnnamedEnds(metastore),
            opened_in_log=OpenedInLog(metastore),
        )
        boundary: Any = SimpleNamespace(why_outside=lambda thing: "outside" if "outside" in thing.sd.location else "")
        locations = PresentLocations(metastore, "db", start)
        reader = TransactionReader(source, locations, lambda name: name != excluded, boundary, replica)
        window = [one for one in self.log if start < one.eventId <= ENDED]
        found = locations.decode_batch(window)
        for one in window:
            reader.note(one)
        (end,) = (one for one in found if one.row.type == "COMMIT_TXN")
        return reader, LogEvent(end.row)

    def write_events(self, *_: object) -> tuple[WriteEvent, ...]:
        return self.notes

    def current_event_id(self) -> int:
        return self.log[-1].eventId

    def event(self, evid: int) -> NotificationEvent | None:
        return next((one for one in self.log if one.eventId == evid), None)

    def events_left(self, after: int, until: int) -> Iterator[NotificationEvent]:
        self.asked.append(f"log {after} {until}")
        return (one for one in self.log if after < one.eventId <= until)

    events = events_left
    views_of_materialized = False

    def table(self, _: str, name: str) -> Table | None:
        self.asked.append(f"table {name}")
        return self.shown.get(name)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        return (self.shown[name] for name in names if name in self.shown)

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        self.asked.append(f"partitions {table} {'all' if names is None else list(names)}")
        there = {name: part for name, part in self.parts.items() if part.tableName == table}
        return (part for name, part in there.items() if names is None or name in names)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    found = Warehouse(tmp_path)
    found.make()
    return found


def held(found: EventRecord | None) -> list[tuple[str, str]]:
    """Tables that the record names, each with the directory of its write."""
    assert found is not None
    assert found.writes == ()
    assert all(file.is_unnoted_directory for group in found.groups for file in group.files)
    return [(group.table, group.files[0].uri if group.files else "") for group in found.groups]


@pytest.mark.parametrize("name", [DELTA, "delta_0000005_0000005", "delete_delta_0000005_0000005_0000", "base_0000005"])
@pytest.mark.parametrize("start", [0, BEGUN, GIVEN])
def test_a_write_that_nobody_noted_holds_its_table(warehouse: Warehouse, name: str, start: int) -> None:
    """It arrived as a commit of nothing. The transaction may have begun in an earlier window, with its write id or without."""
    directory = warehouse.write(f"t/{name}")
    assert held(warehouse.record(start)) == [("t", directory)]


@pytest.mark.parametrize(
    ("directory", "file"),
    [
        pytest.param("t", "", id="nothing"),
        pytest.param(f"t/{DELTA}", "", id="no file"),
        pytest.param("t/base_0000005", "_metadata_acid", id="truncated, which is an event"),
        pytest.param("t/delta_0000004_0000004_0000", "bucket_00000", id="another write"),
        pytest.param("t/base_0000005_v0000012", "bucket_00000", id="compacted"),
        pytest.param("t/delta_0000002_0000005_v0000012", "bucket_00000", id="compacted with earlier ones"),
    ],
)
@pytest.mark.parametrize("start", [0, GIVEN])
def test_a_change_of_a_table_and_a_commit_of_no_rows_hold_nothing(
    warehouse: Warehouse, directory: str, file: str, start: int
) -> None:
    warehouse.write(directory, file)
    assert held(warehouse.record(start)) == []


def test_where_all_is_noted_nothing_is_asked(warehouse: Warehouse) -> None:
    """As in windows of Hive's own writes: no table, no directory, and none of the log."""
    warehouse.write(f"t/{DELTA}")
    warehouse.notes = (WriteEvent("t", "", 5),)
    for start in (0, GIVEN):
        found = warehouse.record(start)
        assert found is not None
        assert [one.table for one in found.groups] == ["t"]
        assert not any(file.is_unnoted_directory for group in found.groups for file in group.files)
    assert not [one for one in warehouse.asked if one.startswith(("table", "partitions"))]
    assert f"log {BEGUN} {ENDED - 1}" not in warehouse.asked


def test_a_commit_that_does_not_name_the_database_is_not_looked_for_in_the_log(warehouse: Warehouse) -> None:
    """A metastore of many databases has too many; Hive 4.0 names none. What began in the window is known all the same."""
    directory = warehouse.write(f"t/{DELTA}")
    warehouse.log[-1] = event(ENDED, "COMMIT_TXN", txnid=3)
    assert held(warehouse.record(GIVEN)) == []
    assert warehouse.asked == []
    assert held(warehouse.record()) == [("t", directory)]


@pytest.mark.parametrize("start", [0, GIVEN])
def test_a_table_beside_noted_ones_is_looked_for_where_the_transaction_began_in_the_window(
    warehouse: Warehouse, start: int
) -> None:
    directory = warehouse.write(f"t/{DELTA}")
    warehouse.notes = (WriteEvent("u", "", 7, ("f",)),)
    found = warehouse.record(start)
    assert found is not None
    own = FileGroup("", (FileRef.from_message("f"),), table="u")
    assert found.groups == (own, FileGroup("", (FileRef.unnoted_directory(directory),), table="t"))[: 1 if start else 2]


def test_tables_outside_the_policy_of_other_kinds_and_of_replicas_are_not_looked_at(warehouse: Warehouse) -> None:
    warehouse.write(f"t/{DELTA}")
    assert held(warehouse.record(excluded="t")) == []
    assert held(warehouse.record(replica=True)) == []
    assert held(warehouse.record(GIVEN, replica=True)) == []
    assert warehouse.asked == []
    warehouse.make(transactional="false")
    assert held(warehouse.record()) == []
    del warehouse.shown["t"]
    assert held(warehouse.record()) == []


def test_what_may_not_be_read_is_not_listed(warehouse: Warehouse) -> None:
    warehouse.make().sd.location = (warehouse.root / "outside").as_uri()
    warehouse.write(f"outside/{DELTA}")
    assert held(warehouse.record()) == []


@pytest.mark.parametrize("created", [1, 20])
def test_a_table_that_was_renamed_since_is_looked_for_where_it_lies_now(warehouse: Warehouse, created: int) -> None:
    """Its name may be another one's by now, of another age."""
    before, after = warehouse.make(created=1), warehouse.make("u")
    warehouse.log.append(row(r.AlterTable(12, 12, "ALTER_TABLE", "db", "u", before, after, truncate=False)))
    warehouse.make(created=created)
    directory = warehouse.write(f"u/{DELTA}")
    assert held(warehouse.record()) == [("t", directory)]


@pytest.mark.parametrize("start", [0, GIVEN])
def test_a_rename_is_looked_for_under_the_new_name(warehouse: Warehouse, start: int) -> None:
    """Hive renames in a transaction with a write id. When tables are swapped, a write of the other has the same."""
    before, after = warehouse.make(), warehouse.make("aside")
    warehouse.log.insert(2, row(r.AlterTable(6, 6, "ALTER_TABLE", "db", "t", before, after, truncate=False)))
    warehouse.log.append(row(r.AlterTable(12, 12, "ALTER_TABLE", "db", "u", warehouse.make("u"), before, truncate=False)))
    warehouse.write(f"t/{DELTA}")
    assert held(warehouse.record(start)) == []
    directory = warehouse.write(f"aside/{DELTA}")
    assert held(warehouse.record(start)) == [("t", directory)]


@pytest.mark.parametrize("start", [0, GIVEN])
def test_a_table_that_its_transaction_drops_and_another_of_its_name_hold_nothing(warehouse: Warehouse, start: int) -> None:
    warehouse.log.insert(2, row(r.DropTable(6, 6, "DROP_TABLE", "db", "t", warehouse.make())))
    warehouse.write(f"t/{DELTA}")
    assert held(warehouse.record(start)) == []


def test_a_table_that_was_dropped_since_and_made_again_holds_nothing(warehouse: Warehouse) -> None:
    warehouse.log.append(row(r.DropTable(12, 12, "DROP_TABLE", "db", "t", warehouse.make(created=1))))
    warehouse.make(created=12)
    warehouse.write(f"t/{DELTA}")
    assert held(warehouse.record()) == []


class TestPartitions:
    """Of a partitioned table those are listed that events name with the write id, else all."""

    @pytest.fixture(autouse=True)
    def _partitioned(self, warehouse: Warehouse) -> None:
        warehouse.make(keys=("d",))
        for name in ("d=1", "d=2"):
            warehouse.partition(name)

    @pytest.mark.parametrize("start", [0, GIVEN])
    def test_all_are_listed_where_no_event_names_any(self, warehouse: Warehouse, start: int) -> None:
        assert held(warehouse.record(start)) == []
        directory = warehouse.write(f"t/d=2/{DELTA}")
        assert held(warehouse.record(start)) == [("t", directory)]

    def test_commits_of_no_rows_list_them_once(self, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
        """All are listed after all commits of the window: sixty MERGEs that match nothing listed each partition sixty times."""
        listed, ls = list[str](), Storage.ls

        def counted(storage: Storage, uri: str) -> list[FileStatus]:
            listed.append(uri)
            return list(ls(storage, uri))

        monkeypatch.setattr(Storage, "ls", counted)
        reader, end = warehouse.reader(0)
        writes, commit = reader._unnoted, cast("CommitTransaction", end.event)
        given = [Allocated("db", "t", write_id, GIVEN) for write_id in range(5, 65)]
        assert [list(writes.groups(commit, [one])) for one in given] == [[]] * 60
        assert len(listed) == 2

    @pytest.mark.parametrize("write_id", [5, 6])
    def test_those_that_events_name_with_the_write_id_are_listed(self, warehouse: Warehouse, write_id: int) -> None:
        """As ADD PARTITION does, of a table with many; an event of another transaction names others."""
        table, part = warehouse.shown["t"], warehouse.partition("d=2", write_id=write_id)
        added = r.AddPartition(6, 6, "ADD_PARTITION", "db", "t", table, (r.AddedPartition("d=2", part, ()),))
        warehouse.log.insert(2, row(added))
        directory = warehouse.write(f"t/d=1/{DELTA}")
        assert held(warehouse.record()) == ([] if write_id == 5 else [("t", directory)])
        expected = "['d=2']" if write_id == 5 else "all"
        assert next(one for one in warehouse.asked if one.startswith("partitions")) == f"partitions t {expected}"
        directory = warehouse.write(f"t/d=2/{DELTA}")
        (found,) = held(warehouse.record())
        assert found[1].endswith(f"t/d={2 if write_id == 5 else 1}/{DELTA}/")

    def test_an_altered_one_is_named_too_and_all_are_listed_where_one_has_another_name_now(self, warehouse: Warehouse) -> None:
        table, before = warehouse.shown["t"], warehouse.parts["d=2"]
        change = r.ChangedPartition("d=2", "d=2", before, warehouse.partition("d=2", write_id=5))
        altered = r.AlterPartition(6, 6, "ALTER_PARTITION", "db", "t", table, (change,), truncate=False)
        warehouse.log.insert(2, row(altered))
        assert held(warehouse.record()) == []
        assert set(warehouse.asked) >= {"partitions t ['d=2']"}
        assert "partitions t all" not in warehouse.asked
        del warehouse.parts["d=2"]
        warehouse.partition("d=3")
        directory = warehouse.write(f"t/d=3/{DELTA}")
        assert held(warehouse.record()) == [("t", directory)]

    def test_one_that_is_renamed_while_it_is_listed_is_listed_again(
        self, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        directory, ls = warehouse.write(f"t/d=3/{DELTA}"), Storage.ls

        def moved(storage: Storage, uri: str) -> Any:
            found = ls(storage, uri)
            if warehouse.parts.pop("d=2", None):
                warehouse.partition("d=3")
            return found

        monkeypatch.setattr(Storage, "ls", moved)
        assert held(warehouse.record()) == [("t", directory)]


def test_a_directory_that_cannot_be_read_holds_its_table_alone(warehouse: Warehouse, caplog: pytest.LogCaptureFixture) -> None:
    warehouse.write("t/delta_0000001_0000001_0000")
    with unreadable_directories("t"):
        assert held(warehouse.record()) == [("t", "")]
    assert "whether the transaction wrote cannot be read" in caplog.text


def test_a_metastore_that_does_not_answer_ends_the_dump(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(error: Exception) -> None:
        def table(*_: object) -> None:
            raise error

        monkeypatch.setattr(warehouse, "table", table)

    fails(MetastoreError("get_table db.t: Permission denied"))
    assert held(warehouse.record()) == [("t", "")]
    fails(Unreachable("nobody answers"))
    with pytest.raises(Unreachable):
        warehouse.record()
