"""Messages of a metastore of Hive 2: what they do not tell is known not to be told."""

from __future__ import annotations

import json

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode
from hive_replication.events.redumps import why_redump
from hive_replication.events.untold import UntoldInsert, is_untold
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table, copy_of

PLAIN = Table(
    tableName="t",
    dbName="d",
    tableType="MANAGED_TABLE",
    sd=StorageDescriptor(cols=[FieldSchema(name="a", type="int")], location="hdfs://nn/d/t"),
    parameters={"last_modified_time": "1", "numFiles": "1"},
    partitionKeys=[],
)
NAMES = {"server": "", "servicePrincipal": "", "db": "d", "table": "t", "timestamp": 1}


def decoded(kind: str, **fields: object) -> r.Event:
    return decode(r.Notification(7, 1, kind, "d", "t", json.dumps(NAMES | fields)))


def altered(after: Table, before: Table = PLAIN, **more: object) -> r.Event:
    images = {"tableObjBeforeJson": tjson.dumps(before), "tableObjAfterJson": tjson.dumps(after)}
    return decoded("ALTER_TABLE", **images, **more)


def changed(table: Table = PLAIN, **fields: object) -> Table:
    made = copy_of(table)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_an_insert_names_its_files_only() -> None:
    event = decoded("INSERT", files=["hdfs://nn/d/t/0#00ff"], partKeyVals={})
    assert isinstance(event, UntoldInsert)
    assert [(file.uri, file.checksum, file.cm_root) for file in event.files] == [("hdfs://nn/d/t/0", "00ff", "")]
    assert "Hive 2 does not tell" in why_redump(event)


def test_an_alter_of_data_says_nothing_of_it() -> None:
    event = altered(changed(parameters={"last_modified_time": "1", "numFiles": "2"}))
    assert is_untold(event)
    assert why_redump(event)


@pytest.mark.parametrize(
    "event",
    [
        altered(changed(parameters={"last_modified_time": "2", "numFiles": "1"})),  # by DDL
        altered(changed(tableName="other"), table="other"),  # a rename moves the data that is known
        altered(changed(tableType="VIRTUAL_VIEW"), changed(tableType="VIRTUAL_VIEW")),
        altered(changed(partitionKeys=[FieldSchema(name="p", type="int")])),  # its data is its partitions'
        altered(PLAIN, isTruncateOp="false"),  # Hive 3 says it
    ],
    ids=["ddl", "rename", "view", "partitioned", "hive 3"],
)
def test_other_alters_are_told(event: r.Event) -> None:
    assert not is_untold(event)
    assert not why_redump(event)


def test_partitions() -> None:
    table = changed(partitionKeys=[FieldSchema(name="p", type="string")])
    before = Partition(values=["1"], dbName="d", tableName="t", sd=copy_of(PLAIN.sd), parameters={})
    fields = {"tableObjJson": tjson.dumps(table), "partitionObjBeforeJson": tjson.dumps(before)}
    after = copy_of(before)
    after.parameters = {"numFiles": "2"}
    assert is_untold(decoded("ALTER_PARTITION", **fields, partitionObjAfterJson=tjson.dumps(after)))
    after.parameters = {"last_modified_time": "3"}
    assert not is_untold(decoded("ALTER_PARTITION", **fields, partitionObjAfterJson=tjson.dumps(after)))
    after.values = ["2"]
    assert not is_untold(decoded("ALTER_PARTITION", **fields, partitionObjAfterJson=tjson.dumps(after)))
