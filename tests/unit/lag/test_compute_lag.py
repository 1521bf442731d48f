"""Figures of lag: what waits, of which table, and the bytes that messages tell of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.events.decoders_by_event_type import decode, notification
from hive_replication.events.event_records import Insert
from hive_replication.events.files import FileRef
from hive_replication.lag.compute_lag import bytes_of, not_applied, start_of, stopped, table_lags
from hive_replication.lag.waiting_event import WaitingEvent, waiting_event
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import NotificationEvent

FOLDER = Path(__file__).parents[2] / "fixtures" / "events"


def event(evid: int, name: str, **fields: object) -> WaitingEvent:
    return WaitingEvent(evid, 1000 + evid, "d", name, **fields)  # type: ignore[arg-type]


def sizes(files: object) -> int | None:
    return sum(len(file.name) for file in files)  # type: ignore[attr-defined]


def test_an_event_waits_until_its_own_name_has_passed_it() -> None:
    names = [(5, "held"), (6, "level"), (7, "held"), (11, "repaired"), (12, "level"), (13, "")]
    state = ReplicaState(source="s", applied=10, at={"held": 5, "repaired": 11}, held={"held": "gone"})
    waiting = not_applied(state, [event(evid, name, size=evid) for evid, name in names])
    assert [one.evid for one in waiting] == [7, 12, 13]
    assert start_of(state) == 5
    found = [(one.table, one.applied, one.waiting, one.seconds_behind, one.bytes_waiting, one.held) for one in table_lags(
        state, waiting, 1020, sizes
    )]  # fmt: skip
    assert found == [("held", 5, 1, 13.0, 7, "gone"), ("level", 10, 1, 8.0, 12, "")]


def test_where_a_replica_stands() -> None:
    assert start_of(ReplicaState()) is None
    lost = ReplicaState(source="s", applied=10, at={"lost": 0}, held={"lost": "a recovery failed"})
    assert start_of(lost) == 10
    assert stopped(ReplicaState(undone=7)) == "undone to event 7"
    assert stopped(ReplicaState(paused="since noon")) == "paused since noon"


def test_bytes_are_unknown_if_those_of_one_event_are() -> None:
    file = FileRef("hdfs://nn/a/four")
    assert bytes_of([event(1, "t", size=3), event(2, "t", files=(file,)), event(3, "t", files=(file,))], sizes) == 7
    assert bytes_of([event(1, "t", size=3), event(2, "t", size=None)], sizes) is None
    assert bytes_of([event(1, "t", files=(file,))], lambda _: None) is None


@pytest.mark.parametrize("version", ["hive3", "hive4"])
def test_what_messages_of_hive_tell(version: str) -> None:
    rows = [
        notification(NotificationEvent(**fields))
        for fields in json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))
    ]
    read = {row.evid: waiting_event(row) for row in rows}
    inserts = [decoded for decoded in map(decode, rows) if isinstance(decoded, Insert)]
    assert inserts
    assert all(read[one.evid].files == one.files for one in inserts)
    assert {read[row.evid].name for row in rows if "FUNCTION" in row.type} == {"f()"}
    assert not any(waiting_event(row, data=False).files for row in rows)
