"""Dagster's assets on real servers, each run in this process: bootstrap, windows, repairs, checks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from repl_assets.catalog.keys import Window, partition_key
from repl_assets.recording.recorder import Recorder
from tests.project import Project
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def project(warehouse: Warehouse) -> Iterator[Project]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Project(warehouse, instance)


@pytest.fixture
def replicated(project: Project) -> Project:
    """A table with and one without partitions, bootstrapped by Dagster."""
    project.warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE VIEW joined AS SELECT plain.a, ds FROM plain JOIN parts ON plain.a = parts.a",
    )
    project.warehouse.load_data("plain", "1\n")
    for day in ("1", "2", "a|b...c/d"):
        project.warehouse.load_data(f"parts PARTITION (ds='{day}')", "1\n")
    project.window(Window(None, 1))
    return project


def test_bootstrap(replicated: Project) -> None:
    replicated.warehouse.assert_equal()
    (made,) = replicated.events(replicated.database("load"))
    assert made.partition == "bootstrap-1"
    assert made.metadata["files"].value == 4
    assert made.metadata["files by threads"].value == 4
    assert sorted(replicated.partitions("parts")) == ["ds=1", "ds=2", "ds=a%7Cb%2E%2E%2Ec%2Fd"]
    assert {event.partition for event in replicated.events(replicated.table("parts"))} == set(replicated.partitions("parts"))
    assert [event.partition for event in replicated.events(replicated.table("plain"))] == [None]
    view = next(spec for spec in replicated.defs.resolve_all_asset_specs() if spec.key == replicated.table("joined"))
    read = [replicated.table("joined", "dump"), replicated.table("parts"), replicated.table("plain")]
    assert sorted(dep.asset_key for dep in view.deps) == sorted(read)
    assert replicated.run(replicated.table("joined")).success
    assert replicated.check(replicated.database("load"), "files_proven").passed
    assert replicated.check(replicated.database("load"), "nothing_held").passed


def test_window(replicated: Project) -> None:
    warehouse = replicated.warehouse
    warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    warehouse.connection.source.metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    before = warehouse.applied()
    replicated.next_window()
    warehouse.assert_equal()
    made = replicated.events(replicated.database("load"))[0]
    assert made.metadata["events"].value == 2  # the new partition with its file, and the drop
    assert made.metadata["operations"].value == 2
    assert made.metadata["copied (MB)"].value == 0.000002
    assert {"plan (s)", "copy (s)", "apply (s)", "duration (s)"} <= made.metadata.keys()
    link = f"[parts](/assets/default/{warehouse.database}/parts?view=partitions&partition=ds%3D3)"
    assert link in str(made.metadata["changed"].value)
    assert {name for name, value in made.metadata.items() if isinstance(value, dg.JsonMetadataValue)} == set()
    assert made.metadata["from_evid"].value == before
    assert made.metadata["to_evid"].value == warehouse.applied()
    assert made.metadata["behind (s)"].value == 0
    assert "ds=3" in replicated.partitions("parts")
    assert "ds=1" not in replicated.partitions("parts")
    newest = replicated.events(replicated.table("parts"))[0]
    assert newest.partition == "ds=3"
    assert replicated.events(replicated.table("parts", "dump"))[0].partition == "ds=3"


def test_a_partition_that_is_dropped_and_comes_again(replicated: Project) -> None:
    """Its page never shows what was before the drop as what is there now."""
    warehouse, metastore = replicated.warehouse, replicated.warehouse.connection.source.metastore

    def shown() -> list[str]:
        made = [event for event in replicated.events(replicated.table("parts")) if event.partition == "ds=1"]
        return [str((event.tags or {})["dagster/data_version"]) for event in made]

    (first,) = shown()
    metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    dropped = metastore.current_event_id()
    replicated.next_window()
    assert shown() == [f"dropped at {dropped}", first]
    warehouse.load_data("parts PARTITION (ds='1')", "4\n")
    replicated.next_window()
    again = int(shown()[0])
    assert again > dropped
    assert "ds=1" in replicated.partitions("parts")
    metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    warehouse.load_data("parts PARTITION (ds='1')", "5\n")
    replicated.run(replicated.table("parts"), partition_key="ds=1")  # without the window that dropped it
    assert int(shown()[0]) > again
    warehouse.assert_equal()


def test_a_database_in_overflow(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tables are partitions of one asset: recorded by windows, repaired one by one."""
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 2)
    project.settings = {"most_tables": 0}
    warehouse, tables = project.warehouse, project.names.tables(project.warehouse.database)
    warehouse.sql(
        *(f"CREATE TABLE {name} (a INT)" for name in ("a", "b", "c")), "CREATE TABLE d (a INT) PARTITIONED BY (ds STRING)"
    )
    warehouse.load_data("a", "1\n")
    warehouse.load_data("d PARTITION (ds='1')", "1\n")
    project.window(Window(None, 1))

    def known() -> list[str]:
        return sorted(project.instance.get_dynamic_partitions(str(project.names.table_partitions(warehouse.database).name)))

    assert known() == ["a", "b", "c", "d"]
    assert len(project.events(tables)) == 2
    assert project.recorded() == 1
    assert sorted(str(event.partition) for event in project.events(tables)) == ["a", "b", "c", "d"]
    target = warehouse.connection.target
    (file,) = target.storage.files(str(target.metastore.table(warehouse.database, "a").sd.location))  # type: ignore[union-attr]
    target.storage.write(file.uri, b"damaged\n")
    assert project.run(tables, partition_key="a").success
    warehouse.assert_equal()
    assert project.events(tables)[0].metadata["files"].value == 1
    warehouse.sql("DROP TABLE b")
    project.next_window()
    assert known() == ["a", "c", "d"]
    link = f"[b](/assets/default/{warehouse.database}__tables?view=partitions&partition=b)"
    assert link in str(project.events(project.database("load"))[0].metadata["changed"].value)


