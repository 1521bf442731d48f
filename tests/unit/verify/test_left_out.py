"""Replicas that the source has no table for: the policy tells which of them it leaves out, and no mark that a load has set."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from hive_replication.load.replica.state import LEFT_MARK
from hive_replication.metastore.materialized_views import MARK, REPLICA
from hive_replication.metastore.types import SerDeInfo, StorageDescriptor, Table
from hive_replication.verify.left_out import leaves_out
from hive_replication.verify.witness.look import _Part
from hive_replication.verify.witness.sides import Shares
from tests.lags import POLICY
from tests.unit.verify.test_witness_calls import Side, looking

VIEW, LEFT = {MARK: REPLICA}, {LEFT_MARK: "40"}


@pytest.mark.parametrize(
    ("parameters", "setting", "out"),
    [
        ({}, "skip", False),
        (LEFT, "skip", False),  # by mistake: the policy includes its name, and it is no kind that is left out
        (LEFT, "definition", False),
        (VIEW, "skip", True),
        (VIEW | LEFT, "skip", True),
        (VIEW | LEFT, "definition", False),
    ],
)
def test_what_the_policy_leaves_out(parameters: Mapping[str, str], setting: str, *, out: bool) -> None:
    policy = POLICY.model_copy(update={"materialized_views": setting})
    assert leaves_out(policy, Table("t", "sales", parameters=dict(parameters))) is out


@pytest.mark.parametrize(("parameters", "found"), [({}, 1), (LEFT, 1), (VIEW, 0)])
def test_the_witness_tells_of_a_replica_that_is_marked_as_left_by_mistake(
    parameters: Mapping[str, str], found: int, tmp_path: Path
) -> None:
    """The mark is state of the replication's own, which the witness does not believe."""
    sides = Side(tmp_path / "source"), Side(tmp_path / "target")
    sd = StorageDescriptor(cols=[], location="hdfs://t/sales/t", serdeInfo=SerDeInfo(parameters={}), parameters={})
    replica = Table("t", "sales", sd=sd, partitionKeys=[], parameters=dict(parameters), tableType="MANAGED_TABLE")
    look = looking(*sides)._compared("t", None, replica, _Part(Shares(9, 9, 9, 1, random.Random(1)), None, {}))
    assert ([one.text for one in look.differences], look.counts.tables) == (
        ["is on the target, not on the source"] * found,
        (0, found),
    )
