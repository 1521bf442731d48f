"""Marks tables of an old source, and their partitions, as replicas of the database that replaced it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from hive_replication.dump.source import Source, why_skipped
from hive_replication.load.replica.fingerprint import FINGERPRINT
from hive_replication.load.replica.state import CHECKPOINT, LAST_ID, SOURCE
from hive_replication.load.replica.target import Target
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Partition, Table, copy_of

#: Of the time when it was a replica before: it was changed as a source since.
_OF_EARLIER_LOADS = (FINGERPRINT, CHECKPOINT)

Thing = TypeVar("Thing", Table, Partition)


def taken(source: Source, target: Target, database: str, aside: frozenset[str]) -> Iterator[Table]:
    """Tables of the old source that become replicas.

    Args:
        source: the side of the opened database, which tells what is replicated.
        target: the side of the old source.
        database: the old source.
        aside: tables that do not.
    """
    metadata_only = source.policy.metadata_only
    names = [name for name in target.metastore.table_names(database) if source.policy.includes(name) and name not in aside]
    for table in target.metastore.tables(database, names):
        if not why_skipped(table, metadata_only=metadata_only, acid=source.acid):
            yield table


def stamp(
    source: Source,
    target: Target,
    database: str,
    identity: str,
    evid: int,
    aside: frozenset[str],
    check: Callable[[], None],
) -> None:
    """Sets whose replicas they are and where they stand; what has it already stays as it is.

    Args:
        source: the side of the opened database.
        target: the side of the old source.
        database: the old source.
        identity: of the opened database.
        evid: event id that they stand at.
        aside: tables that are no replicas: what an earlier failback set is removed.
        check: raises if the lock is lost.
    """
    metastore = target.metastore
    for table in list(taken(source, target, database, aside)):
        for batch in batches(_names(target, database, table), at_once(table.sd.cols)):
            found = metastore.partitions(database, table.tableName, batch)
            if new := [_stamped(part, identity, evid) for part in found if not _is_stamped(part, identity, evid)]:
                check()
                metastore.alter_partitions(database, table.tableName, new)
        if not _is_stamped(table, identity, evid):
            check()
            metastore.alter_table(database, table.tableName, _stamped(table, identity, evid))
    for table in list(metastore.tables(database, sorted(aside))):
        if SOURCE in (table.parameters or {}):
            check()
            metastore.alter_table(database, table.tableName, _without(table))


def _names(target: Target, database: str, table: Table) -> list[str]:
    return target.metastore.partition_names(database, table.tableName) if is_partitioned(table) else []


def _is_stamped(thing: Table | Partition, identity: str, evid: int) -> bool:
    found = thing.parameters or {}
    return (found.get(SOURCE), found.get(LAST_ID)) == (identity, str(evid))


def _stamped(thing: Thing, identity: str, evid: int) -> Thing:
    made = copy_of(thing)
    kept = {key: value for key, value in (thing.parameters or {}).items() if key not in _OF_EARLIER_LOADS}
    made.parameters = {**kept, SOURCE: identity, LAST_ID: str(evid)}
    return made


def _without(table: Table) -> Table:
    made = copy_of(table)
    made.parameters = {key: value for key, value in (table.parameters or {}).items() if key not in (SOURCE, LAST_ID)}
    return made
