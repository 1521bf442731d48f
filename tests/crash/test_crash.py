"""The short form of ``make crash-test``, and kills of Spark's Python workers."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.load.command import repl_load
from hive_replication.policy import Policy
from hive_replication.statements import ReplLoad
from resources.embedded.cluster import Cluster, Side
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy
from resources.spark_copier import SparkCopier, _SparkCopier
from tests.crash import campaign
from tests.crash.campaign import Campaign, Replica, double, single
from tests.crash.chains import Chain
from tests.crash.driver import Job, Outcome, run
from tests.crash.failovers import FailedOver, no_tale
from tests.crash.policy_changes import tell_of_policies
from tests.crash.random_work import work
from tests.crash.seams import Point
from tests.crash.second_bootstrap import SecondBootstrap, tell_of_second_bootstrap_of_transactions
from tests.crash.spark import KillingCopier
from tests.crash.states import Seen, State, half_visible, rebuilt
from tests.crash.story import Story, tell, tell_of_drop
from tests.crash.tally import Tally
from tests.crash.transactional_names import tell_of_transactional_names
from tests.crash.transactions import tell_of_transactions
from tests.warehouse import Warehouse

#: Stories of transactions, of which CI strikes another one in each run.
FURTHER: dict[str, tuple[Callable[[Connection, HiveDriver, str], Story], type[Replica]]] = {
    "names of transactional tables": (tell_of_transactional_names, Replica),
    "chain of transactions": (tell_of_transactions, Chain),
    "second bootstrap of transactions": (tell_of_second_bootstrap_of_transactions, SecondBootstrap),
}


@pytest.mark.servers
@pytest.mark.hive
@pytest.mark.parametrize("tale", [tell, tell_of_drop, tell_of_policies])
def test_killed_anywhere_nothing_is_lost_doubled_or_half_visible(
    tale: Callable[[Connection, HiveDriver, str], Story], connection: Connection, hive3: HiveDriver, tmp_path: Path, seed: int
) -> None:
    strike(tale(connection, hive3, f"crash{secrets.token_hex(4)}"), tmp_path, seed)


@pytest.mark.servers
def test_killed_anywhere_transactions_are_whole(
    cluster: Cluster, source4: Side, target4: Side, tmp_path: Path, seed: int
) -> None:
    connection = connect(policy(cluster, {"unused": "unused"}, source4.name, target4.name))
    strike(tell_of_transactions(connection, None, f"crash{secrets.token_hex(4)}"), tmp_path, seed, singles=2)


@pytest.mark.servers
@pytest.mark.hive
@pytest.mark.parametrize("chosen", [None, *(pytest.param(name, marks=pytest.mark.long) for name in FURTHER)])
def test_killed_anywhere_names_chains_and_second_bootstraps_are_whole(
    chosen: str | None, hive3: HiveDriver, cluster: Cluster, source4: Side, target4: Side, tmp_path: Path, seed: int
) -> None:
    tell_of, makes = FURTHER[chosen or Random(seed).choice(sorted(FURTHER))]
    connection = connect(policy(cluster, {"unused": "unused"}, source4.name, target4.name))
    strike(tell_of(connection, hive3, f"crash{secrets.token_hex(4)}"), tmp_path, seed, makes=makes)


@pytest.mark.servers
@pytest.mark.long
def test_killed_anywhere_failovers_and_failbacks_are_whole(
    connection: Connection, hive3: HiveDriver, tmp_path: Path, seed: int
) -> None:
    strike(no_tale(connection, hive3, f"crash{secrets.token_hex(4)}"), tmp_path, seed, singles=3, makes=FailedOver)


def strike(story: Story, folder: Path, seed: int, *, singles: int = 1, makes: type[Replica] = Replica) -> None:
    """A campaign on a few points, others in each run."""
    random, campaign = Random(seed), Campaign(story.warehouse.connection, folder, makes=makes)
    points = campaign.points(story)
    for found in points:
        random.shuffle(found)
    campaign.strike(story, [*single(points)[:singles], *double(points, random, 1)], parallel=3)
    if makes is Replica and story.repairs and random.random() < 0.5:
        campaign.strike_repairs(story, random, limit=1, parallel=1)
    elif makes is Replica:
        campaign.strike_dumps(story, random, limit=1, parallel=1)
    assert campaign.tally.problems == []
    assert campaign.tally.kills >= len(points)  # the second of two points is often not met any more
    print(campaign.tally)


def test_a_campaign_goes_on_after_a_fault() -> None:
    tally = Tally()
    for number in range(3):
        with tally.going_on(f"replica {number}"):
            assert number == 1, "wrong"
    first, last = tally.problems
    assert first.startswith("replica 0: lost: it could not be examined: AssertionError('wrong")
    assert last.startswith("replica 2: lost:")
    assert str(tally) == "kills 0 survived 0 lost 2 doubled 0 half-visible 0"


class _Undisturbed(Replica):
    """A replica that is found as it should be, whatever its processes did."""

    def __post_init__(self) -> None:
        self.wrong, self.log = False, self.campaign.folder / "copies"

    def _faults(self, wanted: State, evid: int | None) -> list[str]:
        return []


def test_a_traceback_is_told_though_the_next_attempt_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was struck, and ended in a traceback in place of an error, counted as one that survived."""
    held = Outcome(killed=False, fired=True, problem="t is held", counts={})
    for first, told in ((Outcome(killed=False, fired=True, problem="ended with exit code 1"), 1), (held, 0)):
        outcomes = iter([first, Outcome(killed=False, fired=False, counts={})])
        monkeypatch.setattr(campaign, "run", lambda *_, left=outcomes: next(left))
        made = Campaign(cast("Connection", None), tmp_path)
        replica = _Undisturbed(made, cast("Story", None), "r")
        replica._do(cast("Job", None), "1-2", [Point("read:cut", 1)], [{}], 2)
        assert made.tally.problems == ["r 1-2 struck at read:cut #1: lost: ended with exit code 1"][:told]
        assert replica.wrong == bool(told)


