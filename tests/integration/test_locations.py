"""Databases at locations of their own: where their replicas lie, on real servers."""

from __future__ import annotations

import pytest

from hive_replication.connect import Connection
from hive_replication.doctor import examine
from hive_replication.errors import Refused
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import Database
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


@pytest.fixture
def warehouse(connection: Connection, unique: str) -> Warehouse:
    """A database at a location of its own, with a table."""
    made = Warehouse(connection, None, unique).with_policy()  # type: ignore[arg-type]
    source = made.connection.source
    location = f"{source.policy.source.roots[0].uri}custom/{unique}"
    source.metastore.create_database(Database(name=unique, parameters={}, locationUri=location))
    origin = Origin(made.connection, unique)
    origin.create("plain")
    origin.insert("plain", "1\n")
    return made


def location(warehouse: Warehouse) -> str:
    found = warehouse.connection.target.metastore.database(warehouse.database)
    assert found is not None
    return str(found.locationUri)


def told(warehouse: Warehouse, report: LoadReport) -> list[str]:
    return [one.reason for one in report.skipped if one.what == warehouse.database]


def found(warehouse: Warehouse) -> list[str]:
    findings = examine(warehouse.connection)
    return [
        one.found for one in findings if one.check == f"database {warehouse.database}" and "the target's metastore" in one.found
    ]


def test_the_metastore_chooses_and_the_report_says_so(warehouse: Warehouse) -> None:
    """A13: it went to the target's warehouse without a word."""
    assert len(found(warehouse)) == 1
    report = warehouse.replicate()
    assert report.held == ()
    (reason,) = told(warehouse, report)
    assert f"custom/{warehouse.database} is not replicated" in reason
    assert location(warehouse).endswith(f"/{warehouse.database}.db")
    warehouse.assert_equal()


def test_the_policy_chooses(warehouse: Warehouse) -> None:
    place = f"{warehouse.connection.target.policy.target.roots[0].uri}chosen/{warehouse.database}"
    chosen = warehouse.with_policy(locations={warehouse.database: place})
    assert found(chosen) == []
    report = chosen.replicate()
    assert (report.held, told(chosen, report)) == ((), [])
    assert location(chosen) == place
    origin = Origin(chosen.connection, chosen.database)
    origin.insert("plain", "2\n", overwrite=True)
    origin.create("later", "1")
    origin.insert("later", "3\n", "1")
    assert chosen.replicate().held == ()
    chosen.assert_equal()
    for table in chosen.connection.target.metastore.tables(chosen.database, ["plain", "later"]):
        assert str(table.sd.location).startswith(f"{place}/")
    metastore = chosen.connection.source.metastore
    metastore.alter_database(chosen.database, Database(name=chosen.database, parameters={}))  # else it cannot be dropped
    metastore.drop_database(chosen.database, delete_data=True, cascade=True)
    assert chosen.replicate().held == ()
    assert chosen.connection.target.metastore.database(chosen.database) is None


def test_the_policy_may_not_choose_replications_own_directory(warehouse: Warehouse) -> None:
    place = f"{warehouse.connection.target.policy.target.roots[0].uri}chosen/.repl/{warehouse.database}"
    with pytest.raises(Refused, match="choose another"):
        warehouse.with_policy(locations={warehouse.database: place}).replicate()
    assert warehouse.connection.target.metastore.database(warehouse.database) is None
