"""Order and age of dumps, without servers: scenarios S044, S085, S089."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hive_replication.dump.format.record_types import DumpHeader, EventRecord, Scope
from hive_replication.dump.format.tree import TreeStore
from hive_replication.events.event_records import Notification
from hive_replication.load.plan.lanes import segments, window_event
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.dumps import without_digests

EVIDS = (100, 9, 1000, 12, 99, 10)


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return TreeStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri())


def dump(store: TreeStore) -> str:
    """A dump of events with ids of different lengths, written in no order."""
    writer = store.create(Scope("db"))
    for evid in EVIDS:
        writer.put_event(EventRecord(Notification(evid, 8, "DROP_TABLE", "db", "t", "{}")))
    return writer.finish(DumpHeader("incremental", Scope("db"), "uuid", Database(name="db"), 1, 1000, 0, "", 0.0)).directory


def test_s085_replay_reverse_order_dump_dirs(store: TreeStore) -> None:
    """Event directories are read in the order of their numbers, not of their names."""
    directory = Path(dump(store).removeprefix("file://"))
    names = sorted(path.name for path in directory.iterdir() if path.is_dir())
    assert names != sorted(names, key=int)
    found = [record.notification.evid for record in store.open(directory.as_uri()).events()]
    assert found == sorted(EVIDS)


def test_s044_variable_length_event_ids(store: TreeStore) -> None:
    """The events of a table are applied in the order 9, 10, 12, ..., whatever their ids' lengths."""
    events = [window_event(record) for record in store.open(dump(store)).events()]
    (lane,) = segments(events)[0].lanes
    assert [event.evid for event in lane.events] == sorted(EVIDS)


def test_s089_old_dumpmetadata_format(store: TreeStore) -> None:
    """A dump whose header lacks the fields that came later still loads."""
    directory = dump(store)
    without_digests(store.storage, directory)
    path = Path(directory.removeprefix("file://"), "_dumpmetadata")
    header = json.loads(path.read_text())
    assert header.pop("metadata_only") is False
    path.write_text(json.dumps(header))
    assert store.open(directory).header.metadata_only is False
    assert store.open(directory).header.to_evid == 1000
