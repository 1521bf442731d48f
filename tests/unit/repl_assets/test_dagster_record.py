"""What is recorded after a load, within bounds."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest
from dagster._core.test_utils import create_run_for_test

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies
from hive_replication.load.report import LoadReport, Touched
from repl_assets.catalog.catalog import Catalog, CatalogDatabase, CatalogTable, Column
from repl_assets.catalog.keys import Names, partition_key
from repl_assets.definitions import build_defs
from repl_assets.recording.recorder import MOST_EVENTS, MOST_PARTITIONS, Recorder
from tests.lags import POLICY

NAMES = Names("p")


class Recorded:
    """Recorders in runs of one instance, and what the last run logged."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.result: dg.ExecuteInProcessResult | None = None

    def run(self, work: Callable[[Recorder], None]) -> None:
        """Does something with a recorder in a run."""

        @dg.op(out=dg.Out(dg.Nothing))
        def step(context: dg.OpExecutionContext) -> None:
            work(Recorder(context, NAMES, "db", {"parts", "other"}))

        @dg.job
        def job() -> None:
            step()

        self.result = job.execute_in_process(instance=self.instance)

    def record(self, *touched: Touched) -> None:
        """Records a load."""
        self.run(lambda recorder: recorder.record(LoadReport("dir", "db", 1, 9, touched=touched), "dir"))

    def materialized(self) -> list[dg.AssetMaterialization]:
        """Dumps and replicas."""
        return [one for one in self.logged() if not one.asset_key.path[-1].endswith("__source")]

    def logged(self) -> list[dg.AssetMaterialization]:
        assert self.result
        events = self.result.filter_events(lambda event: event.is_step_materialization)
        return [event.step_materialization_data.materialization for event in events]

    def observed(self) -> list[str]:
        assert self.result
        events = self.result.filter_events(lambda event: event.is_asset_observation)
        return [event.asset_observation_data.asset_observation.asset_key.path[-1] for event in events]

    def partitions(self, table: str = "parts") -> list[str]:
        return list(self.instance.get_dynamic_partitions(str(NAMES.partitions("db", table).name)))


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Recorded(instance)


def test_dump_is_logged_before_the_replica(recorded: Recorded) -> None:
    recorded.record(Touched("plain", "plain", 7), Touched("parts", "parts", 8, partitions=("ds=1|2",)))
    assert [(event.asset_key.path[-1], event.partition) for event in recorded.materialized()] == [
        ("plain__dump", None),
        ("plain", None),
        ("parts__dump", "ds=1%7C2"),
        ("parts", "ds=1%7C2"),
    ]
    assert recorded.partitions() == ["ds=1%7C2"]
    assert [(event.tags or {})["dagster/data_version"] for event in recorded.materialized()] == ["7", "7", "8", "8"]


