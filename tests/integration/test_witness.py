"""The witness on real servers: equal under writes, and red within a round for faults that everything else called right.

The faults are put back here one by one, in whatever part of the replication now keeps them out, and the witness is not told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import dagster as dg
import pytest

from hive_replication.connect import connect
from hive_replication.load.plan import gate
from hive_replication.metastore.notification_log import NotificationLog
from hive_replication.metastore.partitions import Partitions
from hive_replication.metastore.types import NotificationEvent, copy_of
from hive_replication.verify.witness import Round, witness
from repl_assets.catalog.keys import Window
from tests.project import Project
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    """A table with and one without partitions and a view, replicated."""
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    warehouse.load_data("plain", "1\n")
    for day in ("1", "2"):
        warehouse.load_data(f"parts PARTITION (ds='{day}')", "1\n")
    warehouse.replicate()
    return warehouse


def look(warehouse: Warehouse, earlier: Round | None = None) -> Round:
    """A round; it knows of the one before what Dagster keeps of it."""
    connection = warehouse.connection
    remembered = earlier.differences if earlier else ()
    return witness(connection.source, connection.target, warehouse.database, earlier=remembered)


def wrong(found: Round) -> set[tuple[str, str, str]]:
    return {(one.table, one.partition, one.text) for one in found.wrong}


ABSENT, EXTRA = "is on the source, not on the target", "is on the target, not on the source"


def test_a_replica_that_is_right(replicated: Warehouse) -> None:
    found = look(replicated)
    assert not found.differences
    assert (found.counts.tables, found.counts.partitions, found.counts.files) == ((3, 3), (2, 2), (3, 3))
    assert found.digests[0] == found.digests[1] != "0" * 16
    assert (found.counts.described, found.counts.directories, found.counts.checksums) == (2, 3, 3)


def test_what_waits_is_not_wrong_until_the_replica_claims_to_have_it(
    replicated: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    replicated.load_data("parts PARTITION (ds='3')", "1\n")
    replicated.load_data("plain", "2\n")
    before = look(replicated)
    assert not before.wrong
    assert {(one.table, one.partition) for one in before.waiting} == {("parts", "ds=3"), ("plain", "")}

    with monkeypatch.context() as patch:  # loads the window, and leaves its events out
        patch.setattr(gate, "applied", lambda *_, **__: "applied already (state id 1000000000000000)")
        replicated.replicate()
    replicated.load_data("parts PARTITION (ds='3')", "2\n")  # the table goes on being written
    replicated.load_data("plain", "3\n")
    after = look(replicated, before)
    assert {(table, partition) for table, partition, _ in wrong(after)} == {("parts", "ds=3"), ("plain", "")}
    assert look(replicated, after).wrong, "what was wrong once stays wrong until it is mended"


def test_a_table_renamed_into_the_policy_that_lost_a_partition(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A1: the catch-up of the rename ended without what its window held."""
    policy = warehouse.connection.source.policy.model_copy(update={"exclude": ("raw_*",)})
    mine = replace(warehouse, connection=connect(policy))
    mine.sql("CREATE TABLE plain (a INT)", "CREATE TABLE raw_t (a INT) PARTITIONED BY (p STRING)")
    mine.load_data("raw_t PARTITION (p='1')", "1\n")
    mine.replicate()
    assert not look(mine).differences
    mine.sql("ALTER TABLE raw_t RENAME TO t")
    mine.load_data("t PARTITION (p='2')", "1\n")
    added = Partitions.add_partitions

    def without_p2(self: Partitions, db: str, table: str, partitions: list) -> None:  # type: ignore[type-arg]
        added(self, db, table, [one for one in partitions if one.values != ["2"]])

    with monkeypatch.context() as patch:
        patch.setattr(Partitions, "add_partitions", without_p2)
        mine.replicate()
        mine.load(mine.dump(mine.status()).directory)
    assert wrong(look(mine)) & {("t", "", ABSENT), ("t", "p=2", ABSENT)}


