"""Partition filters on real servers: what is inside is replicated and compared, what is outside is left alone and counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

import hive_replication
from hive_replication.connect import Connection
from hive_replication.drift.scan import DriftScan
from hive_replication.lag import LagReader
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import partition_spec
from hive_replication.metastore.partition_filters import inside
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table, copy_of
from hive_replication.policy.partition_conditions import DEFAULT_PARTITION
from hive_replication.policy.partition_filter import PartitionFilter
from hive_replication.verify import compare_database
from hive_replication.verify.strays import strays
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Side
from tests.origin import TEXT, Origin
from tests.statistics import of_column

pytestmark = pytest.mark.servers

NEW = {"orders": "ds >= '2026-01-01'"}
OLD, FIRST, SECOND = "2025-12-31", "2026-01-01", "2026-01-02"


@dataclass
class Pair:
    """A source database and its replica, under policies that differ; ``origin`` knows no filter."""

    connection: Connection
    origin: Origin

    def __post_init__(self) -> None:
        self.database = self.origin.database

    def with_filters(self, filters: Mapping[str, str], **settings: object) -> Pair:
        """The same under a policy with other filters."""
        changed = {"databases": {self.database: self.database}, "partition_filters": {self.database: dict(filters)}, **settings}
        policy = self.connection.source.policy.model_copy(update=changed)
        whole = self.origin.connection
        sides = {side: replace(getattr(whole, side), policy=policy) for side in ("source", "target")}
        return replace(self, connection=replace(whole, **sides))

    @property
    def state(self) -> ReplicaState:
        """State of the replica."""
        return replica_state(self.connection.target.metastore.database(self.database))

    def step(self) -> LoadReport:
        """A bootstrap, or the next window."""
        dump = hive_replication.dump(self.connection, self.database, from_evid=self.state.applied)
        return hive_replication.load(self.connection, dump.directory)

    def days(self, table: str = "orders") -> list[str]:
        """Partitions of the replica."""
        names = self.connection.target.metastore.partition_names(self.database, table)
        return [partition_spec(name)["ds"] for name in names]

    def rename(self, old: str, new: str) -> None:
        """Gives a partition of the source's orders another day."""
        metastore = self.origin.connection.source.metastore
        (part,) = metastore.partitions(self.database, "orders", [f"ds={old}"])
        part.values = [new]
        metastore.rename_partition(self.database, "orders", [old], part)

    def wrong(self) -> list[object]:
        """What any comparison complains of."""
        sides = self.connection.source, self.connection.target, self.database
        drift = DriftScan(*sides, settle=0)
        drifted = [found for name in drift.names() if (found := drift.table(name)) and (found.drifted or found.waiting)]
        compared = [(one.table, one.differences) for one in compare_database(*sides) if one.differences]
        return [*compared, *drifted, *strays(*sides), *witness(*sides).wrong]


@pytest.fixture
def pair(connection: Connection, unique: str) -> Pair:
    """Orders of a day outside and of one inside, with a row each, and a table without partitions."""
    made = Pair(connection, Origin(connection, unique))
    made.origin.create_database()
    made.origin.create("orders", OLD, FIRST)
    made.origin.create("plain")
    for day in (OLD, FIRST):
        made.origin.insert("orders", f"{day}\n", day)
    return made.with_filters(NEW)


def left_out(report: LoadReport) -> dict[str, str]:
    return {
        one.what: one.reason.partition(" partitions")[0] for one in report.skipped if "outside its partition filter" in one.reason
    }


def test_bootstrap_and_windows(pair: Pair) -> None:
    report = pair.step()
    assert (report.held, left_out(report), pair.days()) == ((), {"orders": "1"}, [FIRST])
    assert pair.wrong() == []
    pair.origin.insert("orders", "more\n", OLD)
    pair.origin.add("orders", "2025-12-30")
    (waiting,) = LagReader(pair.connection.source, pair.connection.target, [pair.database]).read()
    assert (waiting.waiting, waiting.seconds_behind) == (0, 0)
    pair.origin.add("orders", "2025-12-29", SECOND)
    pair.origin.insert("orders", "more\n", FIRST)
    pair.origin.connection.source.metastore.drop_partitions(pair.database, "orders", [f"ds={OLD}", "ds=2025-12-29"])
    pair.origin.insert("plain", "1\n")
    assert (pair.step().held, pair.days()) == ((), [FIRST, SECOND])
    assert pair.wrong() == []


