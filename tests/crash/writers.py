"""Writers of a source database that work at the same time: thrift clients that do what Hive does, and real Hive 3.1.3.

As Hive's lock manager has it, no two of them work on one table at a time; different tables change in any order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random
from threading import Event, Lock, Thread

from hive_metastore.ttypes import CmRecycleRequest

from hive_replication.connect import Connection
from hive_replication.metastore.faults import AlreadyExists
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import Partition, Table
from resources.embedded.hive import HiveDriver
from tests.fixtures.record import Recorder

NAMES = [f"t{n}" for n in range(6)]
_DAYS = "abcd"


@dataclass
class Town:
    """What writers of one database share.

    Args:
        connection: to the source.
        hive: one session, which one writer uses at a time.
        database: the source database.
        progress: gets a line for each operation.
    """

    connection: Connection
    hive: HiveDriver
    database: str
    progress: Callable[[str], None]
    driver: Lock = field(default_factory=Lock)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    operations: int = 0

    def __post_init__(self) -> None:
        self._locks = {name: Lock() for name in NAMES}
        self.recorder = Recorder(self.connection.source.metastore, self.connection.source.storage, self.database)

    @contextmanager
    def locked(self, *names: str) -> Iterator[None]:
        """Keeps the others away from tables."""
        with ExitStack() as stack:
            for name in sorted(set(names)):
                stack.enter_context(self._locks[name])
            yield


class Writer(Thread):
    """Does one operation after the other until it is stopped."""

    def __init__(self, town: Town, seed: str, pause: float) -> None:
        super().__init__(name=f"writer-{seed}", daemon=True)
        self._town, self._random, self._pause = town, Random(seed), pause
        self.done = Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Works until it is stopped; an error ends it and is kept for ``finish``."""
        try:
            while not self.done.wait(self._random.expovariate(1 / self._pause)):
                self._one()
        except BaseException as error:  # noqa: BLE001 - raised where the thread is joined
            self.failure = error

    def finish(self) -> None:
        """Waits for the running operation; raises its error."""
        self.done.set()
        self.join()
        if self.failure is not None:
            raise self.failure

    def _one(self) -> None:
        town, (name, other) = self._town, self._random.sample(NAMES, 2)
        with town.locked(name, other):
            metastore = town.connection.source.metastore
            table = metastore.table(town.database, name)
            work = _Work(town, self._random, name, other, table)
            does = self._random.choice(work.choices())
            said = does()
            if said:
                town.operations += 1
                town.progress(f"{metastore.current_event_id()} {self.name} {does.__name__} {name} {said}")


