"""What the job ``record`` logs of loads from before their database grew beyond ``max_tables``, or came back below it."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.report import Commit, LoadReport, Touched
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table
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
