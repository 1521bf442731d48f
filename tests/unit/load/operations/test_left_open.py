"""The end of what stands for a source's transactions, which nobody else ends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, Mock, call

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import LockLost
from hive_replication.load import session
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.operations import left_open
from hive_replication.load.operations.left_open import end_given_up, end_left, end_replayed
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.policy import PolicyScope, Root
from hive_replication.storage import Storage
from tests.bootstraps import SOURCE, header, loading


def check() -> None:
    """The lock is held."""


def local_target(metastore: Any, folder: Path) -> Target:
    """A target whose tables lie in a folder."""
    policy: Any = SimpleNamespace(external_root=None, functions_root=None, target=SimpleNamespace(paths=()))
    storage = Storage((Root(uri=f"file://{folder}"),))
    return Target(metastore, storage, policy, storage)


def lying(folder: Path, name: str, *directories: str, **parameters: str) -> Table:
    """A transactional table with some directories, each of one file."""
    for one in directories:
        (folder / "db" / name / one).mkdir(parents=True)
        (folder / "db" / name / one / "bucket_00000").touch()
    made = {"transactional": "true", **parameters}
    return Table(name, "db", partitionKeys=[], parameters=made, sd=StorageDescriptor(location=f"file://{folder}/db/{name}"))


def names(folder: Path) -> list[str]:
    """What a folder holds."""
    return sorted(one.name for one in folder.iterdir())


@pytest.mark.parametrize("feeds", [True, False])
def test_replicas_of_the_database_are_told_of_it(tmp_path: Path, *, feeds: bool) -> None:
    """Hive's log names the source's transaction in an abort, and the next replica kept its own one open."""
    home, place = f"file://{tmp_path}/db", tmp_path / "db/t"
    others = ("base_0000001", "delta_0000001_0000001", "delta_0000003_0000003")
    for name in ("delta_0000002_0000002_0000", "base_0000002", ".repl-base_0000002", *others):
        (place / name).mkdir(parents=True)
        (place / name / "bucket_00000").touch()
    table = Table(tableName="t", dbName="db", parameters={"transactional": "true"}, partitionKeys=[])
    table.sd = StorageDescriptor(location=f"{home}/t")
    metastore = Mock(features=SimpleNamespace(major=4))
    metastore.database.return_value = Database("db", locationUri=home, parameters={"repl.source.for": "next"} if feeds else {})
    metastore.table_names.return_value = ["t"]
    metastore.tables.side_effect = lambda _database, _names: iter([table])
    metastore.write_ids.side_effect = [{"t": WriteIds(3, frozenset({2, 3}))}, {"t": WriteIds(3)}]
    metastore.open_transactions.return_value = [70, 71]
    metastore.replayed_among.return_value = [70]  # the other one is of a user
    metastore.open_replayed.return_value = frozenset[int]()
    metastore.write_ids_of.side_effect = lambda one, _database, _names: iter([("t", 2 if one == 70 else 3)])
    metastore.snapshots.return_value = frozenset[int]()
    metastore.sources_of.return_value = iter([5, 6])
    policy: Any = SimpleNamespace(external_root=None, functions_root=None, target=SimpleNamespace(paths=()))
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    noted = list[object]()
    end_replayed(Target(metastore, storage, policy, storage), "db", "p", check, lambda names: noted.append(sorted(names)))
    assert (noted, metastore.replayed_among.call_args.args) == ([["t"]], ((70, 71),))
    committed = [one.args for one in metastore.replay_commit.call_args_list]
    aborted = [one.args for one in metastore.abort_replayed.call_args_list]
    left = sorted(one.name for one in place.iterdir())
    assert left == [*others], "Hive forgets that it was aborted, and readers saw what had arrived of it"
    if feeds:
        assert (committed, aborted) == ([("p", 5, "db", ()), ("p", 6, "db", ())], [])
    else:
        assert (committed, aborted) == ([], [("p", [70], check, ())])


def test_data_stays_where_the_lock_is_lost_before_it_is_removed(tmp_path: Path) -> None:
    """The load that took the lock commits it: the write id was committed, and its files were gone."""
    home, place = f"file://{tmp_path}/db", tmp_path / "db/t/delta_0000002_0000002"
    place.mkdir(parents=True)
    table = Table(tableName="t", dbName="db", partitionKeys=[], sd=StorageDescriptor(location=f"{home}/t"))
    metastore = Mock()
    metastore.database.return_value = Database("db", locationUri=home, parameters={})
    storage = Storage((Root(uri=f"file://{tmp_path}"),))
    policy: Any = SimpleNamespace(external_root=None, functions_root=None, target=SimpleNamespace(paths=()))
    side = Target(metastore, storage, policy, storage)
    with pytest.raises(LockLost):
        left_open._delete_written(side, "db", table, {2}, Mock(side_effect=LockLost("the lock on db was lost")))
    assert place.exists()
    left_open._delete_written(side, "db", table, {2}, check)
    assert not place.exists()


def test_of_one_table_those_are_ended_that_write_to_no_other() -> None:
    side = target()
    tables = [
        Table(
            tableName=name,
            dbName="db",
            parameters={"transactional": "true"},
            sd=StorageDescriptor(location=f"hdfs://d/db/{name}"),
        )
        for name in ("t", "u")
    ]
    side.metastore.tables.side_effect = lambda *_: iter(tables)
    side.metastore.table_names.return_value = ["t", "u"]
    side.metastore.write_ids.return_value = {"t": WriteIds(4, frozenset({2, 3, 4})), "u": WriteIds(2, frozenset({1, 2}))}
    side.metastore.open_transactions.return_value = frozenset({70, 71, 72, 73, 74})
    side.metastore.replayed_among.side_effect = lambda some: sorted(set(some) - {74})  # of a user
    written = {70: [("t", 2), ("t", 4)], 71: [("t", 3), ("u", 1)], 72: [("u", 2)], 73: [], 74: [("u", 3)]}
    side.metastore.write_ids_of.side_effect = lambda one, _, names: iter([pair for pair in written[one] if pair[0] in names])
    end_replayed(side, "db", "p", check, only="t")
    assert side.metastore.abort_replayed.call_args_list == [call("p", [70], check, [71, 72])]
    tables[:] = tables[1:]  # somebody dropped it
    end_replayed(side, "db", "p", check, only="t")
    assert side.metastore.abort_replayed.call_args_list == [call("p", [70], check, [71, 72])] * 2
    side.metastore.abort_replayed.reset_mock()
    del written[70][:]
    end_replayed(side, "db", "p", check, only="t")
    assert not side.metastore.abort_replayed.called


def test_drops_of_tables_to_which_nothing_writes_ask_for_these_alone() -> None:
    """Each asked for all tables of its database: the repair of a database of 1,000 tables made a million calls."""
    side, asked = target(), list[list[str]]()

    def write_ids(_: str, names: Iterable[str]) -> dict[str, WriteIds]:
        asked.append(list(names))
        return dict.fromkeys(asked[-1], WriteIds(3, frozenset({3}) if asked[-1] == ["t7"] else frozenset()))

    side.metastore.write_ids.side_effect = write_ids
    side.metastore.open_transactions.return_value, side.metastore.replayed_among.return_value = [70, 71], []
    side.metastore.write_ids_of.side_effect = lambda one, _, names: iter([(*names, 3)] if one == 70 else ())
    names = [f"t{number}" for number in range(20)]
    for name in names:
        end_replayed(side, "db", "p", check, only=name)
    assert asked == [[name] for name in names]
    assert not side.metastore.tables.called
    assert side.metastore.open_transactions.call_count == 1
    assert side.metastore.replayed_among.call_args_list == [call((70,))], "a user's"


def target(*, feeds: bool = False, **more: Any) -> Any:
    """A target of which transactions 70 and 71 stand for a source's: 71 for one of another policy, which stays open."""
    metastore = Mock(features=SimpleNamespace(major=4), **more)
    metastore.open_replayed.side_effect = [frozenset({70, 71}), frozenset({71})]
    metastore.sources_of.return_value = iter([5, 6])
    metastore.write_ids.return_value, metastore.tables.return_value, metastore.table_names.return_value = {}, iter(()), []
    metastore.snapshots.return_value = frozenset[int]()
    metastore.functions.return_value = metastore.procedures.return_value = []
    policy = SimpleNamespace(owners={}, locations={}, read_only=False, functions_root=None)
    places = Mock(return_value=("hdfs://d/db",))
    side = SimpleNamespace(metastore=metastore, policy=policy, feeds=Mock(return_value=feeds), default_locations=places)
    side.storage = MagicMock()  # has no files
    return side


