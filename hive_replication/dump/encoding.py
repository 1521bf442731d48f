"""Records as the text of ``_metadata``, ``_dumpmetadata`` and ``_files``: JSON, with thrift objects as TJSON text (as Hive)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.records import DumpHeader, EventRecord, FileGroup, FunctionRecord, Scope, TableRecord
from hive_replication.events.files import FileRef
from hive_replication.events.records import Notification
from hive_replication.metastore import tjson
from hive_replication.metastore.constraints import KINDS, Constraint, grouped
from hive_replication.metastore.types import Database, Function, Table

#: Version of the layout; a reader refuses a greater one.
VERSION = "1"


def text(value: Mapping[str, Any]) -> bytes:
    """JSON text on a single line, UTF-8, the version first."""
    return json.dumps({"version": VERSION, **value}, ensure_ascii=False).encode()


def fields(data: bytes) -> dict[str, Any]:
    """Reads what :func:`text` wrote.

    Raises:
        ValueError: not JSON, or of a newer version.
    """
    value = json.loads(data)
    if not isinstance(value, dict) or value.get("version") != VERSION:  # pyright: ignore[reportUnknownMemberType]
        raise ValueError(f"written by another version than {VERSION}")
    return value  # pyright: ignore[reportUnknownVariableType]


def header_text(header: DumpHeader) -> bytes:
    """The content of ``_dumpmetadata``."""
    plain = {key: getattr(header, key) for key in (*_HEADER_PLAIN, *_HEADER_LATER)}
    return text(
        plain | {"scope": asdict(header.scope), "skipped": dict(header.skipped), "db": tjson.dumps(header.source_database)}
    )


_HEADER_PLAIN = ("kind", "source", "from_evid", "to_evid", "to_time", "to_hash", "created")
_HEADER_LATER = ("from_hash", "equal", "recovery", "metadata_only", "acid")  # dumps of earlier versions do not have them


def header_of(data: bytes) -> DumpHeader:
    """Reads ``_dumpmetadata``."""
    value = fields(data)
    names = value["scope"]["partitions"]
    scope = Scope(value["scope"]["database"], value["scope"]["table"], None if names is None else tuple(names))
    plain = {key: value[key] for key in _HEADER_PLAIN}
    plain |= {key: value[key] for key in _HEADER_LATER if key in value}
    plain["equal"] = tuple(plain.get("equal", ()))
    return DumpHeader(scope=scope, source_database=tjson.loads(Database, value["db"]), skipped=value["skipped"], **plain)


def constraints_fields(constraints: Iterable[Constraint]) -> dict[str, list[str]]:
    """Constraints by kind, each row as TJSON text (Hive's ``c_<table>`` and ``f_<table>``)."""
    found: dict[str, list[str]] = {}
    for one in constraints:
        found.setdefault(one.kind, []).extend(map(tjson.dumps, one.rows))
    return found


def constraints_of(value: Mapping[str, list[str]]) -> tuple[Constraint, ...]:
    """Reads what :func:`constraints_fields` made."""
    return tuple(
        one for kind, texts in value.items() for one in grouped(kind, (tjson.loads(KINDS[kind].row, text) for text in texts))
    )


def table_text(record: TableRecord) -> bytes:
    """The ``_metadata`` of a table."""
    constraints = constraints_fields(record.constraints)
    write_ids = {"write_ids": record.write_ids.encode(record.name)} if record.write_ids else {}  # Hive: repl.valid.writeid.list
    return text({"table": tjson.dumps(record.table), "constraints": constraints, "files": len(record.files)} | write_ids)


def table_of(data: bytes, files: Callable[[int], tuple[FileRef, ...]]) -> TableRecord:
    """Reads :func:`table_text`; ``files`` gives the table's files, when told how many there are."""
    value = fields(data)
    constraints = constraints_of(value.get("constraints", {}))
    write_ids = WriteIds.parsed(value["write_ids"]) if "write_ids" in value else None
    return TableRecord(tjson.loads(Table, value["table"]), files(value["files"]), constraints, write_ids)


def function_text(record: FunctionRecord) -> bytes:
    """The ``_metadata`` of a function."""
    return text({"function": tjson.dumps(record.function), "files": len(record.files)})


def function_of(data: bytes, files: Callable[[int], tuple[FileRef, ...]]) -> FunctionRecord:
    """Reads :func:`function_text`; ``files`` as for :func:`table_of`."""
    value = fields(data)
    return FunctionRecord(tjson.loads(Function, value["function"]), files(value["files"]))


def files_text(files: tuple[FileRef, ...]) -> bytes:
    """The content of ``_files``."""
    return "".join(f"{file.encode()}\n" for file in files).encode()


def files_of(data: bytes) -> tuple[FileRef, ...]:
    """Reads ``_files``."""
    return tuple(FileRef.decode(line) for line in data.decode().split("\n") if line)


def event_text(record: EventRecord) -> bytes:
    """The ``_metadata`` of an event's directory; its files stand in ``_files`` beside it."""
    groups = [
        {"partition": group.partition, "files": len(group.files), "listed": group.listed}
        | ({"table": group.table} if group.table else {})
        for group in record.groups
    ]
    return text(asdict(record.notification) | {"groups": groups, "hash": record.hash})


def event_of(data: bytes) -> tuple[EventRecord, list[int]]:
    """Reads an event's ``_metadata``: the event, its groups without their files, and the number of files of each."""
    value = fields(data)
    row = Notification(*(value[key] for key in ("evid", "time", "type", "database", "table", "message")))
    groups = tuple(FileGroup(one["partition"], (), one["listed"], one.get("table", "")) for one in value["groups"])
    return EventRecord(row, groups, value.get("hash", "")), [group["files"] for group in value["groups"]]


def group_path(event_path: str, group: FileGroup) -> str:
    """Directory of the files of one object of an event, below the event's own."""
    return "/".join(filter(None, (event_path, group.table, group.partition)))
