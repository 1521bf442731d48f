"""The short form of ``python -m tests.random_policies``, and the long one."""

from __future__ import annotations

import os
import secrets

import pytest

from hive_replication.connect import Connection
from resources.embedded.hive import HiveDriver
from tests.random_policies import work

#: Another one in each run. To repeat one, name the seed that it printed in HIVE_REPL_TEST_SEED.
SEED = int(os.environ.get("HIVE_REPL_TEST_SEED") or secrets.randbelow(10**6))

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]


@pytest.mark.timeout(600)
def test_random_work_under_policies_that_change_ends_equal(connection: Connection, hive3: HiveDriver) -> None:
    done, wrong = work(connection, hive3, SEED, seconds=40, example=40)
    assert wrong == [], f"HIVE_REPL_TEST_SEED={SEED}"
    assert min(done["operations"], done["compared"], done["elsewhere"]) > 0


@pytest.mark.timeout(3600)
def test_random_work_under_policies_that_change_for_twenty_minutes_ends_equal(connection: Connection, hive3: HiveDriver) -> None:
    _, wrong = work(connection, hive3, SEED, seconds=20 * 60, example=120)
    assert wrong == [], f"HIVE_REPL_TEST_SEED={SEED}"
