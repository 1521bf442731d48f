"""Objects of a dump without what all code relies on."""

from __future__ import annotations

import pytest

from hive_replication.dump.format.validate_objects import whole_database, whole_function, whole_partition, whole_table
from hive_replication.metastore.types import Database, Function, Partition, ResourceUri, StorageDescriptor, Table


def test_parameters_that_are_left_out_are_none() -> None:
    assert whole_database(Database(name="db")).parameters == {}


def test_what_is_not_whole_is_refused() -> None:
    for refused in (
        lambda: whole_database(Database()),
        lambda: whole_table(Table(tableName="t")),
        lambda: whole_table(Table(sd=StorageDescriptor())),
        lambda: whole_partition(Partition()),
        lambda: whole_function(Function()),
        lambda: whole_function(Function("f", "db", resourceUris=[ResourceUri(1, None)])),
    ):
        with pytest.raises(ValueError, match="has no"):
            refused()
