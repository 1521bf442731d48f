"""Which earlier loads an undo may still lead to after a load of a whole database: none of those that its metastore never had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.journal.journal import Entry, Journal
from hive_replication.load.journal.journal_writer import JournalWriter
from hive_replication.load.journal.restored import forgotten, without_lost
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.bootstraps import SOURCE, Loading, header, loading, record, replica


def loaded_before(path: Path) -> tuple[Storage, str, Journal]:
    """Storage, directory and journal of a database with loads to 30, 40 and 50."""
    storage, location = Storage((Root(uri=path.as_uri()),)), f"{path.as_uri()}/db.db"
    journal = Journal(storage, location)
    for evid in (30, 40, 50):
        writer = journal.begin(evid - 10, evid)
        writer.state(ReplicaState(SOURCE, evid))
        writer.done(evid)
    return storage, location, journal


def prepared(path: Path, state: ReplicaState, *, recovery: str = "", dry: bool = False) -> tuple[Loading, Journal]:
    """A load of a dump at event 60 into that database."""
    storage, location, journal = loaded_before(path)
    session = loading(state, header(60, recovery=recovery), [replica("t", 20)], [record("t")])
    session.copier = None if dry else cast("Any", "a copier")
    target: Any = session.replica
    target.target.storage, target.target.source_storage, target.location, target.journal = storage, None, location, journal
    return session, journal


def statuses(path: Path, state: ReplicaState, *, recovery: str = "", dry: bool = False) -> list[tuple[int, str]]:
    """Ends of the loads, and what became of them, after one of a dump at event 60."""
    session, journal = prepared(path, state, recovery=recovery, dry=dry)
    load_objects(session, repair=False)
    return [(entry.to_evid, entry.status) for entry in journal.entries()]


@pytest.mark.parametrize(
    ("applied", "before"),
    [(30, "former"), (50, "done")],
    ids=["restored to an older state", "with a hole in the source's log"],
)
def test_no_undo_leads_to_before_the_recovery_of_a_target_that_was_restored(tmp_path: Path, applied: int, before: str) -> None:
    """What the recovery found is the backup's: taken back, it is no state that the replica had at the end of a later load."""
    found = statuses(tmp_path, ReplicaState(SOURCE, applied, recovery="token"), recovery="token")
    assert found == [(30, before), (40, before), (50, before), (60, "done")]


def points(found: list[Entry]) -> list[int]:
    return [entry.to_evid for entry in found if entry.status == "done"]


def killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("step", "again"),
    [
        ((JournalWriter, "state"), True),
        ((JournalWriter, "done"), True),
        ((JournalWriter, "done"), False),
        ((Journal, "mark"), True),
        ((Journal, "mark"), False),
    ],
)
def test_nor_where_that_recovery_is_killed_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: tuple[type, str], *, again: bool
) -> None:
    """Nothing asked later whether the target had been restored, so that all loads before stayed points of undo."""
    session, journal = prepared(tmp_path, ReplicaState(SOURCE, 30, recovery="token"), recovery="token")
    with monkeypatch.context() as patch:
        patch.setattr(*step, killed)
        with pytest.raises(KeyboardInterrupt):
            load_objects(session, repair=False)
    if step[1] == "state":  # the metastore is the restored one still, and has to be known as such
        assert forgotten(session.target.storage, session.replica.location, 30) == 50
    elif not again:
        assert points(without_lost(journal, session.state, dry=True)) == points(journal.entries())[3:]
    if again:
        retried = replace(session, skipped=[], held=[], planned=[])
        load_objects(retried, repair=False)
        assert points(journal.entries()) == [60]
    assert points(without_lost(journal, session.state)) == points(journal.entries()) == [60]


@pytest.mark.parametrize("dry", [False, True])
def test_no_undo_leads_to_before_a_bootstrap_whose_directory_kept_an_earlier_journal(tmp_path: Path, *, dry: bool) -> None:
    """The database was dropped by hand, and its directory stayed: an undo to a load in it took the bootstrap back."""
    before = "done" if dry else "former"
    assert statuses(tmp_path, ReplicaState(), dry=dry)[:3] == [(30, before), (40, before), (50, before)]


def test_no_undo_leads_to_before_a_database_was_created_in_a_directory_that_kept_an_earlier_journal(tmp_path: Path) -> None:
    """Also not where a window creates it, which no bootstrap follows."""
    storage, location, journal = loaded_before(tmp_path)
    metastore = Mock(database=Mock(side_effect=[None, Database("db", locationUri=location)]), features=SimpleNamespace(major=3))
    policy = SimpleNamespace(owners={}, locations={}, read_only=False)
    target: Any = SimpleNamespace(
        metastore=metastore, storage=storage, policy=policy, default_locations=Mock(return_value=(location,))
    )
    made = TargetDatabase(target, "db", lambda: None, dry=False)
    assert made.create(Database("db", parameters={}), ReplicaState(SOURCE, 60), SOURCE)
    assert [entry.status for entry in journal.entries()] == ["former"] * 3
