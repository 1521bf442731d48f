"""Calls of the metastores, counted on the wire: they do not grow with the number of partitions and events."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.drift import DriftScan
from hive_replication.dump.command import repl_dump
from hive_replication.lag import LagReader
from hive_replication.load.command import plan_load, repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.load.undo.undo import release, undo
from hive_replication.metastore.types import copy_of
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.counting import CountingProxy
from tests.origin import Origin
from tests.statistics import of_column

pytestmark = [pytest.mark.servers, pytest.mark.long]

SIZES = 4, 12
TABLE = 6  # calls that each table may add which is created, altered or dropped
TABLES = "added", "appended", "overwritten", "altered", "renamed", "dropped"
TOLD = "told"  # a table of which statistics are told, where the metastore writes events of them
RENAMED_BACK = 8  # that an undo makes for each renamed partition, which it finds and gives its old name one after another
MOST = len(TABLES) / 100  # calls that one more partition of each may add, and one more event

Step = tuple[str, str]  # what happened at the source, and what was counted


@dataclass
class Story:
    """A database whose table has some partitions, what happens to it, and the calls that its replication makes."""

    origin: Origin
    counted_by: Connection
    size: int
    proxies: tuple[CountingProxy, CountingProxy]
    calls: dict[Step, Counter[str]] = field(default_factory=dict[Step, Counter[str]])

    @property
    def days(self) -> list[str]:
        return [f"{number:04d}" for number in range(self.size)]

    @property
    def tells(self) -> bool:
        """Whether the source's metastore writes events of statistics."""
        return self.origin.connection.source.metastore.features.major >= 4

    @property
    def database(self) -> str:
        return self.origin.database

    def connected(self, **settings: object) -> Connection:
        policy, there = self.counted_by.target.policy.model_copy(update=settings), self.counted_by
        return replace(there, source=replace(there.source, policy=policy), target=replace(there.target, policy=policy))

    def counted(self, step: str, what: str, do: Callable[[], object]) -> None:
        for proxy in self.proxies:
            proxy.calls.clear()
        do()
        sides = zip(("source", "target"), self.proxies, strict=True)
        self.calls[step, what] = Counter({f"{side} {name}": n for side, proxy in sides for name, n in proxy.calls.items()})

    def each(self, do: Callable[[str], object], names: Sequence[str] = ()) -> None:
        """What happens to each partition, or table, at the source."""
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(do, names or self.days))

    def window(self, step: str, happens: Callable[[], object], looks: bool = False, **settings: object) -> None:
        """Something happens at the source, and is replicated, twice."""
        happens()
        target = self.origin.connection.target.metastore
        since, directory = replica_state(target.database(self.database)).applied, ""
        there = self.connected(**settings)

        def dump() -> None:
            nonlocal directory
            directory = repl_dump(there.source, ReplDump(self.database, None, since), there.store).directory

        def load() -> None:
            report = repl_load(there.target, ReplLoad(directory), there.store, there.copier, source=there.source.metastore)
            assert report.held == ()

        self.counted(step, "dump", dump)
        if looks:
            self.counted(step, "plan", lambda: plan_load(there.target, ReplLoad(directory), there.store))
            self.counted(step, "lag", LagReader(there.source, there.target, [self.database]).read)
        self.counted(step, "load", load)
        self.counted(step, "load again", load)

    def happen(self, prefix: str) -> None:
        """An event for each partition, of each kind."""
        origin, metastore = self.origin, self.origin.connection.source.metastore
        self.each(lambda day: origin.add("added", f"{prefix}{day}"))
        self.each(lambda day: origin.insert("appended", f"{prefix}\n", day))
        self.each(lambda day: origin.insert("overwritten", f"{prefix}\n", day, overwrite=True))
        altered = [copy_of(part) for part in metastore.partitions(self.database, "altered")]
        for part in altered:
            part.parameters["colour"] = prefix
        metastore.alter_partitions(self.database, "altered", altered)
        for part in list(metastore.partitions(self.database, "renamed")):
            image = copy_of(part)
            image.values = [f"{prefix}{part.values[0]}"]
            metastore.rename_partition(self.database, "renamed", part.values, image)
        if self.tells:
            self.each(lambda day: origin.insert(TOLD, f"{prefix}\n", day))
            metastore.set_statistics(self.database, TOLD, {f"ds={day}": [of_column("a", 1, ord(prefix))] for day in self.days})
        names = metastore.partition_names(self.database, "dropped")
        metastore.drop_partitions(self.database, "dropped", names[: self.size])

    def insert_and_tell(self) -> None:
        """What an engine's insert does to a partition, one after another."""
        for day in self.days:
            self.origin.insert(TOLD, "c\n", day)
            columns = [of_column("a", 1, 3)]
            self.origin.connection.source.metastore.set_statistics(self.database, TOLD, {f"ds={day}": columns})

    def change_tables(self, tables: Sequence[str]) -> None:
        """Half of them are altered, the others dropped."""
        metastore = self.origin.connection.source.metastore
        for table in map(copy_of, metastore.tables(self.database, tables[::2])):
            table.parameters["colour"] = "blue"
            metastore.alter_table(self.database, table.tableName, table)
        self.each(lambda name: metastore.drop_table(self.database, name), tables[1::2])

    def run(self) -> None:
        """Bootstrap, windows, and all that looks at a replica or mends it."""
        origin, metastore = self.origin, self.origin.connection.target.metastore
        origin.create_database()
        for table in (*TABLES, *([TOLD] if self.tells else ())):
            origin.create(table, "begin")
            origin.add(table, *self.days, *((f"more{day}" for day in self.days) if table == "dropped" else ()))
        self.window("bootstrap", lambda: None)
        self.window("together", lambda: self.happen("a"), looks=True)
        since = replica_state(metastore.database(self.database)).applied
        assert since is not None
        if self.tells:
            self.window("statistics", self.insert_and_tell)
        self.window("one by one", lambda: self.happen("b"), collapse=False, append="atomic")
        there = self.connected()
        days = tuple(f"ds={day}" for day in self.days)
        self.counted("replica", "verify", lambda: self.verify(there))
        self.counted("replica", "drift", lambda: DriftScan(there.source, there.target, self.database, 0.0).table("appended"))
        self.counted("replica", "undo", lambda: undo(there.target, self.database, None, since))
        release(there.target, self.database)
        self.counted("replica", "repair of partitions", lambda: repair(there, self.database, "appended", days))
        tables = [f"t{day}" for day in self.days]
        self.window("tables created", lambda: self.each(origin.create, tables))
        self.window("tables changed", lambda: self.change_tables(tables))

    def verify(self, there: Connection) -> None:
        assert not [found for found in compare_database(there.source, there.target, self.database) if found.differences]


