"""Partitions that a dump is asked for, and that the source does not have."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.bootstrap import dump_objects
from hive_replication.dump.format.record_types import DumpResult, Scope
from hive_replication.errors import BadRequest
from hive_replication.load.surplus_tables import left_out_lanes
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import dump_materializations
from tests.bootstraps import SOURCE, ReplicaState, header, loaded, loading, record, replica
from tests.lags import POLICY


def _kept(*wanted: str, there: tuple[str, ...]) -> Any:
    parts = {name: SimpleNamespace(name=name) for name in there}
    writer = SimpleNamespace(partitions=lambda _: list(parts.values()), drop_partition=lambda _, name: parts.pop(name))
    reader: Any = SimpleNamespace(writer=writer, skipped={})
    dump_objects._keep_partitions(Scope("db", "t", wanted), reader)  # pyright: ignore[reportPrivateUsage]
    return sorted(parts), reader.skipped


def test_those_that_the_source_does_not_have_are_passed_over() -> None:
    """One that was dropped since a check named it kept all others from being repaired."""
    kept, skipped = _kept("ds=1", "ds=9", there=("ds=1", "ds=2"))
    assert (kept, list(skipped)) == (["ds=1"], ["t/ds=9"])
    assert skipped["t/ds=9"].startswith("the source has no such partition")


def test_a_dump_of_none_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"the source table db\.t has no partition ds=8, ds=9"):
        _kept("ds=9", "ds=8", there=("ds=1",))


def test_a_load_tells_of_them_and_holds_no_table_for_them() -> None:
    head = header(60, skipped={"t/ds=9": "the source has no such partition"})
    head = replace(head, scope=Scope("db", "t", ("ds=1", "ds=9")))
    there = [replica("t", 60), replica("t/ds=9", 60)]
    load = loaded(ReplicaState(SOURCE, 60), head, there, [record("t")])
    assert (load.held, [one.what for one in load.skipped]) == ([], ["t/ds=9"])
    assert list(left_out_lanes(loading(ReplicaState(SOURCE, 60), head, there), {"t"})) == []


def test_no_dump_of_them_is_recorded() -> None:
    head = header(60, "t", skipped={"t/ds=a|b": "the source has no such partition"})
    result, key = DumpResult("dir", 60, head, 1, 1, 0, 1), Names.of(POLICY).table("db", "t", "dump")
    made = dump_materializations(key, result, iter(["ds=1", "ds=a%7Cb"]))
    assert [one.partition for one in made] == ["ds=1"]
