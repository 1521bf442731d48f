"""Properties of a database that the metastore refuses: they stopped all its loads, also once the source had corrected them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.errors import LockLost, MetastoreError, Unreachable
from hive_replication.events import event_records as r
from hive_replication.load import window
from hive_replication.load.apply import database as databases
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.session import Session
from hive_replication.metastore.faults import AlreadyExists, NotFound
from hive_replication.metastore.types import Database, PrincipalType, copy_of
from hive_replication.progress import Silent
from tests.bootstraps import SOURCE, header, loading

alters: Callable[..., tuple[op.AlterDatabase, ...]] = window._alters  # pyright: ignore[reportPrivateUsage]
STATE = ReplicaState(SOURCE, 10)
#: No text of Latin-1, and so none that Hive's schema for MySQL takes.
REFUSED, TAKEN = "продажи", "sales of 2026"


class Metastore:
    """A target's metastore whose own database takes Latin-1 alone, or which refuses everything."""

    def __init__(self, there: Database | None = None, error: Exception | None = None) -> None:
        self.there, self.error, self.tried = there, error, list[Database]()

    def database(self, _: str) -> Database | None:
        return copy_of(self.there) if self.there else None

    def create_database(self, image: Database) -> None:
        self._take(image, "create_database")
        self.there = copy_of(image)
        self.there.locationUri = "hdfs://dst/db.db"

    def alter_database(self, _: str, image: Database, __: Database) -> None:
        self._take(image, "alter_database")
        self.there = copy_of(image)

    def _take(self, image: Database, call: str) -> None:
        self.tried.append(copy_of(image))
        if self.error is not None:
            raise self.error
        if not "".join([image.description or "", *(image.parameters or {}).values()]).isascii():
            raise MetastoreError(f"{call} db: Incorrect string value")


@pytest.fixture(autouse=True)
def _without_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "parameter_lock", lambda *_: nullcontext())
    monkeypatch.setattr(databases, "end_left", lambda *_: None)
    monkeypatch.setattr(databases.TargetDatabase, "journal", SimpleNamespace(end=lambda: None, begin=None))


def target_database(metastore: Metastore) -> TargetDatabase:
    policy = SimpleNamespace(owners={}, locations={}, read_only=False, name="default", databases={})
    target: Any = SimpleNamespace(metastore=metastore, policy=policy, default_locations=lambda _: ("hdfs://dst/db.db",))
    return TargetDatabase(target, "db", lambda: None, dry=False)


def replica_with(note: str = "old") -> Database:
    return Database("db", locationUri="hdfs://dst/db.db", parameters=STATE.parameters() | {"note": note})


def noted(note: str) -> Database:
    return Database("db", note, parameters={"note": note}, ownerName="etl", ownerType=PrincipalType.USER)


def altered(evid: int, before: str, after: str) -> WindowEvent:
    row = r.Notification(evid, 1, "ALTER_DATABASE", "db", "", "")
    return WindowEvent(row, r.AlterDatabase(evid, 1, "ALTER_DATABASE", "db", "", noted(before), noted(after)), ())


def session_of(replica: TargetDatabase) -> Session:
    head: Any = SimpleNamespace(header=header(20))
    session = Session(replica, head, None, cast("Any", "a copier"), Silent())
    session._journal = cast("Any", SimpleNamespace(database=lambda _: None))  # pyright: ignore[reportPrivateUsage]
    return session


def carry_out(replica: TargetDatabase, *notes: str) -> list[tuple[str, str]]:
    """What the report says of the database's properties after these changes, one segment after the other."""
    session = session_of(replica)
    for note in notes:
        session.carry_out(SegmentPlan((), (op.AlterDatabase(12, "", noted(note)),)), cast("Any", None), cast("Any", None))
    return [(one.what, one.reason) for one in session._not_preserved()]  # pyright: ignore[reportPrivateUsage]


