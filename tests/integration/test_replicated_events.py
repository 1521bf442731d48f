"""A metastore 4.2.0 takes what loads do for replication, as a listener in it sees (``ListenerEvent.isReplicated``).

Its listeners and its own replication tell the writes of others by that from those that came from elsewhere. The metastore decides
it by a key of the database at the time of each change; events of partitions have nothing of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_replication.connect import connect
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table, copy_of
from hive_replication.repair import repair
from resources.embedded import compiler, jars
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.drifting import Drifting
from tests.origin import TEXT

pytestmark = pytest.mark.servers

_LISTENER = Path(__file__).parents[1] / "fixtures" / "java" / "ReplicatedEvents.java"
_SIDE = "target-told4"


@pytest.fixture
def told(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """The file in which a metastore on the target's HDFS writes what its listener sees."""
    groups = jars.fetch_groups(["hadoop", "hive4"])
    classes = compiler.compiled(_LISTENER, [path for group in groups.values() for path in group.jars])
    shutil.copytree(classes, cluster.directory / f"{_SIDE}.metastore" / "conf", dirs_exist_ok=True)  # first of its class path
    file, before = tmp_path / "events", cluster.properties
    listener = {"metastore.event.listeners": _LISTENER.stem, "tests.replicated.events": str(file)}
    cluster.properties = {**before, _SIDE: listener}
    try:
        cluster.up([_SIDE])
        yield file
    finally:
        cluster.down([_SIDE])
        cluster.properties = before


def test_what_loads_do_is_replication_to_a_metastore_4_2_and_its_listeners(told: Path, cluster: Cluster, unique: str) -> None:
    """A16: what windows did looked like the writes of the target's own users."""
    made = Drifting.of(connect(policy(cluster, {"x": "x"}, "source", _SIDE)))
    origin, source = made.origin, made.connection.source.metastore
    database, target = origin.database, made.connection.target.metastore

    def seen_of(of: str, work: Callable[[], object]) -> set[tuple[str, str, bool]]:
        """Events of a database during some work, with their tables and whether they are of replication."""
        told.write_text("")
        work()
        lines = [line.split() for line in told.read_text().splitlines()]
        return {(event, table, replicated == "true") for event, name, table, replicated in lines if name == of}

    def replicate() -> None:
        assert made.replica.replicate().held == ()

    # First of all, one call after another: a metastore makes its own tables as it needs them, and would block itself.
    assert seen_of(unique, lambda: _use(target, unique)) == {
        ("CREATE_DATABASE", "-", False),
        ("CREATE_TABLE", "t", False),
        ("ALTER_TABLE", "t", False),
        ("DROP_TABLE", "t", False),
        ("DROP_DATABASE", "-", False),
    }

    for table in ("plain", "old", "gone"):
        origin.create(table)
    origin.create("parts", "1", "2")
    origin.insert("plain", "1\n")
    bootstrap = seen_of(database, replicate)
    assert {("CREATE_TABLE", table, True) for table in ("plain", "old", "gone", "parts")} <= bootstrap
    assert {("CREATE_DATABASE", "-", True), ("ALTER_DATABASE", "-", True)} <= bootstrap

    origin.create("fresh", "1")
    origin.insert("fresh", "1\n", "1")
    origin.insert("plain", "2\n")
    origin.insert("plain", "3\n", overwrite=True)
    origin.add("parts", "3")
    source.drop_partitions(database, "parts", ["ds=2"])
    source.drop_table(database, "gone", delete_data=True)
    _alter(source, database, "parts", lambda table: table.parameters.update(colour="blue"))
    _alter(source, database, "old", lambda table: setattr(table, "tableName", "renamed"))
    window = seen_of(database, replicate)
    assert {("CREATE_TABLE", "fresh", True), ("ALTER_TABLE", "parts", True), ("ALTER_TABLE", "renamed", True)} <= window
    assert {("DROP_TABLE", "gone", True), ("ALTER_DATABASE", "-", True)} <= window

    target.drop_table(database, "plain", delete_data=True)
    repaired = seen_of(database, lambda: repair(made.connection, database, "plain"))
    assert ("CREATE_TABLE", "plain", True) in repaired
    assert all(replicated for *_, replicated in bootstrap | window | repaired), "none looks like a write of the target's users"
    made.replica.assert_equal()


def _use(metastore: Metastore, database: str) -> None:
    """What users of the target do in a database of their own."""
    metastore.create_database(Database(name=database, parameters={}))
    keys = [FieldSchema("ds", "string", None)]
    made = Table(tableName="t", dbName=database, owner="hive", sd=copy_of(TEXT), partitionKeys=keys, parameters={})
    metastore.create_table(made)
    part = Partition(values=["1"], dbName=database, tableName="t", sd=copy_of(TEXT), parameters={})
    metastore.add_partitions(database, "t", [part])
    _alter(metastore, database, "t", lambda table: table.parameters.update(colour="red"))
    metastore.drop_partitions(database, "t", ["ds=1"])
    metastore.drop_table(database, "t", delete_data=True)
    metastore.drop_database(database)


def _alter(metastore: Metastore, database: str, name: str, change: Callable[[Table], object]) -> None:
    table = copy_of(metastore.table(database, name))
    assert table is not None
    change(table)
    metastore.alter_table(database, name, table)
