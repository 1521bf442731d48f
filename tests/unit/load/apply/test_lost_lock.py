"""A load that loses its lock: another one may run, so it changes nothing any more, and ends as a whole."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.copy import while_held
from hive_replication.copy.tasks import Copier, CopyTask
from hive_replication.errors import LockLost, LockSilent, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load import command
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.executor import Executor
from hive_replication.load.apply.lane_placement import LanePlacement, Visibility
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import Database
from hive_replication.parallel import Threads
from hive_replication.progress import Silent
from hive_replication.storage import Storage
from tests.unit.load.apply.fakes import OURS, Replicas, content, replicas_target


def _lost_after(calls: int) -> Callable[[], None]:
    """A check of the lock that finds it lost after so many calls."""
    left = [None] * calls

    def check() -> None:
        if not left:
            raise LockLost("the lock on sales was lost")
        left.pop()

    return check


def test_no_table_is_held_for_it(base: str, storage: Storage) -> None:
    """The window was done with the table held, beside another load that may have loaded it already."""
    metastore = Replicas(base, "t", "u")
    target = replicas_target(metastore, storage)
    replica = TargetDatabase(target, "sales", _lost_after(1), dry=False)
    known = KnownObjects(cast("Any", metastore), "sales", ReplicaState(OURS))
    executor = Executor(replica, OURS, cast("Any", SimpleNamespace(copy=lambda _: iter(()))), Silent(), Tally(), known)
    with pytest.raises(LockLost, match="lock on sales was lost"):
        executor.run([LanePlan((name,), 5, (op.DropTable(6, name),)) for name in "tu"], lambda *_: None)
    assert len(metastore.calls) == 1


def test_a_lock_that_is_silent_for_a_while_ends_no_load_that_carries_out_a_lane(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One table that was ready while the metastore was away ended the copies of all others, which waited for it."""
    monkeypatch.setattr(while_held, "_POLL", 0.01)
    metastore, silent = Replicas(base, "t", "u"), [None] * 6
    target = replicas_target(metastore, storage)

    def check() -> None:
        if silent:
            silent.pop()
            raise LockSilent("no heartbeat")

    replica = TargetDatabase(target, "sales", check, dry=False)
    known = KnownObjects(cast("Any", metastore), "sales", ReplicaState(OURS))
    executor = Executor(replica, OURS, cast("Any", SimpleNamespace(copy=lambda _: iter(()))), Silent(), Tally(), known)
    assert not executor.run([LanePlan((name,), 5, (op.DropTable(6, name),)) for name in "tu"], lambda *_: None).held
    assert sorted(metastore.calls) == ["drop t", "drop u"]