def test_events_outside_are_counted_and_not_dumped(pair: Pair) -> None:
    pair.step()
    pair.origin.insert("orders", "more\n", OLD)
    pair.origin.add("orders", "2025-12-30", SECOND)
    pair.origin.connection.source.metastore.drop_partitions(pair.database, "orders", ["ds=2025-12-30"])
    dump = hive_replication.dump(pair.connection, pair.database, from_evid=pair.state.applied)
    report = hive_replication.load(pair.connection, dump.directory)
    assert (dump.events, left_out(report), report.applied["AddPartitions"]) == (1, {"orders": "3"}, 1)


def test_partitions_renamed_into_the_filter_and_out_of_it(pair: Pair) -> None:
    statistics = [of_column("a", 1, 9)]
    pair.origin.connection.source.metastore.set_statistics(pair.database, "orders", {f"ds={OLD}": statistics})
    pair.step()
    pair.rename(OLD, SECOND)
    pair.origin.insert("orders", "more\n", SECOND)
    pair.rename(FIRST, "2025-01-01")
    assert (pair.step().held, pair.days()) == ((), [SECOND])
    assert pair.wrong() == []
    (found,) = pair.connection.target.metastore.partition_statistics(pair.database, "orders", ["a"], [f"ds={SECOND}"]).values()
    assert found == statistics


def test_filters_that_change(pair: Pair) -> None:
    """Widened, narrowed with excluded: keep and with drop, and taken away."""
    pair.step()
    wide = pair.with_filters({"orders": "ds >= '2025-12-31'"})
    assert (wide.step().held, wide.days()) == ((), [OLD, FIRST])  # without any event
    assert wide.wrong() == []
    assert (pair.step().held, pair.days()) == ((), [OLD, FIRST])
    pair.origin.insert("orders", "outside by now\n", OLD)
    pair.origin.insert("orders", "inside\n", FIRST)
    assert pair.step().held == ()
    assert pair.wrong() == []
    dropping = pair.with_filters({"orders": "ds > '2026-01-01' OR ds = '2025-12-31'"}, excluded="drop")
    assert (dropping.step().held, dropping.days()) == ((), [OLD])
    assert dropping.wrong() == []
    every = pair.with_filters({})
    assert (every.step().held, every.days()) == ((), [OLD, FIRST])
    assert every.wrong() == []


def test_what_somebody_else_put_outside_on_the_target_stays(pair: Pair) -> None:
    pair.step()
    foreign = Partition(values=["2024-01-01"], dbName=pair.database, tableName="orders", sd=copy_of(TEXT), parameters={})
    pair.connection.target.metastore.add_partitions(pair.database, "orders", [foreign])
    dropping = pair.with_filters({"orders": "ds >= '2026-01-02'"}, excluded="drop")
    assert (dropping.step().held, dropping.days()) == ((), ["2024-01-01"])
    assert dropping.wrong() == []


def test_a_table_that_the_filter_does_not_fit_is_held_beside_others(pair: Pair) -> None:
    bad = pair.with_filters({"orders": "year > 2025", "*": "ds > '2026'"})
    reasons = {held.tables[0]: held.reason for held in bad.step().held}
    assert reasons.keys() == {"orders", "plain"}
    assert "year is none of its partition columns" in reasons["orders"]
    assert "the table has no partitions" in reasons["plain"]
    pair.origin.create("days", OLD, FIRST)
    pair.origin.create("created")
    assert [held.tables for held in bad.step().held] == [("created",)]
    assert bad.state.held.keys() == {"orders", "plain", "created"}
    assert bad.days("days") == [FIRST]
    assert (pair.step().held, pair.days(), pair.days("days")) == ((), [FIRST], [OLD, FIRST])
    assert pair.wrong() == []


def test_a_table_renamed_to_a_name_with_another_filter(pair: Pair) -> None:
    both = pair.with_filters({**NEW, "archive": "ds < '2026-01-01'"})
    both.step()
    metastore = both.origin.connection.source.metastore
    table = copy_of(metastore.table(both.database, "orders"))
    assert table is not None
    table.tableName = "archive"
    metastore.alter_table(both.database, "orders", table)
    pair.origin.insert("archive", "more\n", OLD)
    assert (both.step().held, both.days("archive")) == ((), [OLD])
    assert both.connection.target.metastore.table(both.database, "orders") is None
    assert both.wrong() == []
    pair.origin.add("archive", "2025-12-30")
    assert (both.step().held, both.days("archive")) == ((), ["2025-12-30", OLD])


