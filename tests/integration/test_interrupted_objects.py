"""Loads of objects over a replica that are killed, and a window after them: the replica is the source, whatever was killed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest

from hive_replication.errors import Refused
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.recover import recover
from hive_replication.repair import repair
from hive_replication.statements import ReplLoad
from tests.faults import Killed
from tests.integration.test_acid import FULL
from tests.scenarios.support import die_at
from tests.scenarios.test_functions_constraints_statistics import assert_same_constraints
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

KEY = "ALTER TABLE a ADD CONSTRAINT {db}_key PRIMARY KEY (x) DISABLE NOVALIDATE"
FOREIGN = "ALTER TABLE b ADD CONSTRAINT {db}_foreign FOREIGN KEY (y) REFERENCES a (x) DISABLE NOVALIDATE"
NO_KEYS = ("ALTER TABLE b DROP CONSTRAINT {db}_foreign", "ALTER TABLE a DROP CONSTRAINT {db}_key")


@pytest.fixture
def replica(acid: Warehouse) -> Warehouse:
    """A plain and a transactional table, with keys, replicated."""
    acid.sql(
        "CREATE TABLE a (x INT)",
        f"CREATE TABLE b (y INT) PARTITIONED BY (d STRING) {FULL}",
        KEY,
        FOREIGN,
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (1, '1'), (2, '2'), (3, '3')",
    )
    assert acid.replicate().held == ()
    return acid


def killed(warehouse: Warehouse, number: int, *, table: str | None) -> bool:
    """A load of the database, or the repair of a table, dies at one of its changes; whether it came to that."""
    changes, connection = count(1), warehouse.connection
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, TableChanges, "carry_out", lambda *_: next(changes) == number)
        try:
            if table is None:
                statement = ReplLoad(warehouse.dump().directory, warehouse.database)
                repl_load(connection.target, statement, connection.store, connection.copier, source=connection.source.metastore)
            else:
                repair(connection, warehouse.database, table)
        except Killed:
            return True
    return False


@pytest.mark.parametrize(
    ("table", "numbers"),
    [
        pytest.param(None, [4], id="the database"),
        pytest.param("b", [2], id="a table"),
        pytest.param(None, count(1), marks=pytest.mark.long, id="the database, at each change"),
        pytest.param("b", count(1), marks=pytest.mark.long, id="a table, at each change"),
    ],
)
def test_what_is_loaded_next_does_it_first(replica: Warehouse, table: str | None, numbers: Iterable[int]) -> None:
    """Keys that were dropped and made again, and partitions of a transactional table, were missing for good."""
    number = 0
    for number in numbers:
        start = replica.applied()
        replica.sql(*NO_KEYS)
        middle = replica.connection.source.metastore.current_event_id()
        replica.sql(KEY, FOREIGN, f"INSERT INTO b VALUES ({number}, '{number % 3 + 1}')")
        if not killed(replica, number, table=table):
            break
        assert replica.load(replica.dump(start, to_evid=middle).directory).held == ()
        assert replica.replicate().held == ()
        replica.assert_equal()
        assert_same_constraints(replica, {"a": 1, "b": 1})
    else:
        return
    assert number > 4


def test_a_recovery_does_without_a_dump_that_is_gone(replica: Warehouse) -> None:
    """Windows are refused then: they say what to do, and that helps."""
    connection, name = replica.connection, replica.database
    replica.sql("ALTER TABLE a SET TBLPROPERTIES ('colour'='blue')")
    assert killed(replica, 3, table=None)
    mark = replica_state(connection.target.metastore.database(name)).checkpoint
    connection.target.storage.delete(mark, recursive=True)
    replica.sql("INSERT INTO b VALUES (9, '9')")
    with pytest.raises(Refused, match=f"hive-repl recover {name} does without it"):
        replica.replicate()
    made = recover(connection, name)
    assert made is not None
    assert (made.gap.kind, made.load and made.load.held) == ("interrupted load", ())
    replica.assert_equal()
    assert_same_constraints(replica, {"a": 1, "b": 1})
    replica.sql("INSERT INTO b VALUES (10, '10')")
    assert replica.replicate().held == ()
    replica.assert_equal()
