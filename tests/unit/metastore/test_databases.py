"""The directories of databases: a Hive 4 metastore shows a database in its warehouse at another one than it has."""

from __future__ import annotations

import pytest
from hive_metastore.ttypes import GetDatabaseRequest

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database, copy_of

CHOSEN = "hdfs://t/warehouse/team/sales"


class Translating:
    """A metastore of Hive 4 with one database, which it shows as ``MetastoreDefaultTransformer.transformDatabase`` does."""

    def __init__(self) -> None:
        self.there = Database(name="sales", locationUri=CHOSEN, parameters={})

    def get_database_req(self, request: GetDatabaseRequest) -> Database:
        shown = copy_of(self.there)
        if "MANAGE_RAW_METADATA" not in request.processorCapabilities:
            shown.managedLocationUri, shown.locationUri = shown.locationUri, "hdfs://t/warehouse/sales.db"
        return shown

    def alter_database(self, _: str, database: Database) -> None:
        for key, value in vars(database).items():
            if value is not None:  # as ObjectStore.alterDatabase
                setattr(self.there, key, value)


def test_a_change_of_properties_leaves_a_database_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first REPL DUMP moved source databases in directories of their own to the warehouse, and target databases likewise."""
    server, metastore = Translating(), Metastore("thrift://127.0.0.1:1")
    monkeypatch.setattr(Metastore, "call", lambda _, _what, do, **_more: do(server))
    found = metastore.database("sales")
    assert found is not None
    assert (found.locationUri, found.managedLocationUri) == (CHOSEN, None)
    found.parameters = {"repl.source.for": "copy"}
    metastore.alter_database("sales", found)
    assert server.there == Database(name="sales", locationUri=CHOSEN, parameters={"repl.source.for": "copy"})
