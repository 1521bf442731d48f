"""What users of the source may make replication read and write: on real servers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hive_metastore.ttypes import FunctionType, ResourceType, ResourceUri

from hive_replication.connect import Connection, connect
from hive_replication.load.layout.directories import Layout
from hive_replication.metastore.types import Function, PrincipalType
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    assert warehouse.replicate().held == ()
    return warehouse


def with_paths(connection: Connection, *paths: str) -> Connection:
    policy = connection.source.policy
    return connect(policy.model_copy(update={"source": policy.source.model_copy(update={"paths": paths})}))


def held(warehouse: Warehouse) -> dict[tuple[str, ...], str]:
    return {one.tables: one.reason for one in warehouse.replicate().held}


def test_a_table_in_the_place_of_the_targets_journal_is_held_alone(replicated: Warehouse) -> None:
    """C1: such a table was mapped as it stands, and wrote into the journal of the target."""
    side = replicated.connection
    here = str(side.source.metastore.database(replicated.database).locationUri)
    journal = Layout(str(side.target.metastore.database(replicated.database).locationUri)).journal
    before = {file.uri for file in side.target.storage.files(journal, hidden=True)}
    side.source.storage.write(f"{here}/.repl/journal/forged.done/f", b"{}")
    replicated.sql(
        f"CREATE EXTERNAL TABLE forged (a STRING) LOCATION '{here}/.repl/journal/forged.done'",
        "CREATE TABLE parted (a STRING) PARTITIONED BY (ds STRING)",
        f"ALTER TABLE parted ADD PARTITION (ds='1') LOCATION '{here}/.repl/retired/x'",
    )
    replicated.load_data("plain", "2\n")
    found = held(replicated)
    assert set(found) == {("forged",), ("parted",)}
    assert all("replication's own" in reason for reason in found.values())
    after = {file.uri for file in side.target.storage.files(journal, hidden=True)}
    assert not [uri for uri in after - before if "forged" in uri]
    replicated.assert_equal(only="plain")
    replicated.sql("DROP TABLE forged", "DROP TABLE parted")
    assert replicated.load(replicated.dump(replicated.status()).directory).held == ()
    replicated.assert_equal()


def test_a_bootstrap_holds_what_lies_elsewhere_and_brings_the_rest(warehouse: Warehouse) -> None:
    """C2, C7: data that the source's user may not read was copied for them."""
    root = warehouse.connection.source.policy.source.roots[0].uri
    secret = f"{root}secret/{warehouse.database}"
    warehouse.connection.source.storage.write(f"{secret}/f", b"1\n")
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        f"CREATE EXTERNAL TABLE deputy (a INT) LOCATION '{secret}'",
        f"CREATE TABLE schema_elsewhere (a INT) TBLPROPERTIES ('avro.schema.url'='{secret}/f')",
        "CREATE TABLE parted (a INT) PARTITIONED BY (ds STRING)",
        f"ALTER TABLE parted ADD PARTITION (ds='1') LOCATION '{secret}'",
    )
    warehouse.load_data("plain", "1\n")
    function = Function("f", warehouse.database, "a.B", "hive", PrincipalType.USER, 0, FunctionType.JAVA, [])
    function.resourceUris = [ResourceUri(ResourceType.JAR, f"{secret}/f")]
    warehouse.connection.source.metastore.create_function(function)
    found = held(warehouse)
    assert set(found) == {("deputy",), ("schema_elsewhere",), ("parted",), ("f()",)}
    assert all("source.paths" in reason for reason in found.values())
    warehouse.assert_equal(only="plain")
    target = warehouse.connection.target
    location = str(target.metastore.database(warehouse.database).locationUri)
    files = target.storage.files(location, hidden=True)
    assert not [file.uri for file in files if "/deputy" in file.uri or "/parted" in file.uri or "functions" in file.uri]
    allowed = replace(warehouse, connection=with_paths(warehouse.connection, secret))
    assert held(allowed) == {}
    again = allowed.load(allowed.dump().directory, repair=True)
    assert again.held == ()
    allowed.assert_equal_but_paths("avro.schema.url")


def test_a_window_holds_what_moves_elsewhere_until_the_policy_allows_it(replicated: Warehouse) -> None:
    root = replicated.connection.source.policy.source.roots[0].uri
    secret = f"{root}secret/{replicated.database}"
    replicated.connection.source.storage.write(f"{secret}/f", b"9\n")
    replicated.sql(f"CREATE EXTERNAL TABLE deputy (a INT) LOCATION '{secret}'", "CREATE TABLE other (a INT)")
    replicated.load_data("plain", "2\n")
    since = replicated.applied()
    window = replicated.dump(since).directory
    assert [one.tables for one in replicated.load(window).held] == [("deputy",)]
    replicated.assert_equal(only="plain")
    replicated.assert_equal(only="other")
    allowed = replace(replicated, connection=with_paths(replicated.connection, secret))
    (one,) = allowed.load(window).held
    assert "dump again" in one.reason, "the dump has nothing of it: an empty table would be wrong"
    assert allowed.load(allowed.dump(since).directory).held == ()
    allowed.assert_equal()


def test_what_a_dump_may_not_read_is_held_though_the_boundary_has_grown_by_its_load(warehouse: Warehouse) -> None:
    """Somebody set the database's location there in between: the table came empty, and nothing was held."""
    root = warehouse.connection.source.policy.source.roots[0].uri
    lake = f"{root}lake/{warehouse.database}"
    warehouse.sql(
        f"CREATE EXTERNAL TABLE outside (a INT) LOCATION '{lake}/outside'",
        "CREATE TABLE parted (a INT) PARTITIONED BY (ds STRING)",
        f"ALTER TABLE parted ADD PARTITION (ds='1') LOCATION '{lake}/parted'",
    )
    for place in ("outside", "parted"):
        warehouse.connection.source.storage.write(f"{lake}/{place}/f", b"1\n")
    dump = warehouse.dump().directory
    warehouse.sql(f"ALTER DATABASE {{db}} SET LOCATION '{lake}'")
    held = {one.tables: one.reason for one in warehouse.load(dump).held}
    assert set(held) == {("outside",), ("parted",)}
    assert all("dump again" in reason for reason in held.values())
    assert warehouse.load(warehouse.dump().directory, repair=True).held == ()
    warehouse.assert_equal()
