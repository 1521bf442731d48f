"""Events of dumps: messages as the source wrote them, what the dump adds beside them, and dumps of the first version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_replication.dump.format import encoding
from hive_replication.dump.format.interface import DumpStore
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, Scope
from hive_replication.dump.format.tree import TreeStore
from hive_replication.events.event_records import Notification
from hive_replication.events.transactions import CommitTransaction, TransactionWrite
from hive_replication.load.plan.lanes import window_event
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.storage import Storage

FIXTURES = Path(__file__).parents[2] / "fixtures" / "dumps"
STORES: dict[str, Callable[[Storage, str], DumpStore]] = {"tree": TreeStore, "packed": PackedStore}
WRITES = (TransactionWrite("t", "", 1), TransactionWrite("p", "d=1", 2, truncates=True))
OTHER = "hdfs://d/dumps/db/other"
MESSAGE = '{"txnid": 5,  "databases": ["db"]}'


def store(layout: str, root: Path) -> DumpStore:
    return STORES[layout](Storage((Root(uri=root.as_uri()),)), root.as_uri())


@pytest.mark.parametrize("layout", STORES)
def test_what_a_dump_adds_stands_beside_the_message(layout: str, tmp_path: Path) -> None:
    dumps = store(layout, tmp_path)
    writer = dumps.create(Scope("db"))
    written = [
        EventRecord(Notification(7, 8, "COMMIT_TXN", "db", "", MESSAGE), (FileGroup("", (), table="t"),), "aa", WRITES),
        EventRecord(Notification(8, 8, "ALTER_TABLE", "db", "t", MESSAGE), redump=OTHER),
        EventRecord(Notification(9, 8, "INSERT", "db", "t", MESSAGE), redump=OTHER, shared="ds=1, ds=é"),
        EventRecord(Notification(10, 8, "INSERT", "db", "t", MESSAGE)),
    ]
    for record in written:
        writer.put_event(record)
    result = writer.finish(DumpHeader("incremental", Scope("db"), "uuid", Database(name="db"), 6, 10, 8, "", 1.5))
    assert list(dumps.open(result.directory).events()) == written


def test_an_earlier_version_refuses_what_it_would_pass_over() -> None:
    """Version 1 of this program would take the commit for one that wrote nothing."""
    row = Notification(7, 8, "COMMIT_TXN", "db", "", MESSAGE)
    versions = {
        json.loads(encoding.event_text(record))["version"]
        for record in (EventRecord(row, writes=WRITES), EventRecord(row, redump=OTHER))
    }
    assert versions == {"2"}
    assert json.loads(encoding.event_text(EventRecord(row)))["version"] == "1"


@pytest.mark.parametrize("layout", STORES)
def test_a_dump_of_the_first_version(layout: str) -> None:
    """It has the writes of a commit and the dump of a table in the source's message."""
    dump = FIXTURES / layout
    commit, abort, altered, dropped = store(layout, FIXTURES).open(dump.as_uri()).events()
    assert (commit.writes, commit.redump, [group.table for group in commit.groups]) == (WRITES, "", ["t", "p"])
    assert [(one.writes, one.redump) for one in (abort, altered, dropped)] == [((), ""), ((), OTHER), ((), "")]
    event = window_event(commit).event
    assert isinstance(event, CommitTransaction)
    assert (event.transaction, event.tables, event.writes) == (5, ("p", "t"), WRITES)
    assert window_event(altered).redump == OTHER
