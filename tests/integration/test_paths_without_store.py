"""Metastores whose directories are paths without a store, as Hive's defaults are: they lie on the cluster's own HDFS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.doctor import examine
from hive_replication.load.layout.move_to_retired import retire_database
from hive_replication.load.retention.sweep import sweep
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

_NAMES = "source-path", "target-path"


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> Iterator[Cluster]:
    places = {"hive.metastore.warehouse.dir": "/paths/warehouse", "hive.repl.cmrootdir": "/paths/cmroot/"}
    made = Cluster(cluster.directory, dict.fromkeys(_NAMES, places))
    made.up(_NAMES)
    yield made
    made.down([f"{name}.metastore" for name in _NAMES])


@pytest.fixture
def paths_alone(servers: Cluster, unique: str) -> Connection:
    return connect(policy(servers, {unique: unique}, *_NAMES))


def test_deleted_files_come_from_a_cmroot_that_is_a_path(paths_alone: Connection, unique: str) -> None:
    """Every bootstrap held all managed tables."""
    origin, warehouse = Origin(paths_alone, unique), Warehouse(paths_alone, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    origin.create("parts", "1", "2")
    for day in "12":
        origin.insert("parts", f"{unique} {day}\n", day)
    dump = warehouse.dump()
    paths_alone.source.metastore.drop_partitions(unique, "parts", ["ds=1"], delete_data=True)
    report = warehouse.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"source": 1, "cmroot": 1})

    origin.insert("parts", f"{unique} 3\n", "2")
    dump = warehouse.dump(warehouse.applied())
    paths_alone.source.metastore.drop_partitions(unique, "parts", ["ds=2"], delete_data=True)
    report = warehouse.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"cmroot": 1})


def test_a_target_whose_warehouse_is_a_path_is_examined_and_swept(paths_alone: Connection, unique: str) -> None:
    origin, warehouse = Origin(paths_alone, unique), Warehouse(paths_alone, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    origin.create("t")
    origin.insert("t", "1\n")
    assert not warehouse.replicate().held
    found = list(examine(paths_alone))
    assert [one for one in found if one.verdict == "error"] == []
    root = paths_alone.target.policy.target.roots[0].uri
    assert {one.check: one.found for one in found}["write to the warehouse"] == f"{root}paths/warehouse"
    assert {"owners and permissions", "free space"} <= {one.check for one in found if one.side == "target"}

    target = warehouse.with_policy(retention_seconds=0).connection.target
    database = target.metastore.database(unique)
    assert database is not None
    retire_database(target.storage, str(database.locationUri), 170)
    target.metastore.drop_database(unique, cascade=True)
    assert [one.what for one in sweep(target, unique)] == ["dropped database"]