def test_an_insert_outside_into_the_directory_of_a_partition_inside(pair: Pair) -> None:
    metastore, database = pair.origin.connection.source.metastore, pair.database
    orders = metastore.table(database, "orders")
    assert orders is not None
    shared = f"{str(orders.sd.location).rpartition('/')[0]}/shared"
    table = Table(
        tableName="shared",
        dbName=database,
        owner="hive",
        sd=copy_of(TEXT),
        partitionKeys=orders.partitionKeys,
        parameters={"EXTERNAL": "TRUE"},
        tableType="EXTERNAL_TABLE",
    )
    metastore.create_table(table)
    place = copy_of(TEXT)
    place.location = f"{shared}/day"
    parts = [Partition(values=[day], dbName=database, tableName="shared", sd=place, parameters={}) for day in (OLD, FIRST)]
    metastore.add_partitions(database, "shared", parts)
    here = pair.with_filters({"shared": "ds >= '2026'"})
    here.step()
    pair.origin.insert("shared", "1\n", OLD)
    assert (here.step().held, here.days("shared")) == ((), [FIRST])
    assert here.wrong() == []


_VALUES = [
    ("2025-12-31", "1"),
    ("2026-01-01", "2"),
    ("2026-01-02", "10"),
    (DEFAULT_PARTITION, "3"),
    ("2026-01-03", DEFAULT_PARTITION),
]
_FILTERS = (
    *("ds >= '2026-01-01'", "ds <> '2026-01-01'", "ds != '2026-01-01'", "ds < '2026-01-02'", "'2026-01-01' < ds"),
    *("ds BETWEEN '2026-01-01' AND '2026-01-02'", "ds NOT BETWEEN '2026-01-01' AND '2026-01-02'", "ds >= 2026-01-01"),
    *("(ds) IN ('2026-01-01', '2025-12-31')", "(ds) NOT IN ('2026-01-01')", f"ds = '{DEFAULT_PARTITION}'", "n = 01"),
    *("n >= 2", "n > -1", "n <> 2", "ds >= '2026-01-01' AND n < 10 OR n = 1", "ds < '2026-01-01' AND (n = 1 OR n = 2)"),
)


@pytest.mark.parametrize(("side", "kind"), [("source", "string"), ("source4", "string"), ("source4", "date")])
def test_the_metastore_finds_the_same_partitions(request: pytest.FixtureRequest, unique: str, side: str, kind: str) -> None:
    """3.1.3 and 4.2.0; but for the default partition of a column of texts, which is a text to them."""
    found: Side = request.getfixturevalue(side)
    with Metastore(found.metastore) as metastore:
        metastore.create_database(Database(name=unique, parameters={}))
        keys = [FieldSchema("ds", kind, None), FieldSchema("n", "int", None)]
        table = Table(tableName="t", dbName=unique, owner="hive", sd=copy_of(TEXT), partitionKeys=keys, parameters={})
        metastore.create_table(table)
        parts = [Partition(values=list(one), dbName=unique, tableName="t", sd=copy_of(TEXT), parameters={}) for one in _VALUES]
        metastore.add_partitions(unique, "t", parts)
        names = metastore.partition_names(unique, "t")
        filters = (*_FILTERS, "ds LIKE '2026-01-0_'", "ds LIKE '2025%'") if side == "source4" and kind == "string" else _FILTERS
        for text in filters:
            asked = metastore.call(text, lambda client, text=text: client.get_partitions_by_filter(unique, "t", text, -1))
            theirs = {tuple(one.values) for one in asked}
            if kind == "string" and "ds" in text and DEFAULT_PARTITION not in text:
                theirs = {one for one in theirs if one[0] != DEFAULT_PARTITION}
            parsed = PartitionFilter.parse(text)
            assert parsed.why_unfit({"ds": kind, "n": "int"}) == ""
            ours = {tuple(partition_spec(name).values()) for name in names if inside(parsed, name)}
            assert (text, ours) == (text, theirs)
