"""Encryption zones on both sides, each with a KMS of its own, and a trash: what is proven, held, kept and deleted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import connect
from hive_replication.load.retention.sweep import sweep
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy
from hive_replication.process import account
from hive_replication.storage import paths
from hive_replication.verify import compare_database
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.hadoop import hdfs
from tests.kms import Kms, kms
from tests.origin import Origin
from tests.warehouse import Warehouse
from tests.writers import Writer, create

pytestmark = [pytest.mark.servers, pytest.mark.long]

_SIDES = {"source": "source4", "target": "target4"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Kms]]:
    with kms(tmp_path_factory.mktemp("kms")) as source, kms(tmp_path_factory.mktemp("kms")) as target:
        yield {"source": source, "target": target}


@pytest.fixture(scope="module")
def encrypting(keys: dict[str, Kms], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    properties = {f"{side}.hdfs": {**server.properties, "fs.trash.interval": "60"} for side, server in keys.items()}
    servers = Cluster(tmp_path_factory.mktemp("encrypting"), properties)
    try:
        servers.up([*_SIDES.values()])
        for server in keys.values():
            server.make_key("warehouse")
        yield servers
    finally:
        servers.down()


@pytest.fixture
def without_keys(encrypting: Cluster, unique: str) -> Policy:
    return policy(encrypting, {unique: unique}, *_SIDES.values())


@pytest.fixture
def with_keys(without_keys: Policy, keys: dict[str, Kms]) -> Policy:
    """The policy's roots name the KMS."""
    made = without_keys
    for side in _SIDES:
        warehouse = getattr(made, side)
        roots = tuple(root.model_copy(update={"options": {**root.options, **keys[side].properties}}) for root in warehouse.roots)
        made = made.model_copy(update={side: warehouse.model_copy(update={"roots": roots})})
    return made


def make_zone(cluster: Cluster, side: str, uri: str) -> None:
    where, directory = cluster.side(_SIDES[side]), paths.split(uri)[2]
    hdfs(where, "dfs", "-mkdir", "-p", directory)
    hdfs(where, "crypto", "-createZone", "-keyName", "warehouse", "-path", directory)


def warehouse_of(made: Policy, database: str) -> Warehouse:
    return Warehouse(connect(made), None, database)  # type: ignore[arg-type] (no Hive is needed)


def test_a_database_goes_from_zone_to_zone(encrypting: Cluster, with_keys: Policy, unique: str) -> None:
    """The checksums of HDFS are of encrypted bytes there; what was dropped lies in the cmroot of the zone."""
    warehouse = warehouse_of(with_keys, unique)
    source, target = warehouse.connection.source, warehouse.connection.target
    zone, replica = f"{encrypting.side('source4').hdfs}zones/{unique}", f"{encrypting.side('target4').warehouse}/{unique}.db"
    make_zone(encrypting, "source", zone)
    make_zone(encrypting, "target", replica)
    places = {"locationUri": f"{zone}/external", "managedLocationUri": f"{zone}/managed"}
    source.metastore.create_database(Database(name=unique, parameters={"repl.source.for": "x"}, **places))
    origin = Origin(warehouse.connection, unique)
    for name in ("plain", "changed"):
        origin.create(name)
        origin.insert(name, "1\n")
    create(source.metastore, source.storage, unique, "gone")
    writer = Writer.begin(source.metastore, source.storage, unique)
    writer.insert("gone", "1\n")
    writer.commit()

    dump = warehouse.dump()
    source.metastore.drop_table(unique, "gone", delete_data=True)
    report = warehouse.load(dump.directory)
    assert report.held == ()
    copied = {one.task.object_name.partition(".")[2]: one.origin for one in report.copies}
    assert copied == {"plain": "source", "changed": "source", "gone": "cmroot"}
    assert {(one.proof.algorithm, one.proof.recorded) for one in report.copies} == {("CRC32C", True)}

    table = target.metastore.table(unique, "plain")
    assert table is not None
    added = origin.insert("plain", "2\n")
    target.storage.write(f"{table.sd.location}/{paths.name(added)}", b"2\n")  # as a load leaves it that was killed
    origin.insert("changed", "3\n", overwrite=True)
    assert warehouse.replicate().held == ()
    assert warehouse.content(source=False) == warehouse.content(source=True)
    assert witness(source, target, unique).wrong == []
    assert [one.differences for one in compare_database(source, target, unique) if one.differences] == []

    (file, *_) = target.storage.files(str(table.sd.location))
    target.storage.write(file.uri, b"9\n")
    assert [one.table for one in witness(source, target, unique).wrong] == ["plain"]


def test_without_keys_one_table_is_held(encrypting: Cluster, with_keys: Policy, without_keys: Policy, unique: str) -> None:
    """Others go on."""
    origin = Origin(connect(with_keys), unique)
    origin.create_database()
    for name in ("secret", "plain"):
        origin.create(name)
    make_zone(encrypting, "source", origin.location("secret"))
    for name in ("secret", "plain"):
        origin.insert(name, "1\n")
    report = warehouse_of(without_keys, unique).replicate()
    (held,) = report.held
    assert held.tables == ("secret",)
    assert "encryption zone" in held.reason
    assert [one.task.object_name for one in report.copies] == [f"{unique}.plain"]


def test_a_replica_leaves_nothing_in_the_trash(encrypting: Cluster, without_keys: Policy, unique: str) -> None:
    """Retention deletes what was replaced or dropped; what is dropped at the source lies in its trash."""
    warehouse = warehouse_of(without_keys, unique)
    origin = Origin(warehouse.connection, unique)
    origin.create_database()
    for name in ("changed", "gone"):
        origin.create(name)
        origin.insert(name, "1\n")
    warehouse.replicate()
    origin.insert("changed", "2\n", overwrite=True)
    warehouse.connection.source.metastore.drop_table(unique, "gone", delete_data=True)
    assert warehouse.replicate().held == ()
    assert warehouse.content(source=False) == warehouse.content(source=True)
    impatient = warehouse.with_policy(grace_seconds=0, retention_seconds=0)
    assert [one.problem for one in sweep(impatient.connection.target, unique) if one.problem] == []
    for side, name in _SIDES.items():
        storage, trash = getattr(warehouse.connection, side).storage, f"{encrypting.side(name).hdfs}user/{account()}/.Trash"
        trashed = [one.uri for one in storage.files(trash) if unique in one.uri] if storage.exists(trash) else []
        assert bool(trashed) == (side == "source"), trashed
