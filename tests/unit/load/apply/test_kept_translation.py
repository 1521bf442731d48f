"""A table that a metastore of Hive 4 translated comes to one of Hive 3, as in a failback: it is the managed one there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.load.apply.change_data import merged_image
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.types import StorageDescriptor, Table

TRANSLATED = {"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE", "external.table.purge": "TRUE"}


def _table(kind: str, **parameters: str) -> Table:
    sd = StorageDescriptor(cols=[], location="hdfs://b/db/t")
    return Table("t", "db", sd=sd, partitionKeys=[], tableType=kind, parameters={"owner": "x", **parameters})


def _kind(table: Table) -> tuple[str, set[str]]:
    return table.tableType, TRANSLATED.keys() & (table.parameters or {}).keys()


@pytest.mark.parametrize(
    ("image", "current", "expected"),
    [
        (_table("EXTERNAL_TABLE", **TRANSLATED), _table("MANAGED_TABLE"), "MANAGED_TABLE"),
        (_table("EXTERNAL_TABLE", **TRANSLATED), _table("EXTERNAL_TABLE", **TRANSLATED), "EXTERNAL_TABLE"),
        (_table("MANAGED_TABLE"), _table("EXTERNAL_TABLE", **TRANSLATED), "EXTERNAL_TABLE"),
        (_table("MANAGED_TABLE"), _table("MANAGED_TABLE"), "MANAGED_TABLE"),
    ],
)
def test_a_managed_table_stays_as_its_metastore_has_it(image: Table, current: Table, expected: str) -> None:
    merged = merged_image(image, current, current.sd.location)
    assert _kind(merged) == (expected, set() if expected == "MANAGED_TABLE" else TRANSLATED.keys())
    assert merged.parameters["owner"] == "x"


def test_a_table_that_somebody_made_external_becomes_so() -> None:
    image = _table("EXTERNAL_TABLE", EXTERNAL="TRUE")
    assert _kind(merged_image(image, _table("MANAGED_TABLE"), "hdfs://b/db/t")) == ("EXTERNAL_TABLE", {"EXTERNAL"})


@pytest.mark.parametrize(
    ("version", "image", "expected"),
    [
        ("3", _table("EXTERNAL_TABLE", **TRANSLATED), "MANAGED_TABLE"),
        ("3", _table("EXTERNAL_TABLE", EXTERNAL="TRUE"), "EXTERNAL_TABLE"),
        ("4.2.0", _table("EXTERNAL_TABLE", **TRANSLATED), "EXTERNAL_TABLE"),
    ],
)
def test_a_new_table_is_made_as_its_metastore_would(version: str, image: Table, expected: str) -> None:
    made: list[Table] = []
    metastore = SimpleNamespace(features=Features(version, ""), create_table=made.append)
    target, boundary = SimpleNamespace(metastore=metastore), cast("TargetBoundary", None)
    operation = op.CreateTable(7, "t", image, op.Content((), "s"), "")
    lane = cast("LanePlacement", SimpleNamespace(lane=SimpleNamespace(operations=(operation,)), directories={}))
    TableChanges(cast("Target", target), "db", "uuid/db", boundary, lambda: None).carry_out(lane, 0)
    assert [one.tableType for one in made] == [expected]
    assert _kind(image)[0] == "EXTERNAL_TABLE", "the operation's own image stays"
