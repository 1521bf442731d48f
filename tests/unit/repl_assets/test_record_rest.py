"""What the job ``record`` logs of loads from before their database grew beyond ``max_tables``, or came back below it."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.errors import MetastoreError, Refused, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.report import Commit, LoadReport, Touched
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table
from hive_replication.policy import Policy, Root
from hive_replication.storage import Storage, StorageError
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import LOADING_TAG, POLICY_TAG, UNRECORDED_TAG, Names, loading_tag
from repl_assets.catalog.specs import Specs
from repl_assets.dagster_private import DATA_VERSION_TAG
from repl_assets.jobs.record_rest import record_job
from repl_assets.recording.recorder import Recorder
from repl_assets.steps import record_rest as module
from repl_assets.steps.engine import Engine, as_dagster_failure
from repl_assets.steps.load import load_dump
from repl_assets.steps.record_rest import record_rest, unrecorded_runs
from tests.unit.repl_assets.test_dagster_definitions import policy

APART, OVERFLOW = Names("p"), Names("p", frozenset({"db"}))
DAYS = [f"ds={number}" for number in range(3)]
TABLES = {
    **{name: Table(tableName=name, dbName="db", parameters={LAST_ID: "7"}, partitionKeys=[]) for name in ("a", "b", "c")},
    "days": Table(tableName="days", dbName="db", parameters={LAST_ID: "7"}, partitionKeys=[FieldSchema("ds", "string", "")]),
}
REPORT = LoadReport(
    "dir",
    "db",
    6,
    9,
    touched=(
        Touched("a", "a", 7),
        Touched("days", "days", 7, partitions=tuple(DAYS), dropped_partitions=("ds=9",)),
        Touched("old", "old", 8, dropped=True),
    ),
)


def partitions(_database: str, _table: str, names: Iterable[str]) -> list[Partition]:
    return [Partition(values=[name.removeprefix("ds=")], parameters={LAST_ID: "7"}) for name in names]


METASTORE = SimpleNamespace(
    database=lambda name: Database(name=name),
    table_names=lambda _database: sorted(TABLES),
    table=lambda _database, name: TABLES.get(name),
    tables=lambda _database, names: (TABLES[name] for name in names),
    partitions=partitions,
)
TARGET = SimpleNamespace(policy=SimpleNamespace(databases={"db": "db"}, includes=lambda _table: True), metastore=METASTORE)
ENGINE = cast(
    "Engine",
    SimpleNamespace(
        connection=SimpleNamespace(target=TARGET),
        target_name=lambda name: name,
        tables=lambda _database: sorted(TABLES),
        partitioned=lambda _database, tables: {"days"}.intersection(tables),
        partition_names=lambda _database, table: DAYS if table == "days" else [],
        repairs=lambda _database, _kind: False,
        state=lambda _database: ReplicaState(applied=9),
        load=lambda _statement, **_: REPORT,
    ),
)


def killed(*_: object) -> None:
    raise RuntimeError


def ignored(_: object) -> None:
    """An op that yields nothing returns nothing."""


@pytest.fixture
def instance(monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 1)
    monkeypatch.setattr(module, "MOST_OBJECTS", 2)
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def run(
    instance: dg.DagsterInstance, work: Callable[[dg.OpExecutionContext], None], *, raises: bool = True
) -> list[tuple[str, str | None, str]]:
    """Does something in a run; returns the replicas that it logged: asset, partition, data version."""

    @dg.op(out=dg.Out(dg.Nothing))
    def step(context: dg.OpExecutionContext) -> None:
        work(context)

    @dg.job
    def job() -> None:
        step()

    result = job.execute_in_process(instance=instance, raise_on_error=raises)
    events = result.filter_events(lambda event: event.is_step_materialization)
    made = [event.step_materialization_data.materialization for event in events]
    shown = [(one.asset_key.path[-1], one.partition, str((one.tags or {}).get(DATA_VERSION_TAG))) for one in made]
    return [one for one in shown if not one[0].endswith(("__source", "__dump"))]


def load(instance: dg.DagsterInstance, names: Names, *touched: Touched) -> list[tuple[str, str | None, str]]:
    report = LoadReport("dir", "db", 1, 9, touched=touched)
    return run(instance, lambda context: Recorder(context, names, "db", {"days"}).record(report, "dir"))


def rest(instance: dg.DagsterInstance, names: Names) -> list[tuple[str, str | None, str]]:
    """All that runs of the job log until they find nothing."""
    logged: list[Any] = []
    for _ in range(4):
        logged += run(instance, lambda context: record_rest(context, ENGINE, names))
        if not unrecorded_runs(instance, names):
            return logged
    raise AssertionError(f"it never ends: {logged}")


def test_a_database_that_went_into_overflow(instance: dg.DagsterInstance) -> None:
    commit = Commit("ds=1", 3, 4, 9)
    touched = (Touched("a", "a", 7), Touched("b", "b", 7), Touched("days", "days", 7, partitions=tuple(DAYS), commits=(commit,)))
    assert load(instance, APART, *touched) == [("a", None, "7")]
    assert rest(instance, OVERFLOW) == [("db__tables", "b", "7"), ("db__tables", "days", "9")]


def test_a_database_that_came_out_of_overflow(instance: dg.DagsterInstance) -> None:
    commit = Commit("", 3, 4, 9)
    touched = (Touched("a", "a", 7), Touched("b", "b", 7, commits=(commit,)), Touched("days", "days", 7, partitions=tuple(DAYS)))
    assert load(instance, OVERFLOW, *touched) == [("db__tables", "a", "7")]
    instance.add_dynamic_partitions(str(APART.partitions("db", "days").name), DAYS[:1])  # by a later window
    assert rest(instance, APART) == [("a", None, "7"), ("b", None, "9"), ("c", None, "7"), ("days", "ds=0", "7")]


@pytest.mark.parametrize("names", [APART, OVERFLOW])
def test_a_database_that_stayed_as_it_is(instance: dg.DagsterInstance, names: Names) -> None:
    assert len(load(instance, names, Touched("a", "a", 7), Touched("b", "b", 7))) == 1
    assert {partition or asset for asset, partition, _ in rest(instance, names)} >= {"b"}
    assert [run.tags[UNRECORDED_TAG] for run in instance.get_runs() if UNRECORDED_TAG in run.tags] == [""]


def load_window(
    instance: dg.DagsterInstance, names: Names, *, raises: bool = True, after: int = 6, engine: Engine = ENGINE
) -> list[tuple[str, str | None, str]]:
    """A step that loads and records a window."""
    known = CatalogDatabase("db", "", "", "", (), (), overflow=4 if names.overflow else 0)
    metadata = {"directory": "dir", "kind": "incremental", "from_evid": after}
    dump = dg.AssetMaterialization(names.database("db", "dump"), metadata=metadata)
    logged = run(instance, lambda context: ignored(load_dump(context, engine, names, known, dump)), raises=raises)
    return [one for one in logged if one[0] != "db"]


@pytest.mark.parametrize("names", [APART, OVERFLOW])
def test_a_run_that_ends_between_the_load_and_its_recording(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch, names: Names
) -> None:
    """The next load touches none of what it changed."""
    old = (Touched("old", "old", 5), Touched("days", "days", 5, partitions=("ds=0", "ds=9")))
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 20)
    load(instance, names, *old, *(Touched(name, name, 7) for name in ("b", "c")))
    run(instance, lambda context: Recorder(context, names, "db", ()).sync_tables(["a", "b", "c", "days", "old"]))
    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", killed)
        assert load_window(instance, names, raises=False) == []
    assert len(unrecorded_runs(instance, names)) == 1
    logged = sorted(rest(instance, names), key=str)
    if names.overflow:
        assert logged == [("db__tables", "a", "7"), ("db__tables", "days", "7"), ("db__tables", "old", "dropped at 9")]
        assert instance.get_dynamic_partitions(str(names.table_partitions("db").name)) == ["a", "b", "c", "days"]
    else:
        days = [("days", day, "7") for day in DAYS]
        assert logged == [("a", None, "7"), *days, ("days", "ds=9", "dropped at 9"), ("old", None, "dropped at 9")]
        assert sorted(instance.get_dynamic_partitions(str(names.partitions("db", "days").name))) == DAYS
    assert rest(instance, names) == []


def test_a_partition_that_an_interrupted_run_changed_alone(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """An INSERT into it does not raise the id of its table: Dagster showed the partition as before for good."""
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 20)
    monkeypatch.setitem(TABLES["days"].parameters, LAST_ID, "3")
    load(instance, APART, *(Touched(name, name, 7) for name in "abc"), Touched("days", "days", 5, partitions=tuple(DAYS)))
    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", killed)
        load_window(instance, APART, raises=False)
    assert sorted(rest(instance, APART), key=str) == [("days", day, "7") for day in DAYS]


def test_a_table_that_an_interrupted_run_dropped_after_one_of_its_partitions(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last entry of its asset is the drop of the partition, not its own."""
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 20)
    load(instance, APART, *(Touched(name, name, 7) for name in "abc"), Touched("days", "days", 7, partitions=tuple(DAYS)))
    assert load(instance, APART, Touched("days", "days", 8, dropped_partitions=("ds=2",))) == [("days", "ds=2", "dropped at 8")]
    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", killed)
        load_window(instance, APART, raises=False, after=8)
    monkeypatch.delitem(TABLES, "days")
    dropped = [("days", "ds=0", "dropped at 9"), ("days", "ds=1", "dropped at 9"), ("days", None, "dropped at 9")]
    assert rest(instance, APART) == dropped