@pytest.mark.parametrize("partition", ["ds=2", "ds=a|b...c%2Fd"])
def test_repair_of_a_partition(replicated: Project, partition: str) -> None:
    warehouse = replicated.warehouse
    storage = warehouse.connection.target.storage
    names = warehouse.connection.target.metastore.partitions(warehouse.database, "parts", [partition])
    (damaged,) = storage.files(next(iter(names)).sd.location)
    storage.write(damaged.uri, b"damaged\n")
    result = replicated.run(replicated.table("parts"), partition_key=partition_key(partition))
    warehouse.assert_equal()
    (made,) = result.asset_materializations_for_node(result.get_asset_materialization_events()[0].node_name)[-1:]
    assert made.metadata["files"].value == 1
    dumped = replicated.events(replicated.table("parts", "dump"))[0].metadata["to_evid"].value
    assert made.metadata["from_evid"].value <= dumped == made.metadata["to_evid"].value
    assert (made.tags or {})["dagster/data_version"] == str(dumped)
    dump, load = (
        replicated.instance.fetch_materializations(replicated.table("parts", stage), limit=1).records[0]
        for stage in ("dump", "load")
    )
    assert dump.partition_key == load.partition_key == partition_key(partition)
    assert dump.storage_id < load.storage_id


def test_repair_with_its_dump_in_one_run(replicated: Project) -> None:
    before = len(replicated.events(replicated.table("plain", "dump")))
    replicated.run(replicated.table("plain", "dump"), replicated.table("plain"))
    assert len(replicated.events(replicated.table("plain", "dump"))) == before + 1


def test_repair_of_a_whole_table_brings_new_partitions_and_drops_others(replicated: Project) -> None:
    warehouse = replicated.warehouse
    warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    warehouse.connection.source.metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    first, *_, last = replicated.partitions("parts")
    replicated.run(replicated.table("parts"), tags={ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last})
    warehouse.assert_equal()
    assert sorted(replicated.partitions("parts")) == ["ds=2", "ds=3", "ds=a%7Cb%2E%2E%2Ec%2Fd"]
    replicated.next_window()
    warehouse.assert_equal()


def test_repair_tells_what_the_events_before_it_changed(replicated: Project) -> None:
    warehouse = replicated.warehouse
    warehouse.load_data("parts PARTITION (ds='2')", "2\n")
    warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    warehouse.connection.source.metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    replicated.run(replicated.table("parts"), partition_key="ds=2")
    assert sorted(replicated.partitions("parts")) == ["ds=2", "ds=3", "ds=a%7Cb%2E%2E%2Ec%2Fd"]
    newest = {event.partition: event for event in reversed(replicated.events(replicated.table("parts")))}
    assert "evid" in newest["ds=3"].metadata
    assert "evid" not in newest["ds=2"].metadata  # the repair itself is the newest
    replicated.next_window()
    warehouse.assert_equal()


