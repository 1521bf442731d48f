"""What a transaction wrote, as the metastore's notes tell it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest
from hive_metastore.ttypes import WriteEventInfo

from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.transactions import Transactions
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table

COLUMNS = [FieldSchema("a", "int", "MATERIALIZED_VIEW")]


@pytest.mark.parametrize("partition", ["", "p=1"])
@pytest.mark.parametrize(("kind", "view"), [("MANAGED_TABLE", False), ("MATERIALIZED_VIEW", True)])
def test_what_users_write_into_a_table_makes_no_materialized_view_of_it(kind: str, partition: str, *, view: bool) -> None:
    """All that was ever written to such a table was left out."""
    sd = StorageDescriptor(cols=COLUMNS, location="hdfs://src/w/db.db/o")
    table = Table(dbName="db", tableName="o", sd=sd, parameters={"origin": "MATERIALIZED_VIEW"}, tableType=kind)
    part = tjson.dumps(Partition(dbName="db", tableName="o", sd=sd, values=["1"])) if partition else None
    info = WriteEventInfo(3, "db", "o", "", partition or None, tjson.dumps(table), part)
    metastore = cast("Metastore", SimpleNamespace(call=Mock(return_value=[info])))
    (write,) = Transactions.write_events(metastore, 7, "db")
    assert (write.table, write.partition, write.view, write.location) == ("o", partition, view, "hdfs://src/w/db.db/o")
    assert not write.problem


@pytest.mark.parametrize(("table", "partition"), [(Table(dbName="db", tableName="o"), None), (None, Partition(values=["1"]))])
def test_what_has_no_directory_is_a_problem_of_its_table(table: Table | None, partition: Partition | None) -> None:
    texts = [one and tjson.dumps(one) for one in (table, partition)]
    info = WriteEventInfo(3, "db", "o", "", "p=1" if partition else None, *texts)
    metastore = cast("Metastore", SimpleNamespace(call=Mock(return_value=[info])))
    (write,) = Transactions.write_events(metastore, 7, "db")
    assert (write.table, write.problem) == ("o", "what was written has no storage descriptor")
