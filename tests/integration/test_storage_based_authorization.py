"""Metastores that ask HDFS who may do what (Hive's StorageBasedAuthorizationProvider), and an ordinary account."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.layout.live_locations import live_locations
from hive_replication.load.retention.sweep import sweep
from hive_replication.metastore.types import copy_of
from hive_replication.operate import repair
from hive_replication.storage import paths
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.account import Account, acting, held

pytestmark = [pytest.mark.servers, pytest.mark.long]

_QL = "org.apache.hadoop.hive.ql.security"
_SETTINGS = {
    "metastore.pre.event.listeners": f"{_QL}.authorization.AuthorizationPreEventListener",
    "hive.security.metastore.authorization.manager": f"{_QL}.authorization.StorageBasedAuthorizationProvider",
    "hive.security.metastore.authenticator.manager": f"{_QL}.HadoopDefaultMetastoreAuthenticator",
    "hive.security.metastore.authorization.auth.reads": "true",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """The superuser's own connection, whose clients are connected before anybody acts as the account."""
    properties = {"source4": _SETTINGS, "target4": _SETTINGS}
    servers = Cluster(tmp_path_factory.mktemp("authorization"), properties=properties)
    try:
        servers.up(["source4", "target4"])
        made = connect(policy(servers, {"unused": "unused"}, "source4", "target4"))
        for side in (made.source, made.target):
            side.storage.ls(side.storage.roots[0].uri)
        yield made
    finally:
        servers.down()


def mark(root: Connection, name: str) -> None:
    """What an administrator does once at the source."""
    database = copy_of(root.source.metastore.database(name))
    assert database is not None
    database.parameters = {**(database.parameters or {}), "repl.source.for": "hive-replication"}
    root.source.metastore.alter_database(name, database)


def test_an_account_replicates_once_the_source_is_marked(root: Connection, unique: str) -> None:
    account = Account(root, unique)
    for table in ("one", "two"):
        account.origin.create(table)
        account.origin.insert(table, "1\n")
    account.origin.create("parts", "1")
    account.origin.insert("parts", "1\n", "1")
    with pytest.raises(Refused, match="let an administrator set it, or set without_cmroot in the policy"):
        account.replicate()

    metastore = root.source.metastore
    mark(root, unique)
    assert account.replicate().held == ()
    account.origin.insert("one", "2\n")
    account.origin.insert("parts", "2\n", "1", overwrite=True)
    account.origin.create("new", "1")
    assert account.replicate().held == ()
    assert account.unequal() == {}

    for table in ("one", "parts"):
        with account.without(account.source, account.of_source(table), 0o700):
            account.origin.insert("two", "3\n")
            account.origin.insert(table, "4\n", "1" if table == "parts" else "")
            assert held(account.replicate()).keys() == {table}
            assert account.unequal().keys() == {table}
            with acting():
                found = witness(account.connection.source, account.connection.target, account.database)
                repaired = repair(account.connection, account.database).repaired
            assert {one.table for one in found.wrong} == {table}
            assert repaired is not None
            assert held(repaired).keys() == {table}
            assert f"the source's metastore did not show {table} to the account" in held(repaired)[table]
        assert account.repair(table) == ()
        assert account.unequal() == {}

    with account.without(account.target, account.of_target("one"), 0o500):
        account.origin.insert("one", "3\n")
        account.origin.insert("two", "3\n")
        assert held(account.replicate()).keys() == {"one"}
    assert account.repair("one") == ()
    metastore.drop_table(unique, "two", delete_data=True)
    assert account.replicate().held == ()
    assert account.unequal() == {}


def test_a_strangers_private_table_on_the_target_ends_no_retention(root: Connection, unique: str) -> None:
    account, metastore = Account(root, unique), root.target.metastore
    account.origin.create("parts", "1")
    account.origin.insert("parts", "1\n", "1")
    mark(root, unique)
    assert account.replicate().held == ()
    (private,) = metastore.tables(unique, ["parts"])
    (part,) = metastore.partitions(unique, "parts")
    place = f"{private.sd.location}_private"
    private.tableName = part.tableName = "private"
    private.sd.location, part.sd.location = place, f"{place}/ds=1"
    private.parameters, part.parameters = {"EXTERNAL": "TRUE"}, {}
    private.tableType = "EXTERNAL_TABLE"
    metastore.create_table(private)
    metastore.add_partitions(unique, "private", [part])
    target = account.connection.target
    with account.without(account.target, paths.split(place)[2], 0o700), acting():
        with pytest.raises(MetastoreError, match="Permission denied"):
            list(target.metastore.partitions(unique, "private"))
        live = live_locations(target.metastore, unique)
        assert live.contains(f"{place}/ds=2")
        assert sweep(target, unique, account.connection.store) == []
