"""The sensor on drift: rounds over tables, with a scan in place of servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Drift
from hive_replication.policy.model import Warehouse
from repl_assets.catalog.keys import Names
from sensors import drift as sensor


class Killed(BaseException):
    """Dagster ends the tick: nothing that follows happens."""


class Ticks:
    """Ticks of one sensor, whose cursor Dagster keeps only at their end."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        side = Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://s:8020/"),))
        self.policy = Policy(source=side, target=side, dump_root="hdfs://s:8020/dumps", databases={"db": "db"})
        self.instance, self.cursor, self.seen = instance, None, list[str]()
        self.slow: dict[str, BaseException] = {}
        self.rounds = set[float]()
        self.parameters: dict[str, str] = {}  # of the target database

    def scan(self, *_: object, begun: float) -> Any:
        self.rounds.add(begun)

        def look(table: str) -> None:
            self.seen.append(table)
            if table in self.slow:
                raise self.slow[table]

        def finish() -> None:
            self.seen.append("finished")

        return SimpleNamespace(database="db", names=lambda: ["a", "b", "c"], table=look, finish=finish, told=lambda _: [])

    def tick(self, now: float) -> object:
        """One tick with time for one table."""
        metastore = SimpleNamespace(database=lambda _: SimpleNamespace(name="db", parameters=self.parameters))
        storage = SimpleNamespace(roots=())
        target = SimpleNamespace(policy=self.policy, metastore=metastore, storage=storage)
        connection: Any = SimpleNamespace(source=SimpleNamespace(storage=storage), target=target)
        context = dg.build_sensor_context(self.instance, cursor=self.cursor)
        said = sensor.tick(context, connection, Names.of(self.policy), Drift(every=100, budget=1e-6), "db", now)
        self.cursor = context.cursor
        return said


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        made = Ticks(instance)
        monkeypatch.setattr(sensor, "DriftScan", made.scan)
        yield made


@pytest.mark.parametrize("slow", ["a", "b"])
def test_a_table_that_takes_longer_than_a_tick_does_not_block_the_others(ticks: Ticks, slow: str) -> None:
    ticks.slow[slow] = Killed()
    for second in range(3):
        try:
            ticks.tick(1000.0 + second)
        except Killed:
            continue
    assert ticks.seen == ["a", "b", "c"]
    for second in range(4, 50):
        ticks.tick(1000.0 + second)
    assert ticks.seen == ["a", "b", "c", "finished"]
    del ticks.slow[slow]
    for second in range(200, 204):
        ticks.tick(1000.0 + second)
    assert ticks.seen == ["a", "b", "c", "finished"] * 2
    assert ticks.rounds == {1000.0, 1200.0}


def test_a_server_that_does_not_answer_is_no_fault_of_a_table(ticks: Ticks) -> None:
    ticks.slow["a"] = Unreachable("not now")
    for second in range(2):
        with pytest.raises(Unreachable):
            ticks.tick(1000.0 + second)
    assert ticks.seen == ["a", "a"]


def test_nothing_is_repaired_in_a_database_that_was_undone(ticks: Ticks) -> None:
    ticks.parameters = replace(ReplicaState("s/db", 100), undone=90).parameters()
    said = ticks.tick(1000.0)
    assert isinstance(said, dg.SkipReason)
    assert said.skip_message == "db: undone to event 90; hive-repl undo db --release"
    assert ticks.seen == []
