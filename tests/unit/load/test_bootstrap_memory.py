"""A load of objects holds the files of a batch, however many its dump has."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.events.files import FileRef
from hive_replication.load import bootstrap
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState
from tests.bootstraps import SOURCE, Loading, header, loading, record

_FILES = 200  # of each table
_PLACE = "hdfs://src/counted/"


class Batches(Loading):
    """A load that is carried out, batch by batch, and keeps none of them."""

    most = 0
    tables = 0

    def carry_out(self, plan: SegmentPlan, *_: object) -> None:
        files = (one.uri for one in gc.get_objects() if isinstance(one, FileRef))  # other tests may have left some behind
        self.most = max(self.most, sum(uri.startswith(_PLACE) for uri in files))
        self.tables += len(plan.lanes)

    def finish(self, *_: object, **__: object) -> None:
        pass


def most_held(tables: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """The most files that are in memory while a dump of so many tables is loaded."""

    def read() -> Iterator[TableRecord]:
        for number in range(tables):
            files = (FileRef(f"{_PLACE}{tables}/t{number:03}/{file}", "aa") for file in range(_FILES))
            yield replace(record(f"t{number:03}"), files=tuple(files))

    monkeypatch.setattr(bootstrap, "_MOST", 3 * _FILES)
    monkeypatch.setattr(bootstrap, "forgotten", lambda *_: None)
    monkeypatch.setattr(bootstrap, "foreign_key_lanes", lambda *_: [])
    plan = loading(ReplicaState(SOURCE, 50), header(60), [])
    load = Batches(plan.replica, plan.reader, None, cast("Any", Mock()), plan.progress)
    reader: Any = load.reader
    reader.tables, reader.number_of_objects = read, tables
    gc.collect()
    load_objects(load, repair=False)
    assert load.tables == tables
    return load.most


def test_memory_does_not_grow_with_the_files_of_a_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    """All files of all tables that are not partitioned were in memory at once, from the first to the last."""
    assert max(most_held(10, monkeypatch), most_held(40, monkeypatch)) <= 6 * _FILES
