"""Dumps of the tables that a policy takes in."""

from __future__ import annotations

from threading import Barrier
from types import SimpleNamespace

from hive_replication.dump.format.record_types import GONE, DumpResult, MadeWith
from hive_replication.dump.incremental.newly_included_tables import JoinedTables
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.source import Source
from hive_replication.metastore.types import Table
from hive_replication.policy.parallelism import Parallelism
from tests.moving import POLICY


def test_they_are_dumped_as_many_at_a_time_as_the_policy_says() -> None:
    together = Barrier(2)

    def dump(_: Source, table: str) -> DumpResult:
        together.wait(timeout=20)
        return SimpleNamespace(directory=f"dump of {table}")  # type: ignore[return-value]

    def found(_: str, name: str) -> Table | None:
        return None if name == "c" else Table(name, "db")

    metastore = SimpleNamespace(
        current_event_id=lambda: 7, events=lambda *_: [], table_names=lambda _: ["a", "b", "c", "d", "old"], table=found
    )
    policy = POLICY.model_copy(update={"exclude": ("d",), "parallelism": Parallelism(tables=2)})
    source = Source(metastore, None, policy)  # type: ignore[arg-type]
    joined = JoinedTables(source, PresentLocations(metastore, "db", 5), MadeWith(there=("old",)), dump)  # type: ignore[arg-type]
    assert joined.dumped(5) == {"a": "dump of a", "b": "dump of b", "c": GONE}
