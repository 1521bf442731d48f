"""Dropping a table that the metastore refuses to drop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.replica.drops import drop_table
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import StorageDescriptor, Table


class Metastore:
    """One of Hive 4 with a table that a materialized view reads."""

    features = SimpleNamespace(major=4)

    def __init__(self, table: Table) -> None:
        self.held = table

    def alter_table(self, _: str, __: str, image: Table) -> None:
        self.held = image

    def table(self, *_: str) -> Table:
        return self.held

    def drop_table(self, *_: str, delete_data: bool) -> None:
        assert delete_data
        assert self.held.parameters["EXTERNAL"] == "TRUE"
        raise MetastoreError("Cannot drop table as it is used in the following materialized views [reports.mv]")


def test_a_transactional_table_that_cannot_be_dropped_stays_as_it_was() -> None:
    """It was external from then on, with a mark that only loads know."""
    sd = StorageDescriptor(location="hdfs://t/w/db.db/t")
    table = Table("t", "db", sd=sd, tableType="MANAGED_TABLE", parameters={"transactional": "true", "note": "kept"})
    metastore: Any = Metastore(table)
    with pytest.raises(MetastoreError):
        drop_table(metastore, table)
    assert metastore.held == table
