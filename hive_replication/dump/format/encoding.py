"""Records as the text of ``_metadata``, ``_dumpmetadata`` and ``_files``: JSON, with thrift objects as TJSON text (as Hive)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple
from io import BytesIO
from typing import Any, cast

from hive_replication.acid.write_ids import WriteIds
from hive_replication.bounded_json import parsed
from hive_replication.dump.format import json_fields
from hive_replication.dump.format.digests import MOST
from hive_replication.dump.format.json_fields import VERSION
from hive_replication.dump.format.record_types import (
    DumpHeader,
    EventRecord,
    FileGroup,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.dump.format.validate_objects import whole_database, whole_function, whole_partition, whole_table
from hive_replication.events import redumps
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import TransactionWrite
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.constraints import KINDS, Constraint, grouped
from hive_replication.metastore.names import escape
from hive_replication.metastore.types import Database, Function, Partition, Table
from hive_replication.policy.scope import PartitionFilters

#: Version of events and headers with fields that readers of the first version would pass over, and lose data.
_VERSION_2 = "2"
_LONGEST = 200  # bytes of a directory's name: HDFS takes 255
MOST_FILES = 500_000  # files of one object: they are in memory together


def text(value: Mapping[str, Any], version: str = VERSION) -> bytes:
    """JSON text on a single line, UTF-8, the version first."""
    return json.dumps({"version": version, **value}, ensure_ascii=False).encode()


def header_text(header: DumpHeader) -> bytes:
    """The content of ``_dumpmetadata``."""
    plain = {key: getattr(header, key) for key in _HEADER}
    more = {"scope": asdict(header.scope), "skipped": dict(header.skipped), "db": tjson.dumps(header.source_database)}
    more |= {"digests": "sha256"} | ({"joined": dict(header.joined)} if header.joined else {})
    more |= {"filters": header.filters.texts} if header.filters.texts else {}
    more |= {"unshown": dict(header.unshown)} if header.unshown else {}
    return text(plain | more, _VERSION_2 if header.joined or header.filters.texts or header.unshown else VERSION)


_HEADER = (
    *("kind", "source", "from_evid", "to_evid", "to_time", "to_hash", "created"),
    *("from_hash", "equal", "recovery", "metadata_only", "acid", "taken", "before", "read"),
    *("policy", "target"),
)


def header_of(data: bytes, *, digests: bool = True) -> DumpHeader:
    """Reads ``_dumpmetadata``.

    Args:
        data: the text.
        digests: whether the dump has digests: one whose header says so must have them.

    Raises:
        ValueError: it is no header, or says more than is there.
    """
    value = json_fields.read(json_fields.HeaderText, data, VERSION, _VERSION_2, most=MOST["_dumpmetadata"])
    if value.digests and not digests:
        raise ValueError("its header says that it has digests, and the ack file has none")
    names = value.scope.partitions
    scope = Scope(value.scope.database, value.scope.table, None if names is None else tuple(names))
    plain: dict[str, Any] = {key: getattr(value, key) for key in _HEADER} | {"equal": tuple(value.equal), "joined": value.joined}
    plain["unshown"] = value.unshown
    plain["read"] = None if value.read is None else tuple(value.read)
    database = whole_database(tjson.loads(Database, value.db))
    filters = PartitionFilters.read(value.filters)
    return DumpHeader(scope=scope, source_database=database, skipped=value.skipped, filters=filters, **plain)


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
    """Reads :func:`table_text`; ``files`` reads the table's files, given their number."""
    value = json_fields.read(json_fields.ObjectText, data, VERSION)
    write_ids = None if value.write_ids is None else WriteIds.parsed(value.write_ids)
    table = whole_table(tjson.loads(Table, value.table))
    return TableRecord(table, files(value.files), constraints_of(value.constraints), write_ids)


def partition_text(record: PartitionRecord) -> bytes:
    """The ``_metadata`` of a partition."""
    return text({"partition": tjson.dumps(record.partition), "files": len(record.files)})


def partition_of(data: bytes) -> tuple[Partition, int]:
    """Reads :func:`partition_text`: the metastore's object, and the number of its files."""
    value = json_fields.read(json_fields.ObjectText, data, VERSION)
    return whole_partition(tjson.loads(Partition, value.partition)), value.files


