"""A target for placements: a metastore that counts its answers, and files with their names as content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace

from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.storage import FileStatus, Storage, paths


class Source:
    """Files with their names as content."""

    def status(self, uri: str) -> FileStatus:
        return FileStatus(uri, len(paths.name(uri)), False, 0.0)

    def stream(self, uri: str) -> Iterator[bytes]:
        return iter([paths.name(uri).encode()])


SOURCE = Source()
NOWHERE = SimpleNamespace(external_root=None)


class Metastore:
    """Counts the tables that it hands out."""

    def __init__(self, locations: dict[str, str], parts: Sequence[Partition] = ()) -> None:
        self.locations, self.parts, self.read = locations, parts, Counter[str]()
        self.keys: list[FieldSchema] = []

    def database(self, name: str) -> Database:
        return Database(name=name, locationUri=self.locations["t"].rpartition("/")[0].replace("hr.db", "sales.db"))

    def table(self, database: str, name: str) -> Table:
        return next(self.tables(database, [name]))

    def table_names(self, _: str) -> list[str]:
        return sorted(self.locations)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        for name in names:
            if name in self.locations:
                self.read[name] += 1
                yield Table(tableName=name, sd=StorageDescriptor(location=self.locations[name]), partitionKeys=self.keys)

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> list[Partition]:
        return list(self.parts)


def content(*files: str) -> op.Content:
    """Files with their names as content."""
    return op.Content(tuple(FileRef(f"hdfs://src/t/{name}", name) for name in files), staging_name(7, 1, transactional=False))


BESIDE = SimpleNamespace(external_root=None, functions_root=None, append="in_place", target=SimpleNamespace(paths=()))


def replica(metastore: Metastore, storage: Storage, **settings: object) -> Target:
    """A target side whose database may lie where the metastore puts it, and whose tables are replicas."""
    policy = SimpleNamespace(**{**vars(BESIDE), **settings})
    return SimpleNamespace(  # type: ignore[return-value]
        metastore=metastore, storage=storage, source_storage=SOURCE, policy=policy, default_locations=lambda *_: ()
    )