@pytest.mark.parametrize("dumps", [True, False])
def test_what_a_window_brought_is_out_of_date_without_an_entry_of_its_dump(
    dumps: bool, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So one step logs both: Dagster takes what a replica depends on for a new input where it has no entry."""
    log_event = dg.OpExecutionContext.log_event

    def log(context: dg.OpExecutionContext, event: Any) -> None:
        if dumps or not event.asset_key.path[-1].endswith("__dump"):
            log_event(context, event)

    monkeypatch.setattr(dg.OpExecutionContext, "log_event", log)
    recorded.record(Touched("plain", "plain", 7), Touched("parts", "parts", 8, partitions=("ds=1",)))
    keys: dict[str, tuple[Column, ...]] = {"plain": (), "parts": (Column("ds", "string"),)}
    tables = tuple(CatalogTable(name, False, "", "", (), found, "", "") for name, found in keys.items())
    catalog = Catalog((CatalogDatabase("db", "", "", "", tables, ()),))
    graph = build_defs(POLICY.model_copy(update={"name": "p", "databases": {"db": "db"}}), catalog).resolve_asset_graph()
    shown = CachingStaleStatusResolver(recorded.instance, graph, LoadingContextForTest(recorded.instance))
    found = {shown.get_status(NAMES.table("db", "plain", "load")), shown.get_status(NAMES.table("db", "parts", "load"), "ds=1")}
    assert found == {StaleStatus.FRESH if dumps else StaleStatus.STALE}


def test_a_source_is_logged_once_before_its_dumps(recorded: Recorded) -> None:
    recorded.record(Touched("parts", "parts", 8, partitions=("ds=1", "ds=2")), Touched("gone", "gone", 9, dropped=True))
    assert [event.asset_key.path[-1] for event in recorded.logged()] == [
        "gone",
        "parts__source",
        *["parts__dump", "parts"] * 2,
    ]
    assert recorded.logged()[1].metadata["evid"].value == 8


def test_a_partition_s_entry_says_whose_it_is(recorded: Recorded) -> None:
    """A table's page shows the last entry of any of its partitions."""
    recorded.record(Touched("parts", "parts", 8, partitions=("ds=1|2", "ds=3")), Touched("plain", "plain", 8))
    recorded.record(Touched("parts", "parts", 9, dropped_partitions=("ds=1|2",)))
    (dropped,) = recorded.materialized()
    assert dropped.metadata["state"].value == "partition ds=1|2 dropped"
    recorded.record(Touched("parts", "parts", 10, partitions=("ds=3",)), Touched("plain", "plain", 10, dropped=True))
    found = {one.asset_key.path[-1]: one.metadata for one in recorded.materialized()}
    assert found["parts"]["partition"].value == "ds=3"
    assert found["plain"]["state"].value == "dropped"


def test_a_partition_s_entry_names_its_load(recorded: Recorded) -> None:
    task = CopyTask(FileRef("hdfs://s/f", "aa"), "hdfs://t/f", 8, "db.parts/ds=1")
    copies = Copies([CopyResult(task, "source", 5, Proof("CRC32C", "1234abcd", True), 1)])
    touched = (Touched("parts", "parts", 8, partitions=("ds=1", "ds=2")),)
    report = LoadReport("dir", "db", 1, 9, copies=copies, touched=touched, kept="hdfs://d/r.parquet", window="1-9")
    recorded.run(lambda recorder: recorder.record(report, "dir"))
    first, second = (
        {name: value.value for name, value in event.metadata.items()}
        for event in recorded.materialized()
        if event.asset_key.path[-1] == "parts"
    )
    same = {"directory": "dir", "window": "1-9", "report": "hdfs://d/r.parquet", "evid": 8}
    assert first == {**same, "partition": "ds=1", "files": 1, "bytes": 5, "proof": "1 by CRC32C"}
    assert second == {**same, "partition": "ds=2", "files": 0, "bytes": 0}


def test_events_are_bounded_and_the_rest_is_counted(recorded: Recorded) -> None:
    many = tuple(f"ds={n:04d}" for n in range(MOST_EVENTS + 50))
    recorded.record(Touched("parts", "parts", 7, partitions=many), Touched("plain", "plain", 8))
    assert len(recorded.materialized()) == 2 * MOST_EVENTS
    assert recorded.observed() == ["parts", "plain"]
    assert recorded.partitions() == list(many)


def test_a_partitioned_table_without_changed_partitions_is_observed(recorded: Recorded) -> None:
    recorded.record(Touched("parts", "parts", 7))
    assert recorded.materialized() == []
    assert recorded.observed() == ["parts"]


def test_dropped_partitions_and_tables_are_forgotten(recorded: Recorded) -> None:
    for table in ("parts", "other"):
        recorded.record(Touched(table, table, 7, partitions=("ds=1", "ds=2...3")))
    recorded.record(Touched("parts", "parts", 8, dropped_partitions=("ds=2...3",)), Touched("other", "other", 8, dropped=True))
    assert recorded.partitions() == ["ds=1"]
    assert recorded.partitions("other") == []
    assert [(event.asset_key.path[-1], event.partition) for event in recorded.materialized()] == [
        ("parts", "ds=2%2E%2E%2E3"),
        ("other", "ds=1"),
        ("other", "ds=2%2E%2E%2E3"),
        ("other", None),
    ]


def test_the_last_entry_of_a_dropped_table_is_its_own(recorded: Recorded) -> None:
    """However many partitions it had: retention goes by it."""
    many = tuple(f"ds={n:04d}" for n in range(MOST_EVENTS + 50))
    recorded.run(lambda recorder: recorder.register("parts", many))
    recorded.record(Touched("parts", "parts", 8, dropped=True), Touched("other", "other", 8, dropped=True))
    assert len(recorded.materialized()) == MOST_EVENTS
    assert [(event.asset_key.path[-1], event.partition) for event in recorded.materialized()[-2:]] == [
        ("parts", None),
        ("other", None),
    ]


def test_a_partition_that_comes_again_does_not_show_what_was_before_its_drop(recorded: Recorded) -> None:
    """Dagster keeps its events: the drop is the newest of them until the partition is replicated anew."""

    def shown() -> str | None:
        tags = recorded.instance.event_log_storage.get_latest_tags_by_partition(
            NAMES.table("db", "parts", "load"), dg.DagsterEventType.ASSET_MATERIALIZATION, ["dagster/data_version"]
        )
        return tags["ds=1"]["dagster/data_version"]

    recorded.record(Touched("parts", "parts", 7, partitions=("ds=1",)))
    assert shown() == "7"
    recorded.record(Touched("parts", "parts", 8, dropped_partitions=("ds=1",)))
    recorded.run(lambda recorder: recorder.register("parts", ["ds=1"]))
    assert shown() == "dropped at 8"
    recorded.record(Touched("parts", "parts", 9, partitions=("ds=1",)))
    assert shown() == "9"


def test_the_newest_partitions_of_a_table_are_known(recorded: Recorded) -> None:
    first = [f"ds={n:06d}" for n in range(MOST_PARTITIONS + 5)]
    recorded.run(lambda recorder: recorder.register("parts", first))
    assert recorded.partitions() == first[5:]
    recorded.run(lambda recorder: recorder.register("parts", ["ds=z1", "ds=z2"]))
    assert recorded.partitions() == [*first[7:], "ds=z1", "ds=z2"]


def test_partitions_that_a_run_is_to_repair_stay_known(recorded: Recorded) -> None:
    """Dagster looks up a run's range of them when it starts, and when a step ends."""
    first = [f"ds={n:06d}" for n in range(MOST_PARTITIONS)]
    recorded.run(lambda recorder: recorder.register("parts", first))
    chosen = {"dagster/asset_partition_range_start": first[1], "dagster/asset_partition_range_end": first[3]}
    run = create_run_for_test(recorded.instance, tags=chosen)
    recorded.run(lambda recorder: recorder.register("parts", [f"ds=z{n}" for n in range(6)]))
    assert recorded.partitions()[:4] == [*first[1:4], first[6]]
    recorded.instance.report_run_failed(run)
    recorded.run(lambda recorder: recorder.register("parts", ["ds=z6"]))
    assert recorded.partitions()[:1] == [first[7]]


def test_partitions_of_a_dropped_table_are_forgotten_together(tmp_path: Path) -> None:
    deleted: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.startswith("DELETE FROM dynamic_partitions"):
            deleted.append(statement)

    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        recorded = Recorded(instance)
        recorded.run(lambda recorder: recorder.register("parts", [f"ds={n:06d}" for n in range(MOST_PARTITIONS)]))
        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", note)
        try:
            recorded.run(lambda recorder: recorder.sync("parts", []))
        finally:
            sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", note)
        assert recorded.partitions() == []
    assert 0 < len(deleted) <= 10


def test_sync_leaves_exactly_what_is_there(recorded: Recorded) -> None:
    recorded.run(lambda recorder: recorder.register("parts", ["ds=1", "ds=2"]))
    recorded.run(lambda recorder: recorder.sync("parts", ["ds=2", "ds=3...4"]))
    assert sorted(recorded.partitions()) == ["ds=2", partition_key("ds=3...4")]


def test_a_database_in_overflow_is_recorded_by_tables(recorded: Recorded) -> None:
    names = Names("p", frozenset({"db"}))

    def known() -> list[str]:
        return sorted(recorded.instance.get_dynamic_partitions("p.db:tables"))

    def load(recorder: Recorder) -> None:
        ours = Recorder(recorder.context, names, "db", ())
        ours.record(
            LoadReport(
                "dir",
                "db",
                1,
                9,
                touched=(
                    Touched("parts", "parts", 7, partitions=("ds=1", "ds=2"), dropped_partitions=("ds=3",)),
                    Touched("old", "old", 8, dropped=True),
                ),
            ),
            "dir",
        )
        ours.sync_tables(["parts", "plain"])

    recorded.instance.add_dynamic_partitions("p.db:tables", ["old"])
    recorded.run(load)
    assert known() == ["parts", "plain"]
    events = [(event.asset_key.path[-1], event.partition, event.description) for event in recorded.materialized()]
    assert events == [("db__tables", "old", "Dropped at event 8"), ("db__tables", "parts", None)]
    assert recorded.partitions("parts") == []
