"""Which versions are replicated to which, and how one pair is tried."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass

from hive_replication.connect import connect
from hive_replication.metastore.statistics import ACCURATE
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from resources.embedded.versions import VERSIONS
from tests.fixtures.record import Recorder
from tests.matrix.work import Work
from tests.warehouse import Warehouse

#: Ends of the names of source and target. A metastore is replaced by the same version or a later one.
PAIRS = (
    ("2", "2"),
    ("2", ""),
    ("2", "4"),
    ("", ""),
    ("", "40"),
    ("", "41"),
    ("", "4"),
    ("40", "40"),
    ("40", "41"),
    ("40", "4"),
    ("41", "4"),
    ("4", "4"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a pair.

    Args:
        source: version.
        target: version.
        events: replicated in windows.
        objects: tables and partitions that the replica has at the end.
        wrong: what is not equal, or held, by window; empty where all is equal.
        seconds: of dumps, loads and comparisons, without the start of the servers.
    """

    source: str
    target: str
    events: int
    objects: int
    wrong: tuple[str, ...]
    seconds: float


def sides(pair: tuple[str, str]) -> tuple[str, str]:
    """Names of the sides of a pair."""
    return f"source{pair[0]}", f"target{pair[1]}"


def tried(cluster: Cluster, pair: tuple[str, str]) -> Outcome:
    """Replicates a database of one version to another one; the servers have to run."""
    began = time.monotonic()
    wrong, events, objects = replicated(cluster, *sides(pair), f"t{secrets.token_hex(5)}")
    numbers = [VERSIONS[end].number for end in pair]
    return Outcome(numbers[0], numbers[1], events, objects, tuple(wrong), time.monotonic() - began)


def replicated(cluster: Cluster, source: str, target: str, database: str) -> tuple[list[str], int, int]:
    """Makes a database, and replicates what happens to it.

    Returns:
        What is wrong, the number of events, and that of tables and partitions at the end.
    """
    connection = connect(policy(cluster, {database: database}, source, target))
    warehouse = Warehouse(connection, None, database)  # type: ignore[arg-type] - no driver is needed
    both_4 = all(side.metastore.features.major >= 4 for side in (connection.source, connection.target))
    work, wrong, events, log = Work(connection, database, both_4), list[str](), 0, connection.source.metastore
    work.begin()
    wrong += _problems(warehouse, "bootstrap", warehouse.load(warehouse.dump().directory, source=log).held)
    for name, does in work.windows().items():
        does()
        dump = warehouse.dump(warehouse.applied())
        events += dump.events
        wrong += _problems(warehouse, name, warehouse.load(dump.directory, source=log).held)
    metastore = connection.target.metastore
    tables = metastore.table_names(database)
    objects = len(tables) + sum(metastore.partition_count(database, name) for name in tables)
    for side in (connection.source, connection.target):  # names of constraints are those of the metastore before Hive 4
        Recorder(side.metastore, side.storage, database).drop()
    return wrong, events, objects


def _problems(warehouse: Warehouse, window: str, held: tuple[object, ...]) -> Iterator[str]:
    yield from (f"{window}: held: {one}" for one in held)
    try:
        # A source may go on claiming statistics that it has deleted; a replica claims those that it has.
        warehouse.assert_equal_but_paths(ACCURATE)
    except AssertionError:
        ours, theirs = (warehouse.content(source=source) for source in (True, False))
        names = [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]
        yield f"{window}: " + (
            "; ".join(f"{ours.get(name)} became {theirs.get(name)}" for name in names) or "paths of the source"
        )
    for what, (ours, theirs) in _beside(warehouse).items():
        if ours != theirs:
            yield f"{window}: {what}: {ours} became {theirs}"


def _beside(warehouse: Warehouse) -> dict[str, tuple[list[str], list[str]]]:
    """Functions and constraints of both sides, but for kinds that the source's log does not tell of."""
    source, target = warehouse.connection.source.metastore, warehouse.connection.target.metastore
    database, unlogged = warehouse.database, () if source.features.major >= 4 else ("dks", "cks")
    found = {
        "functions": tuple(
            sorted(f"{one.functionName} {one.className}" for one in side.functions(database)) for side in (source, target)
        )
    }
    for table in source.table_names(database):
        ours, theirs = (
            sorted(one.described() for one in side.constraints(database, table) if one.kind not in unlogged)
            for side in (source, target)
        )
        found[f"constraints of {table}"] = ours, theirs
    return found  # type: ignore[return-value]
