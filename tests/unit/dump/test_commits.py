"""Transactions of a dump: an end is dumped where it wrote to the database, a commit with what it wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.beginnings import Beginnings, OpenedInLog, UnnamedEnds
from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.dump.incremental.commits import TransactionReader
from hive_replication.dump.incremental.present_location import Location, Lookup
from hive_replication.errors import MissingEvents, Refused, Unreachable
from hive_replication.events.event_records import Notification
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import CommitTransaction, TransactionWrite
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import NotificationEvent
from hive_replication.storage import Denied
from hive_replication.storage.file_status import FileStatus

TABLE = "hdfs://s/w/db.db/t"


def ended(kind: str = "COMMIT_TXN", databases: tuple[str, ...] | None = ("db",)) -> LogEvent:
    key = "databases" if kind == "COMMIT_TXN" else "dbsUpdated"
    return LogEvent(Notification(7, 0, kind, "", "", json.dumps({"txnid": 3, key: databases})))


def write(table: str, partition: str, *files: str, location: str = TABLE, view: bool = False) -> WriteEvent:
    values: dict[str, Any] = {"table": table, "partition": partition, "write_id": 5, "location": location}
    return WriteEvent(**values, files=files, view=view)


class Locations:
    """The objects lie at a place now, or are gone."""

    database = "db"

    def __init__(self, place: str | None) -> None:
        self._place = place

    def name_after(self, evid: int, table: str, named: int) -> str:
        assert named < evid == 6
        return table

    def find_table(self, table: str, evid: int, seen: object) -> Location:
        assert (table, evid, seen) == ("t", 7, None)
        return Location(None)  # see test_unnoted_writes

    def find(self, lookups: list[Lookup]) -> dict[Lookup, Location]:
        assert all((one.evid, one.location) == (7, TABLE) for one in lookups)
        return {one: Location(self._place) for one in lookups}


@dataclass(frozen=True)
class Metastore:
    """What transactions wrote, and a log."""

    writes: tuple[WriteEvent, ...]
    log: tuple[NotificationEvent, ...]

    def write_events(self, transaction: int, database: str) -> tuple[WriteEvent, ...]:
        assert (transaction, database) == (3, "db")
        return self.writes

    def table(self, *_: str) -> None:
        return None

    def events_left(self, after: int, until: int) -> list[NotificationEvent]:
        return [one for one in self.log if after < one.eventId <= until]

    def event(self, evid: int) -> NotificationEvent | None:
        return next((one for one in self.log if one.eventId == evid), None)


def record(
    event: LogEvent,
    *writes: WriteEvent,
    acid: bool = True,
    existing: tuple[str, ...] = (),
    place: str | None = TABLE,
    problem: Exception | None = None,
    log: tuple[NotificationEvent, ...] | None = None,
    noted: tuple[NotificationEvent, ...] = (),
    replica: bool = False,
) -> EventRecord | None:
    def ls(location: str) -> list[FileStatus]:
        if problem:
            raise problem
        found = [FileStatus(uri, 0, is_dir=True, modified=0) for uri in existing if uri.startswith(f"{location}/")]
        if not found:
            raise FileNotFoundError(location)
        return found

    metastore = Metastore(writes, (opening(1, 3, 3),) if log is None else log)
    storage, aborts = SimpleNamespace(ls=ls), UnnamedEnds(metastore)  # type: ignore[arg-type]
    opened = OpenedInLog(metastore)  # type: ignore[arg-type]
    source: Any = SimpleNamespace(acid=acid, metastore=metastore, storage=storage, unnamed_ends=aborts, opened_in_log=opened)
    locations, boundary = cast("Any", Locations(place)), cast("Any", None)
    reader = TransactionReader(source, locations, lambda name: name != "outside", boundary, replica)
    for one in noted:
        reader.note(one)
    return reader.record(event)


def opening(evid: int, first: int, last: int) -> NotificationEvent:
    return NotificationEvent(evid, 0, "OPEN_TXN", message=json.dumps({"fromTxnId": first, "toTxnId": last}))


def allocating(evid: int, transaction: int, database: str = "db") -> NotificationEvent:
    message = {"dbName": database, "tableName": "t", "txnIdList": [transaction], "writeIdList": [5]}
    return NotificationEvent(evid, 0, "ALLOC_WRITE_ID_EVENT", database, "t", json.dumps(message))


OTHER = NotificationEvent(6, 0, "CREATE_TABLE", "db", "u", "{}")


def test_a_commit_has_the_files_of_each_table_and_partition() -> None:
    """Several statements of a transaction write to the same partition."""
    one, two, other = (f"{TABLE}/d=1/delta_5_5_000{number}/f##" for number in range(3))
    found = record(ended(), write("t", "d=1", one, two), write("t", "d=1", two), write("t", "d=2", other))
    assert found is not None
    assert found.notification.database == "db"
    files = [FileRef.from_message(text) for text in (one, two, other)]
    groups = (FileGroup("d=1", (files[0], files[1]), table="t"), FileGroup("d=2", (files[2],), table="t"))
    assert found.groups == groups


def test_tables_outside_the_policy_and_views_are_left_out() -> None:
    found = record(ended(), write("outside", "", "f"), write("v", "", "f", view=True), write("t", "", "f"))
    assert found is not None
    assert [one.table for one in found.writes] == ["t"]
    assert [one.table for one in found.groups] == ["t"]


@pytest.mark.parametrize(
    ("place", "directories", "truncates"),
    [
        pytest.param(TABLE, "base_0000005", True, id="overwritten by nothing"),
        pytest.param(TABLE, "", False, id="no rows"),
        pytest.param(TABLE, "base_0000004_v0000009 delta_0000005_0000005_0000", False, id="no rows after a compaction"),
        pytest.param(TABLE, "base_0000006_v0000009 delta_0000004_0000004_0000", False, id="not cleaned yet"),
        pytest.param(f"{TABLE}2", "base_0000005", True, id="renamed since"),
        pytest.param(None, "", False, id="gone"),
    ],
)
def test_an_overwrite_by_nothing_leaves_an_empty_base(place: str | None, directories: str, *, truncates: bool) -> None:
    existing = tuple(f"{place}/{name}" for name in directories.split())
    found = record(ended(), write("t", ""), existing=existing, place=place)
    assert found is not None
    assert found.writes == (TransactionWrite("t", "", 5, truncates),)


@pytest.mark.parametrize(
    "base", ["base_0000005_v0000012", "base_0000006", "base_0000006_v0000012 delta_0000007_0000007_0000 base_0000007_v0000013"]
)
def test_a_base_that_may_have_replaced_an_empty_one_tells_nothing(base: str, caplog: pytest.LogCaptureFixture) -> None:
    """Then the load refuses the commit, which names its tables, until they are repaired."""
    found = record(ended(), write("t", "d=1"), existing=tuple(f"{TABLE}/{name}" for name in base.split()))
    assert found is not None
    assert (found.writes, [one.table for one in found.groups]) == ((), ["t"])
    assert "a later base of db.t/d=1 took the place of what event 7 left" in caplog.text


@pytest.mark.parametrize(
    "log",
    [
        pytest.param((OTHER,), id="purged since"),
        pytest.param((), id="purged"),
        pytest.param((allocating(5, 3, "other"), OTHER), id="another database"),
        pytest.param((opening(4, 4, 6), allocating(5, 4), OTHER), id="another transaction"),
    ],
)
def test_what_a_transaction_wrote_that_outlived_the_log_is_missing(log: tuple[NotificationEvent, ...]) -> None:
    """Hive forgets what was written before it forgets the commit: its rows never came, and nothing told so."""
    with pytest.raises(MissingEvents, match="what transaction 3 wrote to 'db', which event 7 commits, is no longer known"):
        record(ended(), log=log, noted=(opening(2, 3, 3),))


@pytest.mark.parametrize("databases", [None, ("db",)])
def test_what_a_long_transaction_wrote_first_is_missing_also_where_what_it_wrote_last_is_known(
    databases: tuple[str, ...] | None,
) -> None:
    """What it wrote last was taken for all of it."""
    last, event = write("t", "", location=""), ended(databases=databases)
    for log in ((), (allocating(5, 3), OTHER)):
        with pytest.raises(MissingEvents, match="what transaction 3 wrote to 'db', which event 7 commits, is no longer known"):
            record(event, last, log=log)
    for log, noted in (((opening(2, 3, 3), allocating(5, 3)), ()), ((), (opening(2, 3, 3),))):
        found = record(event, last, log=log, noted=noted)
        assert found is not None
        assert [one.table for one in found.writes] == ["t"]
    assert record(event, last, log=(), replica=True) is not None


@pytest.mark.parametrize("databases", [None, (), ("other",)])
def test_a_long_transaction_that_may_be_of_others_is_no_gap_of_this_database(databases: tuple[str, ...] | None) -> None:
    """Hive 4.0 names none, and the log of a replica those of others: each database of the policy was compared in full."""
    found = record(ended(databases=databases), log=())
    assert (found is not None) == (databases is None)
    for names in (databases, ("db",)):
        found = record(ended(databases=names), replica=True, log=())
        assert found is not None
        assert (found.groups, found.writes) == ((), ())


@pytest.mark.parametrize(
    ("log", "noted"),
    [
        pytest.param((opening(4, 2, 3), allocating(5, 3), OTHER), (), id="began before the window"),
        pytest.param((allocating(5, 3), OTHER), (), id="got its write id since the log begins"),
        pytest.param((opening(4, 2, 3),), (opening(4, 2, 3),), id="began in the window"),
    ],
)
def test_a_commit_of_no_rows_has_no_writes(log: tuple[NotificationEvent, ...], noted: tuple[NotificationEvent, ...]) -> None:
    found = record(ended(), log=log, noted=noted)
    assert found is not None
    assert (found.groups, found.writes) == ((), ())


def test_the_beginning_of_a_long_transaction_is_looked_for_in_all_of_the_log() -> None:
    rows = tuple(
        opening(evid, 3, 3) if evid == 3 else NotificationEvent(evid, 0, "DROP_TABLE", "db", "u", "{}") for evid in range(1, 4000)
    )
    event = LogEvent(Notification(4000, 0, "COMMIT_TXN", "", "", json.dumps({"txnid": 3, "databases": ["db"]})))
    assert record(event, log=rows) is not None
    with pytest.raises(MissingEvents):
        record(event, log=rows[3:])


def test_the_beginnings_of_long_transactions_are_looked_for_once_while_the_log_has_the_first_one() -> None:
    """Each commit of an hour's transaction read that hour's events again, from its end back to its beginning."""
    rows = [opening(1, 3, 3), opening(2, 4, 4)]
    rows += [NotificationEvent(evid, 0, "INSERT", "db", "u", "{}") for evid in range(3, 50_003)]
    read, asked = list[int](), list[int]()

    def events_left(after: int, until: int) -> Iterator[NotificationEvent]:
        for one in rows:
            if after < one.eventId <= until:
                read.append(one.eventId)
                yield one

    def event(evid: int) -> NotificationEvent | None:
        asked.append(evid)
        return next((one for one in rows if one.eventId == evid), None)

    metastore: Any = SimpleNamespace(events_left=events_left, event=event)
    log = OpenedInLog(metastore)
    commit = CommitTransaction(50_003, 0, "", "", "", transaction=3, databases=frozenset({"db"}))
    for transaction in (3, 4):
        Beginnings(log, "db").require(replace(commit, transaction=transaction), some=True)
    assert (read, asked) == ([1], [1])
    del rows[0]  # the log is cleaned
    Beginnings(log, "db").require(replace(commit, transaction=4), some=True)
    assert (read, asked) == ([1, 2], [1, 1])
    with pytest.raises(MissingEvents):
        Beginnings(log, "db").require(commit, some=True)


def test_an_abort_has_no_writes() -> None:
    found = record(ended("ABORT_TXN"), write("t", "", "f"))
    assert found is not None
    assert (found.groups, found.writes) == ((), ())


def test_the_beginning_of_no_commit_of_another_database_is_looked_for() -> None:
    """Those that are under way when a dump begins are many, in a metastore of many databases."""
    assert record(ended("COMMIT_TXN", ("other",)), log=(opening(3, 3, 3), allocating(4, 3), OTHER)) is None


@pytest.mark.parametrize("kind", ["COMMIT_TXN", "ABORT_TXN"])
def test_transactions_of_other_databases_are_left_out(kind: str) -> None:
    log = (opening(3, 3, 3), allocating(4, 3, "other"), allocating(5, 4), OTHER)
    assert record(ended(kind, ("other",)), log=log) is None
    assert record(ended(kind, ("other",)), noted=log) is None, "nothing is looked for"


@pytest.mark.parametrize("named", [(), ("other",)])
@pytest.mark.parametrize(("kind", "noted"), [("COMMIT_TXN", True), ("ABORT_TXN", True), ("ABORT_TXN", False)])
def test_an_end_that_names_other_databases_alone_is_of_those_whose_tables_were_dropped(
    kind: str, named: tuple[str, ...], *, noted: bool
) -> None:
    """What stands for the transaction on the target was never ended, until Hive marked the database as incompatible."""
    log = (opening(3, 3, 3), allocating(4, 3), allocating(5, 3, "other"), OTHER)
    found = record(ended(kind, named), noted=log) if noted else record(ended(kind, named), log=log)
    assert found is not None
    assert (found.groups, found.writes) == ((), ())


@pytest.mark.parametrize(
    ("log", "taken"),
    [
        pytest.param((opening(3, 3, 3), allocating(4, 3), OTHER), True, id="its tables were dropped"),
        pytest.param((opening(3, 3, 3), allocating(4, 3, "other"), OTHER), False, id="those of another database"),
        pytest.param((opening(3, 3, 3), OTHER), False, id="it wrote nothing"),
        pytest.param((OTHER,), True, id="the log does not tell"),
    ],
)
def test_an_abort_that_names_no_database_is_of_those_it_began_in(log: tuple[NotificationEvent, ...], *, taken: bool) -> None:
    """Hive forgets the write ids of dropped tables: what stands for the transaction on the target was never ended."""
    assert (record(ended("ABORT_TXN", ()), log=log) is not None) == taken


def test_other_events_and_policies_without_transactions_have_none() -> None:
    assert record(ended("OPEN_TXN")) is None
    assert record(ended(), acid=False) is None


@pytest.mark.parametrize("problem", [Denied("the account lacks x"), Refused("a link leads out of the storage roots")])
def test_a_directory_that_cannot_be_asked_for_concerns_its_tables_alone(problem: Exception) -> None:
    """It ended the dump of the whole window."""
    found = record(ended(), write("t", ""), problem=problem)
    assert found is not None
    assert ([one.table for one in found.groups], found.writes) == (["t"], ())


def test_a_source_that_does_not_answer_ends_the_dump() -> None:
    with pytest.raises(Unreachable):
        record(ended(), write("t", ""), problem=Unreachable("nobody answers"))
