"""The witness on real servers: equal under writes, and red within a round for faults that everything else called right.

The faults are put back here one by one, in whatever part of the replication now keeps them out, and the witness is not told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import dagster as dg
import pytest
from hive_metastore.ttypes import Catalog, CreateCatalogRequest, DropCatalogRequest

from hive_replication.connect import connect
from hive_replication.dump.incremental.newly_included_tables import JoinedTables
from hive_replication.events import decoders_by_event_type, described_objects
from hive_replication.load.plan import gate
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.notification_log import NotificationLog
from hive_replication.metastore.partitions import Partitions
from hive_replication.metastore.types import Database, NotificationEvent, Table, copy_of
from hive_replication.repair import repair
from hive_replication.verify.witness import Round, witness
from repl_assets.catalog.keys import Window
from tests.integration.test_policy_change import state, step
from tests.origin import TEXT
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


def test_a_property_of_the_database_that_never_came(replicated: Warehouse) -> None:
    """As where two wrote a database at the same moment, and the log told of one; what the replica alone has is its own."""
    target = replicated.connection.target.metastore
    replicated.sql(f"ALTER DATABASE {replicated.database} SET DBPROPERTIES ('note'='3', 'colour'='blue')")
    waits = look(replicated)
    assert ([one.table for one in waits.waiting], waits.wrong) == (["", ""], [])
    replicated.replicate()
    assert not look(replicated).differences
    made = copy_of(target.database(replicated.database))
    made.parameters = {**{key: value for key, value in made.parameters.items() if key != "note"}, "colour": "red", "own": "1"}
    made.ownerName = "somebody"
    target.alter_database(replicated.database, made)
    assert wrong(found := look(replicated)) == {
        ("", "", "owner is 'somebody' on the target, 'hive' on the source"),
        ("", "", "parameter colour is 'red' on the target, 'blue' on the source"),
        ("", "", "parameter note is absent on the target, '3' on the source"),
    }
    assert wrong(look(replicated, found)) == wrong(found)
    repair(replicated.connection, replicated.database)
    assert not look(replicated).differences


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


class _Every(str):
    """The name of every catalog."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)


@contextmanager
def another_catalog(warehouse: Warehouse) -> Iterator[tuple[Metastore, str]]:
    """The source's metastore with a catalog that has a database of the same name, without tables, below its directory."""
    metastore, other = warehouse.connection.source.metastore, f"c{warehouse.database}"
    home = metastore.database(warehouse.database)
    assert home is not None
    place = f"{home.locationUri}/{other}"
    metastore.call("create_catalog", lambda client: client.create_catalog(CreateCatalogRequest(Catalog(other, "", place))))
    database = Database(name=warehouse.database, parameters={}, locationUri=f"{place}/db", catalogName=other)
    metastore.call("create_database", lambda client: client.create_database(database))
    try:
        yield metastore, other
    finally:
        whole = f"@{other}#{warehouse.database}"
        metastore.call("drop_database", lambda client: client.drop_database(whole, True, True))
        metastore.call("drop_catalog", lambda client: client.drop_catalog(DropCatalogRequest(other)))


def test_events_of_another_catalog_that_were_applied(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A2: a database of the same name there lost ``plain`` and got ``phantom``, and nobody asked for the catalog."""

    def made(name: str) -> Table:
        sd = copy_of(TEXT)
        sd.location = f"{place}/{name}"
        kind = {"tableType": "EXTERNAL_TABLE", "catName": other}
        return Table(name, replicated.database, owner="hive", sd=sd, partitionKeys=[], parameters={"EXTERNAL": "TRUE"}, **kind)

    with another_catalog(replicated) as (metastore, other):
        place = f"{metastore.database(replicated.database).locationUri}/{other}/db"  # type: ignore[union-attr]
        for name in ("plain", "phantom"):
            metastore.call("create_table", lambda client, table=made(name): client.create_table(table))
        replicated.replicate()
        assert not look(replicated).differences
        metastore.call("drop_table", lambda client: client.drop_table(f"@{other}#{replicated.database}", "plain", True))
        metastore.call("create_table", lambda client: client.create_table(made("later")))
        with monkeypatch.context() as patch:
            for module in (decoders_by_event_type, described_objects):
                patch.setattr(module, "CATALOG", _Every())
            report = replicated.replicate()
        assert (report.held, replicated.applied()) == ((), report.to_evid)
        assert wrong(look(replicated)) == {("plain", "", ABSENT), ("later", "", EXTRA)}


def test_a_table_that_the_policy_takes_in_later_and_nothing_bootstraps(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A3: windows went on as if the replica had it."""
    narrow, wide = warehouse.with_policy(exclude=("late",)), warehouse.with_policy()
    narrow.sql("CREATE TABLE plain (a INT)", "CREATE TABLE late (a INT)")
    narrow.replicate()
    assert not look(narrow).differences
    wide.load_data("plain", "1\n")
    with monkeypatch.context() as patch:
        patch.setattr(JoinedTables, "dumped", lambda *_: {})
        report = step(wide)
    assert (report.held, state(wide).held, state(wide).applied) == ((), {}, report.to_evid)
    source = wide.connection.source
    assert state(wide).scope == source.policy.scope(wide.database, acid=source.acid).text
    assert wrong(look(wide)) == {("late", "", ABSENT)}


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


def test_a_replica_that_a_foreign_name_in_a_message_renamed(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A10: the row is of ``plain``, both images in its message are of ``stranger``, and nobody compared them."""
    replicated.sql("ALTER TABLE plain SET TBLPROPERTIES ('colour'='red')")
    page = NotificationLog._page

    def tampered(self: NotificationLog, after: int, batch: int) -> list[NotificationEvent]:
        rows = page(self, after, batch)
        for row in rows:
            if (row.dbName, row.eventType) == (replicated.database, "ALTER_TABLE"):
                row.message = row.message.replace(r"\"plain\"", r"\"stranger\"")
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(NotificationLog, "_page", tampered)
        dump = replicated.dump(replicated.applied())
    with monkeypatch.context() as patch:
        patch.setattr(decoders_by_event_type, "mismatch", lambda *_: "")
        report = replicated.load(dump.directory)
    assert (report.held, replicated.applied()) == ((), report.to_evid)
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
        for change in write():
            if ended.is_set():
                return
            try:
                change()
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
