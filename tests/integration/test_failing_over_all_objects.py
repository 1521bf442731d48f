"""Failover and failback of a database that has another name on the target: external tables, views, odd partitions, a rename."""

from __future__ import annotations

import pytest

from hive_replication import failover
from hive_replication.connect import connect
from hive_replication.metastore.types import FieldSchema, Partition, Table, copy_of
from hive_replication.policy.swap import swapped
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.origin import TEXT, Origin
from tests.pair import Direction

pytestmark = pytest.mark.servers


def test_all_objects_go_there_and_back(cluster: Cluster, source: Side, target: Side, unique: str) -> None:
    data, root = f"{source.hdfs}data_{unique}", f"{target.hdfs}external_{unique}"
    made = policy(cluster, {unique: f"{unique}_dr"})
    reads = made.source.model_copy(update={"paths": (*made.source.paths, data)})
    made = made.model_copy(update={"source": reads, "external_root": root})
    there = Direction(connect(made), unique)
    back = Direction(connect(swapped(made)), there.replica)
    origin, opened = there.origin, back.origin
    _fill(origin, data)
    there.replicate()
    origin.insert("plain", "2\n")
    _rename(origin, "before", "between")
    assert there.fail_over().phase == "finished"
    assert there.differences() == {}

    place = opened.location("outside")
    assert place.startswith(root)
    opened.insert("plain", "3\n")
    opened.insert("outside", "44\n")
    _external(opened, "new", f"{root}/new")
    opened.insert("new", "555\n")
    _view(opened, "shown_too", "new")
    _rename(opened, "between", "after")
    assert failover.reverse(back.connection, back.database, dry_run=True).dropped == ("between",)
    done = failover.reverse(back.connection, back.database, drop=True)
    assert (done.held, done.bytes_copied, back.differences()) == ((), len("3\n44\n555\n"), {})
    assert origin.location("outside") == f"{data}/outside"
    assert {name: _text(origin, name) for name in ("shown", "shown_too")} == {
        "shown": f"SELECT `a` FROM `{unique}`.`plain`",
        "shown_too": f"SELECT `a` FROM `{unique}`.`new`",
    }
    opened.insert("after", "6\n")
    back.replicate()
    assert back.differences() == {}

    assert back.fail_over().phase == "finished"
    for table in ("after", "new", "outside"):
        origin.insert(table, "7\n")
    done = failover.reverse(there.connection, unique)
    assert (done.held, done.bytes_copied, there.differences()) == ((), len("7\n") * 3, {})
    assert opened.location("outside") == place


def _fill(origin: Origin, data: str) -> None:
    """Two managed tables, one of them to be renamed, odd partitions, an external table and partition elsewhere, and a view."""
    origin.create_database()
    for table in ("plain", "before"):
        origin.create(table)
        origin.insert(table, "1\n")
    origin.create("odd", "a/b", "ü x", "__x%2F")
    _external(origin, "outside", f"{data}/outside")
    origin.insert("outside", "1\n")
    _external(origin, "parts", f"{data}/parts", "ds")
    elsewhere = copy_of(TEXT)
    elsewhere.location = f"{data}/elsewhere/1"
    origin.connection.source.storage.write(f"{elsewhere.location}/file", b"1\n")
    part = Partition(values=["1"], dbName=origin.database, tableName="parts", sd=elsewhere, parameters={})
    origin.connection.source.metastore.add_partitions(origin.database, "parts", [part])
    _view(origin, "shown", "plain")


def _create(origin: Origin, name: str, kind: str, place: str | None, **fields: object) -> None:
    descriptor = copy_of(TEXT)
    descriptor.location = place
    parameters = {"EXTERNAL": "TRUE"} if place else {}
    table = Table(dbName=origin.database, tableName=name, sd=descriptor, parameters=parameters, tableType=kind, **fields)
    origin.connection.source.metastore.create_table(table)


def _external(origin: Origin, name: str, place: str, *keys: str) -> None:
    _create(origin, name, "EXTERNAL_TABLE", place, partitionKeys=[FieldSchema(key, "string", None) for key in keys])


def _view(origin: Origin, name: str, of: str) -> None:
    text = f"SELECT `a` FROM `{origin.database}`.`{of}`"
    _create(origin, name, "VIRTUAL_VIEW", None, partitionKeys=[], viewOriginalText=text, viewExpandedText=text)


def _rename(origin: Origin, old: str, new: str) -> None:
    found = origin.connection.source.metastore.table(origin.database, old)
    image = copy_of(found)
    assert image
    image.tableName = new
    origin.connection.source.metastore.alter_table(origin.database, old, image)


def _text(origin: Origin, view: str) -> str:
    found = origin.connection.source.metastore.table(origin.database, view)
    assert found
    return str(found.viewOriginalText)
