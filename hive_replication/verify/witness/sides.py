"""One side of a database as the witness reads it, and how much of it one round looks at."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from hive_replication.dump.listing import Lister
from hive_replication.dump.source import why_skipped
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Function, Partition, Table
from hive_replication.storage import Storage
from hive_replication.verify.acid import Seen

_LEAST = 20  # partitions of each table that are described


@dataclass(frozen=True)
class Side:
    """One side's database.

    Args:
        metastore: its metastore.
        storage: its storage roots.
        database: its name there.
        metadata_only: whether the policy replicates no data.
        acid: whether transactional tables are replicated.
    """

    metastore: Metastore
    storage: Storage
    database: str
    metadata_only: bool
    acid: bool

    def names(self, includes: Callable[[str], bool]) -> set[str]:
        """Names of tables and views of the policy."""
        return {name for name in self.metastore.table_names(self.database) if includes(name)}

    def tables(self, names: Iterable[str]) -> dict[str, Table]:
        """The named tables and views that exist and are replicated."""
        found = self.metastore.tables(self.database, names)
        return {one.tableName: one for one in found if not why_skipped(one, metadata_only=self.metadata_only, acid=self.acid)}

    def partition_names(self, table: str) -> set[str]:
        """Names of a table's partitions; none if it was dropped meanwhile."""
        try:
            return set(self.metastore.partition_names(self.database, table))
        except NotFound:
            return set()

    def partitions(self, table: Table, names: Iterable[str]) -> dict[str, Partition]:
        """Those of the named partitions that exist."""
        try:
            return by_name(table, self.metastore.partitions(self.database, table.tableName, names))
        except NotFound:
            return {}

    def functions(self) -> dict[str, Function]:
        """Functions by their names in small letters."""
        return {one.functionName.lower(): one for one in self.metastore.functions(self.database)}

    def seen(self, table: Table) -> Seen:
        """A transactional table as a reader who begins now sees it."""
        return Seen.now(self.metastore, self.storage, Lister(self.storage), self.database, table)


@dataclass
class Shares:
    """How much of its limits one round gives each table: what a table leaves is there for the next ones.

    Args:
        partitions: that may still be described.
        directories: that may still be listed.
        checksums: that may still be asked for.
        tables: that are still to come.
        chance: chooses where there is not enough for all.
        first: tables that get a directory as long as there are any.
    """

    partitions: int
    directories: int
    checksums: int
    tables: int
    chance: random.Random
    first: Collection[str] = field(default_factory=set[str])

    def take(self, table: str) -> tuple[int, int, int]:
        """Partitions to describe, directories to list and checksums to ask for, of the next table."""
        left = max(1, self.tables)
        self.tables -= 1
        directories = self.directories // left
        if not directories and (table in self.first or self.chance.random() < self.directories / left):
            directories = min(1, self.directories)
        checksums = self._checksums(min(left, max(1, self.directories))) if directories else 0
        return max(_LEAST, self.partitions // left), directories, checksums

    def _checksums(self, left: int) -> int:
        """Those of a table, where so many are still to come that have directories to list."""
        share = self.checksums // left
        return share or min(self.checksums, int(self.chance.random() < self.checksums / left))

    def used(self, partitions: int, directories: int, checksums: int) -> None:
        """What was looked at."""
        self.partitions = max(0, self.partitions - partitions)
        self.directories = max(0, self.directories - directories)
        self.checksums = max(0, self.checksums - checksums)


def chosen(names: Sequence[str], number: int, chance: random.Random) -> list[str]:
    """So many of sorted names: the last ones, which are mostly the newest partitions, and as many others.

    An odd one goes to either by chance: else a table that gets one directory in each round would show its newest partition alone.
    """
    if len(names) <= number:
        return list(names)
    newest = (number + chance.randrange(2)) // 2
    rest = names[: len(names) - newest]
    return sorted([*names[len(rest) :], *chance.sample(list(rest), number - newest)])


def dealt(names: Sequence[str], number: int, most: int, chance: random.Random) -> dict[str, int]:
    """So many things dealt out to names by chance, each of which gets no more than ``most``."""
    order = chance.sample(list(names), len(names))
    return {name: max(0, min(most, number - place * most)) for place, name in enumerate(order)}
