"""The short form of ``python -m tests.random_policies``, and the long one."""

from __future__ import annotations

import pytest

from hive_replication.connect import Connection
from resources.embedded.hive import HiveDriver
from tests.random_policies import work

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]


@pytest.mark.timeout(600)
def test_random_work_under_policies_that_change_ends_equal(connection: Connection, hive3: HiveDriver, seed: int) -> None:
    done, wrong = work(connection, hive3, seed, seconds=40, example=40)
    assert wrong == []
    assert min(done["operations"], done["compared"], done["elsewhere"]) > 0


@pytest.mark.timeout(3600)
def test_random_work_under_policies_that_change_for_twenty_minutes_ends_equal(
    connection: Connection, hive3: HiveDriver, seed: int
) -> None:
    _, wrong = work(connection, hive3, seed, seconds=20 * 60, example=120)
    assert wrong == []
