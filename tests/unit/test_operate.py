"""What operators ask for, without servers."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dagster import Failure

from hive_replication import operate, verify
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table
from hive_replication.policy import Policy
from hive_replication.policy.partition_filter import PartitionFilter
from hive_replication.repair import repair
from hive_replication.storage import Storage
from repl_assets.steps.repair import repair_table
from tests.lags import POLICY


class Metastore:
    """One table with some partitions."""

    def __init__(self, *days: str) -> None:
        self.days = days

    def table(self, _: str, name: str) -> Table:
        return Table(tableName=name, partitionKeys=[FieldSchema("ds", "string")])

    def partitions(self, _db: str, _table: str, names: list[str]) -> list[Partition]:
        return [Partition(values=[day]) for day in self.days if f"ds={day}" in names]

    def within(self, filters: Callable[[str, str], PartitionFilter | None]) -> Metastore:
        found = filters("sales", "orders")
        return Metastore(*(day for day in self.days if found is None or found.includes({"ds": day})))


def test_a_partition_that_neither_side_has_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is misspelt; one that a side lacks is to be repaired."""
    monkeypatch.setattr(operate, "_state", lambda *_: ReplicaState("u/sales", 5))
    monkeypatch.setattr(operate, "_different", lambda *_: ())
    connection = _connected(("1", "2"), ("1", "3"), POLICY)
    assert not operate.repair(connection, "sales.orders", ["ds=2", "ds=3"], dry_run=True).needed
    with pytest.raises(BadRequest, match=r"neither side has the partition ds=typo of sales\.orders"):
        operate.repair(connection, "sales.orders", ["ds=1", "ds=typo"], dry_run=True)


def test_nor_is_one_that_only_lies_outside_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither compared nor repaired: a stale one on the target was told as equal to the source."""
    monkeypatch.setattr(operate, "_state", lambda *_: ReplicaState("u/sales", 5))
    monkeypatch.setattr(operate, "_different", lambda *_: ())
    policy = POLICY.model_copy(update={"partition_filters": {"sales": {"orders": "ds >= '2'"}}})
    connection = _connected(("2",), ("1", "2"), policy)
    assert not operate.repair(connection, "sales.orders", ["ds=2"], dry_run=True).needed
    with pytest.raises(BadRequest, match=r"the partition ds=1 of sales\.orders inside its filter ds >= '2'"):
        operate.repair(connection, "sales.orders", ["ds=1"], dry_run=True)


def _connected(source: tuple[str, ...], target: tuple[str, ...], policy: Policy) -> Any:
    nowhere, theirs, ours = Storage(()), cast("Any", Metastore(*source)), cast("Any", Metastore(*target))
    return SimpleNamespace(source=Source(theirs, nowhere, policy), target=Target(ours, nowhere, policy, nowhere))


@pytest.mark.parametrize("policy", [{"exclude": ("secret*",)}, {"tables": ("orders",)}])
def test_what_the_policy_leaves_out_is_neither_compared_nor_repaired(policy: dict[str, Any]) -> None:
    """A repair copied it, against the policy."""
    metastore: Any = SimpleNamespace(database=lambda name: Database(name, parameters=ReplicaState("u/sales", 5).parameters()))
    nowhere = Storage(())
    source = Source(metastore, nowhere, POLICY.model_copy(update=policy))
    target = Target(metastore, nowhere, source.policy, nowhere)
    connection: Any = SimpleNamespace(source=source, target=target)
    repairs: list[Callable[[], object]] = [
        partial(operate.repair, connection, "sales.Secrets", force=True),
        partial(repair, connection, "sales", "secrets"),
        partial(verify, connection, "sales.secrets"),
        partial(
            repair_table,
            connection,
            SimpleNamespace(connection=connection),
            connection,
            Database("sales"),
            ReplicaState(),
            "secrets",
        ),
    ]
    for one in repairs:
        with pytest.raises((BadRequest, Failure), match=r"sales\.secrets is not replicated: .* tables or exclude leave it out"):
            one()


@pytest.mark.parametrize(
    ("state", "other"),
    [
        (ReplicaState("u/sales", 5, undone=3), "sales"),
        (ReplicaState("u/sales", 5, undone=3).quarantine("orders", 2, "undone to 2 by request"), "sales"),
        (
            ReplicaState("u/sales", 5)
            .quarantine("a-b", 3, "undone to 3 by request")
            .quarantine("orders", 3, "held with a-b: undone to 3 by request"),
            "'sales.`a-b`'",
        ),
    ],
)
def test_a_table_that_was_not_undone_alone_is_not_released_alone(state: ReplicaState, other: str) -> None:
    """It was said that it was not undone, or that it loads later events again."""
    metastore: Any = SimpleNamespace(
        database=lambda name: Database(name, parameters=state.parameters()), table=lambda _, name: Table(tableName=name)
    )
    nowhere = Storage(())
    connection: Any = SimpleNamespace(target=Target(metastore, nowhere, POLICY, nowhere))
    with pytest.raises(BadRequest, match=re.escape(f"it stands with {other}: hive-repl undo {other} --release")):
        operate.release(connection, "sales.orders")
