"""A target for placements: a metastore that counts its answers, and files with their names as content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica import state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database, FieldSchema, Function, Partition, StorageDescriptor, Table
from hive_replication.parallel import Threads
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


OURS = "uuid/sales"


class Replicas:
    """A database of replicas; tells what it is asked to change."""

    features = SimpleNamespace(major=3)

    def __init__(self, location: str, *names: str) -> None:
        self.home = Database("sales", locationUri=location, parameters={state.SOURCE: OURS})
        self.there = {name: self._table(name) for name in names}
        self.calls: list[str] = []

    def _table(self, name: str) -> Table:
        place = f"{self.home.locationUri}/{name}"
        return Table(name, "sales", sd=StorageDescriptor(location=place), partitionKeys=[], parameters={state.SOURCE: OURS})

    def databases(self) -> list[str]:
        return ["sales"]

    def database(self, name: str) -> Database:
        return self.home

    def table_names(self, _: str) -> list[str]:
        return sorted(self.there)

    def tables(self, _: str, names: list[str]) -> list[Table]:
        return [self.there[name] for name in names if name in self.there]

    def table(self, _: str, name: str) -> Table | None:
        return self.there.get(name)

    def drop_table(self, _: str, name: str, *, delete_data: bool) -> None:
        assert not delete_data
        self.calls.append(f"drop {name}")
        del self.there[name]

    def alter_table(self, _: str, name: str, image: Table) -> None:
        self.calls.append(f"alter {name}")
        self.there[name] = image

    def functions(self, _: str) -> list[Function]:
        return []

    def procedures(self, _: str) -> list[str]:
        return []

    def materialized_views_over(self, _: str) -> dict[str, list[str]]:
        return {}

    def drop_database(self, name: str, **_: object) -> None:
        self.calls.append(f"drop the database {name}")


def replicas_target(metastore: Replicas, storage: Storage) -> Any:
    parallelism = SimpleNamespace(changes=2)
    policy = SimpleNamespace(parallelism=parallelism, preserve=(), external_root=None, functions_root=None, conflicts="refuse")
    return SimpleNamespace(
        metastore=metastore, storage=storage, source_storage=storage, policy=policy, threads=Threads(2, "lane"),
        default_locations=lambda *_: (),
    )  # fmt: skip
