"""Reports and records below the dump root: written in batches, read back, found by window, and left out where damaged."""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hive_replication.bounded_json import MIB
from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.dump.format.packed_parquet_sizes import small_row_groups
from hive_replication.dump.format.tree import TreeStore
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore, last_asked, report_file, report_rows
from hive_replication.load.records.record import record_of, record_text
from hive_replication.load.records.report_rows import ReportRow, read_rows, write_rows
from hive_replication.load.report import Held, LoadReport, Skipped, Touched, object_of
from hive_replication.policy import Root
from hive_replication.policy.warehouse import pair_hash
from hive_replication.process import acting_as, actor
from hive_replication.storage import Denied, Storage, TooLarge, paths
from tests.faults import closed_directory
from tests.lags import POLICY

PAIR = ("thrift://s:9083", "thrift://t:9083")
SALES = f"sales-{pair_hash(PAIR)}"


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    return RecordStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), "sales", PAIR)


def copied(name: str, evid: int = 7, number: int = 0) -> CopyResult:
    file = FileRef(f"hdfs://s/{name}/{number}", "aa")
    return CopyResult(CopyTask(file, f"hdfs://t/{name}/{number}", evid, name), "source", 5, Proof("CRC32C", "1234abcd", True), 1)


def record(action: str = "window", window: str = "1-9", database: str = "sales") -> Record:
    time.sleep(0.002)  # ids sort by milliseconds
    return Record(new_token(), action, database, "ann@gate", 12.5, window=window)  # type: ignore[arg-type]


def test_a_report_comes_back_whole(store: RecordStore) -> None:
    report = LoadReport(
        "dir",
        "sales",
        1,
        9,
        applied={"AppendData": 2},
        copies=Copies([copied("sales.a/ds=1"), copied("sales.b", 8), copied("sales.b", 4)]),
        skipped=(Skipped(3, "INSERT sales", "applied already"),),
        held=(Held(("b",), 5, 8, "no space"),),
        touched=(Touched("a", "a", 7, partitions=("ds=1",), dropped_partitions=("ds=0",)),),
    )
    kept = store.keep(record().of(report), report)
    (found,) = store.newest()
    assert found == kept
    assert (found.outcome, found.to_evid, found.figures.held, found.figures.files) == ("held", 9, ("b",), 3)
    rows = [(row.section, row.table, row.partition, row.evid, row.outcome) for row in store.rows(found)]
    assert rows == [
        ("held", "b", None, 8, "no space"),
        ("skipped", "INSERT sales", None, 3, "applied already"),
        ("table", "a", None, 7, "changed"),
        ("partition", "a", "ds=1", 7, "changed"),
        ("partition", "a", "ds=0", 7, "dropped"),
        ("file", "a", "ds=1", 7, "in use"),
        ("file", "b", None, 8, "table held"),  # proven, but the change that it belongs to failed
        ("file", "b", None, 4, "in use"),
    ]
    assert [row.checksum for row in store.rows(found)][-1] == "1234abcd"


@pytest.mark.no_cover
def test_memory_does_not_grow_with_the_report(store: RecordStore) -> None:
    def peak(number: int) -> int:
        copies = Copies()
        for one in range(number):
            copies.add(copied("sales.a/ds=1", number=one))
        report = LoadReport("dir", "sales", 1, 9, copies=copies)
        tracemalloc.start()
        kept = store.keep(record(), report)
        assert sum(1 for _ in store.rows(kept)) == number
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(10)
    assert peak(12_000) < 1.5 * peak(4_000)


def test_loads_are_found_by_their_window(store: RecordStore) -> None:
    for window in ("1-9", "9-20", "12-20", "9-30"):
        store.keep(record(window=window))
    store.keep(record("bootstrap", "bootstrap-9"))
    store.keep(record("undo", ""))
    assert [one.window for one in store.find("9-20")] == ["9-20"]
    assert [one.window for one in store.find("5-20")] == ["12-20", "9-20"]  # they stood beyond its begin
    assert [one.window for one in store.find("bootstrap-9")] == ["bootstrap-9"]
    assert store.find("20-30") == []
    with pytest.raises(BadRequest, match="'yesterday' is no window such as 170-1400"):
        store.find("yesterday")
    assert [one.action for one in store.newest(2)] == ["undo", "bootstrap"]