@pytest.mark.parametrize("feeds", [True, False])
def test_what_writes_to_no_table_any_more_is_ended_by_the_name_of_its_policy(*, feeds: bool) -> None:
    side = target(feeds=feeds)
    end_left(side, "db", "p", check)
    ended = [one.args for one in side.metastore.replay_commit.call_args_list]
    assert ended == ([("p", 5, "db", ()), ("p", 6, "db", ())] if feeds else [])
    assert side.metastore.abort_replayed.call_args_list == ([] if feeds else [call("p", frozenset({70, 71}), check)])


def test_what_wrote_to_dropped_tables_alone_is_ended_by_a_recovery_and_a_failover_too() -> None:
    """Days later Hive marked the database as incompatible, and timed out no transaction until then."""
    side, noted = target(), Mock()
    side.metastore.open_transactions.return_value = [70, 71]
    end_replayed(side, "db", "p", check, noted)
    assert side.metastore.abort_replayed.call_args_list == [call("p", frozenset({70, 71}), check)]
    assert not noted.called, "no table of theirs is there"


def test_a_metastore_that_keeps_no_transactions_is_asked_for_none() -> None:
    side = target()
    side.metastore.features.major = 3
    end_left(side, "db", "p", check)
    side.metastore.features.major, side.metastore.open_replayed.side_effect = 4, MetastoreError("no TXNS")
    end_left(side, "db", "p", check)
    assert side.metastore.abort_replayed.call_args_list == []


