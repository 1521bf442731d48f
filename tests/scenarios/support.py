"""Helpers of the scenarios: a warehouse that is written to quickly, and processes that die in the middle of their work."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format import resume
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.metastore.names import partition_values
from hive_replication.metastore.types import Database, Partition, Table, copy_of
from hive_replication.statements import ReplDump
from resources.embedded.hive import HiveDriver
from tests.faults import Killed
from tests.warehouse import Warehouse


@dataclass
class Site(Warehouse):
    """A warehouse whose data is written as Spark or Hive's own tasks do it: the files, then the call of the metastore."""

    def insert(self, table: str, rows: str, partition: str = "", *, name: str | None = None) -> str:
        """INSERT INTO with file list and checksums; a partition that is new comes with its files. Gives the file's URI."""
        metastore, storage = self.connection.source.metastore, self.connection.source.storage
        found = self.table(table)
        parts = list(metastore.partitions(self.database, table, [partition])) if partition else []
        place = parts[0].sd.location if parts else f"{found.sd.location}/{partition}".rstrip("/")
        uri = f"{place}/{name or f'{self.database}-{next(self._numbers)}'}"
        storage.write(uri, rows.encode())
        if partition and not parts:
            self.add_partition(found, partition)
            return uri
        self.tell_of(table, uri, partition)
        return uri

    def add_partition(self, table: Table, partition: str) -> None:
        """ADD PARTITION at its plain place."""
        sd = copy_of(table.sd)
        sd.location = f"{table.sd.location}/{partition}"
        values = list(partition_values(partition))
        part = Partition(values=values, dbName=self.database, tableName=table.tableName, sd=sd, parameters={})
        self.connection.source.metastore.add_partitions(self.database, table.tableName, [part])

    def tell_of(self, table: str, uri: str, partition: str = "") -> None:
        """The INSERT event of a file."""
        checksum = self.connection.source.storage.checksum(uri)
        assert checksum is not None
        values = partition_values(partition) if partition else None
        self.connection.source.metastore.fire_insert_event(
            self.database, table, values=values, files=[uri], checksums=[checksum.value], replace=False
        )

    def table(self, name: str, *, source: bool = True) -> Table:
        """A table that must exist."""
        metastore = (self.connection.source if source else self.connection.target).metastore
        table = metastore.table(self.database, name)
        assert table is not None, name
        return table

    def rows(self, name: str, *, source: bool = False, partition: str = "") -> list[str]:
        """All lines of a table, sorted; of the replica, or of the source."""
        side = self.connection.source if source else self.connection.target
        table = self.table(name, source=source)
        places = [table.sd.location]
        if table.partitionKeys:
            names = [partition] if partition else None
            places = [part.sd.location for part in side.metastore.partitions(self.database, name, names)]
        files = (status.uri for place in places for status in side.storage.files(str(place)))
        return sorted(line for uri in files for line in side.storage.read(uri).decode(errors="replace").splitlines())

    def partitions(self, table: str, *, source: bool = False) -> list[str]:
        """Names of a table's partitions, of the replica or of the source."""
        side = self.connection.source if source else self.connection.target
        return sorted(side.metastore.partition_names(self.database, table))

    def tables(self, *, source: bool = False) -> list[str]:
        """Names of the tables of the replica, or of the source."""
        side = self.connection.source if source else self.connection.target
        return sorted(side.metastore.table_names(self.database))

    def target_database(self) -> Database | None:
        """The replica."""
        return self.connection.target.metastore.database(self.database)

    def now(self, *, source: bool = True) -> int:
        """The newest event of the source, or of the target."""
        return (self.connection.source if source else self.connection.target).metastore.current_event_id()

    def events(self, *, source: bool, after: int, table: str = "") -> list[str]:
        """Types of the events of this database, or of a table, since one, in a side's log."""
        metastore = (self.connection.source if source else self.connection.target).metastore
        mine = (event for event in metastore.events(after) if event.dbName == self.database)
        return [event.eventType for event in mine if table in ("", event.tableName)]

    def dump_table(self, table: str, from_evid: int | None = None) -> DumpResult:
        """REPL DUMP of one table."""
        return repl_dump(self.connection.source, ReplDump(self.database, table, from_evid), self.connection.store)

    def step(self) -> DumpResult:
        """The next dump, loaded whole."""
        dump = self.dump(self.applied())
        report = self.load(dump.directory)
        assert report.held == (), report.held
        return dump


def new_site(connection: Connection, hive: HiveDriver) -> Site:
    """A source database that is not replicated yet."""
    site = Site(connection, hive, f"s{uuid.uuid4().hex[:10]}")
    hive.execute(f"CREATE DATABASE {site.database}", f"ALTER DATABASE {site.database} SET OWNER USER hive")
    return site


def die_at(patch: pytest.MonkeyPatch, owner: type, method: str, when: Callable[..., bool]) -> None:
    """The process ends before the first call of a method for which ``when`` holds (it gets the method's arguments)."""
    real = getattr(owner, method)

    def dying(*args: Any, **options: Any) -> Any:
        if when(*args, **options):
            raise Killed
        return real(*args, **options)

    patch.setattr(owner, method, dying)


@contextmanager
def dying(owner: type, method: str, when: Callable[..., bool], *, interval: float = 0.0) -> Iterator[None]:
    """Inside, the process ends as in :func:`die_at`; dumps note how far they are after so many seconds, by default at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resume, "INTERVAL", interval)
        die_at(patch, owner, method, when)
        with pytest.raises(Killed):
            yield


def content(site: Site, dump: DumpResult) -> list[object]:
    """What a dump holds, in order: events as they are; of objects what the order of their reading does not change."""
    reader = site.connection.store.open(dump.directory)
    found: list[object] = [*reader.events()]
    for record in reader.tables() if reader.header.kind == "bootstrap" else ():
        columns = [(column.name, column.type) for column in record.table.sd.cols]
        found.append((record.name, record.table.sd.location, columns, sorted(map(str, record.files))))
        for part in reader.partitions(record.name):
            found.append((part.name, part.partition.sd.location, sorted(map(str, part.files))))  # noqa: PERF401
    return found


def modified(site: Site, directory: str) -> Mapping[str, float]:
    """When each file of a dump was written, by its path in the dump."""
    storage = site.connection.target.storage
    return {status.uri[len(directory) + 1 :]: status.modified for status in storage.files(directory, hidden=True)}


def wait_for_the_clock() -> None:
    """HDFS keeps times in milliseconds."""
    time.sleep(0.01)
