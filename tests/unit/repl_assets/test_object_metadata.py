"""The metadata of a changed object, by the rows of its load's report."""

from __future__ import annotations

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies
from hive_replication.load.records.report_rows import report_rows
from hive_replication.load.report import Held, LoadReport, Touched
from repl_assets.recording.object_metadata import LoadName, Object, object_metadata

LOAD = LoadName("hdfs://d/1", "1-9", "hdfs://d/r.parquet")


def copied(name: str, evid: int = 7) -> CopyResult:
    task = CopyTask(FileRef(f"hdfs://s/{name}/{evid}", "aa"), f"hdfs://t/{name}", evid, f"db.{name}")
    return CopyResult(task, "source", 5, Proof("CRC32C", "1234abcd", True), 1)


def found(objects: dict[Object, int]) -> dict[Object, dict[str, object]]:
    copies = Copies([copied("t/ds=1"), copied("t/ds=1", 8), copied("t/ds=2", 8), copied("u/ds=1", 8)])
    touched = (Touched("t", "t", 8, partitions=("ds=1", "ds=2", "ds=3")), Touched("u", "u", 8, partitions=("ds=1",)))
    report = LoadReport("dir", "db", 1, 9, copies=copies, touched=touched, held=(Held(("u",), 1, 8, "no"),))
    metadata = object_metadata(LOAD, report_rows(report), objects)
    return {key: {name: getattr(value, "value", value) for name, value in one.items()} for key, one in metadata.items()}


NAMED = {"directory": "hdfs://d/1", "window": "1-9", "report": "hdfs://d/r.parquet"}
OF_TWO = {**NAMED, "files": 2, "bytes": 10, "proof": "2 by CRC32C"}


def test_an_object_has_its_load_files_bytes_and_proof() -> None:
    assert found({("t", "ds=1"): 8, ("t", "ds=3"): 8}) == {
        ("t", "ds=1"): OF_TWO,
        ("t", "ds=3"): {**NAMED, "files": 0, "bytes": 0},
    }


def test_a_file_of_a_held_table_is_none_of_its_object() -> None:
    assert found({("u", "ds=1"): 8})["u", "ds=1"]["files"] == 0


def test_a_table_whose_partitions_are_no_objects_has_their_files() -> None:
    assert found({("t", None): 8})["t", None]["files"] == 3


def test_an_object_that_changed_since_is_none_of_the_load() -> None:
    assert found({("t", "ds=1"): 9, ("t", "ds=2"): 5, ("v", None): 1}).keys() == {("t", "ds=2")}


def test_the_name_of_a_load_is_read_from_what_is_stored() -> None:
    assert [LoadName.read({}), LoadName.of(LoadReport("d", "db", 1, 9, window="1-9"), "dir")] == [
        LoadName(),
        LoadName("dir", "1-9"),
    ]
    assert LoadName.read(LOAD.metadata | {"window": type("Text", (), {"value": "1-9"})}) == LOAD
