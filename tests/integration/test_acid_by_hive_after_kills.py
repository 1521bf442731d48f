"""Transactional tables that killed processes replicate, read by real Hive 4.2.0 on both sides, with row ids (A14, A20).

The source is written by real Hive, too. ``tests/crash`` strikes more points, and compares files instead of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from resources.embedded.hive import HiveDriver
from tests.crash.campaign import Campaign, Replica
from tests.crash.chains import Chain
from tests.crash.driver import Job, run
from tests.crash.seams import Point
from tests.crash.second_bootstrap import SecondBootstrap, TwoBootstraps
from tests.crash.states import Seen, State
from tests.crash.story import Story
from tests.crash.transactions import unfinished
from tests.integration.test_acid import FULL, INSERT_ONLY, rows
from tests.integration.test_acid_anew import MADE, USED_AGAIN
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long, pytest.mark.timeout(900)]

IDS = " write ids"
#: After the names were used again.
LATER = (
    "UPDATE y SET b = 'of x' WHERE a = 2",
    "INSERT INTO t VALUES (5, 'of n')",
    "DELETE FROM z",
    "INSERT INTO z VALUES (6, 'z')",
)


@pytest.fixture(autouse=True)
def _constraints_known(acid: Warehouse) -> None:
    """A new metastore 4.2.0 makes its own tables of constraints at its first drop, and then hangs beside an alter_table."""
    acid.connection.target.metastore.drop_constraint("default", "none", "none")


def test_names_used_again(acid: Warehouse, hive4_target: HiveDriver, tmp_path: Path) -> None:
    """A20: the window of them is killed at a drop, between renames, and before and after a commit; then a repair is."""
    story = Story(acid)
    story.sql(*MADE)
    _end(story, bootstrap=True)
    story.sql(*USED_AGAIN)
    _end(story)
    story.sql(*LATER)
    _end(story)
    campaign = Campaign(acid.connection, tmp_path)
    drops, renames, commits = (f"target.metastore.{call}" for call in ("drop_table", "alter_table", "commit_txn"))
    for number, points in enumerate(
        (
            (Point(f"{drops}:after", 1), Point(f"{commits}:before", 1)),
            (Point(f"{renames}:after", 1), Point(f"{renames}:after", 1)),
            (Point(f"{commits}:after", 1), Point("copy.file:after", 1)),
        )
    ):
        replica = Replica(campaign, story, f"{acid.database}_{number}")
        _make(replica, {1: points})
        _assert_same(acid, hive4_target, replica.name)

    replica = Replica(campaign, story, f"{acid.database}_0")
    acid.connection.target.metastore.drop_table(replica.name, "z", delete_data=False)
    acid.sql("INSERT INTO z VALUES (10, 'later')", "UPDATE z SET b = 'changed' WHERE a = 6")
    job = Job("repair", replica.policy, acid.database, replica.name, table="z")
    assert run(job, Point("target.metastore.create_table:after", 1), replica.log).killed
    assert run(job, None, replica.log).problem == ""
    story.sql("INSERT INTO z VALUES (11, 'last')")
    _end(story)
    replica.load(story.chapters[-1], ())
    assert campaign.tally.problems == []
    _assert_same(acid, hive4_target, replica.name)


def test_bootstrapped_twice(acid: Warehouse, hive4_target: HiveDriver, tmp_path: Path) -> None:
    """A20: a bootstrap ends half-made, a later one is loaded over it and is killed, too, and the window after it."""
    story = TwoBootstraps(acid)
    story.sql(*MADE)
    _end(story, bootstrap=True)
    story.sql(*USED_AGAIN)
    _end(story, bootstrap=True)
    story.sql(*LATER)
    _end(story)
    campaign = Campaign(acid.connection, tmp_path)
    for number, (first, second) in enumerate(
        (
            (Point("target.metastore.repl_tbl_writeid_state:after", 2), Point("target.metastore.drop_table:after", 1)),
            (Point("copy.file:after", 6), Point("target.metastore.repl_tbl_writeid_state:before", 3)),
        )
    ):
        replica = SecondBootstrap(campaign, story, f"{acid.database}_{number}")
        _make(replica, {0: [first], 1: [second], 2: [Point("target.metastore.commit_txn:before", 2)]})
        _assert_same(acid, hive4_target, replica.name)


def test_chain_of_three(acid: Warehouse, hive4_target: HiveDriver, tmp_path: Path) -> None:
    """A14: what is inserted into what exists reaches the third by windows, all loads and dumps killed."""
    story = Story(acid)
    story.sql(
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        f"CREATE TABLE p (a INT) PARTITIONED BY (d STRING) {FULL}",
        f"CREATE TABLE m (a INT) {INSERT_ONLY}",
        "CREATE TABLE mplain (a INT) STORED AS TEXTFILE",
        "CREATE TABLE mparts (a INT) PARTITIONED BY (d STRING) STORED AS TEXTFILE",
        *(f"INSERT INTO {name} VALUES (1)" for name in ("m", "mplain")),
        *(f"INSERT INTO {name} VALUES (1, '1'), (2, '2')" for name in ("t", "p", "mparts")),
    )
    _end(story, bootstrap=True)
    story.sql(
        *(f"INSERT INTO {name} VALUES (2)" for name in ("m", "mplain")),
        *(f"INSERT INTO {name} VALUES (3, '1')" for name in ("t", "p", "mparts")),
        "UPDATE t SET b = 'changed' WHERE a = 2",
        "ALTER TABLE p ADD PARTITION (d = '3')",
        "FROM t INSERT INTO m SELECT a INSERT INTO p PARTITION (d) SELECT a, '3'",
    )
    _end(story)
    story.sql(
        "INSERT OVERWRITE TABLE p PARTITION (d = '2') SELECT 9",
        "DELETE FROM t WHERE a = 1",
        "ALTER TABLE t RENAME TO u",
        *(f"INSERT INTO {name} VALUES (4, '1')" for name in ("u", "p", "mparts")),
        *(f"INSERT INTO {name} VALUES (4)" for name in ("m", "mplain")),
    )
    _end(story)
    campaign = Campaign(acid.connection, tmp_path)
    chain = Chain(campaign, story, f"{acid.database}_b")
    commit, ack = Point("target.metastore.commit_txn:before", 2), Point("dump.storage.create[ack]:before", 1)
    insert = Point("target.metastore.fire_listener_event:before", 1)
    _make(chain, {3: [insert], 4: [ack], 5: [commit], 6: [commit], 8: [commit]})
    for hive, name in ((hive4_target, chain.name), (acid.hive, f"{chain.name}c")):
        _assert_same(acid, hive, name)


def test_an_overwritten_table_is_read_whole(acid: Warehouse, hive4_target: HiveDriver, tmp_path: Path) -> None:
    """Hive reads the base of the lowest open write, which hides all before it, and may be there in part."""
    story = Story(acid)
    story.sql(f"CREATE TABLE t (a INT, b STRING) {FULL}", f"CREATE TABLE m (a INT) {INSERT_ONLY}")
    story.sql("INSERT INTO t VALUES (1, '1'), (2, '2')", "INSERT INTO m VALUES (1)")
    _end(story, bootstrap=True)
    for table in "tm":
        story.sql(f"INSERT OVERWRITE TABLE {table} SELECT a + 1{', b' * (table == 't')} FROM {table}")
        _end(story)
    made, *windows = story.chapters
    replica = Replica(Campaign(acid.connection, tmp_path), story, f"{acid.database}_0")
    replica.load(made, ())
    for window in windows:
        before = rows(hive4_target, replica.name)
        job = Job("load", replica.policy, acid.database, replica.name, window.dump.directory)
        for point in ("copy.file:after", "target.storage.rename[plain>plain]:before"):
            assert run(job, Point(point, 1), replica.log).killed
            assert rows(hive4_target, replica.name) == before
        replica.load(window, ())
    _assert_same(acid, hive4_target, replica.name)


def _end(story: Story, *, bootstrap: bool = False) -> None:
    """Ends a chapter, with what nobody looked at: a statement of Hive's gets its write ids before it does the rest.

    On the way of a bootstrap tables are empty, as of this dump or as of a former one.
    """
    story.end_chapter()
    last, begun = story.chapters[-1], list[State]()
    for state in (chapter.states[-1] for chapter in story.chapters if bootstrap):
        begun += unfinished(state, [key.removesuffix(IDS) for key in state if key.endswith(IDS)])
    story.chapters[-1] = replace(last, states=[*begun, *map(_given, last.states), *last.states])


def _given(state: State) -> State:
    return {key: Seen(str(int(seen.shape) + 1)) if key.endswith(IDS) else seen for key, seen in state.items()}


def _make(replica: Replica, struck: Mapping[int, Sequence[Point]]) -> None:
    """Takes all steps of a replica, some of them struck, each time as it is meant."""
    tally = replica.campaign.tally
    for number, step in enumerate(replica.steps()):
        points, before = struck.get(number, ()), tally.kills
        step(points)
        assert (tally.problems, tally.kills - before) == ([], len(points)), (number, points)


def _assert_same(acid: Warehouse, hive: HiveDriver, replica: str) -> None:
    assert rows(hive, replica) == rows(acid.hive, acid.database)
