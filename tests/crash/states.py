"""What a reader of a database sees: its objects with their files, and how two such states may differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hive_replication.load.renames import unmarked
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage

_VOLATILE = ("repl.", "hive.repl.", "hive_replication.", "transient_lastDdlTime", "numFiles", "totalSize", "last_modified")


@dataclass(frozen=True, slots=True)
class Seen:
    """A database, table or partition as a reader sees it.

    Args:
        shape: its metadata, all that must be equal on both sides.
        files: names below its directory, with checksums.
    """

    shape: str
    files: frozenset[tuple[str, str]] = frozenset()


#: ``""`` for the database, ``table``, ``table/ds=1``.
State = Mapping[str, Seen]


#: Checksums of files seen before, by URI, bytes and modification time.
Known = dict[tuple[str, int, float], str]


def read_state(metastore: Metastore, storage: Storage, name: str, known: Known | None = None, *, renaming: bool = False) -> State:
    """Everything visible in a database; nothing where there is none.

    Args:
        metastore: of its side.
        storage: of its side.
        name: the database.
        known: checksums seen before.
        renaming: a managed table may be an external one for the time of a rename, and counts as managed then.
    """
    known = {} if known is None else known
    database = metastore.database(name)
    if database is None:
        return {}
    found = {"": Seen(repr((database.description, _kept(database.parameters))))}
    places: list[tuple[str, str, str]] = []
    for table in metastore.tables(name, metastore.table_names(name)):
        key = table.tableName.lower()
        shape = _table_shape(unmarked(table) if renaming else table)
        if table.partitionKeys:
            found[key] = Seen(shape)
            places += _partitions(metastore, table)
        else:
            places.append((key, shape, table.sd.location or ""))
    with ThreadPoolExecutor(8, thread_name_prefix="state") as pool:
        files = pool.map(lambda place: _files(storage, place[2], known), places)
        return found | {key: Seen(shape, held) for (key, shape, _), held in zip(places, files, strict=True)}


def _partitions(metastore: Metastore, table: Table) -> Iterator[tuple[str, str, str]]:
    keys = [key.name for key in table.partitionKeys]
    for part in metastore.partitions(table.dbName, table.tableName):
        yield f"{table.tableName.lower()}/{partition_name(keys, part.values)}", _partition_shape(part), part.sd.location or ""


def _files(storage: Storage, location: str, known: Known) -> frozenset[tuple[str, str]]:
    location, found = location.rstrip("/"), set[tuple[str, str]]()
    for status in storage.files(location) if location else ():
        key = status.uri, status.size, status.modified
        if key not in known:
            checksum = storage.checksum(status.uri)
            known[key] = checksum.value if checksum else ""
        found.add((status.uri[len(location) + 1 :], known[key]))
    return frozenset(found)


def _table_shape(table: Table) -> str:
    columns = [(column.name, column.type) for column in (*table.sd.cols, *(table.partitionKeys or ()))]
    serde = table.sd.serdeInfo.serializationLib if table.sd.serdeInfo else None
    return repr((columns, table.tableType, serde, _kept(table.parameters), table.viewOriginalText))


def _partition_shape(part: Partition) -> str:
    return repr((part.values, [(column.name, column.type) for column in part.sd.cols], _kept(part.parameters)))


def _kept(parameters: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return sorted((key, value) for key, value in (parameters or {}).items() if not key.startswith(_VOLATILE))


def differences(wanted: State, found: State) -> list[str]:
    """What must be equal and is not, an object a line."""
    return [
        f"{key or 'the database'}: {_shown(found.get(key))} instead of {_shown(wanted.get(key))}"
        for key in sorted(wanted.keys() | found.keys())
        if wanted.get(key) != found.get(key)
    ]


def half_visible(history: Sequence[State], found: State) -> list[str]:
    """Objects that a reader sees as they never were at the source in this time; appends may show file by file."""
    always = set.intersection(*(set(state) for state in history))
    return [f"{key or 'the database'} is not there, which always was" for key in sorted(always - found.keys())] + [
        f"{key or 'the database'}: {_shown(seen)}, which it never was"
        for key, seen in found.items()
        if not _was([state.get(key) for state in history], seen)
    ]


def _was(past: list[Seen | None], seen: Seen) -> bool:
    """Whether an object had this state, or has it on the way from one state to a later one by appends alone."""
    for first, begin in enumerate(past):
        if begin is None or not begin.files <= seen.files:
            continue
        shapes, files = {begin.shape}, begin.files
        for later in past[first:]:
            if later is None or not files <= later.files:
                break
            shapes.add(later.shape)
            files = later.files
            if seen.files <= files and seen.shape in shapes:
                return True
    return False


def _shown(seen: Seen | None) -> str:
    if seen is None:
        return "absent"
    return f"{sorted(name for name, _ in seen.files)} {re.sub(r'[0-9a-f]{32,}', '…', seen.shape)}"