def test_only_what_a_window_makes_anew_may_be_copied_again(tmp_path: Path) -> None:
    replica = _Undisturbed(Campaign(cast("Connection", None), tmp_path), cast("Story", None), "r")
    later, own, plain = '["r.t", "h/t/delta_1_1/0", 9]', '["r.t", "h/t/delta_1_1/0", 7]', '["r.u", "h/u/0", 9]'
    replica.log.write_text(f"{later}\n{own}\n{plain}\n" * 2)
    assert replica._doubled(1, 8, 2) == [f"{line} was copied 2 times" for line in (own, plain)]
    replica.log.write_text(f"{later}\n" * 3)
    assert replica._doubled(1, 8, 2) == [f"{later} was copied 3 times"]
    replica.log.write_text(f"{later}\n" * 2)
    assert replica._doubled(1, None, 2) == [f"{later} was copied 2 times"]


def test_a_process_that_ends_in_a_traceback_is_broken(tmp_path: Path) -> None:
    outcome = run(Job("dump", cast("Policy", None), "a", "a"), None, tmp_path / "copies")
    assert (outcome.broken, outcome.problem) == (True, "ended with exit code 1")


@pytest.mark.long
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
        assert struck.held == ()
        assert len(struck.copies) == 6
        present.append(struck.files_by_origin.get("present", 0))
    assert present >= [1, 2]


@pytest.mark.servers
@pytest.mark.hive
def test_random_work_ends_equal(connection: Connection, hive3: HiveDriver, tmp_path: Path, seed: int) -> None:
    done, wrong = work(connection, hive3, seed, seconds=1, example=25, log=tmp_path / "operations")
    assert wrong == []
    assert done["operations"] >= 10
    print(dict(done))


@pytest.mark.servers
@pytest.mark.hive
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_random_work_for_twenty_minutes_ends_equal(connection: Connection, hive3: HiveDriver, tmp_path: Path, seed: int) -> None:
    done, wrong = work(connection, hive3, seed, seconds=20 * 60, example=60, log=tmp_path / "operations")
    assert wrong == []
    print(dict(done))


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


@pytest.mark.parametrize(("files", "ids", "half"), [("", "0", False), ("a", "2", False), ("b", "2", True), ("a", "1", True)])
def test_a_table_that_is_made_anew_shows_its_first_writes(files: str, ids: str, half: bool) -> None:
    def state(shown: str, highest: str) -> State:
        return {"t": Seen("s", frozenset((name, name) for name in shown), whole=True), "t write ids": Seen(highest)}

    damaged, end = state("x", "3"), state("abc", "3")
    past = [damaged, *rebuilt(end, "t"), end]
    assert half_visible(past, {}) == []
    assert bool(half_visible(past, state(files, ids))) == half