def test_a_database_that_is_made_or_dropped_leaves_no_transactions_of_the_source_open() -> None:
    """A replica that was dropped by hand, or by the source before its transactions ended, was given up by Hive days later."""
    side, state = target(), ReplicaState(SOURCE)
    side.metastore.database.side_effect = [None, Database("db", locationUri="hdfs://d/db")]
    side.storage = Mock(ls=Mock(return_value=[]))
    made = TargetDatabase(side, "db", lambda: None, dry=False)
    assert made.create(Database("db", parameters={}), state, SOURCE)
    names = [name for name, *_ in side.metastore.method_calls]
    assert names.index("abort_replayed") < names.index("create_database")
    assert side.metastore.abort_replayed.call_args.args[0] == policy_of(SOURCE, "db")
    side = target()
    side.metastore.database.return_value = Database("default", locationUri="hdfs://d/w", parameters={})
    side.metastore.databases.return_value = iter(())
    side.storage = Mock(ls=Mock(return_value=[]))
    side.metastore.materialized_views_over.return_value = {}
    assert not TargetDatabase(side, "default", lambda: None, dry=False).drop(9, Conflicts("refuse", SOURCE, "default"))
    assert side.metastore.abort_replayed.call_args.args[0] == policy_of(SOURCE, "default")


@pytest.mark.parametrize(
    ("before", "now", "ends"),
    [
        (PolicyScope(), PolicyScope(acid=False), True),
        (PolicyScope(), PolicyScope(metadata_only=True), True),
        (PolicyScope(), PolicyScope(("a*",)), False),
        (PolicyScope(acid=False), PolicyScope(("a*",), acid=False), False),
        (PolicyScope(acid=False), PolicyScope(), False),
        (None, PolicyScope(acid=False), False),
    ],
)
def test_a_policy_that_gives_up_transactional_tables_ends_what_is_open(
    before: PolicyScope | None, now: PolicyScope, *, ends: bool
) -> None:
    """No dump of it has the ends of the source's transactions any more."""
    side = target()
    end_given_up(side, "db", "p", check, before.text if before else "", now.text)
    assert side.metastore.abort_replayed.called == ends


def test_a_load_after_which_transactional_tables_are_left_out_ends_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Mock()
    monkeypatch.setattr(session, "end_given_up", done)
    before, now = PolicyScope().text, PolicyScope(acid=False).text
    load = loading(ReplicaState(SOURCE, 50, scope=before), header(60), ())
    load.finish(ReplicaState(SOURCE, 60, scope=now), whole=True)
    assert not done.called, "a plan ends nothing"
    load = loading(ReplicaState(SOURCE, 50, scope=before), header(60), ())
    load.copier = Mock()
    load.finish(ReplicaState(SOURCE, 60, scope=now), whole=True)
    assert done.call_args.args[1:] == ("db", policy_of(SOURCE, "db"), load.replica.check, before, now)


def given_out(folder: Path, highest: int, *tables: Table) -> tuple[Target, Any]:
    """A target of whose tables some write ids were given out."""
    metastore = Mock(features=SimpleNamespace(major=4))
    metastore.database.return_value = Database("db", locationUri=f"file://{folder}/db", parameters={})
    metastore.table_names.return_value = [one.tableName for one in tables]
    metastore.tables.side_effect = lambda *_: iter(tables)
    metastore.write_ids.return_value = {one.tableName: WriteIds(highest) for one in tables}
    metastore.open_replayed.return_value = frozenset[int]()
    metastore.max_write_id.return_value = highest
    return local_target(metastore, folder), metastore


def test_files_of_a_transaction_are_deleted_before_it_is_aborted(tmp_path: Path) -> None:
    """Killed in between, the next try finds it by its open write id. What shows a new table stays: others wrote its files."""
    here = [f"delta_000000{number}_000000{number}" for number in (2, 3, 4)]
    side, metastore = given_out(tmp_path, 4, lying(tmp_path, "t", *here))
    metastore.write_ids.side_effect = [{"t": WriteIds(4, frozenset({3, 4}))}, {"t": WriteIds(4)}]
    metastore.open_transactions.return_value = metastore.replayed_among.return_value = [70, 71]
    metastore.write_ids_of.side_effect = lambda one, *_: iter([("t", one - 67)])
    metastore.snapshots.return_value = frozenset({71})
    left = list[list[str]]()
    metastore.abort_replayed.side_effect = lambda *_: left.append(names(tmp_path / "db/t"))
    end_replayed(side, "db", "p", check)
    assert left == [[here[0], here[2]]]
