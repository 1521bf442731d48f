from __future__ import annotations

import json
from typing import Any

import pytest
from hive_metastore import ttypes
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TJSONProtocol import TJSONProtocolFactory
from thrift.TSerialization import deserialize

from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    Order,
    Partition,
    SerDeInfo,
    SkewedInfo,
    StorageDescriptor,
    Table,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
texts = st.lists(text, max_size=3)
parameters = st.dictionaries(text, text, max_size=3)
columns = st.lists(st.builds(FieldSchema, name=text, type=text, comment=st.none() | text), max_size=3)
storage = st.builds(
    StorageDescriptor,
    cols=columns,
    location=st.none() | text,
    compressed=st.booleans(),
    numBuckets=st.integers(-(2**31), 2**31 - 1),
    serdeInfo=st.builds(SerDeInfo, name=text, serializationLib=text, parameters=parameters),
    bucketCols=texts,
    sortCols=st.lists(st.builds(Order, col=text, order=st.integers(0, 1)), max_size=2),
    parameters=parameters,
    skewedInfo=st.none()
    | st.builds(
        SkewedInfo,
        skewedColNames=texts,
        skewedColValues=st.lists(texts, max_size=2),
        skewedColValueLocationMaps=st.dictionaries(texts.map(tuple), text, max_size=2),
    ),
)
tables = st.builds(
    Table, tableName=text, dbName=text, sd=storage, partitionKeys=columns, parameters=parameters, writeId=st.integers(0, 2**62)
)


@given(tables)
def test_a_table_comes_back(table: Table) -> None:
    assert tjson.loads(Table, tjson.dumps(table)) == table


@given(st.builds(Partition, values=texts, parameters=parameters, createTime=st.integers(0, 2**31 - 1)))
def test_apaches_own_protocol_reads_what_is_written(partition: Partition) -> None:
    written = tjson.dumps(partition).encode()
    assert deserialize(Partition(), written, TJSONProtocolFactory()) == partition


JAVA_DATABASE = '{"1":{"str":"db"},"2":{"str":"desc"},"3":{"str":"hdfs://nn/w/db.db"},"4":{"map":["str","str",1,{"k":"v"}]},"8":{"str":"hive"}}'


def test_text_of_java_hive_is_read_and_written_alike() -> None:
    database = tjson.loads(Database, JAVA_DATABASE)
    assert (database.name, database.description, database.parameters, database.catalogName) == ("db", "desc", {"k": "v"}, "hive")
    assert json.loads(tjson.dumps(database)) == json.loads(JAVA_DATABASE)


def test_the_usual_field_delimiter_is_json_and_other_text_is_not_escaped() -> None:
    written = tjson.dumps(SerDeInfo(parameters={"field.delim": "\x01", "name": "naïve ☃"}))
    assert json.loads(written)["3"]["map"][3] == {"field.delim": "\x01", "name": "naïve ☃"}
    assert "naïve ☃" in written


def test_fields_of_a_newer_hive_are_skipped() -> None:
    newer = (
        '{"1":{"str":"db"},"4":{"map":["str","str",0,{}]},"99":{"rec":{"1":{"lst":["i32",1,5]}}},"7":{"str":"of another type"}}'
    )
    assert tjson.loads(Database, newer) == Database(name="db", parameters={})


def test_lists_as_keys_as_thrift_writes_them() -> None:
    java = '{"1":{"lst":["str",1,"a"]},"2":{"lst":["lst",1,["str",1,"x\\"]:"]]},"3":{"map":["lst","str",1,{["str",1,"x\\"]:"]:"hdfs://nn/x"}]}}'
    skewed = tjson.loads(SkewedInfo, java)
    assert skewed.skewedColValueLocationMaps == {('x"]:',): "hdfs://nn/x"}
    assert tjson.dumps(skewed) == java


def test_a_list_as_a_key_that_nests_too_deep() -> None:
    with pytest.raises(ValueError, match="not the TJSON form of SkewedInfo: it nests too deep"):
        tjson.loads(SkewedInfo, json.dumps({"3": {"map": ["lst", "str", 1, {"[" * 100_000: "x"}]}}))


def test_column_statistics_keep_their_bytes_and_doubles() -> None:
    stats = ttypes.ColumnStatisticsData(
        decimalStats=ttypes.DecimalColumnStatsData(
            lowValue=ttypes.Decimal(scale=2, unscaled=b"\x00\xff\x10"), numNulls=1, numDVs=2, bitVectors=b"HL"
        ),
        stringStats=ttypes.StringColumnStatsData(maxColLen=5, avgColLen=float("inf"), numNulls=0, numDVs=3),
    )
    written = tjson.dumps(stats)
    assert "=" not in written  # Java's writer leaves out base64 padding
    assert tjson.loads(ttypes.ColumnStatisticsData, written) == stats


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "[]",
        "nonsense",
        '{"1":{"str":5}}',
        '{"1":{"str":null}}',
        '{"4":{"map":["str","str",2,{"k":"v"}]}}',
        '{"4":{"map":["str","i32",1,{"k":1}]}}',
        '{"4":{"map":["str"]}}',
        '{"1":"db"}',
        '{"1":{"str":"db"}',
        "[" * 100_000,
    ],
)
def test_malformed_text_is_a_value_error(broken: Any) -> None:
    with pytest.raises(ValueError, match="not the TJSON form of Database"):
        tjson.loads(Database, broken)
