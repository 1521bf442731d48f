"""Messages about column statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from thrift.Thrift import TException

from hive_replication.events import event_records as r
from hive_replication.events.unpack import text_of, texts_of
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.statistics import ACCURATE, ENGINE
from hive_replication.metastore.types import ColumnStatistics, Table

Message = Mapping[str, Any]
Head = tuple[int, int, str, str, str]


def _update_statistics(head: Head, message: Message) -> r.Event:
    found = tjson.loads(ColumnStatistics, message["colStatsJson"])
    name = _partition(head, message, "partVals")
    _require_same(head, found.statsDesc.dbName, found.statsDesc.tableName)
    _require_whole(found.statsObj)
    parameters: Mapping[str, Any] = message.get("parameters") or {}
    accurate = text_of(parameters.get(ACCURATE))
    engine = (found.engine or ENGINE).lower()
    return r.UpdateStatistics(*head, partition_name=name, columns=tuple(found.statsObj), accurate=accurate, engine=engine)


def _delete_statistics(head: Head, message: Message) -> r.Event:
    partition = text_of(message["partName"]) if head[2] == "DELETE_PART_COL_STAT_EVENT" else ""
    return r.DeleteStatistics(*head, partition_name=partition, column=text_of(message["colName"]))


def _partition(head: Head, message: Message, key: str) -> str:
    values = texts_of(message.get(key))
    if not values:
        return ""
    table = tjson.loads(Table, message["tableObjJson"])
    _require_same(head, table.dbName, table.tableName)
    return partition_name([column.name for column in table.partitionKeys], values)


def _require_whole(columns: Iterable[Any]) -> None:
    """Makes sure that statistics have what a metastore requires of them: it closes the connection of whoever sends less.

    Raises:
        ValueError: they lack something.
    """
    try:
        for column in columns:
            column.validate()
            for one in cast("dict[str, Any]", vars(column.statsData)).values():
                if one is not None:
                    one.validate()
    except TException as error:
        raise ValueError(f"statistics are not whole: {error}") from error


def _require_same(head: Head, database: str, table: str) -> None:
    """Makes sure that statistics are of the row's table.

    Raises:
        ValueError: they are of another one.
    """
    if (database.lower(), table.lower()) != head[3:]:
        raise ValueError(f"its message is of the table {database}.{table}")


DECODERS: Mapping[str, Callable[[Head, Message], r.Event]] = {
    "UPDATE_TBL_COL_STAT_EVENT": _update_statistics,
    "UPDATE_PART_COL_STAT_EVENT": _update_statistics,
    "DELETE_TBL_COL_STAT_EVENT": _delete_statistics,
    "DELETE_PART_COL_STAT_EVENT": _delete_statistics,
}
