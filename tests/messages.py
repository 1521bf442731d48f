"""Events of :mod:`tests.model` as rows of NOTIFICATION_LOG, with messages as Hive writes them (``json-0.2``)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import NotificationEvent


def row(event: r.Event) -> NotificationEvent:
    """The event as the metastore answers it."""
    return NotificationEvent(
        eventId=event.evid,
        eventTime=event.time,
        eventType=event.type,
        dbName=event.database,
        tableName=event.table,
        message=json.dumps(_message(event)),
        messageFormat="json-0.2",
    )


def _message(event: r.Event) -> dict[str, Any]:
    match event:
        case r.CreateTable():
            return {"tableObjJson": tjson.dumps(event.after), "files": _files(event.files)}
        case r.AlterDatabase():
            return {"dbObjBeforeJson": tjson.dumps(event.before), "dbObjAfterJson": tjson.dumps(event.after)}
        case r.DropTable() if event.before is not None:
            return {"tableObjJson": tjson.dumps(event.before)}
        case r.AlterTable():
            images = {"tableObjBeforeJson": tjson.dumps(event.before), "tableObjAfterJson": tjson.dumps(event.after)}
            return images | {"isTruncateOp": str(event.truncate).lower()}
        case r.AddPartition():
            return {
                "tableObjJson": tjson.dumps(event.table_object),
                "partitionListJson": [tjson.dumps(added.partition) for added in event.partitions],
                "partitionFiles": [
                    {"partitionName": added.name, "files": _files(added.files or ())} for added in event.partitions
                ],
            }
        case r.DropPartition():
            values = [dict([name.split("=")]) for name in event.partitions]
            return {"tableObjJson": tjson.dumps(event.table_object), "partitions": values}
        case r.AlterPartition() | r.Insert():
            return _content_message(event)
        case _:
            return {}


def _content_message(event: r.AlterPartition | r.Insert) -> dict[str, Any]:
    table = {"tableObjJson": tjson.dumps(event.table_object)}
    if isinstance(event, r.Insert):
        part = {"ptnObjJson": tjson.dumps(event.partition)} if event.partition else {}
        return table | part | {"replace": str(event.replace).lower(), "files": _files(event.files)}
    truncate = {"isTruncateOp": str(event.truncate).lower()}
    if event.type == "ALTER_PARTITIONS":
        return table | truncate | {"partitionListJson": [tjson.dumps(change.after) for change in event.changes]}
    (change,) = event.changes
    images = {"partitionObjBeforeJson": tjson.dumps(change.before), "partitionObjAfterJson": tjson.dumps(change.after)}
    return table | truncate | images


def _files(files: Iterable[FileRef]) -> list[str]:
    return [f"{file.uri}#{file.checksum}#{file.cm_root}#{file.subdir}" for file in files]
