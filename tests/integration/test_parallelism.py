"""The policy's ``parallelism``: there are no more threads than it says, and with all numbers 1 nothing waits for ever."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from hive_replication.connect import connect
from hive_replication.policy.parallelism import Parallelism
from hive_replication.verify import compare_database
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.timeout(300)]


@contextmanager
def threads_counted() -> Generator[Counter[str]]:
    """The most new threads of each name that there were at a time."""
    most, before = Counter[str](), set(threading.enumerate())

    def count(*_: object) -> None:
        alive = Counter(one.name.rpartition("_")[0] for one in threading.enumerate() if one not in before)
        most.update({name: number - most[name] for name, number in alive.items() if number > most[name]})
        sys.setprofile(None)

    threading.setprofile(count)  # called as each thread makes its first call
    try:
        yield most
    finally:
        threading.setprofile(None)


def numbered(warehouse: Warehouse, number: int) -> Warehouse:
    """The same with all numbers alike."""
    numbers = Parallelism(tables=number, lanes=number, changes=number, storage_calls=number)
    policy = warehouse.connection.source.policy.model_copy(
        update={"parallelism": numbers, "files_in_flight": number, "metastore_connections": number, "packed_above": 1_000}
    )
    return replace(warehouse, connection=connect(policy))


@pytest.mark.parametrize("number", [1, 2])
def test_as_many_threads_as_the_policy_says(warehouse: Warehouse, number: int) -> None:
    warehouse.sql(
        *(f"CREATE TABLE plain{table} (a INT)" for table in range(4)),
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
    )
    for table in range(4):
        warehouse.load_data(f"plain{table}", f"{table}\n")
    for day in "1234":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    one = numbered(warehouse, number)
    with threads_counted() as most:
        assert one.replicate().held == ()
        warehouse.load_data("parts PARTITION (ds='1')", "more\n")
        warehouse.load_data("plain1", "other\n", overwrite=True)
        warehouse.sql("ALTER TABLE plain2 RENAME TO plain9", "ALTER TABLE parts DROP PARTITION (ds='2')")
        assert one.replicate().held == ()
        compared = list(compare_database(one.connection.source, one.connection.target, one.database))
    assert [found.differences for found in compared] == [()] * 5
    assert {name: most[name] for name in ("table", "lane", "copy")} == dict.fromkeys(("table", "lane", "copy"), number)
    assert most["storage"] <= 3 * number  # of source, target and dump
