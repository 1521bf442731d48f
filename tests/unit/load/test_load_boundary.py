"""What the dump could not read is held whatever the load may read."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import seen_files
from hive_replication.dump.cm_roots import NOTHING_KEPT
from hive_replication.dump.format.record_types import DumpHeader, FileGroup, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.dump.functions import function_record
from hive_replication.dump.listing import Lister
from hive_replication.dump.source_boundary import SourceBoundary, source_boundary
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import notification
from hive_replication.events.files import FileRef
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.load_boundary import LoadBoundary, load_boundary
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database, Function, ResourceUri
from tests import model
from tests.bootstraps import SOURCE, header, loading, record
from tests.messages import row
from tests.moving import POLICY

LAKE = "hdfs://src:8020/lake"


def source_of(location: str) -> Any:
    """A source's metastore whose database has this directory."""
    found = Database("db", locationUri=location, parameters={})
    return SimpleNamespace(database=lambda _: found, config_value=lambda _, default: default)


def grown() -> tuple[DumpHeader, LoadBoundary]:
    """A dump, and the boundary of its load: somebody made the lake the database's directory in between."""
    then = Database("db", locationUri=model.ROOT, parameters={})
    head = replace(header(60), source_database=then, read=POLICY.source.paths)
    return head, load_boundary(POLICY, head, source_of(LAKE))


def dumped() -> SourceBoundary:
    """What the dump could read."""
    home = Database("db", locationUri=model.ROOT, parameters={})
    return source_boundary(POLICY, "db", home, lambda _, default: default)


def barred(location: str) -> tuple[FileRef, ...]:
    """What the dump has of a directory."""
    storage: Any = SimpleNamespace()
    return Lister(storage, boundary=dumped().data, holds=True).files(location)


@pytest.mark.parametrize("location", [f"{LAKE}/t", "hdfs://elsewhere/t", "file:///t"])
@pytest.mark.parametrize("first", [False, True])
def test_a_table_that_the_dump_could_not_read_does_not_come_empty(location: str, *, first: bool) -> None:
    """It did where the boundary grew by anything but source.paths of the policy."""
    head, boundary = grown()
    table = record("t").table
    table.sd.location = location
    state = ReplicaState(SOURCE, None, checkpoint="hdfs://dst/dumps/db/1") if first else ReplicaState(SOURCE, 50)
    load = loading(state, head, [], [TableRecord(table, barred(location)), record("e")])
    load.boundary = boundary if location.startswith(LAKE) else LoadBoundary()
    load_objects(load, repair=not first)
    (held,) = load.held
    assert (held.tables, held.refused, load.lanes["t"].operations) == (("t",), True, ())
    assert f"before the policy let it read {location}, and has no data of it: dump again" in held.reason


def test_a_table_with_a_partition_that_the_dump_could_not_read_is_held() -> None:
    head, boundary = grown()
    table = model.table_image("t", model.Tab(7, f"{model.ROOT}/t", partitioned=True))
    part = model.partition_image("t", "p=1", model.Part(7, f"{LAKE}/p"))
    load = loading(ReplicaState(SOURCE, 50), head, [], [TableRecord(table)])
    reader: Any = load.reader
    reader.partitions = lambda _: iter([PartitionRecord("t", "p=1", part, barred(f"{LAKE}/p"))])
    load.boundary = boundary
    load_objects(load, repair=True)
    assert [(held.tables, held.refused) for held in load.held] == [(("t",), True)]


def test_an_event_whose_files_the_dump_could_not_read_is_held() -> None:
    _, boundary = grown()
    table = record("t").table
    table.sd.location = f"{LAKE}/t"
    event = r.CreateTable(7, 8, "CREATE_TABLE", "db", "t", table, ())
    made = WindowEvent(notification(row(event)), event, (FileGroup("", barred(f"{LAKE}/t"), listed=True),))
    assert f"let it read {LAKE}/t" in boundary.bounded(made).outside


@pytest.mark.parametrize("bare", [False, True])
def test_what_a_dump_says_of_itself_opens_no_directory(*, bare: bool) -> None:
    """One without data may be of tables anywhere; with that in its header any file of the storage roots was copied."""
    head = replace(header(60), metadata_only=bare, read=None)
    policy = POLICY.model_copy(update={"source": POLICY.source.model_copy(update={"paths": ()}), "metadata_only": True})
    boundary = load_boundary(policy, head, source_of(model.ROOT))
    table = record("t").table
    table.sd.location = f"{LAKE}/t"
    assert ("outside the directories" in boundary.why_outside(table)) == (not bare)
    secret = (FileRef(f"{LAKE}/t/f", "00"),)
    assert (f"no data, and names the file {LAKE}/t/f" in boundary.why_outside(table, secret)) == bare
    assert boundary.why_outside(record("t").table, (FileRef.unshown_table(f"{model.ROOT}/t"),)) == "", "which others tell of"
    event = r.CreateTable(7, 8, "CREATE_TABLE", "db", "t", table, secret)
    assert boundary.bounded(WindowEvent(notification(row(event)), event, (FileGroup("", secret),))).outside


def test_a_function_whose_resource_the_dump_could_not_read_is_held() -> None:
    _, boundary = grown()
    uri = f"{LAKE}/f.jar"
    source: Any = SimpleNamespace()
    function = Function("f", "db", resourceUris=[ResourceUri(uri=uri)])
    found = function_record(source, function, NOTHING_KEPT, dumped())
    assert found == FunctionRecord(found.function, (FileRef.barred(uri),))
    assert f"let it read {uri}" in boundary.why_outside(found.function, found.files)


def test_a_transactional_table_that_may_not_be_read_is_named_as_such() -> None:
    storage: Any = SimpleNamespace()
    lister = Lister(storage, boundary=dumped().data, holds=True)
    assert seen_files(storage, lister, WriteIds(3), Hidden(9), f"{LAKE}/t").files == (FileRef.barred(f"{LAKE}/t"),)
