"""Renames into another database, as each of the two databases sees the one row of the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from hive_replication.dump.incremental.present_location import Location, followed
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode, notification
from hive_replication.events.events_of_policy import LogEvent, of_policy, renamed_into
from hive_replication.events.renames_between_databases import as_seen_by, rows_of
from hive_replication.load.plan.superseded import Ending, ending
from hive_replication.metastore.types import StorageDescriptor, Table
from tests.messages import row

EVERY: Callable[[str], bool] = bool


def image(database: str, table: str) -> Table:
    place = StorageDescriptor(location=f"hdfs://s/{database}/{table}", cols=[])
    return Table(table, database, sd=place, parameters={}, partitionKeys=[], tableType="EXTERNAL_TABLE")


def renamed(before: tuple[str, str], after: tuple[str, str]) -> r.Notification:
    """The row as a metastore writes it: of the new name, with a message that begins with the old one."""
    written = row(r.AlterTable(7, 0, "ALTER_TABLE", *after, image(*before), image(*after), truncate=False))
    message = {"server": "", "db": before[0], "table": before[1]} | json.loads(written.message)
    written.message = json.dumps(message)
    return notification(written)


def test_the_table_leaves_the_one_database_and_comes_into_the_other() -> None:
    found = renamed(("one", "a"), ("two", "b"))
    assert [(seen.database, seen.table) for seen in rows_of(found, ("one", "two"))] == [("two", "b"), ("one", "a")]
    assert as_seen_by(found, "three") == found
    left, came = decode(as_seen_by(found, "one")), decode(as_seen_by(found, "two"))
    assert isinstance(left, r.AlterTable)
    assert isinstance(came, r.AlterTable)
    assert (left.names, left.leaves, renamed_into(left, "one", EVERY), ending(left)) == (
        ("a", "a"),
        True,
        False,
        Ending(7, "a", None),
    )
    assert (came.names, came.leaves, renamed_into(came, "two", EVERY), ending(came)) == (("b", "b"), False, True, ending(came))
    assert followed([left], "hdfs://s/one/a", "a", "") == Location(None, 7)
    assert followed([came], "hdfs://s/two/a", "a", "") == Location("hdfs://s/two/a", 0, "a")  # the other database's own
    assert of_policy(LogEvent(as_seen_by(found, "one")), "one", lambda name: name == "a")
    assert not of_policy(LogEvent(as_seen_by(found, "two")), "two", lambda name: name == "a")


def test_other_rows_are_of_their_own_database() -> None:
    for found in (
        renamed(("one", "a"), ("one", "b")),
        replace(renamed(("one", "a"), ("two", "b")), database=""),  # of another catalog
        replace(renamed(("one", "a"), ("two", "b")), message='{"db": "\\ud8", "table": "a"}'),
        replace(renamed(("one", "a"), ("two", "b")), message='{"db": "one", "table": "\\ud800"}'),  # which no dump can hold
        replace(renamed(("one", "a"), ("two", "b")), message="unreadable"),
    ):
        assert [seen for seen in rows_of(found, ("one", "two")) if seen != found] == []
        assert as_seen_by(found, "one") == found