def test_no_lane_waits_for_a_heartbeat_once_another_has_failed(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(while_held, "_POLL", 0.01)
    metastore, asked = Replicas(base, "t", "u"), list[None]()
    target = replicas_target(metastore, storage)

    def check() -> None:
        asked.append(None)
        if len(asked) == 5:
            raise LockLost("the lock on sales was lost")
        raise LockSilent("no heartbeat")

    replica = TargetDatabase(target, "sales", check, dry=False)
    known = KnownObjects(cast("Any", metastore), "sales", ReplicaState(OURS))
    executor = Executor(replica, OURS, cast("Any", SimpleNamespace(copy=lambda _: iter(()))), Silent(), Tally(), known)
    with pytest.raises(LockLost):
        executor.run([LanePlan((name,), 5, (op.DropTable(6, name),)) for name in "tu"], lambda *_: None)
    assert metastore.calls == []


def test_a_load_copies_for_as_long_as_it_holds_its_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went on until the next change in the metastore, into directories that another load had taken over."""
    given = list[Copier]()

    def begun(*arguments: Any, **_: object) -> None:
        given.append(arguments[3])
        raise InterruptedError

    lock: Any = SimpleNamespace(check=_lost_after(1))
    for name, made in (("TargetDatabase", None), ("_boundary", None)):
        monkeypatch.setattr(command, name, lambda *_, made=made, **__: made)  # type: ignore[misc]
    monkeypatch.setattr(command, "Session", begun)
    some: Any = SimpleNamespace(metastore=None, copy=iter, header=SimpleNamespace(kind="incremental"))
    load = command._Load(some, some, some, some, some, some, "sales", None, Silent())  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(InterruptedError):
        load._run(lock, repair=False, only=None, source=None)  # pyright: ignore[reportPrivateUsage]
    files: list[Any] = [SimpleNamespace(task=CopyTask(FileRef(name), name, 1, "db.t")) for name in "abc"]
    answers, copied = list[object](), given[0].copy(files)
    with pytest.raises(LockLost):
        answers.extend(copied)
    assert answers == files[:1]


@pytest.mark.parametrize("within", [False, True])
def test_no_further_table_of_a_dropped_database_goes(base: str, storage: Storage, *, within: bool) -> None:
    """Its drop asked for the lock once, and then took all tables and the directory, which may take long."""
    metastore = Replicas(base, "t", "u")
    storage.write(f"{base}/t/f", b"f")
    if within:
        other = Database("other", locationUri=f"{base}/other", parameters={})
        metastore.databases = lambda: ["sales", "other"]  # type: ignore[method-assign]
        metastore.database = lambda name: other if name == "other" else metastore.home  # type: ignore[method-assign]
    replica = TargetDatabase(replicas_target(metastore, storage), "sales", _lost_after(2), dry=False)
    with pytest.raises(LockLost):
        replica.drop(9, Conflicts("refuse", OURS, "sales"))
    assert len(metastore.calls) == 1
    assert storage.exists(base)


def test_what_was_copied_is_not_made_visible(base: str, storage: Storage) -> None:
    """With append: atomic gigabytes are copied between the look at the lock and the change in the metastore."""
    metastore = Replicas(base, "t")
    storage.write(f"{base}/t/old", b"old")
    storage.write(f"{base}/.repl/7-1/f", b"f")
    insert = op.AppendData(7, "t", "", metastore.there["t"], content("f"))
    lane = LanePlacement(LanePlan(("t",), 5, (insert,)), {(0, ""): f"{base}/.repl/7-1"}, modes={(0, ""): "union"})
    target = replicas_target(metastore, storage)
    changes = TableChanges(target, "sales", OURS, TargetBoundary(target, "sales", base), _lost_after(3))  # read, named, answered
    with pytest.raises(LockLost):
        changes.carry_out(lane, 0)
    assert storage.exists(f"{base}/.repl/7-1/old")
    assert metastore.calls == []


def _move_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are in encryption zones: they are copied, and only copies get names."""

    def refuse(self: Storage, source: str, target: str) -> None:
        if ".tmp" not in source:
            raise ReplicationError("it is in an encryption zone")
        rename(self, source, target)

    rename = Storage.rename
    monkeypatch.setattr(Storage, "rename", refuse)


@pytest.mark.parametrize("zones", [False, True])
def test_no_further_file_comes_to_a_live_directory(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch, *, zones: bool
) -> None:
    """The lock was asked for once, before the files of a whole group: those of another store are copied then, for long."""
    metastore, names = Replicas(base, "t"), ("f0", "f1", "f2")
    for name in names:
        storage.write(f"{base}/.repl/7-1/{name}", b"new")
    if zones:
        _move_nothing(monkeypatch)
    insert = op.AppendData(7, "t", "", metastore.there["t"], content(*names))
    lane = LanePlacement(LanePlan(("t",), 5, (insert,)), {(0, ""): f"{base}/.repl/7-1"}, modes={(0, ""): "append"})
    target = replicas_target(metastore, storage)
    target.storage.threads = Threads(1, "storage")
    changes = TableChanges(target, "sales", OURS, TargetBoundary(target, "sales", base), _lost_after(5 if zones else 1))
    with pytest.raises(LockLost):
        changes.carry_out(lane, 0)
    assert len(storage.named_files(f"{base}/t")) == 1


@pytest.mark.parametrize("mode", ["union", "append"])
def test_a_lock_that_is_silent_for_a_moment_holds_no_table(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch, mode: Visibility
) -> None:
    """Copies that it had ended failed as if they were not to be had, since the next heartbeat got through."""
    metastore = Replicas(base, "t")
    storage.write(f"{base}/t/old", b"old")
    storage.write(f"{base}/.repl/7-1/f", b"f")
    _move_nothing(monkeypatch)
    insert = op.AppendData(7, "t", "", metastore.there["t"], content("f"))
    lane = LanePlacement(LanePlan(("t",), 5, (insert,)), {(0, ""): f"{base}/.repl/7-1"}, modes={(0, ""): mode})
    target = replicas_target(metastore, storage)
    target.feeds = lambda _: False
    calls = iter([None, LockSilent("no heartbeat")])

    def check() -> None:
        if (silent := next(calls, None)) is not None:
            raise silent

    TableChanges(target, "sales", OURS, TargetBoundary(target, "sales", base), check).carry_out(lane, 0)
    assert sorted(storage.named_files(str(metastore.there["t"].sd.location))) == ["f", "old"]
