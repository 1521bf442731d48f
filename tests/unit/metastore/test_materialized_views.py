"""Materialized views as ordinary ones."""

from __future__ import annotations

import pytest

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.materialized_views import as_view, is_definition, is_replica_of_materialized
from hive_replication.metastore.table_kinds import has_files, is_transactional, is_view
from hive_replication.metastore.types import FieldSchema, SerDeInfo, StorageDescriptor, Table, copy_of
from tests.replica import MAPPING


def materialized(**parameters: str) -> Table:
    """As Hive 4.2 describes one."""
    sd = StorageDescriptor(
        cols=[FieldSchema("a", "int", "first")],
        location="hdfs://src/w/db.db/m",
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    )
    made = Table("m", "db", "etl", 1, 2, 3, sd, [FieldSchema("p", "string")], parameters, "SELECT a", "SELECT `t`.`a`")
    made.tableType, made.rewriteEnabled, made.writeId, made.catName, made.ownerType = "MATERIALIZED_VIEW", True, 7, "hive", 1
    return made


def test_it_keeps_its_definition_and_nothing_of_its_data() -> None:
    found = materialized(
        transactional="true",
        transactional_properties="default",
        numRows="7",
        COLUMN_STATS_ACCURATE="{}",
        bucketing_version="2",
        comment="of sales",
        team="bi",
        **{"materializedview.sort.columns": "a", "rewriting.time.window": "-1min", "external.table.purge": "true"},
    )
    before = copy_of(found)
    view = as_view(found)
    assert found == before
    assert (is_view(view), is_transactional(view), has_files(view), view.sd.location) == (True, False, False, None)
    assert [(one.name, one.type, one.comment) for one in view.sd.cols] == [("a", "int", "first"), ("p", "string", None)]
    assert (view.partitionKeys, view.rewriteEnabled, view.creationMetadata, view.writeId) == ([], False, None, -1)
    assert (view.viewOriginalText, view.viewExpandedText, view.owner, view.ownerType) == ("SELECT a", "SELECT `t`.`a`", "etl", 1)
    assert {key for key in view.parameters if not key.startswith("hive_replication.")} == {"comment", "team"}


def test_parameters_of_storage_handlers_go_with_the_storage() -> None:
    found = materialized(storage_handler="druid", **{"druid.datasource": "db.m", "comment": "c", "uuid": "1"})
    assert {key for key in as_view(found).parameters if not key.startswith("hive_replication.")} == {"comment"}


def test_its_replica_is_told_from_those_of_ordinary_views() -> None:
    """And it is an ordinary view where it is the source of another replica."""
    view = as_view(materialized())
    replica = MAPPING.new_table(view, 7)
    assert (is_definition(view), is_replica_of_materialized(view)) == (True, False)
    assert (is_definition(replica), is_replica_of_materialized(replica)) == (False, True)
    second = MAPPING.new_table(replica, 8)
    assert (is_definition(second), is_replica_of_materialized(second)) == (False, False)


@pytest.mark.parametrize("kind", ["MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW"])
def test_any_other_table_stays_as_it_is(kind: str) -> None:
    table = materialized(transactional="true")
    table.tableType = kind
    assert as_view(table) is table


def test_a_metastore_shows_them_where_it_is_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    metastore = Metastore("thrift://nowhere:9083")
    shown = metastore.with_views_of_materialized()
    monkeypatch.setattr(Metastore, "call", lambda _, what, __: materialized() if what == "get_table db.m" else [materialized()])
    found = [(one.table("db", "m"), *one.tables("db", ["m"])) for one in (metastore, shown)]
    kinds = [[table and table.tableType for table in tables] for tables in found]
    assert kinds == [["MATERIALIZED_VIEW"] * 2, ["VIRTUAL_VIEW"] * 2]