def test_a_load_that_is_recorded_leaves_nothing(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails in its run later, and though a run that executes it again is given its tags."""
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 20)
    load_window(instance, APART)
    (done,) = instance.get_runs()
    create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags=done.tags)
    create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags={**done.tags, loading_tag("db"): "another 6 db"})
    assert rest(instance, APART) == []


@pytest.mark.parametrize(
    "mark", ["{} soon db", "{} 6", "{}", "{} -2 db", "{} " + "9" * 5_000 + " db"], ids=lambda mark: mark[:10]
)
def test_a_tag_that_somebody_has_edited_marks_no_load(instance: dg.DagsterInstance, mark: str) -> None:
    """It ended each run of the job for all databases."""
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE, tags={LOADING_TAG: APART.policy})
    instance.add_run_tags(run.run_id, {loading_tag("db"): mark.format(run.run_id)})
    assert rest(instance, APART) == []


def test_failed_runs_of_one_database_are_compared_once(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the event after which the first of their loads began."""
    compared: list[int] = []
    compare = module._compare

    def counted(instance: dg.DagsterInstance, engine: Engine, recorder: Recorder, after: int) -> list[str]:
        compared.append(after)
        return compare(instance, engine, recorder, after)

    with monkeypatch.context() as patched:
        patched.setattr(Recorder, "record", killed)
        for after in (8, 6, 7):
            load_window(instance, APART, raises=False, after=after)
    monkeypatch.setattr(module, "_compare", counted)
    assert len(unrecorded_runs(instance, APART)) == 3
    assert {asset for asset, _, _ in rest(instance, APART)} == {"a", "b", "c", "days"}
    assert compared == [6]  # though it takes three runs to record what it found


def test_a_database_that_is_hidden_by_now_keeps_no_other_from_being_recorded(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job failed there each time, before it came to the others."""

    def shown(name: str) -> Database:
        if name == "aaa":
            raise MetastoreError("get_database aaa: permission denied")
        return Database(name=name)

    monkeypatch.setattr(METASTORE, "database", shown)
    monkeypatch.setattr(TARGET.policy, "databases", {"aaa": "aaa", "db": "db"})
    mine = create_run_for_test(instance, status=dg.DagsterRunStatus.FAILURE)
    mark = f"{mine.run_id} 6 aaa"
    instance.add_run_tags(mine.run_id, {LOADING_TAG: APART.policy, loading_tag("aaa"): mark})
    load(instance, APART, Touched("a", "a", 7), Touched("b", "b", 7))

    def record(context: dg.OpExecutionContext) -> None:
        with pytest.raises(dg.Failure, match="aaa: get_database aaa: permission denied"):
            record_rest(context, ENGINE, APART)

    assert run(instance, record) == [("b", None, "7")]
    assert unrecorded_runs(instance, APART) == [mine.run_id]
    left = instance.get_run_by_id(mine.run_id)
    assert left
    assert left.tags[loading_tag("aaa")] == mark


@pytest.mark.parametrize(("unchanged", "left"), [(True, []), (False, ["a", "b", "c", "days"])])
def test_a_load_that_fails_before_it_changes_anything_leaves_nothing(
    instance: dg.DagsterInstance, unchanged: bool, left: list[str]
) -> None:
    """Such as one that another load's lock refused: nothing is to be compared."""

    def fails(_statement: object, **_: object) -> LoadReport:
        error = Refused("another load runs")
        error.unchanged = unchanged
        with as_dagster_failure():
            raise error

    engine = cast("Engine", SimpleNamespace(**{**vars(ENGINE), "load": fails}))
    load_window(instance, APART, raises=False, engine=engine)
    assert sorted({asset for asset, _, _ in rest(instance, APART)}) == left


def test_each_run_goes_on_where_the_last_one_ended(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tables that are done are looked up again by each run."""
    asked: list[str] = []

    def counted(database: str, table: str, names: Iterable[str]) -> list[Partition]:
        asked.extend(wanted := list(names))
        return partitions(database, table, reversed(wanted))  # the metastore has an order of its own

    touched = Touched("days", "days", 7, partitions=tuple(DAYS))
    load(instance, APART, touched, Touched("a", "a", 7), Touched("b", "b", 7), Touched("c", "c", 7))
    monkeypatch.setattr(METASTORE, "partitions", counted)
    logged = rest(instance, APART)
    assert [partition or asset for asset, partition, _ in logged] == ["ds=1", "ds=2", "a", "b", "c"]
    assert asked == DAYS  # and once more none: the first run ended with the last of them


def test_a_run_ends_in_time_though_there_is_little_to_record(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST", -1.0)
    load(instance, APART, Touched("a", "a", 7), Touched("b", "b", 7), Touched("c", "c", 7))
    once = [run(instance, lambda context: record_rest(context, ENGINE, APART)) for _ in range(3)]
    assert once == [[("b", None, "7")], [("c", None, "7")], []]
    assert unrecorded_runs(instance, APART) == []


def test_its_runs_are_of_the_policy() -> None:
    """Else no alarm tells of their failures, and retention keeps them for ever."""
    assert record_job(Specs(policy())).tags[POLICY_TAG] == policy().name


def copied(name: str, number: int = 0) -> CopyResult:
    file = FileRef(f"hdfs://s/{name}/{number}", "aa")
    return CopyResult(CopyTask(file, f"hdfs://t/{name}/{number}", 7, f"db.{name}"), "source", 5, Proof("CRC32C", "12", True), 1)


@dataclass
class Kept:
    """Loads with reports that are kept below a dump root, and what Dagster shows of them.

    Args:
        instance: Dagster.
        root: of the dumps.
    """

    instance: dg.DagsterInstance
    root: Path

    def __post_init__(self) -> None:
        self.storage = Storage((Root(uri=self.root.as_uri()),))
        pair = {"pair": ("thrift://s:9083", "thrift://t:9083"), "name": "p"}
        TARGET.policy.__dict__.update(pair)
        store = SimpleNamespace(storage=self.storage, root=self.root.as_uri())
        self.records = RecordStore.of(cast("Policy", TARGET.policy), cast("Any", store), "db")
        connection = SimpleNamespace(target=TARGET, store=store)
        self.engine = cast("Engine", SimpleNamespace(**{**vars(ENGINE), "connection": connection}))

    def load(self, names: Names, window: str, report: LoadReport) -> str:
        """A load whose run records a part of it; the URI of its report."""
        kept = self.records.keep(Record(new_token(), "window", "db", "a run", 1.0, window=window), report)
        report = replace(report, kept=kept.report, window=window)
        run(self.instance, lambda context: Recorder(context, names, "db", {"days"}).record(report, report.directory))
        return kept.report

    def rest(self, names: Names) -> int:
        """Runs the job until it finds nothing; the number of runs."""
        for number in range(5):
            run(self.instance, lambda context: record_rest(context, self.engine, names))
            if not unrecorded_runs(self.instance, names):
                return number + 1
        raise AssertionError("it never ends")

    def shown(self, key: dg.AssetKey) -> dict[str | None, dict[str, object]]:
        """The metadata of the entries of an asset, by partition."""
        found = self.instance.fetch_materializations(key, limit=100).records
        made = [one.asset_materialization for one in found if one.asset_materialization]
        return {one.partition: {name: value.value for name, value in one.metadata.items()} for one in made}


@pytest.fixture
def kept(instance: dg.DagsterInstance, tmp_path: Path) -> Kept:
    return Kept(instance, tmp_path)


FILES = [copied(f"days/{day}", number) for number, day in enumerate(DAYS) for number in range(number + 1)]
LOAD = LoadReport(
    "hdfs://d/1",
    "db",
    6,
    9,
    copies=Copies([*FILES, copied("a")]),
    touched=(Touched("a", "a", 7), Touched("days", "days", 7, partitions=tuple(DAYS))),
)


def test_what_the_job_logs_has_the_fields_of_what_the_load_s_own_run_logged(kept: Kept) -> None:
    report = kept.load(APART, "6-9", LOAD)
    own = kept.shown(APART.table("db", "a", "load"))[None]
    assert kept.rest(APART) == 2
    same = {"directory": "hdfs://d/1", "window": "6-9", "report": report, "evid": 7}
    assert own == {**same, "files": 1, "bytes": 5, "proof": "1 by CRC32C"}
    for stage in ("load", "dump"):
        assert kept.shown(APART.table("db", "days", stage)) == {
            day: {**same, "partition": day, "files": n, "bytes": 5 * n, "proof": f"{n} by CRC32C"}
            for n, day in enumerate(DAYS, start=1)
        }


def test_a_table_of_a_database_in_overflow_has_the_files_of_all_its_partitions(kept: Kept) -> None:
    report = kept.load(OVERFLOW, "6-9", LOAD)
    kept.rest(OVERFLOW)
    same = {"directory": "hdfs://d/1", "window": "6-9", "report": report, "evid": 7}
    shown = kept.shown(OVERFLOW.tables("db"))
    assert shown["a"] == {**same, "files": 1, "bytes": 5, "proof": "1 by CRC32C"}
    assert shown["days"] == {**same, "files": 6, "bytes": 30, "proof": "6 by CRC32C"}
    assert shown["b"] == {"evid": 7}  # of which no load says anything


def test_what_an_earlier_load_left_out_has_the_fields_of_that_load(kept: Kept) -> None:
    """The newest run's turn comes first, and looks up all that is later than Dagster shows of the table."""
    files = Copies([copied("days/ds=2")])
    first = kept.load(APART, "1-7", replace(LOAD, touched=(Touched("a", "a", 7), LOAD.touched[1])))
    touched = (Touched("b", "b", 9), Touched("days", "days", 9, partitions=("ds=2",)))
    second = kept.load(APART, "7-9", LoadReport("hdfs://d/2", "db", 7, 9, copies=files, touched=touched))
    kept.rest(APART)
    shown = kept.shown(APART.table("db", "days", "load"))
    assert {day: (one["report"], one["files"]) for day, one in shown.items()} == {
        "ds=0": (first, 1),
        "ds=1": (first, 2),
        "ds=2": (second, 1),
    }


def test_an_object_that_changed_after_the_load_has_none_of_its_fields(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a load that nothing in Dagster tells of, such as one from the command line."""
    kept.load(APART, "6-9", LOAD)

    def later(_database: str, _table: str, names: Iterable[str]) -> list[Partition]:
        evids = {"ds=1": "12"}
        return [Partition(values=[name[3:]], parameters={LAST_ID: evids.get(name, "7")}) for name in names]

    monkeypatch.setattr(METASTORE, "partitions", later)
    kept.rest(APART)
    shown = kept.shown(APART.table("db", "days", "load"))
    assert shown["ds=1"] == {"evid": 12, "partition": "ds=1"}
    assert shown["ds=2"]["files"] == 3


def test_a_report_that_is_gone_leaves_what_is_known(kept: Kept) -> None:
    Path(kept.load(APART, "6-9", LOAD).removeprefix("file://")).unlink()
    kept.rest(APART)
    assert kept.shown(APART.table("db", "days", "load"))["ds=1"] == {"evid": 7, "partition": "ds=1"}


def test_a_dump_root_that_does_not_answer_is_waited_for(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing gives an entry its fields later."""

    def down(_self: object, _uri: str) -> Iterator[bytes]:
        raise Unreachable("the namenode does not answer")

    kept.load(APART, "6-9", LOAD)
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "stream", down)
        with pytest.raises(dg.Failure, match="is not read: the namenode does not answer"):
            kept.rest(APART)
    assert kept.shown(APART.table("db", "days", "load")) == {}
    kept.rest(APART)
    assert kept.shown(APART.table("db", "days", "load"))["ds=1"]["files"] == 2


@pytest.mark.parametrize(("fails", "files"), [(3, 2), (4, None)])
def test_a_report_is_read_again_where_no_datanode_gave_a_block(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, fails: int, files: int | None
) -> None:
    """Its objects were logged without files and proofs, and never looked at again."""
    left, stream = list(range(fails)), Storage.stream

    def restarting(storage: Storage, uri: str) -> Iterator[bytes]:
        if left:
            left.pop()
            yield b"half"
            raise StorageError(uri) from RuntimeError('DataTransferError("x")')
        yield from stream(storage, uri)

    kept.load(APART, "6-9", LOAD)
    monkeypatch.setattr(import_module("hive_replication.load.records.report_file"), "_PAUSE", 0.0)
    monkeypatch.setattr(Storage, "stream", restarting)
    kept.rest(APART)
    assert left == []
    assert kept.shown(APART.table("db", "days", "load"))["ds=1"].get("files") == files


def test_a_report_is_read_once_for_all_tables_that_a_run_logs(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    stream = Storage.stream
    touched = tuple(Touched(name, name, 7) for name in "abc")
    kept.load(APART, "6-9", replace(LOAD, touched=touched))
    monkeypatch.setattr(Storage, "stream", lambda self, uri: (read.append(uri), stream(self, uri))[1])
    assert kept.rest(APART) == 2  # the first one logs as many as it may
    assert len(read) == 1
    assert kept.shown(APART.table("db", "c", "load"))[None]["files"] == 0


def test_what_was_found_before_a_failure_is_logged_all_the_same(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else no run of the job came beyond it."""

    def table(_database: str, name: str) -> Table | None:
        if name == "c":
            raise MetastoreError("permission denied")
        return TABLES.get(name)

    load(instance, APART, *(Touched(name, name, 7) for name in "abc"))
    monkeypatch.setattr(METASTORE, "table", table)

    def record(context: dg.OpExecutionContext) -> None:
        with pytest.raises(dg.Failure, match="permission denied"):
            record_rest(context, ENGINE, APART)

    assert run(instance, record) == [("b", None, "7")]