def test_tables_that_the_definitions_do_not_know(replicated: Project) -> None:
    """They are replicated and recorded at once; their pages come with the next reload and show it."""
    loaded, warehouse = replicated.defs, replicated.warehouse
    warehouse.sql("CREATE TABLE late (a INT)", "CREATE TABLE days (a INT) PARTITIONED BY (ds STRING)")
    warehouse.sql("CREATE TABLE empty (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("late", "1\n")
    warehouse.load_data("days PARTITION (ds='1')", "1\n")
    assert replicated.next_window(defs=loaded).success
    warehouse.assert_equal()
    assert replicated.partitions("days") == ["ds=1"]
    assert replicated.instance.get_materialized_partitions(replicated.table("days")) == {"ds=1"}
    assert [event.partition for event in replicated.events(replicated.table("late"))] == [None]
    assert replicated.events(replicated.table("empty")) == []
    assert replicated.run(replicated.table("days"), partition_key="ds=1").success


def test_what_a_large_load_leaves_out_is_recorded_by_a_job(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 3)
    monkeypatch.setattr("repl_assets.steps.record_rest.MOST_OBJECTS", 4)
    warehouse, days = project.warehouse, [f"ds={n}" for n in range(8)]
    warehouse.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)", "CREATE TABLE plain (a INT)")
    warehouse.sql("ALTER TABLE parts ADD " + " ".join(f"PARTITION (ds='{n}')" for n in range(8)))
    project.window(Window(None, 1))
    assert len(project.events(project.table("parts"))) == 3
    assert project.recorded() == 2  # runs: four partitions, then the last one and the table
    for key in (project.table("parts"), project.table("parts", "dump")):
        assert sorted(str(event.partition) for event in project.events(key)) == days
    assert [event.partition for event in project.events(project.table("plain"))] == [None]
    entries = [event.metadata for event in project.events(project.table("parts")) + project.events(project.table("plain"))]
    assert {frozenset(one.keys() - {"partition"}) for one in entries} == {
        frozenset(("directory", "window", "report", "evid", "files", "bytes"))
    }

    for n in (2, 3, 4, 5, 6):
        warehouse.load_data(f"parts PARTITION (ds='{n}')", "1\n")
    warehouse.connection.source.metastore.drop_partitions(warehouse.database, "parts", ["ds=6"])
    project.next_window()
    assert project.recorded() == 1
    new = project.events(project.table("parts"))[: -len(days)]
    assert sorted(str(event.partition) for event in new) == ["ds=2", "ds=3", "ds=4", "ds=5", "ds=6"]
    assert [str(event.partition) for event in new if (event.description or "").startswith("Dropped")] == ["ds=6"]
    filled = [event.metadata for event in new if event.partition != "ds=6"]
    assert [(one["files"].value, str(one["proof"].value).split(" ", 1)[0]) for one in filled] == [(1, "1")] * 4
    assert len({one["report"].value for one in filled}) == 1
    assert project.recorded() == 0


