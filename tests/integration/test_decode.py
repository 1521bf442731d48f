"""Real metastores of Hive 3.1.3 and 4.2.0 write the events that were recorded, and all of them are decoded."""

from __future__ import annotations

import json

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode, notification
from resources.embedded.cluster import Side
from tests.fixtures.record import FOLDER, record

pytestmark = pytest.mark.servers


def _without_transactions(types: list[str]) -> list[str]:
    return [kind for kind in types if not kind.endswith("_TXN")]  # those are of no database: others may make them, too


@pytest.mark.parametrize("name", ["source", "source4"], ids=["hive-3.1.3", "hive-4.2.0"])
def test_events_are_as_recorded(name: str, request: pytest.FixtureRequest, unique: str) -> None:
    side: Side = request.getfixturevalue(name)
    rows = record(side, unique)
    recorded = json.loads((FOLDER / f"hive{side.hive}.json").read_text(encoding="utf-8"))
    types = _without_transactions([row.eventType for row in rows])
    assert sorted(types) == sorted(_without_transactions([row["eventType"] for row in recorded]))  # tables drop in no order
    assert {row["messageFormat"] for row in recorded} == {row.messageFormat for row in rows}
    events = [decode(notification(row)) for row in rows]
    assert [event for event in events if isinstance(event, r.OtherEvent) and not event.known] == []
    (insert,) = [event for event in events if isinstance(event, r.Insert) and event.partition_name]
    assert insert.files[0].uri.startswith(f"{side.warehouse}/{unique}.db/parts/ds=1/country=de/")
