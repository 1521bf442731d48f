"""The servers that workloads run on, and real Hive beside this project on them."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.acid import require_same_rows
from bench.peers import Hive, Hive4, Ours, Peer
from bench.source import SourceDatabase
from hive_replication.connect import Connection, connect
from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy


@contextmanager
def cluster() -> Generator[Cluster]:
    """The servers named in HIVE_REPL_TEST_CLUSTER, or new ones for this run only."""
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    with tempfile.TemporaryDirectory() as folder:
        servers = Cluster(Path(kept or folder))
        servers.up()
        try:
            yield servers
        finally:
            if not kept:
                servers.down()


@dataclass(frozen=True)
class Setting:
    """Who replicates where.

    Args:
        connection: to both sides.
        warehouse: URI of the source's warehouse directory.
        peers: this project and Hive.
        check: raises where one of some replicas is not the source database.
    """

    connection: Connection
    warehouse: str
    peers: tuple[Peer, Peer]
    check: Callable[[str, Sequence[str]], None]

    def database(self) -> SourceDatabase:
        """A new source database."""
        return new_database(self.connection, self.warehouse)


def new_database(connection: Connection, warehouse: str) -> SourceDatabase:
    """Creates a source database with an unused name."""
    database = SourceDatabase(connection, f"bench{secrets.token_hex(3)}")
    database.create(warehouse)
    return database


@contextmanager
def setting(servers: Cluster, hive: int) -> Generator[Setting]:
    """Real Hive of a major version beside this project."""
    names = ("source", "target") if hive == 3 else ("source4", "target4")
    servers.up(names)
    reads, writes = map(servers.side, names)
    rules, root = policy(servers, {"unused": "unused"}, *names), f"{writes.hdfs}bench/repl{hive}"
    connection = connect(rules)
    with HiveDriver(reads, root) as source, HiveDriver(writes, root) as target:
        if hive == 3:
            yield Setting(connection, reads.warehouse, (Ours(rules), Hive(source, target)), partial(check_counts, connection))
        else:
            same = partial(require_same_rows, source, target)
            yield Setting(connection, reads.warehouse, (Ours(rules), Hive4(source, target)), same)


def check_counts(connection: Connection, source: str, replicas: Sequence[str]) -> None:
    """Checks that replicas have as many tables, partitions and files as the source."""

    def count(side, name: str) -> list[tuple[str, int, int]]:
        metastore, tables = side.metastore, sorted(side.metastore.table_names(name))
        found: list[tuple[str, int, int]] = []
        for table in metastore.tables(name, tables):
            places = [part.sd.location for part in metastore.partitions(name, table.tableName)] if table.partitionKeys else []
            files = sum(len(side.storage.files(place)) for place in places or [table.sd.location])
            found.append((table.tableName, len(places), files))
        return sorted(found)

    wanted = count(connection.source, source)
    for replica in replicas:
        if (found := count(connection.target, replica)) != wanted:
            raise RuntimeError(f"{replica} is not a replica of {source}: {found} instead of {wanted}")
