"""The simulated company: the real dump and load of a slice bring to the target exactly what the formula says."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pytest

from bench.company import formula
from bench.company.formula import Slice
from bench.company.measure import Stage, Used, beside_limits, connected, replicate, used
from bench.company.model import model
from bench.company.scale import write
from bench.company.servers import Side, side
from bench.company.source_metastore import NEWEST
from bench.company.storm import Storm, Told, run
from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format import resume
from hive_replication.dump.format.packed_writer import PackedWriter
from hive_replication.dump.format.record_types import PartitionRecord
from hive_replication.load.command import repl_load
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.storage import Storage

SLICE = Slice("company_3x50x3", 3, 50, 3)
EVENTS = 30  # partitions that are added after the bootstrap
PARTITIONS = SLICE.partitions + EVENTS // SLICE.tables
TABLES = [formula.table_name(number) for number in range(SLICE.tables)]


@dataclass(frozen=True)
class Replica:
    sides: Connection
    source: Side
    target: Side
    stages: list[Stage]


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    root = tmp_path_factory.mktemp("dumps")
    with side("source") as source, side("target", SLICE.files) as target:
        stages = replicate(source, target, SLICE, EVENTS, root)
        yield Replica(connected(source, target, SLICE, root), source, target, stages)


def test_the_dump_is_what_the_formula_says(replica: Replica) -> None:
    directory = min(replica.sides.store.dumps(SLICE.name))
    dump, store = replica.sides.store.open(directory), replica.source.hdfs.rstrip("/")
    numbers = range(SLICE.partitions)
    assert [record.table for record in dump.tables()] == [formula.table(SLICE, number, store) for number in range(SLICE.tables)]
    for table, name in enumerate(TABLES):
        found = list(dump.partitions(name))
        assert [record.partition for record in found] == [formula.partition(SLICE, table, one, store) for one in numbers]
        files = [[(file.name, file.checksum) for file in record.files] for record in found]
        wanted = [[(formula.file_name(file), formula.checksum(table, one, file)) for file in range(3)] for one in numbers]
        assert files == wanted


def test_the_replica_is_what_the_formula_says(replica: Replica) -> None:
    target, store = replica.sides.target, replica.target.hdfs.rstrip("/")
    for table, name in enumerate(TABLES):
        found = sorted(target.metastore.partitions(SLICE.name, name), key=lambda one: one.values)
        assert [one.values for one in found] == [[formula.partition_value(number)] for number in range(PARTITIONS)]
        for number, one in enumerate(found):
            wanted = formula.partition(SLICE, table, number, store)
            assert one.sd == wanted.sd
            assert wanted.parameters.items() <= one.parameters.items()
            assert {file.uri: target.storage.read(file.uri) for file in target.storage.files(one.sd.location, hidden=True)} == {
                f"{one.sd.location}/{formula.file_name(file)}": formula.content(table, number, file) for file in range(3)
            }


def test_calls_are_as_few_as_they_can_be(replica: Replica) -> None:
    dump, load, window, more = (stage.used for stage in replica.stages)
    files, added = SLICE.objects * SLICE.files, EVENTS * SLICE.files
    assert dump.calls["NameNode getListing"] == SLICE.objects
    assert dump.calls["WebHDFS GETFILECHECKSUM"] == files
    assert {dump.calls[f"metastore {name}"] for name in ("get_partition_names", "get_partitions_by_names")} == {SLICE.tables}
    assert dump.calls_of("metastore") < 60
    assert [load.calls[f"DataNode {name}"] for name in ("read", "write")] == [2 * files, files]  # read back to be proven
    assert "WebHDFS GETFILECHECKSUM" not in load.calls
    assert {load.calls[f"metastore {name}"] for name in ("create_table", "add_partitions_req")} == {SLICE.tables}
    assert load.calls_of("metastore") < 70
    assert window.calls_of("NameNode", "WebHDFS") == 0  # the events tell the files
    assert window.calls_of("metastore") < 10
    assert [more.calls[f"DataNode {name}"] for name in ("read", "write")] == [2 * added, added]
    assert more.calls["metastore add_partitions_req"] == SLICE.tables
    assert more.calls_of("metastore") < 30


def test_of_a_complete_partition_the_target_keeps_no_more_than_its_numbers(replica: Replica) -> None:
    storage = replica.sides.target.storage
    directory = f"{replica.target.hdfs}warehouse/{SLICE.name}.db/{TABLES[1]}/{formula.KEY}=000007"
    changed = f"{directory}/{formula.file_name(1)}"
    kept = storage.read(changed)
    assert replica.target.complete(SLICE.name) == SLICE.tables * PARTITIONS
    storage.write(changed, b"another content")
    assert replica.target.complete(SLICE.name) == SLICE.tables * PARTITIONS - 1
    assert storage.read(changed) == b"another content"
    storage.write(changed, kept)
    assert replica.target.complete(SLICE.name) == SLICE.tables * PARTITIONS


def test_the_whole_company_is_there_without_being_stored(replica: Replica) -> None:
    metastore, company, last = replica.sides.source.metastore, Slice("company", 10_000, 10_000, 3), formula.table_name(9_999)
    assert len(metastore.table_names("company")) == 10_000
    names = metastore.partition_names("company", last)
    assert len(names) == 10_000
    (found,) = metastore.partitions("company", last, names[-1:])
    assert found == formula.partition(company, 9_999, 9_999, replica.source.hdfs.rstrip("/"))
    assert metastore.table("company", formula.table_name(10_000)) is None


def test_a_directory_is_listed_in_pages(replica: Replica) -> None:
    storage = Storage(replica.source.warehouse.storage_roots)
    table = f"{replica.source.hdfs}warehouse/company_1x2500x1.db/{formula.table_name(0)}"
    assert len(storage.ls(table)) == 2_500
    assert storage.status(f"{table}/{formula.KEY}=7") is None


def test_each_figure_stands_beside_its_limit(replica: Replica, tmp_path: Path) -> None:
    of = Slice("company_2x20x3", 2, 20, 3)
    dump, load = beside_limits(replica.source, replica.target, of, tmp_path)
    assert dump.limit is not None
    assert load.limit is not None
    for name in ("NameNode getListing", "WebHDFS GETFILECHECKSUM", "metastore get_partitions_by_names"):
        assert dump.limit.calls[name] == dump.used.calls[name]
    for name, times in {"DataNode read": 2, "DataNode write": 1, "metastore add_partitions_req": 1}.items():
        assert load.used.calls[name] == times * load.limit.calls[name]
    assert dump.ratio == dump.used.seconds / dump.limit.seconds


def test_a_dump_that_is_killed_in_the_middle_of_a_table_goes_on_there(
    replica: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "INTERVAL", 0)
    of, sides = Slice("company_1x2300x1", 1, 2_300, 1), connected(replica.source, None, SLICE, tmp_path)
    put, statement = PackedWriter.put_partition, ReplDump(of.name)

    def dying(writer: PackedWriter, record: PartitionRecord) -> None:
        if record.name.endswith("=001700"):
            raise RuntimeError("killed")
        put(writer, record)

    with monkeypatch.context() as patch:
        patch.setattr(PackedWriter, "put_partition", dying)
        with pytest.raises(RuntimeError, match="killed"):
            repl_dump(sides.source, statement, sides.store)
    taken, made = used(lambda: repl_dump(sides.source, statement, sides.store), replica.source)
    assert taken.calls["NameNode getListing"] == 800  # after three batches
    store = replica.source.hdfs.rstrip("/")
    found = [record.partition for record in sides.store.open(made.directory).partitions(TABLES[0])]
    assert (made.partitions, made.files) == (2_300, 2_300)
    assert found == [formula.partition(of, 0, number, store) for number in range(2_300)]


def _load(policy: Policy, directory: str, database: str) -> None:
    sides = connect(policy)
    repl_load(sides.target, ReplLoad(directory, database), sides.store, sides.copier)


@pytest.mark.long
def test_a_load_that_is_killed_in_the_middle_repeats_little(replica: Replica, tmp_path: Path) -> None:
    of = Slice("company_5x500x3", 5, 500, 3)
    files, sides = of.objects * of.files, connected(replica.source, replica.target, of, tmp_path)
    directory = repl_dump(sides.source, ReplDump(of.name), sides.store).directory
    process = get_context("spawn").Process(target=_load, args=(sides.target.policy, directory, of.name))
    replica.target.counts()
    process.start()
    written = Counter[str]()
    while written["DataNode write"] < files / 2:
        assert process.is_alive()
        time.sleep(0.1)
        written.update(replica.target.counts())
    process.kill()
    process.join()
    _load(sides.target.policy, directory, of.name)
    written.update(replica.target.counts())
    store = sides.target.storage
    assert len(store.files(f"{replica.target.hdfs}warehouse/{of.name}.db")) == files
    assert written["DataNode write"] < 1.05 * files
    assert written["metastore add_partitions_req"] < 1.05 * of.objects / 100  # as many are added by a call


def _stage(name: str, tables: int, units: int, files: int, each: float) -> Stage:
    cpu = 2 + 0.5 * tables + each * units + 0.002 * files
    return Stage(name, tables, units, files, Used(cpu, cpu, 0, 100_000_000, {"metastore get_table": 3 + tables}), size=7 * units)


_SIZES = [(10, 1_000, 3_000), (100, 1_000, 3_000), (10, 10_000, 0), (10, 10_000, 30_000)]
_STAGES = [_stage(name, *size, each) for name, each in (("DUMP", 0.01), ("LOAD", 0.03)) for size in _SIZES]


def test_the_model_finds_what_each_table_partition_and_file_costs() -> None:
    costs = model(_STAGES)
    cost = costs["LOAD"]["CPU, s"]
    assert (cost.fixed, cost.table, cost.unit, cost.file) == pytest.approx((2, 0.5, 0.03, 0.002))
    assert cost.at(1, 10_000, 30_000) == pytest.approx(362.5)
    assert costs["DUMP"]["metastore calls"].at(50, 7, 7) == pytest.approx(53)
    assert costs["DUMP"]["dump, bytes"].at(1, 1_000, 0) == pytest.approx(7_000)
    assert costs["DUMP"]["HDFS calls"].at(1, 1_000, 0) == 0


@pytest.mark.long
def test_what_was_measured_is_written_with_its_plot(tmp_path: Path) -> None:
    paths = write(_STAGES, model(_STAGES), tmp_path)
    assert [path.suffix for path in paths] == [".json", ".png", ".svg"]
    found = json.loads(paths[0].read_text())
    assert found["measured"][0]["used"]["cpu"] == _STAGES[0].used.cpu
    assert found["model"]["LOAD"]["CPU, s"]["table"] == pytest.approx(0.5)


@pytest.mark.long
def test_a_storm_is_caught_up_with_while_the_lag_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    run(Slice("company_4x10x1", 4, 10, 1), events=400, rate=50, oldest=120)
    assert "400 events in 0.1 minutes, caught up with, and told so" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (Told(150, NEWEST + 20, NEWEST + 90, 70, 120, least=False), ""),
        (Told(150, NEWEST + 20, NEWEST + 90, 60, 120, least=True), ""),
        (Told(150, NEWEST + 100, NEWEST + 100, 0, 0, least=False), ""),
        (Told(150, NEWEST + 20, NEWEST + 90, 60, 120, least=False), "60 events are said to wait instead of 70"),
        (Told(150, NEWEST + 20, NEWEST + 90, 71, 120, least=True), "71 events are said to wait instead of 70"),
        (Told(150, NEWEST + 20, NEWEST + 21, 1, 120, least=False), "event 1000021 is said to be the newest; then came 1000100"),
        (Told(150, NEWEST + 20, NEWEST + 90, 70, 130, least=False), "130 s are told instead of 120"),
        (Told(150, NEWEST + 20, NEWEST + 90, 70, 0, least=False), "0 s are told instead of 120"),
    ],
)
def test_a_lag_that_is_not_true_is_found(told: Told, why: str) -> None:
    """Ten events came every ten seconds, from second 10 on; each lag is told in second 150."""
    storm = Storm(None, SLICE, 100, 1)  # type: ignore[arg-type]
    storm._came += [(10.0 * number, 10 * number) for number in range(1, 11)]
    assert told.wrong(storm, oldest=65) == why
