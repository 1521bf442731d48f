"""Bases of transactions on the target: an INSERT OVERWRITE's and a TRUNCATE's.

Hive reads the base of a table's lowest open write, too (``AcidUtils.isValidBase``): its own readers wait for the writer's lock,
and a load has none. So the base of an INSERT OVERWRITE lies beside its place, under a hidden name, until all of it is there and
its transaction is about to be committed. Object stores rename file by file, which shows no less of it on the way: there it is
copied to its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from hive_replication.acid.directories import base_name
from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import staged_base
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import directory_of
from hive_replication.storage import AlreadyExists, Storage, paths

#: Target table, partition ("" for the table itself) and write id of a write.
Write = tuple[str, str, int]
# The file that Hive's TRUNCATE writes into the base that it leaves (AcidUtils.MetaDataFile), and what it holds.
_LEFT = "_metadata_acid"
_TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


def is_staged(storage: Storage, directory: str, write_id: int, files: Iterable[FileRef]) -> bool:
    """Whether the files of a base are copied to where it is staged, and not to its place, where an earlier attempt has put it.

    A truncation by the same transaction leaves no files there that Hive reads as data. Where the base itself has none, as that of
    a TRUNCATE whose source is a replica, its files tell.

    Args:
        storage: of the target.
        directory: of the table or partition.
        write_id: of the base.
        files: of the write.
    """
    base = base_name(write_id)
    names = [file.relative for file in files if file.relative.startswith(f"{base}/")]
    if not names or not storage.has_directories(directory):
        return False
    if all(map(paths.is_hidden, names)):
        return not any(storage.exists(f"{directory}/{name}") for name in names)
    return not storage.named_files(f"{directory}/{base}")


def show_base(storage: Storage, directory: str, write_id: int) -> None:
    """Gives the base of a write to a table or partition its place; nothing where it has it.

    Raises:
        ReplicationError: it is neither there nor staged, or in part in both.
    """
    place, staged = (f"{directory}/{name}" for name in (base_name(write_id), staged_base(base_name(write_id))))
    if not storage.has_directories(directory):
        return
    try:
        storage.rename(staged, place)
    except FileNotFoundError:
        if not storage.exists(place):
            raise ReplicationError(f"{staged} went away before its transaction was committed: load it again") from None
    except AlreadyExists:
        shown = storage.named_files(place)
        if not shown:  # an earlier statement of its transaction has truncated the table
            storage.delete(place, recursive=True)
            storage.rename(staged, place)
            return
        # Its files were copied there, but for what an earlier attempt has left.
        if left := storage.named_files(staged).keys() - shown.keys():
            raise ReplicationError(f"{place} was made meanwhile, without {min(left)} of {staged}: load it again") from None
        storage.delete(staged, recursive=True)


def show_bases(target: Target, database: str, written: Iterable[Write]) -> None:
    """Gives staged bases their places, all of a table together; nothing in an object that went away.

    Raises:
        Refused: one lies outside the directories that the policy allows.
        ReplicationError: one is not there.
    """
    names: dict[tuple[str, int], list[str]] = {}
    for table, partition, write_id in written:
        names.setdefault((table, write_id), []).append(partition)
    for (name, write_id), parts in names.items():
        table, boundary = target.metastore.table(database, name), boundary_of(target, database)
        if table is None:
            continue
        below = by_name(table, target.metastore.partitions(database, name, filter(None, parts))) if any(parts) else {}
        things = {"": table, **below} if "" in parts else below
        for partition, thing in things.items():
            boundary.require_within(directory_of(thing), object_name(database, name, partition))
        show = partial(show_base, target.storage, write_id=write_id)
        list(target.storage.threads.map(show, map(directory_of, things.values())))


def leave_base(target: Target, database: str, table: str, partition: str, write_id: int) -> None:
    """Writes an empty base for a write id, as TRUNCATE does; nothing in an object that went away.

    Raises:
        Refused: the object lies outside the directories that the policy allows.
    """
    metastore = target.metastore
    thing = next(metastore.partitions(database, table, [partition]), None) if partition else metastore.table(database, table)
    if thing is not None:
        boundary_of(target, database).require_within(directory_of(thing), object_name(database, table, partition))
        target.storage.write(f"{directory_of(thing)}/{base_name(write_id)}/{_LEFT}", _TRUNCATED)


def left_bases(target: Target, database: str, policy: str, transaction: int) -> Iterator[tuple[Write, str]]:
    """Bases of what stands for a transaction, as truncations leave them: table, partition and write id of each, and its URI."""
    metastore = target.metastore
    opened = metastore.replay_open(policy, [transaction])[transaction]
    tables = [one for one in metastore.tables(database, metastore.table_names(database)) if is_transactional(one)]
    written = dict(metastore.write_ids_of(opened.id, database, [one.tableName for one in tables]))
    for table in tables:
        if (write_id := written.get(table.tableName)) is not None:
            parts = by_name(table, metastore.partitions(database, table.tableName)) if table.partitionKeys else {}
            bases = [(part, f"{directory_of(thing)}/{base_name(write_id)}") for part, thing in {"": table, **parts}.items()]
            here = target.storage.threads.map(lambda one: one if target.storage.exists(one[1]) else None, bases)
            yield from (((table.tableName, part, write_id), base) for part, base in filter(None, here))


def base_files(write_id: int) -> tuple[str, ...]:
    """What the target's metastore is told of an empty base: it notes no write without a file."""
    return (told(base_name(write_id), _LEFT),)


def told(subdir: str, name: str) -> str:
    """How the target's metastore is told of a file of a transactional table; "" where Hive's list cannot have it.

    ``commit_txn`` takes all but the name and the directory from its own table, and both as they are: it asks for the file's
    checksum, and commits nothing where it does not find the file.

    Args:
        subdir: directory of the file below its table or partition.
        name: of the file.
    """
    return "" if {"#", "]"} & {*subdir, *name} else f"/{name}###{subdir}"
