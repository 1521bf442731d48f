"""What a reader of a database sees: its objects with their files, and how two such states may differ.

Which directories a reader of a transactional table reads is found by Hive's rule, as :mod:`tests.crash.hive_reading` has it, not
by the product's: an error in that one would be the same on both sides, and not be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.marked_external import restored
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage, paths
from tests.crash.hive_reading import directories_read

_VOLATILE = ("repl.", "hive.repl.", "hive_replication.", "transient_lastDdlTime", "numFiles", "totalSize", "last_modified")


@dataclass(frozen=True, slots=True)
class Seen:
    """A database, table or partition as a reader sees it.

    Args:
        shape: its metadata, all that must be equal on both sides.
        files: names below its directory, with checksums.
        whole: whether it changes by transactions, and is never seen on the way from one state to a later one.
    """

    shape: str
    files: frozenset[tuple[str, str]] = frozenset()
    whole: bool = False


#: ``""`` for the database, ``table``, ``table/ds=1``; ``table write ids`` and :data:`TOGETHER` of transactional tables.
State = Mapping[str, Seen]
#: Stands for the transactional tables that are written to together by each window of a story, as one object.
TOGETHER = "together"
JOINED = ("a", "b")


#: Checksums of files seen before, by URI, bytes and modification time.
Known = dict[tuple[str, int, float], str]


def read_state(metastore: Metastore, storage: Storage, name: str, known: Known | None = None, *, renaming: bool = False) -> State:
    """Everything visible in a database; empty if it does not exist.

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
    tables = list(metastore.tables(name, metastore.table_names(name)))
    reader = Reader.now(metastore, name, [table.tableName.lower() for table in tables if is_transactional(table)])
    for table in tables:
        key = table.tableName.lower()
        shape = _table_shape(restored(table) if renaming else table)
        if table.partitionKeys:
            found[key] = Seen(shape)
            places += _partitions(metastore, table)
        else:
            places.append((key, shape, table.sd.location or ""))
    with ThreadPoolExecutor(8, thread_name_prefix="state") as pool:
        files = pool.map(lambda place: reader.needed(place[0], storage, place[2], _files(storage, place[2], known)), places)
        seen = {key: Seen(shape, held, reader.has(key)) for (key, shape, _), held in zip(places, files, strict=True)}
        return found | seen | reader.objects(seen)


@dataclass(frozen=True)
class Reader:
    """What a reader who begins now sees of all transactional tables of a database.

    Args:
        write_ids: by table.
        hidden: transactions whose compactions are not seen.
        highest: greatest write ids given out, by table.
    """

    write_ids: Mapping[str, WriteIds]
    hidden: Hidden
    highest: Mapping[str, int]

    @classmethod
    def now(cls, metastore: Metastore, database: str, tables: Sequence[str]) -> Reader:
        if not tables:
            return cls({}, Hidden(0), {})
        seen = metastore.write_ids(database, tables)  # in one call
        return cls(seen, metastore.hidden_transactions(), {name: metastore.max_write_id(database, name) for name in tables})

    def has(self, key: str) -> bool:
        """Whether an object is, or belongs to, a transactional table."""
        return key.partition("/")[0] in self.write_ids

    def needed(self, key: str, storage: Storage, location: str, files: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Those files of an object that the reader needs; the base that a truncation leaves has none of them."""
        if not self.has(key):
            return files
        there = {paths.name(one.uri.rstrip("/")) for one in storage.ls(location) if one.is_dir} if location else set[str]()
        names = directories_read(there, self.write_ids[key.partition("/")[0]], self.hidden)
        return frozenset((name, checksum) for name, checksum in files if name.partition("/")[0] in names)

    def objects(self, seen: State) -> State:
        """What stands for the write ids of the tables, and for those that are written to together."""
        found = {f"{name} write ids": Seen(str(highest)) for name, highest in self.highest.items()}
        return found | together(seen) if self.write_ids else {}


def together(seen: State) -> State:
    """The tables that are written to together, as one object."""
    joined = ((f"{key}/{name}", checksum) for key in JOINED if key in seen for name, checksum in seen[key].files)
    return {TOGETHER: Seen("", frozenset(joined), whole=True)}


def rebuilt(state: State, table: str) -> Iterator[State]:
    """What shows of a transactional table while it is dropped and made again: nothing, and then its first writes alone.

    Those are the ones before an aborted one, of which Hive knows before it knows of a later one (``ImpressWriteIds``).
    """
    key = f"{table} write ids"
    files, last = sorted(state[table].files), int(state[key].shape)
    others = {name: seen for name, seen in state.items() if name not in (table, key)}
    yield others | together(others)
    for highest in (0, last - 1, last):
        for number in range(len(files) if highest else 1):
            shown = replace(state[table], files=frozenset(files[:number]))
            made = others | {table: shown, key: Seen(str(highest))}
            yield made | together(made)


def _partitions(metastore: Metastore, table: Table) -> Iterator[tuple[str, str, str]]:
    keys, transactional = [key.name for key in table.partitionKeys], is_transactional(table)
    for part in metastore.partitions(table.dbName, table.tableName):
        yield (
            f"{table.tableName.lower()}/{partition_name(keys, part.values)}",
            _partition_shape(part, transactional=transactional),
            part.sd.location or "",
        )


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
    kept = _kept(table.parameters, transactional=is_transactional(table))
    serde = table.sd.serdeInfo.serializationLib if table.sd.serdeInfo else None
    return repr((columns, table.tableType, serde, kept, table.viewOriginalText))


def _partition_shape(part: Partition, *, transactional: bool) -> str:
    columns = [(column.name, column.type) for column in part.sd.cols]
    return repr((part.values, columns, _kept(part.parameters, transactional=transactional)))


def _kept(parameters: Mapping[str, str] | None, *, transactional: bool = False) -> list[tuple[str, str]]:
    """Those that must be equal; what they claim of the statistics of a transactional table is each metastore's own."""
    volatile = (*_VOLATILE, *(("COLUMN_STATS_ACCURATE",) if transactional else ()))
    return sorted((key, value) for key, value in (parameters or {}).items() if not key.startswith(volatile))


def differences(wanted: State, found: State) -> list[str]:
    """Differences between states that must be equal, one line per object."""
    return [
        f"{key or 'the database'}: {_shown(found.get(key))} instead of {_shown(wanted.get(key))}"
        for key in sorted(wanted.keys() | found.keys())
        if wanted.get(key) != found.get(key)
    ]


def half_visible(history: Sequence[State], found: State) -> list[str]:
    """Objects that a reader sees in a state that they never had at the source in this time; appends may show file by file."""
    always = set.intersection(*(set(state) for state in history))
    return [f"{key or 'the database'} is not there, which always was" for key in sorted(always - found.keys())] + [
        f"{key or 'the database'}: {_shown(seen)}, which it never was"
        for key, seen in found.items()
        if not _was([state.get(key) for state in history], seen)
    ]


def _was(past: list[Seen | None], seen: Seen) -> bool:
    """Whether an object had this state, or has it on the way from one state to a later one by appends alone."""
    if seen.whole:
        return seen in past
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
