"""The directories that the tables and partitions of a database point at now; they are never moved or deleted."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from itertools import chain

from hive_replication.errors import Refused
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import noted
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.storage import Storage, paths

_LOG = logging.getLogger(__name__)


class Locations:
    """Directories that are in use.

    Args:
        data: directories with data; they, everything below them and the directories above them are in use.
        bases: directories of partitioned tables; what lies below one is in use only if a partition points at it.
    """

    def __init__(self, data: Iterable[str], bases: Iterable[str] = ()) -> None:
        # With a slash at the end, everything below a directory sorts right after it. Of millions no text is there twice.
        found = {f"{place}/" for place in data}
        self._bases = frozenset(f"{place}/" for place in bases) - found
        self._sorted = sorted(chain(found, self._bases))

    def contains(self, path: str) -> bool:
        """Whether a path is a directory with data, or lies below one."""
        parts = path.split("/")
        return any(self._has_data(f"{'/'.join(parts[:length])}/") for length in range(1, len(parts) + 1))

    def _has_data(self, place: str) -> bool:
        index = bisect_left(self._sorted, place)
        return self._sorted[index : index + 1] == [place] and place not in self._bases

    def touches(self, path: str) -> bool:
        """Whether anything that is in use lies at, above or below a path."""
        return self.contains(path) or self.any_below(path)

    def any_below(self, path: str) -> bool:
        """Whether anything at or below a path is in use."""
        index = bisect_left(self._sorted, f"{path}/")
        return index < len(self._sorted) and self._sorted[index].startswith(f"{path}/")

    def within(self, directory: str) -> Iterator[str]:
        """The places at or below a directory, but none that lies below another one of them."""
        above = ""
        for place in self._sorted:
            if place.startswith(f"{directory}/") and not (above and place.startswith(above)):
                above = place
                yield place.rstrip("/")

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
                bases.add(_normal(table.sd.location))
            elif table.sd.location:
                yield table.sd.location
            yield from partition_places(metastore, table)

    return Locations(map(_normal, data()), bases)  # which are known when the data is


def _normal(location: str) -> str:
    """Where the data of a table or partition lies, which anybody may have given a location that no load would."""
    return paths.normalise(paths.collapsed(location))


def place_of(thing: Table | Partition) -> str:
    """The same of a table or partition; where no load could choose it, as the metastore has it, and "" where there is none."""
    place = directory_of(thing)
    with suppress(Refused):
        return _normal(place)
    return place


def partition_places(metastore: Metastore, table: Table) -> Iterator[str]:
    """The directories of a table's partitions; none where it was dropped, or got another name, since it was read.

    Where the metastore does not show the account those of a table that is nobody's replica, they count as lying in its directory:
    it holds up nothing, and loses nothing. Those of a replica lie elsewhere, too.
    """
    if is_partitioned(table):
        try:
            yield from filter(None, map(place_of, metastore.partitions(table.dbName, table.tableName)))
        except NotFound:
            return
        except MetastoreError as error:
            if noted(table):
                raise
            place = place_of(table)
            _LOG.warning("partitions of %s.%s cannot be read: all of %s stays: %s", table.dbName, table.tableName, place, error)
            yield from filter(None, [place])


def entangled(places: Iterable[str]) -> frozenset[str]:
    """Those of some directories that are there twice, or lie above or below another one of them."""
    counts = Counter(places)
    found = {place for place, number in counts.items() if number > 1}
    for place in counts:
        parts = place.split("/")
        above = [one for length in range(1, len(parts)) if (one := "/".join(parts[:length])) in counts]
        found.update(above, [place] if above else ())
    return frozenset(found)


def databases_within(metastore: Metastore, directory: str, but: str = "") -> list[str]:
    """Directories of databases at or below a directory, in its spelling; paths are compared, since a store has several names.

    A database that the account may not read counts as lying there: it holds up nothing, and loses nothing.

    Args:
        metastore: the target's.
        directory: normalised.
        but: a database that is left out.
    """
    root, found = paths.split(directory)[2], list[str]()
    for name in metastore.databases():
        try:
            database = metastore.database(name) if name.lower() != but.lower() else None
        except MetastoreError as error:
            _LOG.warning("the target's database %s cannot be read, and may lie in %s: %s", name, directory, error)
            found.append(f"{directory}/{name}.db")
            continue
        for location in (database.locationUri, database.managedLocationUri) if database else ():
            with suppress(Refused):  # a path that no load goes to
                path = paths.split(paths.collapsed(location))[2] if location else ""
                if path and paths.is_under(path, root):
                    found.append(directory + path[len(root) :])
    return found