def test_what_a_run_that_ended_after_its_load_changed_is_recorded_by_a_job(
    replicated: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = replicated.warehouse
    warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    warehouse.load_data("plain", "2\n")
    warehouse.connection.source.metastore.drop_partitions(warehouse.database, "parts", ["ds=1"])
    before = len(replicated.events(replicated.table("parts")))
    with monkeypatch.context() as patched:
        patched.delattr(Recorder, "record")
        assert not replicated.next_window(raise_on_error=False).success
    warehouse.assert_equal()
    assert replicated.recorded() == 1
    assert sorted(replicated.partitions("parts")) == ["ds=2", "ds=3", "ds=a%7Cb%2E%2E%2Ec%2Fd"]
    new = replicated.events(replicated.table("parts"))[:-before]
    assert {(event.partition, (event.description or "").startswith("Dropped")) for event in new} == {
        ("ds=3", False),
        ("ds=1", True),
    }
    assert len(replicated.events(replicated.table("plain"))) == 2
    assert replicated.recorded() == 0


def test_a_partition_that_the_source_does_not_have(replicated: Project) -> None:
    replicated.instance.add_dynamic_partitions(
        str(replicated.names.partitions(replicated.warehouse.database, "parts").name), ["ds=9"]
    )
    result = replicated.run(replicated.table("parts"), partition_key="ds=9", raise_on_error=False)
    assert not result.success
    (failure,) = result.get_step_failure_events()
    assert "has no partition ds=9" in failure.step_failure_data.user_failure_data.description


def test_rebuild(replicated: Project) -> None:
    warehouse = replicated.warehouse
    storage = warehouse.connection.target.storage
    location = warehouse.connection.target.metastore.table(warehouse.database, "plain").sd.location
    for file in storage.files(location):
        storage.write(file.uri, b"damaged\n")
    job = replicated.defs.resolve_job_def(f"rebuild_{warehouse.database}")
    result = job.execute_in_process(instance=replicated.instance)
    assert result.success
    warehouse.assert_equal()
    assert len(replicated.events(replicated.database("load"))) == 2
    # What a load answers is answered: Dagster shows answers that are older than the latest materialization as none.
    keys = [dg.AssetCheckKey(replicated.database("load"), name) for name in ("files_proven", "nothing_held")]
    latest = replicated.instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    assert [(latest[key].run_id, latest[key].evaluation.passed) for key in keys] == [(result.run_id, True)] * 2


def test_rebuild_makes_all_partitions_known(replicated: Project) -> None:
    """Also those that were replicated without this Dagster."""
    known = replicated.partitions("parts")
    name = str(replicated.names.partitions(replicated.warehouse.database, "parts").name)
    replicated.instance.delete_dynamic_partition(name, known[0])
    replicated.instance.add_dynamic_partitions(name, ["ds=gone"])
    job = replicated.defs.resolve_job_def(f"rebuild_{replicated.warehouse.database}")
    assert job.execute_in_process(instance=replicated.instance).success
    assert sorted(replicated.partitions("parts")) == sorted(known)


def test_load_of_a_window_takes_the_dump_that_is_there(replicated: Project) -> None:
    warehouse = replicated.warehouse
    warehouse.load_data("plain", "2\n")
    window = Window(warehouse.applied(), warehouse.connection.source.metastore.current_event_id())
    replicated.instance.add_dynamic_partitions(str(replicated.names.windows.name), [str(window)])
    result = replicated.run(replicated.database("load"), partition_key=str(window), raise_on_error=False)
    (failure,) = result.get_step_failure_events()
    assert "has no dump yet" in failure.step_failure_data.user_failure_data.description
    replicated.run(replicated.database("dump"), partition_key=str(window))
    replicated.run(replicated.database("load"), partition_key=str(window))
    warehouse.assert_equal()


def test_large_windows_are_copied_by_spark(replicated: Project) -> None:
    replicated.policy = replicated.policy.model_copy(update={"driver_max_files": 0})
    replicated.warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    run = replicated.next_window()
    replicated.warehouse.assert_equal()
    assert replicated.events(replicated.database("load"))[0].metadata["files by spark"].value == 1
    messages = [entry.user_message for entry in replicated.instance.all_logs(run.run_id)]
    assert any(re.search(r"Spark application local-\d+, master local\[", message) for message in messages)


def test_a_held_table_is_red_on_its_own_page_until_it_is_repaired(replicated: Project) -> None:
    """And its reason stands there, in the tags of the run, and in the check of the database until the repair."""
    warehouse = replicated.warehouse
    storage = warehouse.connection.source.storage
    location = str(warehouse.connection.source.metastore.table(warehouse.database, "plain").sd.location)  # type: ignore[union-attr]
    warehouse.load_data("plain", "2\n", name="vanishing")
    warehouse.load_data("parts PARTITION (ds='1')", "2\n")
    storage.delete(f"{location}/vanishing")
    run = replicated.next_window()
    assert run.success
    found = replicated.check(replicated.table("plain"), "not_held")
    assert found
    assert not found.passed
    assert "vanishing" in str(found.description)
    stored = replicated.instance.get_run_by_id(run.run_id)
    assert stored
    assert stored.tags["hive_replication/held"] == "plain"
    assert replicated.check(replicated.table("parts"), "not_held") is None  # it never was
    assert not replicated.check(replicated.database("load"), "nothing_held").passed  # type: ignore[union-attr]
    assert not replicated.check(replicated.database("load"), "files_proven").passed  # type: ignore[union-attr]

    job = replicated.defs.resolve_job_def(f"repair_{warehouse.database}")
    assert job.execute_in_process(instance=replicated.instance).success  # as the Launchpad offers it: all that are held
    assert replicated.check(replicated.table("plain"), "not_held").passed  # type: ignore[union-attr]
    for check in ("nothing_held", "files_proven"):
        assert replicated.check(replicated.database("load"), check).passed  # type: ignore[union-attr]
    warehouse.assert_equal()
