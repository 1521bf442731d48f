"""Tables that engines other than Hive make, as the metastore shows them."""

from __future__ import annotations

import pytest

from hive_replication.dump.source import why_skipped
from hive_replication.metastore.types import StorageDescriptor, Table

HUDI = "org.apache.hudi.hadoop.HoodieParquetInputFormat"


@pytest.mark.parametrize(
    ("name", "parameters", "reads"),
    [
        ("Iceberg", {"table_type": "ICEBERG", "metadata_location": "hdfs://s/t/metadata/1.json"}, None),
        ("Iceberg", {"table_type": "iceberg", "storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"}, None),
        ("Delta Lake", {"spark.sql.sources.provider": "DELTA"}, "org.apache.hadoop.mapred.SequenceFileInputFormat"),
        ("Hudi", {"spark.sql.sources.provider": "hudi"}, HUDI),
        ("Hudi", {}, HUDI),
        ("SymlinkTextInputFormat", {}, "org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat"),
    ],
)
def test_tables_of_which_files_of_their_own_tell_what_they_consist_of_are_left_out(
    name: str, parameters: dict[str, str], reads: str | None
) -> None:
    """They came as plain external tables, which nobody could read, or of which readers read the source (manifests)."""
    sd = StorageDescriptor(location="hdfs://s/t", inputFormat=reads)
    table = Table(tableName="t", dbName="db", sd=sd, tableType="EXTERNAL_TABLE", parameters=parameters)
    assert why_skipped(table).startswith(f"tables of {name} tell in files of their own")
    assert why_skipped(table, metadata_only=True) == ""


def test_plain_tables_of_spark_are_not_left_out() -> None:
    sd = StorageDescriptor(location="hdfs://s/t", inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat")
    parameters = {"spark.sql.sources.provider": "parquet", "table_type": ""}
    assert why_skipped(Table(tableName="t", dbName="db", sd=sd, tableType="EXTERNAL_TABLE", parameters=parameters)) == ""


def test_views_of_iceberg_are_left_out_too() -> None:
    """What they say is in a file of metadata at the source, to which the replica's parameters would lead."""
    parameters = {"table_type": "iceberg-view", "metadata_location": "hdfs://s/v/metadata/1.json"}
    view = Table(tableName="v", dbName="db", sd=StorageDescriptor(), tableType="VIRTUAL_VIEW", parameters=parameters)
    assert why_skipped(view).startswith("views of Iceberg tell in files of their own")
    view.parameters = {}
    assert why_skipped(view) == ""