@dataclass
class _Work:
    """One operation on one table; each returns what it did, "" if it could do nothing."""

    town: Town
    random: Random
    name: str
    other: str
    table: Table | None

    def __post_init__(self) -> None:
        self.recorder, self.metastore = self.town.recorder, self.town.connection.source.metastore
        self.storage, self.database = self.town.connection.source.storage, self.town.database

    def choices(self) -> Sequence[Callable[[], str]]:
        """What may be done with the table as it is."""
        if self.table is None:
            return [self.create, self.create, self.create_by_hive]
        either = [self.insert, self.insert, self.insert, self.load, self.load, self.truncate, self.alter, self.rename, self.drop]
        return either + (
            [self.insert, self.load, self.add, self.add, self.drop_part, self.alter_part, self.rename_part, self.exchange]
            if self.table.partitionKeys
            else []
        )

    def create(self) -> str:
        image = self.recorder._image(self.name, keys=("ds",) if self.random.random() < 0.6 else ())
        if self.random.random() < 0.2:
            image.tableType, image.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE"}
            image.sd.location = f"{self.storage.roots[0].uri}outside/{self.database}/{next(self.town.numbers)}"
        self.metastore.create_table(image)
        return image.tableType

    def create_by_hive(self) -> str:
        return self._hive(f"CREATE TABLE {self.name} (id INT)" + self.random.choice(["", " PARTITIONED BY (ds STRING)"]))

    def drop(self) -> str:
        if self.random.random() < 0.5:
            return ""
        self.metastore.drop_table(self.database, self.name, delete_data=True)
        return "dropped"

    def rename(self) -> str:
        if self.metastore.table(self.database, self.other) is not None:
            return ""
        if self.random.random() < 0.5:
            return self._hive(f"ALTER TABLE {self.name} RENAME TO {self.other}")
        table = self._table
        table.tableName = self.other
        self.metastore.alter_table(self.database, self.name, table)
        return f"to {self.other}"

    def alter(self) -> str:
        value = next(self.town.numbers)
        if self.random.random() < 0.2:
            return self._hive(f"ALTER DATABASE {self.database} SET DBPROPERTIES ('note'='{value}')")
        table = self._table
        table.parameters["note"] = str(value)
        self.metastore.alter_table(self.database, self.name, table)
        return str(value)

    def insert(self) -> str:
        """INSERT INTO or OVERWRITE as Hive does: old files to cmroot, the new file, a new partition or an INSERT event."""
        replace, rows = self.random.random() < 0.3, f"{next(self.town.numbers)}\n".encode()
        part = self._any_partition()
        if self._table.partitionKeys and (part is None or self.random.random() < 0.2):
            return self.add(rows)
        if replace:
            self._recycle((part or self._table).sd.location)
        uri = self._write((part or self._table).sd.location, rows)
        checksum = self.storage.checksum(uri)
        self.metastore.fire_insert_event(
            self.database,
            self.name,
            values=part.values if part else None,
            files=[uri],
            checksums=[checksum.value if checksum else ""],
            replace=replace,
        )
        return f"{part.values if part else ''} {rows!r} replace={replace}"

    def load(self) -> str:
        number = next(self.town.numbers)
        path = f"{self.storage.roots[0].uri}tmp/{self.database}/{number}/l{number}"
        self.storage.write(path, f"{number}\n".encode())
        into = f"{self.name} PARTITION (ds='{self.random.choice(_DAYS)}')" if self._table.partitionKeys else self.name
        return self._hive(f"LOAD DATA INPATH '{path}' {self.random.choice(['', '', 'OVERWRITE'])} INTO TABLE {into}")

    def add(self, rows: bytes = b"") -> str:
        """One to three partitions, with or without files; nothing if one of them exists."""
        days = self.random.sample(_DAYS, self.random.randint(1, 3))
        parts = [self.recorder._partition(self._table, [day]) for day in days]
        present = self.metastore.partition_names(self.database, self.name)
        if any(f"ds={day}" in present for day in days):
            return ""
        for day in days if rows else ():
            self._write(f"{self._table.sd.location}/ds={day}", rows)
        self.metastore.add_partitions(self.database, self.name, parts)
        return f"{days} {rows!r}"

    def drop_part(self) -> str:
        names = self.metastore.partition_names(self.database, self.name)
        names = self.random.sample(names, min(len(names), self.random.randint(1, 2)))
        if names:
            self.metastore.drop_partitions(self.database, self.name, names, delete_data=self._managed)
        return f"{names}" if names else ""

    def alter_part(self) -> str:
        part = self._any_partition()
        if part is None:
            return ""
        part.parameters["note"] = str(next(self.town.numbers))
        self.metastore.alter_partitions(self.database, self.name, [part])
        return f"{part.values}"

    def rename_part(self) -> str:
        part, day = self._any_partition(), self.random.choice(_DAYS)
        if part is None or f"ds={day}" in self.metastore.partition_names(self.database, self.name) or not self._managed:
            return ""
        old, part.values = part.values, [day]
        self.metastore.rename_partition(self.database, self.name, old, part)
        return f"{old} to {day}"

    def exchange(self) -> str:
        part, other = self._any_partition(), self.metastore.table(self.database, self.other)
        if part is None or other is None or not other.partitionKeys or self.random.random() < 0.5:
            return ""
        name = partition_name(["ds"], part.values)
        if name in self.metastore.partition_names(self.database, self.other) or not self._managed or _external(other):
            return ""
        values = part.values[0]
        return self._hive(f"ALTER TABLE {self.other} EXCHANGE PARTITION (ds='{values}') WITH TABLE {self.name}")

    def truncate(self) -> str:
        if not self._managed:
            return ""
        part = self._any_partition()
        self.recorder._truncate(self.name, [partition_name(["ds"], part.values)] if part else None)
        return f"{part.values if part else ''}"

    @property
    def _table(self) -> Table:
        assert self.table is not None
        return self.table

    @property
    def _managed(self) -> bool:
        return not _external(self._table)

    def _any_partition(self) -> Partition | None:
        parts = list(self.metastore.partitions(self.database, self.name)) if self._table.partitionKeys else []
        return self.random.choice(sorted(parts, key=lambda part: part.values)) if parts else None

    def _write(self, directory: str, rows: bytes) -> str:
        """Writes a file where no reader looks, then moves it, so that readers never see it unfinished."""
        name = f"f{next(self.town.numbers)}"
        staged, place = f"{directory}/.hive-staging_{name}/{name}", f"{directory}/{name}"
        self.storage.write(staged, rows)
        self.storage.rename(staged, place)
        self.storage.delete(f"{directory}/.hive-staging_{name}", recursive=True)
        return place

    def _recycle(self, location: str) -> None:
        """Empties a directory as Hive does before it overwrites it."""
        for status in self.storage.files(location):
            if self._managed:
                request = CmRecycleRequest(dataPath=status.uri, purge=False)
                self.metastore.call("cm_recycle", lambda client, sent=request: client.cm_recycle(sent))
            self.storage.delete(status.uri)

    def _hive(self, statement: str) -> str:
        with self.town.driver:
            results = self.town.hive.run([f"USE {self.database}", statement])
        errors = [result.error for result in results if result.error]
        if errors:
            raise AlreadyExists(f"{statement}: {errors}")
        return statement


def _external(table: Table) -> bool:
    return table.tableType == "EXTERNAL_TABLE"
