"""Events of materialized views as those of the ordinary views that replicas have of them (pure)."""

from __future__ import annotations

import json
from dataclasses import replace

from hive_replication.events import unpack
from hive_replication.events.event_records import Notification
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.materialized_views import MATERIALIZED_VIEW, as_view, is_materialized
from hive_replication.metastore.types import Table

_OF_TABLES = frozenset({"CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"})
_IMAGES = ("tableObjJson", "tableObjBeforeJson", "tableObjAfterJson")


def of_view(row: Notification) -> Notification:
    """The row as one of a view where its message is of a materialized view; any other row as it is.

    One of the data alone, which a rebuild writes, gets no database, so that it belongs to no policy. What cannot be read stays as
    it is: whoever decodes it says why.
    """
    if MATERIALIZED_VIEW not in row.message:
        return row
    try:
        message = unpack.fields(row.message)
        tables = {key: tjson.loads(Table, message[key]) for key in _IMAGES if message.get(key)}
        images = {key: tjson.dumps(as_view(table)) for key, table in tables.items()}
    except (ValueError, AttributeError, RecursionError):
        return row
    if not any(map(is_materialized, tables.values())):
        return row
    if row.type not in _OF_TABLES:
        return replace(row, database="")
    # No files come with it, and no truncation: what is in the message for the sake of the data goes.
    data: dict[str, object] = {"tableType": "VIRTUAL_VIEW", "files": [], "isTruncateOp": "false", "writeId": 0}
    shown = {**message, **{key: value for key, value in data.items() if key in message}, **images}
    return replace(row, message=json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
