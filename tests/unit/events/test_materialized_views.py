"""Events of materialized views, as those of ordinary ones."""

from __future__ import annotations

import json

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode, notification
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.materialized_views import as_view
from hive_replication.metastore.types import NotificationEvent, Table
from tests.unit.metastore.test_materialized_views import materialized

_FILES = ["hdfs://src/w/db.db/m/000000_0###"]


def image(**parameters: str) -> Table:
    table = materialized(transactional="true", **parameters)
    table.partitionKeys = []
    return table


def event(kind: str, **fields: object) -> NotificationEvent:
    texts = {key: tjson.dumps(value) if isinstance(value, Table) else value for key, value in fields.items()}
    message = json.dumps({"db": "db", "table": "m", **texts})
    return NotificationEvent(7, 1, kind, "db", "m", message, "json-0.2", "hive")


def test_events_of_the_view_itself() -> None:
    before, after = image(), image(team="bi")
    after.sd.location = "hdfs://src/w/db.db/other"
    row = event("CREATE_TABLE", tableType="MATERIALIZED_VIEW", tableObjJson=before, files=_FILES)
    created = decode(notification(row, views=True))
    assert isinstance(created, r.CreateTable)
    assert (created.after, created.files) == (as_view(before), ())
    images = {"tableObjBeforeJson": before, "tableObjAfterJson": after}
    altered = decode(notification(event("ALTER_TABLE", **images, isTruncateOp="true", writeId=9), views=True))
    assert isinstance(altered, r.AlterTable)
    assert (altered.before, altered.after) == (as_view(before), as_view(after))
    assert (altered.truncate, altered.write_id, altered.relocated, altered.untold) == (False, 0, False, False)
    dropped = decode(notification(event("DROP_TABLE", tableObjJson=before), views=True))
    assert isinstance(dropped, r.DropTable)
    assert dropped.before == as_view(before)


@pytest.mark.parametrize(
    "kind",
    ["INSERT", "ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITIONS", "DROP_PARTITION", "UPDATE_TBL_COL_STAT_EVENT"],
)
def test_events_of_its_data_belong_to_no_policy(kind: str) -> None:
    found = event(kind, tableObjJson=image(), files=_FILES)
    assert (notification(found, views=True).database, notification(found).database) == ("", "db")


def test_any_other_event_stays_as_it_is() -> None:
    """Byte for byte, and what cannot be read is left to those who say why."""
    table = image(comment="not a MATERIALIZED_VIEW")
    table.tableType = "MANAGED_TABLE"
    for found in (
        event("CREATE_TABLE", tableObjJson=table, files=_FILES),
        event("CREATE_TABLE", tableObjJson='{"12":{"str":"MATERIALIZED_VIEW"'),
        event("CREATE_TABLE", tableObjJson=["MATERIALIZED_VIEW"]),
        NotificationEvent(7, 1, "CREATE_TABLE", "db", "m", '["MATERIALIZED_VIEW"', "json-0.2", "hive"),
    ):
        assert notification(found, views=True) == notification(found)
    found = event("CREATE_TABLE", tableObjJson=image())
    assert notification(found).message == found.message