def test_a_change_of_the_database_that_is_refused_stops_nothing_else_and_is_reported() -> None:
    metastore = Metastore(replica_with())
    replica = target_database(metastore)
    ((what, reason),) = carry_out(replica, REFUSED)
    assert (what, metastore.there) == ("properties of db", replica_with())
    assert reason == (
        "the database's properties, comment and owner are not those of the source, which the target's metastore refuses: "
        "alter_database db: Incorrect string value; change them at the source, "
        "or repair the database with --force when it takes them"
    )
    replica.write_state(replace(STATE, applied=20))  # the load goes on to its end
    assert replica_state(metastore.there).applied == 20


def test_a_metastore_that_takes_nothing_now_ends_the_load() -> None:
    """The window comes again: what passes is no refusal of the properties."""
    with pytest.raises(MetastoreError, match="deadlock"):
        carry_out(target_database(Metastore(replica_with(), MetastoreError("deadlock"))), TAKEN)


def test_the_next_change_of_the_database_brings_what_was_refused() -> None:
    metastore = Metastore(replica_with())
    assert carry_out(target_database(metastore), REFUSED, TAKEN) == []
    assert metastore.there is not None
    assert (metastore.there.parameters["note"], metastore.there.description, metastore.there.ownerName) == (TAKEN, TAKEN, "etl")
    assert carry_out(target_database(metastore), REFUSED, TAKEN) == []  # which the database has by now


@pytest.mark.parametrize("error", [Unreachable("no answer"), LockLost("lost"), NotFound("no such database")])
def test_a_metastore_that_does_not_answer_and_a_lost_lock_end_the_load(error: Exception) -> None:
    with pytest.raises(type(error)):
        carry_out(target_database(Metastore(replica_with(), error)), TAKEN)


def test_of_several_changes_the_last_one_is_made() -> None:
    """Each tells all properties: one that is refused is no matter where a later one corrects it."""
    session = loading(STATE, replace(header(20), kind="incremental", from_evid=10), ())
    events = [altered(9, "a", "b"), altered(11, "old", REFUSED), altered(12, REFUSED, TAKEN), altered(13, TAKEN, TAKEN)]
    (made,) = alters(session, events, None)
    assert (made.evid, made.image.parameters) == (12, {"note": TAKEN})
    assert [(one.evid, one.reason) for one in session.skipped] == [
        (9, "applied already, or not of this load"),
        (13, "changes nothing but replication's own properties"),
        (11, "event 12 sets all properties of the database again"),
    ]


def test_a_database_is_created_without_what_is_refused() -> None:
    """Its bootstrap was refused as a whole, each time."""
    metastore = Metastore()
    replica = target_database(metastore)
    assert replica.create(noted(REFUSED), STATE, SOURCE)
    assert metastore.there is not None
    assert (metastore.there.parameters, metastore.there.description) == (STATE.parameters(), None)
    assert "create_database db: Incorrect string value" in replica.refused
    assert carry_out(replica, TAKEN) == []  # as a repair, or the next change at the source, does
    assert metastore.there.parameters == STATE.parameters() | {"note": TAKEN}


def test_a_database_that_is_taken_is_created_with_all_of_it() -> None:
    metastore = Metastore()
    replica = target_database(metastore)
    assert replica.create(noted(TAKEN), STATE, SOURCE)
    assert (len(metastore.tried), replica.refused) == (1, "")
    assert metastore.there is not None
    assert (metastore.there.parameters, metastore.there.ownerName) == (STATE.parameters() | {"note": TAKEN}, "etl")


@pytest.mark.parametrize(
    ("error", "attempts"), [(AlreadyExists("there"), 1), (Unreachable("no answer"), 1), (MetastoreError("no space"), 2)]
)
def test_a_database_that_cannot_be_created_at_all_ends_the_load(error: Exception, attempts: int) -> None:
    metastore = Metastore(error=error)
    with pytest.raises(type(error)):
        target_database(metastore).create(noted(TAKEN), STATE, SOURCE)
    assert len(metastore.tried) == attempts
