"""Transactional tables in Dagster, on metastores 4.2.0."""

from __future__ import annotations

import dagster as dg
import pytest

from repl_assets.catalog.keys import Window
from tests.integration.test_transactions import ledger  # noqa: F401 - a fixture
from tests.ledger import Ledger, partition_of
from tests.project import Project

pytestmark = pytest.mark.servers


def test_a_commit_is_the_materialization(ledger: Ledger) -> None:  # noqa: F811
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


def test_commits_that_a_large_load_leaves_out_are_recorded_by_a_job(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
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
