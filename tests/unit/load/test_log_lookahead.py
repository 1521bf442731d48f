"""What becomes of an object after an event, from the source's log: streamed, and whatever the messages of other tables are."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.errors import MissingEvents
from hive_replication.events import event_records as r
from hive_replication.load.log_lookahead import LogLookahead
from hive_replication.metastore.types import NotificationEvent
from tests import model
from tests.messages import row

NAMES = model.NAMES


class Log:
    """The notification log of a source.

    Args:
        events: its rows.
        purged: whether the last one is missing.
    """

    views_of_materialized = False

    def __init__(self, events: list[NotificationEvent], *, purged: bool = False) -> None:
        self._events, self._purged = events, purged
        self.reads = 0

    def current_event_id(self) -> int:
        return len(self._events)

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        self.reads += 1
        yield from self._events[after : until - self._purged]
        if self._purged:
            raise MissingEvents("purged")


def log(*actions: tuple[str, int, int, int], unreadable: int = 0, purged: bool = False) -> Log:
    source = model.Source()
    for action in actions:
        source.act(*action)
    rows = list(map(row, source.events))
    if unreadable:
        rows[unreadable - 1].message = "{"
    return Log(rows, purged=purged)


def asked(found: Log, table: str = NAMES[0], partition: str = "", evid: int = 1) -> int | None:
    return LogLookahead(found, "db", 0).superseded(table, partition, evid)  # type: ignore[arg-type]


CREATE, DROP, RENAME = ("create", 0, 0, 0), ("drop", 0, 0, 0), ("rename", 0, 0, 1)


@pytest.mark.parametrize(
    ("actions", "evid"),
    [
        ([CREATE], None),
        ([CREATE, DROP], 2),
        ([CREATE, RENAME, DROP], 3),  # under its new name
        ([CREATE, ("overwrite", 0, 0, 0)], 2),
        ([CREATE, ("insert", 0, 0, 0), ("truncate", 0, 0, 0)], 3),
        ([CREATE, ("relocate", 0, 0, 0)], 2),
        ([CREATE, ("create", 2, 0, 0), ("drop", 2, 0, 0)], None),
    ],
)
def test_a_table(actions: list[tuple[str, int, int, int]], evid: int | None) -> None:
    assert asked(log(*actions)) == evid


def test_what_cannot_be_read_of_another_table_does_not_matter() -> None:
    """It does for its own table: nobody knows what became of that."""
    actions = [CREATE, ("create", 2, 0, 0), ("overwrite", 2, 0, 0), DROP]
    assert asked(log(*actions)) == 4
    assert asked(log(*actions, unreadable=3)) == 4
    assert asked(log(CREATE, ("insert", 0, 0, 0), DROP, unreadable=2)) is None


def test_a_purged_log_tells_nothing() -> None:
    assert asked(log(CREATE, DROP, ("create", 2, 0, 0), purged=True)) is None


def test_the_log_is_read_once_and_only_names_are_kept() -> None:
    found = log(CREATE, ("insert", 0, 0, 0), ("create", 2, 0, 0), ("insert", 2, 0, 0), ("drop", 2, 0, 0))
    lookahead = LogLookahead(found, "db", 0)  # type: ignore[arg-type]
    assert [lookahead.superseded(NAMES[2], "", 3), lookahead.superseded(NAMES[0], "", 1), found.reads] == [5, None, 1]
    assert [(one.evid, one.table) for one in lookahead._endings] == [(5, NAMES[2])]


def test_renames_move_directories() -> None:
    found = log(CREATE, RENAME)
    moves = LogLookahead(found, "db", 0).moves(NAMES[0], "", 1)  # type: ignore[arg-type]
    assert moves == ((f"{model.ROOT}/{NAMES[0]}", f"{model.ROOT}/{NAMES[2]}"),)


def test_partitions_end_with_their_drop() -> None:
    rows = [
        NotificationEvent(
            eventId=1, eventTime=1, eventType="DROP_PARTITION", dbName="db", tableName="t",
            message='{"partitions": [{"ds": "1"}, {"ds": "2"}]}', messageFormat="json-0.2",
        )
    ]  # fmt: skip
    assert [asked(Log(rows), "t", name, 0) for name in ("ds=1", "ds=3", "")] == [1, None, None]


def test_functions_and_databases() -> None:
    function = r.function_name("f")
    rows = [
        NotificationEvent(1, 1, "DROP_FUNCTION", "db", None, '{"functionName": "F"}', "json-0.2"),
        NotificationEvent(2, 1, "DROP_DATABASE", "db", None, "{}", "json-0.2"),
    ]
    assert (asked(Log(rows), function, "", 0), asked(Log(rows), "t", "ds=1", 0)) == (1, 2)