def test_events_of_another_catalog_that_were_applied(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: a database of the same name there lost ``plain`` and got ``phantom``."""
    other = f"{replicated.database}x"
    made = replicated.hive.run([f"CREATE DATABASE {other}", f"CREATE TABLE {other}.plain (a INT)"])
    assert not [one.error for one in made if one.error]
    replicated.load_data("parts PARTITION (ds='1')", "2\n")
    replicated.replicate()
    done = replicated.hive.run([f"DROP TABLE {other}.plain", f"CREATE TABLE {other}.phantom (a INT)"])
    assert not [one.error for one in done if one.error]
    page = NotificationLog._page

    def of_any_catalog(self: NotificationLog, after: int, batch: int) -> list[NotificationEvent]:
        rows = page(self, after, batch)
        for row in rows:
            if row.dbName == other:
                row.dbName, row.message = replicated.database, row.message.replace(other, replicated.database)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(NotificationLog, "_page", of_any_catalog)
        replicated.replicate()
    assert {("plain", "", ABSENT), ("phantom", "", EXTRA)} & wrong(look(replicated))
    replicated.hive.run([f"DROP DATABASE {other} CASCADE"])


def test_a_table_that_the_policy_takes_in_later(warehouse: Warehouse) -> None:
    """A3: it has no event any more, and nothing bootstraps it."""
    policy = warehouse.connection.source.policy
    narrow = replace(warehouse, connection=connect(policy.model_copy(update={"exclude": ("late",)})))
    narrow.sql("CREATE TABLE plain (a INT)", "CREATE TABLE late (a INT)")
    narrow.replicate()
    assert not look(narrow).differences
    assert wrong(look(warehouse)) == {("late", "", ABSENT)}


def test_a_table_that_an_event_id_of_the_future_froze(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A5: later events of the table were skipped as applied."""
    replicated.load_data("plain", "2\n", name="lost")
    known = gate.applied

    def frozen(evid: int, **ids: int) -> str:
        return known(evid, **(ids | {"object_id": 10**15}))

    with monkeypatch.context() as patch:
        patch.setattr(gate, "applied", frozen)
        replicated.replicate()
    assert wrong(look(replicated)) == {("plain", "", "file lost is on the source only")}


def test_a_replica_that_a_foreign_name_in_a_message_renamed(replicated: Warehouse) -> None:
    """A10: the row was of ``plain``, both images in its message of ``stranger``."""
    target = replicated.connection.target.metastore
    renamed = copy_of(target.table(replicated.database, "plain"))
    assert renamed is not None
    renamed.tableName = "stranger"
    target.alter_table(replicated.database, "plain", renamed)
    assert wrong(look(replicated)) == {("plain", "", ABSENT), ("stranger", "", EXTRA)}


def test_damaged_and_missing_files_and_descriptions(replicated: Warehouse) -> None:
    target = replicated.connection.target
    (part,) = target.metastore.partitions(replicated.database, "parts", ["ds=1"])
    (file,) = target.storage.files(str(part.sd.location))
    target.storage.write(file.uri, b"7\n")  # as many bytes
    (other,) = target.metastore.partitions(replicated.database, "parts", ["ds=2"])
    (gone,) = target.storage.files(str(other.sd.location))
    target.storage.delete(gone.uri)
    changed = copy_of(target.metastore.table(replicated.database, "plain"))
    assert changed is not None
    changed.sd.cols[0].type = "bigint"
    target.metastore.alter_table(replicated.database, "plain", changed)
    found = {(table, partition): text for table, partition, text in wrong(look(replicated))}
    assert found.keys() == {("parts", "ds=1"), ("parts", "ds=2"), ("plain", "")}
    assert "checksum" in found["parts", "ds=1"]


def test_no_false_red_while_the_source_is_written(replicated: Warehouse) -> None:
    """And what is really wrong in a table that is written all the time is red in the second round at the latest."""
    ended, errors = threading.Event(), list[AssertionError]()

    def write() -> Iterator[Callable[[], object]]:
        for number in range(1_000):
            yield lambda n=number: replicated.load_data(f"parts PARTITION (ds='w{n % 7}')", f"{n}\n")
            yield lambda n=number: replicated.load_data("plain", f"{n}\n")
            yield lambda n=number: replicated.sql(f"ALTER TABLE parts DROP PARTITION (ds='w{(n + 3) % 7}')")

    def writing() -> None:
        for step in write():
            if ended.is_set():
                return
            try:
                step()
            except AssertionError as error:
                errors.append(error)
                return

    writer = threading.Thread(target=writing)
    writer.start()
    try:
        last = look(replicated)
        for _ in range(6):
            assert not wrong(last)
            replicated.replicate()
            last = look(replicated, last)
        replicated.connection.target.metastore.drop_partitions(replicated.database, "parts", ["ds=1"])
        for _ in range(2):
            last = look(replicated, last)
            replicated.replicate()
        assert ("parts", "ds=1", ABSENT) in wrong(look(replicated, last))
    finally:
        ended.set()
        writer.join()
    assert not errors


def test_the_check_after_a_window_and_by_its_job(replicated: Warehouse) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        project = Project(replicated, instance)
        replicated.load_data("plain", "2\n")
        project.next_window()
        passed = project.check(project.database("load"), "same_objects")
        assert passed
        assert passed.passed
        assert (passed.metadata or {})["tables at target"].value == 3
        replicated.connection.target.metastore.drop_partitions(replicated.database, "parts", ["ds=1"])
        job = project.defs.resolve_job_def("same_objects")
        assert job.execute_in_process(instance=instance).success
        failed = project.check(project.database("load"), "same_objects")
        assert failed
        assert not failed.passed
        assert failed.description == f"parts/ds=1: {ABSENT}"
        project.window(Window(None, replicated.applied() or 0))  # an explicit bootstrap mends it
        again = project.check(project.database("load"), "same_objects")
        assert again
        assert again.passed
