"""Strays: tables and partitions of a target database that the source does not have, and directories without a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.journal.journal import Journal
from hive_replication.load.layout.live_locations import databases_within, live_locations
from hive_replication.load.replica.target import Target
from hive_replication.load.retention.old_directories import old_directories
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.types import Table
from hive_replication.storage import paths
from hive_replication.storage.paths import is_hidden


@dataclass(frozen=True, slots=True)
class Stray:
    """Something on the target that is no replica of anything.

    Args:
        kind: what it is.
        name: ``orders``, ``orders/ds=1``, or a URI.
        location: URI of its data, or "".
    """

    kind: Literal["table", "partition", "directory", "file"]
    name: str
    location: str


def strays(source: Source, target: Target, database: str) -> Iterator[Stray]:
    """Finds strays in a replica as both sides are now. A dropped table whose event waits counts as one.

    Old data kept for running queries and everything below ``.repl`` are deleted by retention and do not count, nor do hidden
    names (``.`` and ``_`` in front) and directories of other databases.

    Args:
        source: the source side.
        target: the target side.
        database: source name.

    Raises:
        BadRequest: the target has no such database.
    """
    name = source.policy.target_of(database)
    found = target.metastore.database(name)
    if found is None or not found.locationUri:
        raise BadRequest(f"the target has no database {name!r}")
    yield from _objects(source, target.within_filters(database), database, name)
    yield from _paths(target, name, found.locationUri.rstrip("/"))


def _objects(source: Source, target: Target, database: str, name: str) -> Iterator[Stray]:
    includes = source.policy.includes
    ours = set(source.metastore.table_names(database))
    for table in target.metastore.tables(name, sorted(filter(includes, target.metastore.table_names(name)))):
        if table.tableName not in ours:
            yield Stray("table", table.tableName, table.sd.location or "")
        elif is_partitioned(table) and not source.policy.metadata_only:
            with suppress(MetastoreError):  # dropped meanwhile on either side, or not shown: nobody knows
                yield from _partitions(source, target, database, name, table)


def _partitions(source: Source, target: Target, database: str, name: str, table: Table) -> Iterator[Stray]:
    there = set(target.metastore.partition_names(name, table.tableName))
    lacking = sorted(there.difference(source.metastore.partition_names(database, table.tableName)))
    for partition, one in sorted(by_name(table, target.metastore.partitions(name, table.tableName, lacking)).items()):
        yield Stray("partition", f"{table.tableName}/{partition}", one.sd.location or "")


def _paths(target: Target, name: str, location: str) -> Iterator[Stray]:
    journal = Journal(target.storage, location)
    old = old_directories(journal.places_of(journal.entries()))
    others = databases_within(target.metastore, location, name)  # as all do in the directory of ``default``
    live = live_locations(target.metastore, name, [*old, *others])
    for child in target.storage.ls(location):
        if is_hidden(paths.name(child.uri)):
            continue
        for part in live.unused_parts(target.storage, paths.normalise(child.uri)):
            if not is_hidden(part[len(location) + 1 :]):
                status = target.storage.status(part)
                yield Stray("directory" if status is None or status.is_dir else "file", part, part)
