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
from hive_replication.load.operations.left_open import end_given_up, end_left, end_replayed, retire_not_given_out
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.replica.state import SOURCE as SOURCE_OF
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import PolicyScope, Root
from hive_replication.storage import Storage, StorageError
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
    end_given_up(side, "db", SOURCE, check, ReplicaState(SOURCE, 50, scope=before.text if before else ""), now.text)
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
    assert done.call_args.args[1:] == ("db", SOURCE, load.replica.check, ReplicaState(SOURCE, 50, scope=before), now)


def test_a_kept_table_that_a_policy_gives_up_has_nothing_of_what_was_not_committed(tmp_path: Path) -> None:
    """It is somebody's own from then on: the next write there got the id of what had arrived of the source's."""
    here = ("delta_0000002_0000002", "delta_0000003_0000003")
    side, metastore = given_out(tmp_path, 2, lying(tmp_path, "t", *here, **{SOURCE_OF: SOURCE}))
    metastore.open_transactions.return_value = []
    before = ReplicaState(SOURCE, 50, scope=PolicyScope().text)
    end_given_up(side, "db", SOURCE, check, before, PolicyScope(acid=False).text)
    assert names(tmp_path / "db/t") == ["delta_0000002_0000002"]


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


def test_what_was_copied_for_write_ids_that_were_not_given_out_is_retired(tmp_path: Path) -> None:
    """All files of a lane are copied at once: the next writer's rows were those of a later transaction, too."""
    read = ["base_0000001", "delta_0000002_0000002_0000", "delta_0000002_0000003", "delta_0000004_0000004_v0000009"]
    above = [".repl-base_0000004", "base_0000003", "delete_delta_0000003_0000003_0000", "delta_0000003_0000004", "_tmp"]
    ours, theirs = lying(tmp_path, "t", *read, *above, **{SOURCE_OF: SOURCE}), lying(tmp_path, "own", "delta_0000003_0000003")
    side, _ = given_out(tmp_path, 2, ours, theirs)
    for _ in range(2):  # as after a kill
        retire_not_given_out(side, "db", SOURCE, 7, check)
        assert names(tmp_path / "db/t") == sorted([*read, "_tmp"])
    assert [one.rpartition("-")[0] for one in names(tmp_path / "db/.repl/retired/7/t")] == sorted(above[:-1])
    assert names(tmp_path / "db/own") == ["delta_0000003_0000003"]


def test_what_a_writer_wrote_meanwhile_stays(tmp_path: Path) -> None:
    """Nobody refuses writers on a replica: who writes has been given the write id, but perhaps after the first look at it."""
    side, metastore = given_out(tmp_path, 2, lying(tmp_path, "t", "delta_0000003_0000003", **{SOURCE_OF: SOURCE}))
    metastore.max_write_id.side_effect = [2, 3]
    retire_not_given_out(side, "db", SOURCE, 7, check)
    assert names(tmp_path / "db/t") == ["delta_0000003_0000003"]


def test_nothing_is_retired_once_the_lock_is_lost(tmp_path: Path) -> None:
    side, _ = given_out(tmp_path, 2, lying(tmp_path, "t", "delta_0000003_0000003", **{SOURCE_OF: SOURCE}))
    with pytest.raises(LockLost):
        retire_not_given_out(side, "db", SOURCE, 7, Mock(side_effect=LockLost("the lock on db was lost")))
    assert names(tmp_path / "db/t") == ["delta_0000003_0000003"]


def test_what_cannot_be_moved_keeps_no_database_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as a table in an encryption zone of its own: after an unplanned failover there is no other source to go back to."""
    side, _ = given_out(tmp_path, 2, lying(tmp_path, "t", "delta_0000003_0000003", **{SOURCE_OF: SOURCE}))
    monkeypatch.setattr(left_open, "retire", Mock(side_effect=StorageError("it is another encryption zone")))
    retire_not_given_out(side, "db", SOURCE, 7, check)
    assert "/db/t/delta_0000003_0000003 shows what was not committed" in caplog.text
    assert "delete it by hand (it is another encryption zone)" in caplog.text


@pytest.mark.parametrize("half_made", [True, False])
def test_a_table_that_is_being_made_is_gone_on_with_unless_it_is_opened(tmp_path: Path, *, half_made: bool) -> None:
    """It gets its write ids last; opened as it was, it showed files of the bootstrap after a few writes, and hid these."""
    tables = [
        lying(tmp_path, name, "base_0000005", **{SOURCE_OF: SOURCE, "repl.last.id": evid})
        for name, evid in (("half", "0"), ("t", "4"))
    ]
    side, _ = given_out(tmp_path, 0, *tables)
    retire_not_given_out(side, "db", SOURCE, 7, check, half_made=half_made)
    assert [names(tmp_path / "db" / one) for one in ("half", "t")] == [[] if half_made else ["base_0000005"], []]


def test_directories_of_other_tables_and_beyond_the_roots_are_left_alone(tmp_path: Path) -> None:
    """Somebody pointed partitions there: what lies in them has write ids of another table, and readers."""
    t, u = (lying(tmp_path, name, "delta_0000003_0000003", **{SOURCE_OF: SOURCE}) for name in ("t", "u"))
    t.partitionKeys = [FieldSchema("ds", "string")]
    side, metastore = given_out(tmp_path, 2, t, u)
    metastore.max_write_id.side_effect = lambda _, name: 2 if name == "t" else 3
    elsewhere = (u.sd.location, "hdfs://elsewhere/t", f"file://{tmp_path}/db/t/gone")
    metastore.partitions.side_effect = lambda *_: iter(Partition(sd=StorageDescriptor(location=one)) for one in elsewhere)
    retire_not_given_out(side, "db", SOURCE, 7, check)
    assert (names(tmp_path / "db/t"), names(tmp_path / "db/u")) == ([], ["delta_0000003_0000003"])


def test_a_metastore_without_transactions_is_asked_for_no_write_ids() -> None:
    side = target()
    side.metastore.features.major = 3
    retire_not_given_out(side, "db", SOURCE, 7, check)
    assert side.metastore.mock_calls == []


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
