"""The metastore's own objects, under their own names (Hive's ``hive_metastore.thrift``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

from hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsObj,
    Database,
    DatabaseType,
    FieldSchema,
    Function,
    NotificationEvent,
    Order,
    Partition,
    PrincipalType,
    ResourceUri,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)
from thrift.Thrift import TType

__all__ = [
    "ColumnStatistics",
    "ColumnStatisticsObj",
    "Database",
    "FieldSchema",
    "Function",
    "NotificationEvent",
    "Order",
    "Partition",
    "PrincipalType",
    "ResourceUri",
    "SerDeInfo",
    "SkewedInfo",
    "StorageDescriptor",
    "Table",
    "columns_of",
    "copy_of",
    "described",
    "directory_of",
    "is_remote",
]

T = TypeVar("T")


def copy_of(thrift_object: T) -> T:
    """A deep copy, to change without changing the original."""
    return cast("T", _copy(thrift_object))


def columns_of(thing: Table | Partition | None) -> list[tuple[str, str, str]]:
    """Names, types and comments of an object's columns."""
    return described((thing.sd.cols if thing else None) or ())


def described(columns: Iterable[FieldSchema]) -> list[tuple[str, str, str]]:
    """Names, types and comments of columns; no comment is an empty one."""
    return [(column.name, column.type, column.comment or "") for column in columns]


def directory_of(thing: Table | Partition | None) -> str:
    """The location of a table or partition without a slash at the end; "" where it has none, or there is no such thing."""
    return (thing.sd.location or "").rstrip("/") if thing is not None else ""


def is_remote(database: Database) -> bool:
    """Whether a database's tables are those of another system, which the metastore reads by a data connector (Hive 4)."""
    return database.type == DatabaseType.REMOTE


def _copy(value: object) -> object:
    """``copy.deepcopy`` of what thrift's objects are made of, several times faster: a partition can have hundreds of columns."""
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, set):
        return set(cast("set[object]", value))
    if not hasattr(value, "thrift_spec"):
        return value
    made = object.__new__(type(value))
    vars(made).update({name: _copy(item) for name, item in vars(value).items()})
    return made


def _read_skewed_locations() -> None:
    """Lets tables stored as directories be read.

    The keys of their ``skewedColValueLocationMaps`` are lists, which a Python dict refuses; marked immutable they become
    tuples. The generated description of StorageDescriptor holds that of SkewedInfo, so it is replaced in both.
    """
    *others, (number, kind, name, _, default) = SkewedInfo.thrift_spec
    keys_as_tuples = (TType.LIST, (TType.STRING, "UTF8", True), TType.STRING, "UTF8", False)
    SkewedInfo.thrift_spec = (*others, (number, kind, name, keys_as_tuples, default))
    field = next(field for field in StorageDescriptor.thrift_spec if field and field[2] == "skewedInfo")
    field[3][1] = SkewedInfo.thrift_spec


_read_skewed_locations()
