"""Dumps of the tables that a policy takes in."""

from __future__ import annotations

from dataclasses import replace
from threading import Barrier
from types import SimpleNamespace

import pytest

from hive_replication.dump.format.record_types import GONE, DumpResult, MadeWith
from hive_replication.dump.incremental.newly_included_tables import JoinedTables
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.source import Source
from hive_replication.errors import MetastoreError
from hive_replication.events import event_records as r
from hive_replication.events.partition_filters import Entered
from hive_replication.metastore.types import Partition, StorageDescriptor, Table
from hive_replication.policy.parallelism import Parallelism
from tests.moving import POLICY
from tests.unit.events.test_redumps import PLAIN, altered, table


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


def test_one_that_the_metastore_does_not_show_is_held_and_others_are_dumped() -> None:
    def found(_: str, name: str) -> Table:
        if name == "b":
            raise MetastoreError("get_table db.b: Permission denied")
        return Table(name, "db")

    names = lambda _: ["a", "b"]  # noqa: E731
    metastore = SimpleNamespace(current_event_id=lambda: 7, events=lambda *_: [], table_names=names, table=found)
    source = Source(metastore, None, POLICY)  # type: ignore[arg-type]
    dump = lambda _, name: SimpleNamespace(directory=f"dump of {name}")  # noqa: E731
    joined = JoinedTables(source, PresentLocations(metastore, "db", 5), MadeWith(there=()), dump)  # type: ignore[arg-type]
    assert joined.dumped(5) == {"a": "dump of a", "b": ""}


def joined_tables() -> JoinedTables:
    """Of a source that has a plain table of any name."""
    more = {"table": lambda *_: table(PLAIN), "features": SimpleNamespace(major=4)}
    metastore = SimpleNamespace(current_event_id=lambda: 9, events=lambda *_: [], **more)
    source = Source(metastore, None, POLICY)  # type: ignore[arg-type]
    dump = lambda _, name: SimpleNamespace(directory=f"dump of {name}")  # noqa: E731
    return JoinedTables(source, PresentLocations(metastore, "db", 5), MadeWith(), dump)  # type: ignore[arg-type]


@pytest.mark.parametrize(("major", "names"), [(3, []), (4, ["a"])])
def test_transactional_tables_come_once_the_source_gives_them(major: int, names: list[str]) -> None:
    """The replica was made of a Hive 3, which became a Hive 4."""
    there = {"a": Table("a", "db", parameters={"transactional": "true"}), "b": Table("b", "db", parameters={})}
    metastore = SimpleNamespace(
        current_event_id=lambda: 7,
        events=lambda *_: [],
        table_names=lambda _: list(there),
        table=lambda _, name: there[name],
        tables=lambda _, names: map(there.__getitem__, names),
        features=SimpleNamespace(major=major),
    )
    source = Source(metastore, None, POLICY)  # type: ignore[arg-type]
    dump = lambda _, name: SimpleNamespace(directory=f"dump of {name}")  # noqa: E731
    made = MadeWith(POLICY.scope("db", acid=False).text)
    joined = JoinedTables(source, PresentLocations(metastore, "db", 5), made, dump)  # type: ignore[arg-type]
    assert list(joined.dumped(5)) == names


@pytest.mark.parametrize(("dropped", "found"), [(False, {"u": "dump of u"}), (True, {})])
def test_a_table_that_no_event_tells_of_is_dumped_under_the_name_that_it_gets(dropped: bool, found: dict[str, str]) -> None:
    joined = joined_tables()
    untold = replace(altered(table(PLAIN), table(PLAIN)), untold=True)
    events = [untold, r.DropTable(7, 8, "DROP_TABLE", "db", "t", table(PLAIN))][: 1 + dropped]
    for event in (*events, altered(table(PLAIN), table(PLAIN, name="u"))):
        joined.follow(SimpleNamespace(row=event, event=event))  # type: ignore[arg-type]
    assert joined.dumped(7) == found


def added(name: str) -> tuple[r.Event, str]:
    """A partition at a directory that another one has."""
    new = r.AddedPartition(name, Partition(values=["1"], sd=StorageDescriptor(location="x")), None)
    return r.AddPartition(7, 8, "ADD_PARTITION", "db", "t", table(PLAIN), (new,)), "p=2"


@pytest.mark.parametrize(
    ("first", "shared"), [added("p=1"), (Entered(7, 8, "ALTER_PARTITION", "db", "t"), ""), (added("p=1")[0], "")]
)
def test_a_table_that_would_be_rebuilt_and_is_renamed_is_dumped_under_its_new_name(first: r.Event, shared: str) -> None:
    """Its rebuild never came: by the end of the window no table had the name that its dump was asked for."""
    joined = joined_tables()
    renamed = altered(table(PLAIN), table(PLAIN, name="u"))
    for event, beside in ((first, shared), (renamed, "")):
        joined.follow(SimpleNamespace(row=event, event=event), beside)  # type: ignore[arg-type]
    told = isinstance(first, r.AddPartition) and not shared
    assert joined.dumped(7) == ({} if told else {"u": "dump of u"})