@pytest.fixture(scope="module", params=["", "4"], ids=["3.1.3", "4.2.0"])
def stories(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[tuple[Story, Story]]:
    databases = [f"t{uuid.uuid4().hex[:10]}" for _ in SIZES]
    sides = f"source{request.param}", f"target{request.param}"
    cluster.up(sides)
    plain = policy(cluster, {database: database for database in databases}, *sides)
    with CountingProxy(plain.source.metastore) as source, CountingProxy(plain.target.metastore) as target:
        counting = {
            "source": plain.source.model_copy(update={"metastore": source.uri}),
            "target": plain.target.model_copy(update={"metastore": target.uri}),
        }
        # One connection for both: which calls a server has is found out once.
        counted = connect(plain.model_copy(update=counting))
        few, many = (
            Story(Origin(connect(plain), database), counted, size, (source, target))
            for database, size in zip(databases, SIZES, strict=True)
        )
        few.run()
        many.run()
        yield few, many


def test_the_target_database_is_read_when_a_load_begins_and_around_each_change_of_its_state(stories: tuple[Story, Story]) -> None:
    reads = {
        step: sum(number for call, number in calls.items() if call.startswith("target get_database"))
        for story in stories
        for step, calls in story.calls.items()
        if step[1] in ("load", "load again")
    }
    fewest = 4  # when it begins, before and after it has the lock, and around the change of its state
    more = {("bootstrap", "load"): 1}  # which learns where the metastore made it
    # Whether another replication reads of it is asked whenever files are added to a table: its dump may begin at any time.
    more |= {("together", "load"): 2, ("statistics", "load"): 1, ("tables created", "load"): 1}
    assert all(number <= fewest + more.get(step, 0) for step, number in reads.items()), reads


def test_calls_do_not_grow(stories: tuple[Story, Story]) -> None:
    few, many = stories
    grown: dict[Step, str] = {}
    print(f"\n{'calls':32} {few.size:>5} {many.size:>5}  partitions or tables")
    for step in many.calls:
        print(f"{': '.join(step):32} {few.calls[step].total():5} {many.calls[step].total():5}")
        more = many.calls[step] - few.calls[step]
        renames = more.pop("target rename_partition", 0)  # for which a metastore has no call with many
        pages = more.pop("source get_next_notification", 0)  # the first one is small, whatever its messages have
        each = RENAMED_BACK if step[1] == "undo" else TABLE if step[0].startswith("tables") and step[1] == "load" else MOST
        most = each * (many.size - few.size)
        if more.total() > most or renames > many.size - few.size or pages > 1:
            grown[step] = f"more than {most:.0f}: {dict(more)}"
    assert not grown