def test_damaged_records_are_left_out_and_lead_nowhere(store: RecordStore, tmp_path: Path) -> None:
    kept = store.keep(record(), LoadReport("dir", "sales", 1, 9))
    (json,) = (tmp_path / f".reports/.by-day/{SALES}").glob("*/*.json")
    folder = json.parent
    (folder / f"{new_token()}-1-9.json").write_bytes(b"\xff{" + b"[" * 10_000)
    (folder / f"{new_token()}-1-9.json").write_bytes(b" " * (2 << 20))
    (folder / "stray.json").write_text("{}")
    json.write_text(json.read_text().replace(kept.report, "file:///etc/passwd"))
    (found,) = store.newest()
    assert found.report == kept.report
    Path(kept.report.removeprefix("file://")).write_bytes(b"PAR1 nothing")
    with pytest.raises(Exception, match="the report is unreadable"):
        list(store.rows(found))
    Path(kept.report.removeprefix("file://")).unlink()
    with pytest.raises(BadRequest, match="is not kept any more"):
        list(store.rows(found))
    with pytest.raises(BadRequest, match="left no report"):
        list(store.rows(replace(found, report="")))


def reported(store: RecordStore, rows: pa.Table) -> list[ReportRow]:
    """The rows of a report that somebody has replaced by others."""
    kept = store.keep(record(), LoadReport("dir", "sales", 1, 9))
    pq.write_table(rows, kept.report.removeprefix("file://"), compression="zstd")
    return list(store.rows(kept))


def test_a_small_report_that_becomes_large_is_not_read(store: RecordStore) -> None:
    """A text that stands in each row takes its place in the file once."""
    assert len(reported(store, pa.table({"section": ["file"] * 10, "source": ["x" * MIB] * 10}))) == 10
    with pytest.raises(ReplicationError, match=r"the report is unreadable: its values have .* bytes, more than the 134,217,728"):
        reported(store, pa.table({"section": ["file"] * 200, "source": ["x" * MIB] * 200}))


