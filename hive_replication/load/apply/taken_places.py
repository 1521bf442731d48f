"""Directories of the target that another object has, or is about to get: a new one does not go there."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from threading import Lock

from hive_replication.errors import MetastoreError, Refused, ReplicationError, Unreachable
from hive_replication.load.layout.directories import may_be_staged, owner_mark
from hive_replication.load.layout.live_locations import (
    Locations,
    all_tables,
    ancestors,
    asked,
    live_locations,
    partition_places,
    place,
    place_of,
)
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.avro_schemas import CopySchemas
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.operations.constraints import SetConstraints
from hive_replication.load.operations.functions import CreateFunction
from hive_replication.load.operations.statistics import SetStatistics
from hive_replication.load.operations.transactions import ImpressWriteIds
from hive_replication.load.replica.target import Target
from hive_replication.logs import about
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.names import unescape
from hive_replication.metastore.types import directory_of
from hive_replication.parallel import Call
from hive_replication.storage import AlreadyExists, Denied, paths

_LOG = logging.getLogger(__name__)
_MOST = 16 << 10  # bytes of a mark
_MOST_CLAIMED = 200_000  # directories that stay in memory from segment to segment
#: After these every table lies where it did, or where it was claimed, or in a directory that has its load's number.
_WITHIN_CLAIMS = (
    *(op.CreateTable, op.AlterTable, op.AddPartitions, op.AlterPartitions, op.DropPartitions, op.ReplaceData, op.AppendData),
    *(CopySchemas, CreateFunction, ImpressWriteIds, SetColumns, SetConstraints, SetStatistics),
)

#: Table and partition name, "" for the table itself.
Owner = tuple[str, str]


class TakenPlaces:
    """The places of one target database during a load; reads its locations only where a directory exists, its tables' once.

    What the load itself places after that is in its claims; see :meth:`carried_out`.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory, which tells it from all others that share an ``external_root``.
    """

    def __init__(self, target: Target, database: str, location: str) -> None:
        self._target, self._database, self._location = target, database, location
        self._lock = Lock()
        self._staged = Call(self._locations_in_staging)
        self._forget()

    def _forget(self) -> None:
        self._tables = Call(self._locations_of_tables)
        self._claimed: dict[str, Owner] = {}
        self._above: set[str] = set()
        self._forget_parts()

    def _forget_parts(self) -> None:
        self._owned: dict[str, Call[bool]] = {}
        self._databases = Call(self._locations_of_databases)
        self._read: dict[str, Call[Locations]] = {}
        self._live = Call(partial(live_locations, self._target.metastore, self._database))
        self._partitions: dict[str, Call[frozenset[str]]] = {}

    def carried_out(self, operations: Iterable[op.Operation], *, held: bool) -> None:
        """Follows a segment, of which no thread is under way: the next one reads the places of partitions again.

        It reads those of the tables again, too, where one may lie elsewhere that is not claimed, or where too much is claimed.

        Args:
            operations: of its lanes.
            held: whether one of them failed, as where the tables could not be read.
        """
        if held or len(self._claimed) > _MOST_CLAIMED or not all(isinstance(one, _WITHIN_CLAIMS) for one in operations):
            self._forget()
        else:
            self._forget_parts()

    def is_a_tables(self, directory: str) -> bool:
        """Whether a directory is another table's, lies in one that is read, or has one inside.

        A table keeps its directory when it is renamed, so one of another name may lie there. Most new directories are right below
        the database's and do not exist: then there is nothing to be asked.
        """
        if self._is_beside(directory) and self.is_live(directory):
            return True
        if not self._target.storage.exists(self._topmost(directory)):
            return False
        tables, partitioned = self._tables.result()
        return tables.touches(directory) or any(
            self._in_partitions(table).touches(directory)
            for one in asked(directory)
            for above in ancestors(one)
            for table in partitioned.get(above, ())
        )

    def is_another_partitions(self, table: str, values: list[str], directory: str) -> bool:
        """Whether an existing directory is another partition's (a partition keeps its directory when it is renamed).

        Args:
            table: its name on the target before the lane, "" if the lane creates it.
            values: of the partition that is to go there.
            directory: it exists.
        """
        if self._is_beside(directory):
            return self.is_live(directory)
        if not table:
            return False
        with self._lock:  # lanes of other tables do not wait until they are read
            places = self._partitions.setdefault(table, Call(partial(self._odd_places, table)))
        return not _spells(directory, values) or place(directory) in places.result() or self._is_in_table(directory)

    def is_live(self, directory: str) -> bool:
        """Whether a directory below ``external_root`` has data that a table or partition of the database reads.

        One that does not exist may lie in a table's all the same, which it does not at the source.
        """
        if self._is_in_table(directory):
            return True
        if not self._target.storage.exists(directory):  # most do not, and then nobody asks for the places of all partitions
            return False
        return self._live.result().touches(directory)

    def is_used_staging(self, directory: str) -> bool:
        """Whether an existing staging directory has had data that a table or partition reads since before this load.

        They are read once a load: what it places in them itself has names of its own. Where they cannot be, as of one table whose
        partitions the metastore refuses, others are staged elsewhere.
        """
        try:
            return self._staged.result().touches(directory)
        except MetastoreError as error:
            _LOG.warning("whether %s is in use is not known: %s", directory, error, extra=about(self._database))
            return True

    def claim_table(self, directory: str, table: str, *, partitioned: bool) -> bool:
        """Takes a directory for a table: see :meth:`claim`; below ``external_root`` a partitioned one's are taken one by one."""
        return (partitioned and self._is_beside(directory)) or self.claim(directory, (table, ""))

    def claim(self, directory: str, owner: Owner) -> bool:
        """Takes a directory for an object of this load; False if another one has taken it, one above or one below it.

        Paths are those of the source, where objects may share a directory. Below the database's directory, nothing is claimed for
        partitions, which lie in their table's.
        """
        if owner[1] and not self._is_beside(directory):
            return True
        above = list(_above(directory))
        with self._lock:
            if (found := self._claimed.get(directory)) is not None:
                return found == owner
            if directory in self._above or any(one in self._claimed for one in above):
                return False
            self._claimed[directory] = owner
            self._above.update(above)
            return True

    def owns(self, directory: str) -> bool:
        """Takes a directory for the database for good; False if it was given to a table of another one.

        Below ``external_root`` a path tells nothing of the store that it had at the source: two databases, also of two policies,
        may have tables of one path. What a database had whose directory is gone may be given to another.
        """
        if not self._is_beside(directory):
            return True
        with self._lock:
            owned = self._owned.setdefault(directory, Call(partial(self._takes, directory)))
        return owned.result()

    def owns_place(self, partition: str) -> bool:
        """The same of the directory of a partition that has a place of its own: its siblings' are the database's with it."""
        parent = paths.parent(partition)
        return self.owns(partition if parent == str(self._target.policy.external_root).rstrip("/") else parent)

    def _takes(self, directory: str) -> bool:
        storage, mark = self._target.storage, owner_mark(str(self._target.policy.external_root), directory)
        write = storage.write_once
        try:
            owner = storage.read(mark, most=_MOST).decode(errors="replace").rstrip("/")
            if owner == self._location.rstrip("/"):
                return True
            if not self._is_gone(owner):
                return False
            write = storage.write
        except FileNotFoundError:
            pass
        except Denied:
            return False
        try:
            write(mark, self._location.encode())
        except AlreadyExists:
            return self._takes(directory)
        except Unreachable:
            raise
        except (ReplicationError, OSError) as error:  # of another account, a quota
            _LOG.warning("nothing keeps %s from tables of other databases: %s", directory, error, extra=about(self._database))
        return True

    def _is_gone(self, database: str) -> bool:
        """Whether the directory of a database is no more, as after a rename, or after its metastore moved to another store."""
        try:
            return self._target.storage.lacks_directory(database)
        except Refused:  # it lies outside the policy's roots
            with suppress(MetastoreError):  # which does not show one of its databases: it may be that
                return database not in self._databases.result()
            return False

    def _locations_of_databases(self) -> frozenset[str]:
        metastore = self._target.metastore
        found = (metastore.database(name) for name in metastore.databases())
        return frozenset(one.locationUri.rstrip("/") for one in found if one is not None and one.locationUri)

    def _topmost(self, directory: str) -> str:
        """What has to exist for anything to lie above a directory, below the database's or ``external_root``, or at it."""
        root = str(self._target.policy.external_root) if self._is_beside(directory) else self._location
        root = root.rstrip("/")
        below = directory[len(root) + 1 :] if paths.is_under(directory, root) else ""
        return f"{root}/{below.split('/')[0]}" if below else directory

    def _locations_of_tables(self) -> tuple[Locations, dict[str, list[str]]]:
        """Directories of all tables, and names of the partitioned ones by their places."""
        data, bases, partitioned = list[str](), list[str](), dict[str, list[str]]()
        for table in all_tables(self._target.metastore, self._database):
            own = directory_of(table)
            if own and table.partitionKeys:
                bases.append(own)
                partitioned.setdefault(place(own), []).append(table.tableName)
            elif own:
                data.append(own)
        return Locations(data, bases), partitioned

    def _locations_in_staging(self) -> Locations:
        """Directories of tables and partitions in those for staging: few of a million."""
        metastore = self._target.metastore
        tables = all_tables(metastore, self._database)
        found = chain.from_iterable(chain([directory_of(one)], partition_places(metastore, one)) for one in tables)
        return Locations(filter(may_be_staged, found))

    def _in_partitions(self, table: str) -> Locations:
        """Directories of a table's partitions; none if another lane has dropped it."""
        with self._lock:
            read = self._read.setdefault(table, Call(partial(self._locations_of_partitions, table)))
        return read.result()

    def _locations_of_partitions(self, table: str) -> Locations:
        try:
            return Locations(map(directory_of, self._target.metastore.partitions(self._database, table)))
        except NotFound:
            return Locations(())

    def _is_in_table(self, directory: str) -> bool:
        """Whether a directory is that of a table without partitions, or lies in it."""
        return self._tables.result()[0].contains(directory)

    def _is_beside(self, directory: str) -> bool:
        root = self._target.policy.external_root
        return bool(root) and paths.is_under(directory, str(root).rstrip("/"))

    def _odd_places(self, table: str) -> frozenset[str]:
        """Places that do not say by their names whose they are: of a million partitions few, mostly."""
        found = ((place_of(one), one.values) for one in self._target.metastore.partitions(self._database, table))
        return frozenset(one for one, values in found if not _spells(one, values))


def _spells(directory: str, values: list[str]) -> bool:
    """Whether a directory ends with the partition name of these values."""
    parts = directory.split("/")[-len(values) :]
    return [unescape(one.partition("=")[2]) for one in parts] == values


def _above(directory: str) -> list[str]:
    parts = directory.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]
