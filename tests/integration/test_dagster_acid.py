"""Transactional tables in Dagster, on metastores 4.2.0."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import dagster as dg
import pytest

from hive_replication.events import transactions
from hive_replication.failover.role import readiness
from hive_replication.lag import Lag, LagReader
from hive_replication.metastore.types import Database
from repl_assets.catalog.keys import Window
from tests.ledger import Ledger, partition_of
from tests.policy_sensor import Sensor
from tests.project import Project
from tests.writers import Writer

pytestmark = pytest.mark.servers


def test_a_commit_is_the_materialization(ledger: Ledger) -> None:
    """Of each table and partition that it wrote to, with write id and transaction; a partition is repaired from its page."""
    source = ledger.connection.source
    source.metastore.add_partitions(ledger.database, "p", [partition_of(ledger, day) for day in "12"])
    with dg.DagsterInstance.ephemeral() as instance:
        project = Project(ledger, instance)
        project.window(Window(None, 1))
        first, second = ledger.begin(), ledger.begin()
        first.insert("a", "1\n")
        second.insert("p", "2\n", "ds=1")
        second.insert("a", "2\n")
        first.commit()
        second.commit()
        committed = source.metastore.current_event_id()
        project.next_window()
        (newest, *_) = project.events(project.table("a"))
        assert newest.metadata["write id"].value == 2
        assert newest.metadata["evid"].value == committed
        assert f"| 2 | {second.transaction} | {committed} |\n| 1 | {first.transaction} |" in str(
            newest.metadata["transactions"].value
        )
        (newest, *_) = project.events(project.table("p"))
        assert (newest.partition, newest.metadata["write id"].value) == ("ds=1", 1)
        assert all("write id" not in made.metadata for made in project.events(project.table("b")))

        target = ledger.connection.target
        (part,) = target.metastore.partitions(ledger.database, "p", ["ds=1"])
        for file in target.storage.files(str(part.sd.location)):
            target.storage.write(file.uri, b"broken\n")
        answers = project.checked("replica_equal")
        assert [table for (table, _), answer in answers.items() if not answer.passed] == ["p"]
        project.run(project.table("p"), partition_key="ds=1")
        assert all(answer.passed for answer in project.checked("replica_equal").values())


def test_commits_that_a_large_load_leaves_out_are_recorded_by_a_job(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave no trace in the target's metadata, so the load's observation tells of them."""
    monkeypatch.setattr("repl_assets.recording.recorder.MOST_EVENTS", 1)
    source = ledger.connection.source
    source.metastore.add_partitions(ledger.database, "p", [partition_of(ledger, day) for day in "123"])
    with dg.DagsterInstance.ephemeral() as instance:
        project = Project(ledger, instance)
        project.window(Window(None, 1))
        project.recorded()
        before = len(project.events(project.table("p")))
        writer = ledger.begin()
        for day in "12":
            writer.insert("p", f"{day}\n", f"ds={day}")
        writer.insert("a", "1\n")
        writer.commit()
        project.next_window()
        assert project.recorded() == 1
        new = project.events(project.table("p"))[:-before]
        newest = project.events(project.table("a"))[0]
        assert sorted(str(event.partition) for event in new) == ["ds=1", "ds=2"]
        for event in (*new, newest):
            assert event.metadata["write id"].value == 1
            assert str(writer.transaction) in str(event.metadata["transactions"].value)
        assert project.recorded() == 0


@pytest.fixture
def watched(ledger: Ledger) -> Iterator[Sensor]:
    """The sensor on a database that is replicated."""
    with dg.DagsterInstance.ephemeral() as instance:
        sensor = Sensor(ledger, instance)
        sensor.replicate()
        yield sensor


def lag_of(sensor: Sensor) -> Lag:
    (found,) = LagReader(sensor.connection.source, sensor.connection.target).read()
    return found


@pytest.mark.parametrize("end", [Writer.commit, Writer.abort])
def test_the_end_of_a_transaction_is_work(watched: Sensor, ledger: Ledger, end: Callable[[Writer], None]) -> None:
    """A window ends between an INSERT's write id and its commit, which brings its files: nothing else is in the log."""
    writer = ledger.begin()
    writer.lock("a")
    writer.insert("a", "1\n")
    assert watched.run(watched.request()).success
    applied = ledger.applied()
    assert (lag_of(watched).waiting, watched.reason().startswith("no events")) == (0, True)
    ledger.begin().commit()  # of no database
    end(writer)
    waits = lag_of(watched)
    assert (waits.waiting, waits.seconds_behind is not None and waits.seconds_behind >= 0) == (1, True)
    assert "1 event would be lost" in readiness(waits)
    request = watched.request(event_ttl=0.0)
    assert ledger.applied() == applied, "the log was not passed over"
    assert watched.run(request).success
    assert ledger.files(source=False) == (ledger.files(source=True) if end is Writer.commit else {})
    assert not ledger.connection.target.metastore.write_ids(ledger.database, ["a"])["a"].open
    assert (lag_of(watched).waiting, readiness(lag_of(watched))[:6]) == (0, "ready:")
    assert watched.reason().startswith("no events")


def test_an_idle_replica_with_an_open_transaction_is_read_on_by_a_run(
    watched: Sensor,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Hive 4.0 names no databases, and knows of no commit without rows: it is not passed over all the same."""
    monkeypatch.setattr(transactions, "_databases", lambda *_: None)
    writer = ledger.begin()
    writer.write_id("a")
    assert watched.run(watched.request()).success
    writer.commit()
    watched.source.create_database(Database(name=f"{ledger.database}_other", parameters={}))
    assert watched.reason().startswith("no events")
    target = ledger.connection.target.metastore
    assert target.write_ids(ledger.database, ["a"])["a"] != ledger.write_ids(source=True)
    watched.cursor = None
    assert watched.run(watched.request(event_ttl=0.0)).success
    assert target.write_ids(ledger.database, ["a"])["a"] == ledger.write_ids(source=True)


def test_a_commit_of_hive_4_0_is_work_of_the_databases_that_it_wrote_to(
    watched: Sensor,
    ledger: Ledger,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "_databases", lambda *_: None)
    writer = ledger.begin()
    writer.insert("a", "1\n")
    assert watched.run(watched.request()).success
    ledger.begin().commit()
    assert (lag_of(watched).waiting, watched.reason().startswith("no events")) == (0, True)
    writer.commit()
    assert lag_of(watched).waiting == 1
    assert watched.run(watched.request()).success
    assert ledger.files(source=False) == ledger.files(source=True) != {}
