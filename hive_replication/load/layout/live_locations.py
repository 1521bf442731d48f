"""The directories that the tables and partitions of a database point at now; they are never moved or deleted."""

from __future__ import annotations

import logging
import posixpath
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import noted
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

_STORE = re.compile(r"((?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(//(?P<name>[^/]*))?")
# The name of such a store is that of a bucket, which has no other one. HDFS and all others may have several.
_OF_BUCKETS = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "oss"})


def _split(uri: str) -> tuple[str, str]:
    """The bucket that a URI lies in, "" on a store that is none, and its path."""
    found = _STORE.match(uri)
    if found is None or (found["scheme"] or "").lower() not in _OF_BUCKETS:
        return "", uri[found.end() if found else 0 :].rstrip("/")
    return (found["name"] or "").lower(), uri[found.end() :].rstrip("/")


def place(location: str) -> str:
    """What tells where a table or partition lies, which anybody may have put anywhere: its path, as Hadoop takes it.

    A store has several names, and Hive keeps each location as it was given: with a NameNode, the nameservice, one of them in
    capitals, or without a store. Where two stores have one path, something stays that could go; in a bucket, its name counts.
    """
    bucket, path = _split(location)
    return bucket + posixpath.normpath(f"/{path.lstrip('/')}").rstrip("/")


class Locations:
    """Directories that are in use, whatever their store is called (:func:`place`).

    Args:
        data: directories with data; they, everything below them and the directories above them are in use.
        bases: directories of partitioned tables; what lies below one is in use only if a partition points at it.
    """

    def __init__(self, data: Iterable[str], bases: Iterable[str] = ()) -> None:
        # With a slash at the end, everything below a directory sorts right after it. Of millions no text is there twice.
        found = {f"{place(one)}/" for one in data if one}
        self._bases = frozenset(f"{place(one)}/" for one in bases) - found  # which may be known when the data is
        self._sorted = sorted(chain(found, self._bases))

    def contains(self, path: str) -> bool:
        """Whether a path is a directory with data, or lies below one."""
        return any(self._has_data(f"{above}/") for one in asked(path) for above in ancestors(one))

    def _has_data(self, directory: str) -> bool:
        index = bisect_left(self._sorted, directory)
        return self._sorted[index : index + 1] == [directory] and directory not in self._bases

    def touches(self, path: str) -> bool:
        """Whether anything that is in use lies at, above or below a path."""
        return self.contains(path) or self.any_below(path)

    def any_below(self, path: str) -> bool:
        """Whether anything at or below a path is in use."""
        return any(self._begins(f"{one}/") for one in asked(path))

    def _begins(self, directory: str) -> bool:
        index = bisect_left(self._sorted, directory)
        return index < len(self._sorted) and self._sorted[index].startswith(directory)

    def within(self, directory: str) -> Iterator[str]:
        """The places at or below a directory, in its spelling, but none that lies below another one of them."""
        root, above = "".join(_split(directory)), ""
        for one in self._sorted:
            if one.startswith(f"{root}/") and not (above and one.startswith(above)):
                above = one
                yield directory.rstrip("/") + one[len(root) :].rstrip("/")

    def unused_parts(self, storage: Storage, path: str) -> Iterator[str]:
        """The path itself if it is not in use, otherwise the largest subdirectories and files of it that are not."""
        if self.contains(path):
            return
        if not self.any_below(path):
            yield path
            return
        for child in storage.ls(path):
            if child.uri.rstrip("/") != path:
                yield from self.unused_parts(storage, child.uri.rstrip("/"))


def asked(path: str) -> set[str]:
    """What a file or directory is looked for by; in a bucket also its path alone: a cluster may have it for its default store."""
    bucket, below = _split(path)
    return {bucket + below, below}


def ancestors(directory: str) -> Iterator[str]:
    """What a place lies in, from the root of its store on, and itself."""
    parts = directory.split("/")
    return ("/".join(parts[:length]) for length in range(1, len(parts) + 1))


def all_tables(metastore: Metastore, database: str, but: Collection[str] = ()) -> Iterator[Table]:
    """Tables of a database; those that get another name meanwhile are among them, under one of their names at least.

    Args:
        metastore: the target's, where other lanes drop and rename tables at the same time.
        database: target database.
        but: names that are left out.
    """
    read = set(but)
    while names := [name for name in metastore.table_names(database) if name not in read]:
        read.update(names)
        yield from metastore.tables(database, names)


def live_locations(metastore: Metastore, database: str, protected: Iterable[str] = (), but: Collection[str] = ()) -> Locations:
    """Reads the locations of all tables and partitions of a database.

    Args:
        metastore: the target's.
        database: target database.
        protected: further directories that count as in use.
        but: names of tables that are left out.
    """
    bases = set[str]()

    def data() -> Iterator[str]:
        yield from protected
        for table in all_tables(metastore, database, but):
            if table.sd.location and table.partitionKeys:
                bases.add(table.sd.location)
            elif table.sd.location:
                yield table.sd.location
            yield from partition_places(metastore, table)

    return Locations(data(), bases)


def place_of(thing: Table | Partition) -> str:
    """Where a table or partition lies, as :func:`place`; "" where it has no directory."""
    directory = directory_of(thing)
    return place(directory) if directory else ""


def partition_places(metastore: Metastore, table: Table) -> Iterator[str]:
    """The directories of a table's partitions; none where it was dropped, or got another name, since it was read.

    Where the metastore does not show the account those of a table that is nobody's replica, they count as lying in its directory:
    it holds up nothing, and loses nothing. Those of a replica lie elsewhere, too.
    """
    if is_partitioned(table):
        try:
            yield from filter(None, map(directory_of, metastore.partitions(table.dbName, table.tableName)))
        except NotFound:
            return
        except MetastoreError as error:
            if noted(table):
                raise
            own = directory_of(table)
            _LOG.warning("partitions of %s.%s cannot be read: all of %s stays: %s", table.dbName, table.tableName, own, error)
            yield from filter(None, [own])


def entangled(places: Iterable[str]) -> frozenset[str]:
    """Those of some places (:func:`place`) that are there twice, or lie above or below another one of them."""
    counts = Counter(places)
    found = {one for one, number in counts.items() if number > 1}
    for one in counts:
        above = [other for other in ancestors(one) if other in counts and other != one]
        found.update(above, [one] if above else ())
    return frozenset(found)


def databases_within(metastore: Metastore, directory: str, but: str = "") -> list[str]:
    """Directories of databases at or below a directory, in its spelling, whatever their store is called (:func:`place`).

    A database that the account may not read counts as lying there: it holds up nothing, and loses nothing.

    Args:
        metastore: the target's.
        directory: normalised.
        but: a database that is left out.
    """
    root, found = place(directory), list[str]()
    for name in metastore.databases():
        try:
            database = metastore.database(name) if name.lower() != but.lower() else None
        except MetastoreError as error:
            _LOG.warning("the target's database %s cannot be read, and may lie in %s: %s", name, directory, error)
            found.append(f"{directory}/{name}.db")
            continue
        for location in (database.locationUri, database.managedLocationUri) if database else ():
            if location and f"{place(location)}/".startswith(f"{root}/"):
                found.append(directory + place(location)[len(root) :])
    return found
