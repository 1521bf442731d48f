"""The short form of ``make crash-test``, and kills of Spark's Python workers."""

from __future__ import annotations

import secrets
from pathlib import Path
from random import Random

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.load.command import repl_load
from hive_replication.statements import ReplLoad
from resources.embedded.cluster import Cluster, Side
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy
from resources.spark_copier import SparkCopier, _SparkCopier
from tests.crash.campaign import Campaign, double, single
from tests.crash.random_work import work
from tests.crash.spark import KillingCopier
from tests.crash.states import Seen, half_visible
from tests.crash.story import Story, tell, tell_of_drop
from tests.crash.transactions import tell_of_transactions
from tests.warehouse import Warehouse

SEED = 7


@pytest.fixture(scope="module", params=[tell, tell_of_drop])
def story(request: pytest.FixtureRequest, connection: Connection, hive3: HiveDriver) -> Story:
    return request.param(connection, hive3, f"crash{secrets.token_hex(4)}")  # type: ignore[no-any-return]


@pytest.mark.servers
@pytest.mark.hive
def test_killed_anywhere_nothing_is_lost_doubled_or_half_visible(story: Story, tmp_path: Path) -> None:
    random, campaign = Random(SEED), Campaign(story.warehouse.connection, tmp_path)
    points = campaign.points(story)
    for found in points:
        random.shuffle(found)
    campaign.strike(story, [*single(points)[:2], *double(points, random, 1)], parallel=3)
    campaign.strike_dumps(story, random, limit=1)
    assert campaign.tally.problems == []
    assert campaign.tally.kills >= 2 * len(points)
    print(campaign.tally)


@pytest.mark.servers
def test_killed_anywhere_transactions_are_whole(cluster: Cluster, source4: Side, target4: Side, tmp_path: Path) -> None:
    random = Random(SEED)
    connection = connect(policy(cluster, {"unused": "unused"}, source4.name, target4.name))
    story = tell_of_transactions(connection, None, f"crash{secrets.token_hex(4)}")
    campaign = Campaign(connection, tmp_path)
    points = campaign.points(story)
    for found in points:
        random.shuffle(found)
    campaign.strike(story, [*single(points)[:2], *double(points, random, 1)], parallel=3)
    assert campaign.tally.problems == []
    assert campaign.tally.kills >= 2 * len(points)
    print(campaign.tally)


@pytest.mark.servers
@pytest.mark.hive
def test_a_killed_worker_of_spark_loses_nothing(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    for number in range(3):
        warehouse.load_data("plain", f"{number}\n")
        warehouse.load_data(f"parts PARTITION (ds='{number}')", f"{number}\n")
    dump, connection, spark = warehouse.dump(), warehouse.connection, SparkCopier.from_settings({})
    storages = connection.source.storage, connection.target.storage
    present: list[int] = []
    for files in (1, 2):
        mark = tmp_path / f"killed at {files}"
        statement = ReplLoad(dump.directory, f"{warehouse.database}_{files}")
        copier = _SparkCopier(spark, KillingCopier(*storages, files, mark), "Repl#killed", None)
        struck = repl_load(connection.target, statement, connection.store, copier)
        assert mark.exists()
        assert struck.held
        done = repl_load(connection.target, statement, connection.store, copier)
        assert done.held == ()
        assert len(done.copies) == 6
        present.append(done.files_by_origin.get("present", 0))
    assert present >= [1, 2]


@pytest.mark.servers
@pytest.mark.hive
def test_random_work_ends_equal(connection: Connection, hive3: HiveDriver, tmp_path: Path) -> None:
    done, wrong = work(connection, hive3, SEED, seconds=1, example=25, log=tmp_path / "operations")
    assert wrong == []
    assert done["operations"] >= 10
    print(dict(done))


@pytest.mark.servers
@pytest.mark.hive
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_random_work_for_twenty_minutes_ends_equal(connection: Connection, hive3: HiveDriver, tmp_path: Path) -> None:
    seed = secrets.randbelow(10**6)
    done, wrong = work(connection, hive3, seed, seconds=20 * 60, example=60, log=tmp_path / "operations")
    assert wrong == []
    print(f"seed {seed}: {dict(done)}")


def _seen(*files: str, shape: str = "s") -> dict[str, Seen]:
    return {"t": Seen(shape, frozenset((name, name) for name in files))}


@pytest.mark.parametrize(
    ("past", "now", "half"),
    [
        ([_seen("a"), _seen("b")], _seen("b"), False),
        ([_seen("a"), _seen("b")], _seen("a", "b"), True),
        ([_seen("a"), _seen("b")], _seen(), True),
        ([_seen("a"), _seen("b")], {}, True),
        ([_seen("a"), {}, _seen("b")], {}, False),
        ([_seen("a"), _seen("a", "b", "c")], _seen("a", "c"), False),
        ([_seen("a"), _seen("a", "b"), _seen("b")], _seen("a", "b", "c"), True),
        ([{}, _seen("a", "b")], _seen("a"), True),
        ([_seen("a"), _seen("a", shape="other")], _seen("a", shape="third"), True),
    ],
)
def test_what_counts_as_half_visible(past: list[dict[str, Seen]], now: dict[str, Seen], half: bool) -> None:
    assert bool(half_visible(past, now)) == half
