"""Both clusters name their HDFS alike, as distributions do by default: the same URI is another file on either side."""

from __future__ import annotations

from collections.abc import Iterator

import hdfs_native
import pytest

from hive_replication.connect import Connection, connect
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Warehouse as Side
from hive_replication.storage import paths
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

_NAME = "nameservice1"
_SIDES = "source", "target"


def named(hdfs: str) -> dict[str, str]:
    """What clients know of a nameservice, as in ``hdfs-site.xml``; this one has a single NameNode."""
    return {
        "dfs.nameservices": _NAME,
        f"dfs.ha.namenodes.{_NAME}": "nn1",
        f"dfs.namenode.rpc-address.{_NAME}.nn1": hdfs.removeprefix("hdfs://").rstrip("/"),
        f"dfs.client.failover.proxy.provider.{_NAME}": (
            "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
        ),
    }


@pytest.fixture
def alike(cluster: Cluster, unique: str) -> Iterator[Connection]:
    """Metastores whose warehouses have the same URI, on two HDFS."""
    places = {
        "hive.metastore.warehouse.dir": f"hdfs://{_NAME}/alike/warehouse",
        "hive.repl.cmrootdir": f"hdfs://{_NAME}/alike/cmroot",
    }
    names = [f"{side}-alike" for side in _SIDES]
    hdfs = {name: cluster.side(side).hdfs for name, side in zip(names, _SIDES, strict=True)}
    servers = Cluster(cluster.directory, {name: {**named(hdfs[name]), **places} for name in names})
    servers.up(names)
    made = policy(servers, {unique: unique}, *names)

    def side(one: Side, name: str) -> Side:
        root = Root(uri=f"hdfs://{_NAME}/", webhdfs=one.roots[0].webhdfs, options=named(hdfs[name]))
        return one.model_copy(update={"roots": (root,), "paths": (f"hdfs://{_NAME}/elsewhere",)})

    sides = {"source": side(made.source, names[0]), "target": side(made.target, names[1])}
    roots = {"dump_root": f"hdfs://{_NAME}/repl/alike", "external_root": f"hdfs://{_NAME}/external"}
    try:
        yield connect(made.model_copy(update=sides | roots))
    finally:
        servers.down([f"{name}.metastore" for name in names])


def test_each_side_means_its_own(alike: Connection, cluster: Cluster, unique: str) -> None:
    origin, warehouse = Origin(alike, unique), Warehouse(alike, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    origin.create("parts", "1", "2")
    for day in "12":
        origin.insert("parts", f"{day}\n", day)
    origin.create("plain")
    origin.insert("plain", "0\n")
    assert warehouse.replicate().files_by_origin == {"source": 3}
    databases = [side.metastore.database(unique) for side in (alike.source, alike.target)]
    assert [one.locationUri for one in databases if one] == [f"hdfs://{_NAME}/alike/warehouse/{unique}.db"] * 2

    late = origin.insert("parts", "3\n", "1")
    origin.insert("plain", "4\n", overwrite=True)
    dump = warehouse.dump(warehouse.applied())
    alike.source.metastore.drop_partitions(unique, "parts", ["ds=1"], delete_data=True)  # into the source's cmroot
    assert not alike.source.storage.exists(late)
    report = warehouse.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"source": 1, "cmroot": 1})
    assert contents(cluster, "target", alike, unique) == {b"1\n", b"2\n", b"3\n", b"4\n"}
    warehouse.replicate()
    assert {one.table: one.differences for one in compare_database(alike.source, alike.target, unique)} == {
        "parts": (),
        "plain": (),
    }
    assert [contents(cluster, side, alike, unique) for side in _SIDES] == [{b"2\n", b"4\n"}] * 2


def contents(cluster: Cluster, side: str, alike: Connection, database: str) -> set[bytes]:
    """What lies in the directories of a side's tables, by a client that knows its HDFS by address."""
    client = hdfs_native.Client(cluster.side(side).hdfs.rstrip("/"))
    metastore = (alike.source if side == "source" else alike.target).metastore
    places = [part.sd.location for part in metastore.partitions(database, "parts")]
    table = metastore.table(database, "plain")
    assert table is not None
    found = [
        status.path
        for place in [*places, table.sd.location]
        for status in client.list_status(paths.split(place)[2])
        if not status.isdir
    ]
    return {bytes(client.read(path).read()) for path in found}