def test_a_report_that_is_larger_than_any_is_not_fetched(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.keep(record(), LoadReport("dir", "sales", 1, 9))
    monkeypatch.setattr(report_file, "_MOST", 100)
    with pytest.raises(ReplicationError, match=r"1-9.parquet has more than the 100 bytes that are read: read it with Spark"):
        list(store.rows(kept))


def written(path: Path, rows: Iterable[ReportRow]) -> IO[bytes]:
    with path.open("w+b") as file:
        write_rows(file, rows, b"{}")
    return path.open("rb")


@pytest.mark.long
def test_a_report_of_many_row_groups_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them has its place in the footer: reports of some ten million rows could not be read."""
    monkeypatch.setattr(report_rows, "_BATCH", 1)
    rows = [ReportRow("file", "t", size=number) for number in range(5_000)]
    with written(tmp_path / "report.parquet", rows) as file:
        footer = int.from_bytes(file.read()[-8:-4], "little")
        assert footer > 4 * MIB
        assert not pq.ParquetFile(file).metadata.row_group(0).column(0).is_stats_set, "they make footers twice as long"
        assert [row.size for row in read_rows(file, ["section", "size"])] == [row.size for row in rows]


def test_a_report_whose_footer_is_larger_than_any_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_rows, "_FOOTER", 1_000)
    message = r"footer has [0-9,]+ bytes, more than the 1,000 that are read: read it with Spark"
    with written(tmp_path / "report.parquet", [ReportRow("file")]) as file, pytest.raises(TooLarge, match=message):
        list(read_rows(file))


def test_long_reasons_make_no_report_unreadable(tmp_path: Path) -> None:
    rows = (ReportRow("held", f"t{number}", outcome="x" * 30_000) for number in range(5_000))
    with written(tmp_path / "report.parquet", rows) as file:
        assert {len(row.outcome or "") for row in read_rows(file)} == {4_096}


def test_values_that_were_weighed_are_plain_ones(tmp_path: Path) -> None:
    """Values of dictionaries become Python's three times as slowly."""
    schema = pa.schema([("outcome", pa.string()), ("section", pa.string())])
    with written(tmp_path / "report.parquet", [ReportRow("held")]) as file:
        (rows,) = small_row_groups(file.read(), schema, MIB)
    assert rows.schema.types == schema.types


def test_columns_of_another_version(store: RecordStore) -> None:
    """Those that are not known are passed over, and those that it lacks are empty; one of another type is no such column."""
    assert reported(store, pa.table({"section": ["held"], "later": [[1]]})) == [ReportRow("held")]
    with pytest.raises(ReplicationError, match="the report is unreadable: its column evid is of another type"):
        reported(store, pa.table({"section": ["held"], "evid": ["seven"]}))
    with pytest.raises(ReplicationError, match="the report is unreadable"):
        reported(store, pa.table({"table": ["t"]}))


@pytest.mark.parametrize("number", ["1e20", "NaN", "Infinity", "1e999", "-1", "9" * 400])
@pytest.mark.parametrize("name", ["time", "to_evid", "seconds", "bytes_copied"])
def test_a_record_with_a_figure_that_cannot_be_shown_is_damaged(name: str, number: str) -> None:
    """One of them ended status, history and reports of the whole policy."""
    text = record_text(replace(record(), to_evid=9))
    assert record_of(text) is not None
    changed = re.sub(rf'"{name}":[0-9.]+', f'"{name}":{number}', text.decode())
    assert changed != text.decode()
    assert record_of(changed.encode()) is None


def test_a_window_of_a_number_that_no_event_has_is_none(store: RecordStore) -> None:
    with pytest.raises(BadRequest, match="is no window such as 170-1400"):
        store.find(f"{'9' * 5_000}-1400")


def test_what_is_done_by_hand_is_noticed_by_one_look(tmp_path: Path) -> None:
    root = tmp_path.as_uri()
    store = TreeStore(Storage((Root(uri=root),)), root)
    policy = POLICY.model_copy(update={"databases": {"sales": "sales", "o": "other"}})
    other = policy.model_copy(update={"databases": {"o": "other"}})
    sales = RecordStore.of(policy, store, "sales")
    assert last_asked(policy, store) == {}
    sales.keep(replace(record(), by="Dagster run 1"), LoadReport("dir", "sales", 1, 9))
    assert last_asked(policy, store) == {}
    sales.keep(record("release", ""))
    first = last_asked(policy, store)["sales"]
    assert first > 0
    assert last_asked(other, store) == {}
    time.sleep(0.01)
    sales.keep(record("pause", ""))
    assert last_asked(policy, store)["sales"] > first


def test_policies_with_one_dump_root_keep_their_records_apart(tmp_path: Path) -> None:
    """One's alarms told of the other's replica, and its retention deleted the other's reports."""
    root = tmp_path.as_uri()
    store = TreeStore(Storage((Root(uri=root),)), root)
    second = POLICY.target.model_copy(update={"metastore": "thrift://second:9083"})
    ours, theirs = POLICY, POLICY.model_copy(update={"target": second})
    kept = RecordStore.of(ours, store, "sales").keep(record(), LoadReport("dir", "sales", 1, 9))
    RecordStore.of(ours, store, "sales").keep(record("pause", ""))
    other = RecordStore.of(theirs, store, "sales")
    assert other.newest() == other.find("1-9") == other.expired(time.time() + 2 * 86_400) == []
    assert not other.had_replica()
    assert last_asked(theirs, store) == {}
    assert RecordStore.of(ours, store, "sales").find("1-9") == [kept]
    assert RecordStore.of(ours, store, "sales").had_replica()
    assert last_asked(ours, store).keys() == {"sales"}


def test_records_are_kept_by_days_and_those_of_earlier_versions_are_read(tmp_path: Path) -> None:
    storage, root, day = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), 86_400
    store = RecordStore(storage, root, "sales", PAIR)
    today, place = time.time(), tmp_path / f".reports/.by-day/{SALES}"
    ids = [f"{int((today - ago * day) * 1000):013d}{'0' * 8}" for ago in (0, 1, 2)]
    for one, window in zip(ids, ("20-30", "10-20", "1-10"), strict=True):
        store.keep(replace(record(window=window), id=one), LoadReport("dir", "sales", 1, 9))
    newest, second, oldest = sorted(place.iterdir(), reverse=True)
    assert {one.name for one in newest.iterdir()} == {f"{ids[0]}-20-30.json", f"{ids[0]}-20-30.parquet"}
    earlier = tmp_path / ".reports/sales"
    oldest.rename(earlier)  # as they were before there were days
    days = tmp_path / ".reports/.by-day/sales"
    days.mkdir()
    second = second.rename(days / second.name)  # as they were before policies with one dump root had theirs apart
    assert [one.window for one in store.newest()] == ["20-30", "10-20", "1-10"]
    assert [one.window for one in store.newest(since=today - day)] == ["20-30"]
    (found,) = store.find("1-10")
    assert sum(1 for _ in store.rows(found)) == 0
    assert {paths.name(one.uri) for one in store.expired(today)} == {
        paths.name(place.as_uri()) for place in (second, *earlier.iterdir())
    }
    earlier.rename(tmp_path / "elsewhere")
    earlier.write_text("is not listed for what the days have")
    assert [one.window for one in store.newest(2)] == ["20-30", "10-20"]