def function_text(record: FunctionRecord) -> bytes:
    """The ``_metadata`` of a function."""
    return text({"function": tjson.dumps(record.function), "files": len(record.files)})


def function_of(data: bytes, files: Callable[[int], tuple[FileRef, ...]]) -> FunctionRecord:
    """Reads :func:`function_text`; ``files`` as for :func:`table_of`."""
    value = json_fields.read(json_fields.ObjectText, data, VERSION)
    return FunctionRecord(whole_function(tjson.loads(Function, value.function)), files(value.files))


def files_text(files: tuple[FileRef, ...]) -> bytes:
    """The content of ``_files``."""
    return "".join(f"{file.encode()}\n" for file in files).encode()


def files_of(data: bytes) -> tuple[FileRef, ...]:
    """Reads ``_files``.

    Raises:
        ValueError: a line is none, or there are too many.
    """
    if data.count(b"\n") > MOST_FILES:
        raise ValueError(f"_files names more than the {MOST_FILES:,} files that one object may have")
    lines = (line.rstrip(b"\n").decode() for line in BytesIO(data))
    return tuple(FileRef.decode(line) for line in lines if line)


def event_text(record: EventRecord) -> bytes:
    """The ``_metadata`` of an event's directory; its files stand in ``_files`` beside it."""
    groups = [
        {"partition": group.partition, "files": len(group.files), "listed": group.listed}
        | ({"table": group.table} if group.table else {})
        for group in record.groups
    ]
    more: dict[str, Any] = {"writes": [astuple(one) for one in record.writes]} if record.writes else {}
    more |= {name: value for name, value in (("redump", record.redump), ("shared", record.shared)) if value}
    values = asdict(record.notification) | {"groups": groups, "hash": record.hash} | more
    return text(values, _VERSION_2 if more else VERSION)


def event_of(data: bytes) -> tuple[EventRecord, list[int]]:
    """Reads an event's ``_metadata``: the event, its groups without their files, and the number of files of each."""
    value = json_fields.read(json_fields.EventText, data, VERSION, _VERSION_2)
    row = Notification(value.evid, value.time, value.type, value.database, value.table, value.message, value.catalog)
    groups = tuple(FileGroup(one.partition, (), one.listed, one.table) for one in value.groups)
    if value.version == VERSION:
        value = _with_keys_in_message(value)
    writes = tuple(TransactionWrite(*one) for one in value.writes)
    return EventRecord(row, groups, value.hash, writes, value.redump, value.shared), [one.files for one in value.groups]


def _with_keys_in_message(value: json_fields.EventText) -> json_fields.EventText:
    """What dumps of the first version wrote into the source's message: the writes of a commit, and the dump of a table."""
    names = {}
    if value.type == "COMMIT_TXN" and '"writes"' in value.message:
        names = {"writes": "writes"}
    if value.type in redumps.TYPES and '"anew"' in value.message:
        names = {"redump": "anew"}
    if not names:
        return value
    message: dict[str, Any] = {}
    with suppress(ValueError):  # a message that cannot be read has none
        read: Any = parsed(value.message.encode(), most=MOST["_metadata"])
        message = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    found = {name: message[key] for name, key in names.items() if key in message}
    return json_fields.checked(json_fields.EventText, value.model_dump() | found)


def group_path(event_path: str, group: FileGroup) -> str:
    """Directory of the files of one object of an event, below the event's own."""
    table = path_name(group.table, "_metadata") if group.table else ""
    return "/".join(filter(None, (event_path, table, group.partition)))


def path_name(name: str, *reserved: str) -> str:
    """The directory of a table or function: its name, percent-encoded where the name cannot be one.

    Args:
        name: any that a metastore accepts, such as ``a/b``, ``..`` or ``_metadata``.
        reserved: names that mean something else at this place.
    """
    text = escape(name)
    if name in reserved or name.startswith("."):
        text = f"%{ord(name[0]):02X}{text[1:]}"
    long = text.encode()
    return text if len(long) <= _LONGEST else f"{long[:100].decode(errors='ignore')}~{hashlib.sha256(name.encode()).hexdigest()}"
