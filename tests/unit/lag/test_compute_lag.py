"""Figures of lag: what waits, of which table, and the bytes that messages tell of."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hive_replication.events.decoders_by_event_type import decode, notification
from hive_replication.events.event_records import Insert
from hive_replication.events.files import FileRef
from hive_replication.lag.compute_lag import bytes_of, not_applied, start_of, stopped, table_lags
from hive_replication.lag.waiting_event import WaitingEvent, waiting_event
from hive_replication.lag.waiting_events import Waiting, WaitingEvents, together
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import NotificationEvent

FOLDER = Path(__file__).parents[2] / "fixtures" / "events"


def event(evid: int, name: str, **fields: object) -> WaitingEvent:
    return WaitingEvent(evid, 1000 + evid, "d", name, **fields)  # type: ignore[arg-type]


def kept(*events: WaitingEvent, with_files: bool = True) -> dict[str, WaitingEvents]:
    found: dict[str, WaitingEvents] = {}
    for one in events:
        found.setdefault(one.name, WaitingEvents()).add(one, with_files=with_files)
    return found


def sizes(files: object) -> int | None:
    return sum(len(file.name) for file in files)  # type: ignore[attr-defined]


def test_an_event_waits_until_its_own_name_has_passed_it() -> None:
    names = [(5, "held"), (6, "level"), (7, "held"), (11, "repaired"), (12, "level"), (13, "")]
    state = ReplicaState(source="s", applied=10, at={"held": 5, "repaired": 11}, held={"held": "gone"})
    waiting = not_applied(state, kept(*(event(evid, name, size=evid) for evid, name in names)))
    assert waiting == {"held": Waiting(1, 1007, 7), "level": Waiting(1, 1012, 12), "": Waiting(1, 1013, 13)}
    assert start_of(state) == 5
    found = [(one.table, one.applied, one.waiting, one.seconds_behind, one.bytes_waiting, one.held) for one in table_lags(
        state, waiting, 1020, sizes
    )]  # fmt: skip
    assert found == [("held", 5, 1, 13.0, 7, "gone"), ("level", 10, 1, 8.0, 12, "")]


def test_a_size_that_nothing_has_is_not_known() -> None:
    """Partitions of one event whose parameters tell of more bytes together than 64 bits hold ended each reading of all lags."""
    waiting = kept(event(1, "t", size=2**63 - 1), event(2, "u", size=2**63), event(3, "v", size=None))
    assert {name: one.after(0).size for name, one in waiting.items()} == {"t": 2**63 - 1, "u": None, "v": None}


def test_what_is_joined_to_an_undone_table_asks_for_no_more_of_the_log_than_that_one() -> None:
    """The whole database showed a gap as soon as the log no longer had what was undone."""
    undone = "undone to 100 by request"
    state = ReplicaState(source="s", applied=500).quarantine("x", 100, undone).quarantine("y", 100, f"held with x: {undone}")
    assert (start_of(state), start_of(state, undone=True), state.tried) == (500, 100, [])
    assert (start_of(state.released("x")), state.released("x").tried) == (100, ["x", "y"])


def test_where_a_replica_stands() -> None:
    assert start_of(ReplicaState()) is None
    lost = ReplicaState(source="s", applied=10, at={"lost": 0}, held={"lost": "a recovery failed"})
    assert start_of(lost) == 10
    assert stopped(ReplicaState(undone=7)) == "undone to event 7"
    assert stopped(ReplicaState(paused="since noon")) == "paused since noon"
    assert stopped(ReplicaState(paused="since noon", undone=7)) == "undone to event 7"


def test_bytes_are_unknown_if_those_of_one_event_are() -> None:
    file = FileRef("hdfs://nn/a/four")

    def total(*events: WaitingEvent, with_files: bool = True) -> int | None:
        return bytes_of(together(one.after(0) for one in kept(*events, with_files=with_files).values()), sizes)

    assert total(event(1, "t", size=3), event(2, "t", files=(file,)), event(3, "u", files=(file,))) == 7
    assert total(event(1, "t", size=3), event(2, "u", size=None)) is None
    assert total(event(1, "t", files=(file,)), with_files=False) is None
    assert bytes_of(Waiting(1, 1, 0, (file,)), lambda _: None) is None


def test_what_is_forgotten_waits_no_more() -> None:
    one, two, three = (event(evid, "t", files=(FileRef(f"hdfs://nn/a/{evid}"),)) for evid in (1, 2, 3))
    events = kept(one, two, three)["t"]
    events.forget(1)
    assert (len(events), events.files, events.after(0)) == (2, 2, Waiting(2, 1002, 0, two.files + three.files))
    assert events.after(2) == Waiting(1, 1003, 0, three.files)
    assert events.after(3) == Waiting()


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


@pytest.mark.parametrize("size", ["²", "9" * 5_000, ""])
def test_a_size_that_somebody_edited_is_none(size: str) -> None:
    """The lag of all databases ended in a traceback."""
    rows = [fields for fields in json.loads((FOLDER / "hive3.json").read_text("utf-8")) if fields["eventType"] == "CREATE_TABLE"]
    read = list[WaitingEvent]()
    for fields in rows:
        fields["message"] = re.sub(r'"transient_lastDdlTime\\":\\"[0-9]+', f'"totalSize\\\\":\\\\"{size}', fields["message"])
        assert "totalSize" in fields["message"]
        read.append(waiting_event(notification(NotificationEvent(**fields))))
    assert {event.size for event in read} <= {0, None}