def test_a_report_is_read_by_its_uri_where_it_is_one_of_the_database(store: RecordStore, tmp_path: Path) -> None:
    touched = (Touched("t", "t", 8, partitions=("ds=1",)),)
    kept = store.keep(record(), LoadReport("dir", "sales", 1, 9, copies=Copies([copied("sales.t/ds=1")]), touched=touched))
    rows = list(store.rows_at(kept.report, ("section", "partition", "size")))
    assert [(row.section, row.partition, row.size) for row in rows] == [
        ("table", None, None),
        ("partition", "ds=1", None),
        ("file", "ds=1", 5),
    ]
    assert {row.target for row in rows} == {None}
    other = f"{kept.report}/../{Path(kept.report).name}"
    (tmp_path / "else.parquet").write_bytes(b"not ours")
    for uri in ((tmp_path / "else.parquet").as_uri(), other, kept.report.replace(SALES, "hr"), ""):
        with pytest.raises(BadRequest, match="is no report of this database"):
            list(store.rows_at(uri, ("section",)))
    Path(kept.report.removeprefix("file://")).unlink()
    with pytest.raises(BadRequest, match="is not kept any more"):
        list(store.rows_at(kept.report, ("section",)))


def test_one_day_tells_that_there_was_a_replica(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them were listed, one after the other, for each replica that is gone."""
    storage, root, day = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), 86_400
    store, listed = RecordStore(storage, root, "sales", PAIR), list[str]()
    for ago, window in enumerate(("bootstrap-90", "20-30", *["10-20"] * 20)):
        token = f"{int((time.time() - ago * day) * 1000):013d}{'0' * 8}"
        store.keep(replace(record("bootstrap" if ago == 0 else "window", window), id=token, outcome="failed"))
    ls = storage.ls
    monkeypatch.setattr(storage, "ls", lambda uri: (listed.append(uri), ls(uri))[1])
    assert store.had_replica()
    assert len(listed) == 3  # the days, the bootstrap's and that of the newest window


def test_a_day_that_this_account_may_not_read_hides_no_other(tmp_path: Path) -> None:
    """Nothing was found then, and a replica that was gone was none; whose the newest record is, the others do not tell."""
    storage, root = Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri()
    store = RecordStore(storage, root, "sales", PAIR, "ours")
    for ago, window in enumerate(("20-30", "10-20")):
        store.keep(replace(record(window=window), id=f"{int((time.time() - ago * 86_400) * 1000):013d}{'0' * 8}"))
    newest, older = sorted((tmp_path / f".reports/.by-day/{SALES}").iterdir(), reverse=True)
    with closed_directory(older.as_uri()):
        assert store.has_own()
    with closed_directory(newest.as_uri()):
        assert [one.window for one in store.newest()] == ["10-20"]
        assert [one.window for one in store.find("10-20")] == ["10-20"]
        assert (store.had_replica(), list(store.closed)) == (True, [newest.as_uri()])
        with pytest.raises(Denied):
            store.has_own()


def test_what_cannot_be_kept_fails_no_load(tmp_path: Path) -> None:
    (tmp_path / ".reports").write_text("in the way")
    store = RecordStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), "sales", PAIR)
    assert store.keep(record(), LoadReport("dir", "sales", 1, 9)).report == ""


def test_names_of_databases_stay_below_their_place(tmp_path: Path) -> None:
    store = RecordStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri(), "a/../../b", PAIR)
    kept = store.keep(record(database="a/../../b"), LoadReport("dir", "b", 1, 9))
    assert store.newest() == [kept]
    assert sorted(one.name for one in (tmp_path / ".reports").iterdir()) == [".by-day", ".by-hand"]
    assert [one.name for one in (tmp_path / ".reports/.by-day").iterdir()] == [f"a%2F..%2F..%2Fb-{pair_hash(PAIR)}"]


@pytest.mark.parametrize(
    ("name", "table", "partition"),
    [
        ("db.t", "t", None),
        ("db.t/ds=1", "t", "ds=1"),
        ("db.t/ds=1/h=2", "t", "ds=1/h=2"),
        ("db.c/b/ds=1", "c/b", "ds=1"),
        ("db.a.b", "a.b", None),
    ],
)
def test_objects_of_odd_names(name: str, table: str, partition: str | None) -> None:
    assert object_of(name) == (table, partition)


def test_who_acts() -> None:
    user, _, host = actor().partition("@")
    assert user
    assert host
    with acting_as("Dagster run 1234"):
        assert actor() == "Dagster run 1234"
    assert actor() == f"{user}@{host}"
