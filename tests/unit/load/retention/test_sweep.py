"""Retention against a metastore in memory and local files: whose time is over, and what happens while loads run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.format import claims
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import DumpHeader, Scope, TableRecord
from hive_replication.dump.format.tree import TreeStore, TreeWriter
from hive_replication.errors import BadRequest, Refused, ReplicationError
from hive_replication.load.journal.journal import Journal
from hive_replication.load.journal.lane_record import LaneRecord
from hive_replication.load.layout.directories import Layout, new_token
from hive_replication.load.layout.move_to_retired import retire, retire_database
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.report import LoadReport
from hive_replication.load.retention import removals
from hive_replication.load.retention import sweep as retention
from hive_replication.load.retention.sweep import sweep
from hive_replication.load.undo import undo
from hive_replication.load.undo.old_data import OldDataLocator
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.process import machine
from hive_replication.signing import SigningKey
from hive_replication.storage import Denied, FileStatus, Storage, paths
from tests.bucket import bucket_storage
from tests.faults import Killed, closed_directory

DAY = 86_400.0


class Metastore:
    """One database, or none."""

    def __init__(self, warehouse: str) -> None:
        self.warehouse = self.setting = warehouse
        self.found: Database | None = Database(name="sales", locationUri=f"{warehouse}/sales.db", parameters={})
        self.held: dict[str, str] = {}
        self.hidden: set[str] = set()
        self.settings: dict[str, str] = {}

    def database(self, _: str) -> Database | None:
        return self.found

    def databases(self) -> list[str]:
        return ["sales"]

    def table_names(self, _: str) -> list[str]:
        return sorted(self.held.keys() - self.hidden)

    def tables(self, _: str, names: list[str]) -> Iterator[Table]:
        return (Table(tableName=name, sd=StorageDescriptor(location=self.held[name]), partitionKeys=[]) for name in names)

    def config_value(self, name: str, default: str) -> str:
        return {"hive.metastore.warehouse.dir": self.setting, **self.settings}.get(name, default)


class Lock:
    """The lock of the database, as :class:`MetastoreLock`; others hold it as long as ``refuses``."""

    refuses = False
    held = False

    def __init__(self, *_: object, brief: bool = False) -> None:
        assert brief

    def __enter__(self) -> Lock:
        if Lock.refuses:
            raise Refused("another load of sales runs")
        Lock.held = True
        return self

    def __exit__(self, *_: object) -> None:
        Lock.held = False

    def check(self) -> None:
        assert Lock.held


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    monkeypatch.setattr(retention, "MetastoreLock", Lock)
    monkeypatch.setattr(Lock, "refuses", False)
    root = Root(uri=tmp_path.as_uri())
    side = Warehouse(metastore="thrift://127.0.0.1:1", roots=(root,))
    policy = Policy(source=side, target=side, dump_root=f"{tmp_path.as_uri()}/dumps", databases={"sales": "sales"})
    storage = Storage((root,))
    return Target(Metastore(f"{tmp_path.as_uri()}/w"), storage, policy, storage)  # type: ignore[arg-type]


@pytest.fixture
def on_objects(target: Target, monkeypatch: pytest.MonkeyPatch) -> Target:
    """The same on an object store."""
    bucket: Any = Metastore("memory://bucket/w")
    return replace(target, metastore=bucket, storage=bucket_storage(monkeypatch))


def dump_header(to_evid: int = 9, *, database: str = "sales", source: str = "uuid", begin: int = 1, **more: Any) -> DumpHeader:
    """Of a dump of events that was made for the policy of these tests."""
    header = DumpHeader(
        "incremental", Scope(database), source, Database(name=database), begin, to_evid, 0, "", time.time(), policy="default"
    )
    return replace(header, **{"target": "thrift://127.0.0.1:1", **more})


def request_of(policy: str = "default") -> str:
    """What the writers of a dump note, in their first line."""
    return json.dumps(["uuid", {}, None, {"name": policy}])


def interrupted(store: TreeStore, directory: str, policy: str = "default", **more: Any) -> str:
    """What an interrupted dump for a policy leaves in a directory: its writer released it."""
    note = {"request": request_of(policy), "machine": "", "pid": 0} | more
    store.storage.write(f"{directory}/_attempt_1", json.dumps(note).encode())
    return directory


def metastore(target: Target) -> Metastore:
    return target.metastore  # type: ignore[return-value]


def location(target: Target) -> str:
    return f"{metastore(target).warehouse}/sales.db"


def replica(target: Target) -> Database:
    """The database as a replica that has applied event 9."""
    return Database(name="sales", locationUri=location(target), parameters=ReplicaState("uuid/sales", 9).parameters())


def dump_store(target: Target) -> TreeStore:
    """Where the dumps of the policy are."""
    root = target.policy.dump_root
    return TreeStore(Storage((Root(uri=root),)), root)


def written(target: Target, below: str, days: float = 0.0) -> str:
    """A file of so many days ago, in a directory of that time."""
    uri = f"{location(target)}/{below}"
    target.storage.write(uri, b"123")
    if uri.startswith("memory:"):
        return uri
    path = Path(uri.removeprefix("file://"))
    while path.name not in ("w", "sales.db"):
        os.utime(path, (time.time() - days * DAY,) * 2)
        path = path.parent
    if days:
        os.utime(path, (time.time() - days * DAY,) * 2)
    return uri


def after(monkeypatch: pytest.MonkeyPatch, days: float) -> None:
    """From here on it is so many days later for retention."""
    now = time.time() + days * DAY
    monkeypatch.setattr(retention.time, "time", lambda: now)


def test_the_journals_of_another_policy_are_not_kept_by_the_times_of_this_one(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were deleted, and exit code 0 said that all was well."""
    kept = written(target, ".repl/170-0/f", days=365)
    after(monkeypatch, 365)
    home = metastore(target).found
    assert home is not None
    for name, state in {"sales": ReplicaState("uuid/sales", 9, policy="b"), "SALES": ReplicaState("uuid/x", policy="b")}.items():
        home.parameters = state.parameters()
        with pytest.raises(Refused, match="'sales' is written by the policy 'b', and this one is 'default'"):
            sweep(target, name)
    home.parameters = ReplicaState("uuid/sales", 9).parameters()
    elsewhere = replace(target, policy=target.policy.model_copy(update={"databases": {"sales": "copy"}}))
    with pytest.raises(BadRequest, match=r"the policy 'default' has no database 'sales' on the target.*it has copy"):
        sweep(elsewhere, "sales")
    assert target.storage.exists(kept)
    home.parameters = ReplicaState("uuid/sales", 9, policy="default").parameters()  # it left the policy
    assert [one.what for one in sweep(elsewhere, "Sales")] == ["staging"]


def test_a_dropped_database_that_left_the_policy_is_swept_too(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was said that none that left the policy had this name: its directory, dumps and reports stayed for ever."""
    store = dump_store(target)
    source: Any = SimpleNamespace(at_once=lambda: SimpleNamespace(uuid=lambda: "uuid"))
    left = target.policy.model_copy(update={"databases": {"hr": "hr"}, "keep_reports_days": 1})
    elsewhere = replace(target, policy=left, source_metastore=source)
    headers = [dump_header(begin=9, source=one) for one in ("uuid", "x")]
    ours, theirs = (store.create(Scope("sales")).finish(one).directory for one in headers)
    written(target, "orders/f")
    metastore(target).found = None
    retire_database(target.storage, location(target), 170)
    after(monkeypatch, 400)
    of_others = left.model_copy(update={"source": left.source.model_copy(update={"metastore": "thrift://127.0.0.1:2"})})
    for other in (of_others, left.model_copy(update={"name": "another"})):
        RecordStore.of(other, store, "sales").keep(Record(new_token(), "window", "sales", "ann@gate", 1.0, window="1-9"))
    with pytest.raises(BadRequest, match="none that left it has this name"):
        sweep(elsewhere, "sales", store)
    RecordStore.of(left, store, "sales").keep(Record(new_token(), "window", "sales", "ann@gate", 1.0, window="1-9"))
    assert sorted(one.what for one in sweep(elsewhere, "sales", store)) == ["dropped database", "dump", "report"]
    assert [target.storage.exists(one) for one in (ours, theirs)] == [False, True]


@pytest.mark.parametrize(
    ("policy", "exists", "swept"),
    [({"hr": "hr"}, True, [True, False]), ({"shop": "new"}, True, [False, False]), ({"sales": "new"}, False, [False, False])],
    ids=["another name at the source", "that one has another replica", "gone, and its name is another database's"],
)
def test_dumps_of_a_database_that_left_the_policy_lie_under_its_name_at_the_source(
    target: Target, monkeypatch: pytest.MonkeyPatch, policy: dict[str, str], exists: bool, swept: list[bool]
) -> None:
    """They stayed for ever; those of another database were deleted that were not loaded yet."""
    store = dump_store(target)
    source: Any = SimpleNamespace(at_once=lambda: SimpleNamespace(uuid=lambda: "uuid"))
    left = replace(target, policy=target.policy.model_copy(update={"databases": policy}), source_metastore=source)
    dumps: list[str] = []
    for name in ("shop", "sales"):
        header = dump_header(database=name)
        dumps.append(store.create(Scope(name)).finish(header).directory)
    state = ReplicaState("uuid/shop", 9, policy="default").parameters()
    metastore(target).found = Database(name="sales", locationUri=location(target), parameters=state) if exists else None
    if not exists:
        written(target, "orders/f")
        retire_database(target.storage, location(target), 170)
        RecordStore.of(left.policy, store, "sales").keep(Record(new_token(), "window", "sales", "ann@gate", 1.0, window="1-9"))
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    sweep(left, "sales", store)
    assert [not store.storage.exists(one) for one in dumps] == swept


def test_a_replica_of_another_source_is_not_swept_by_a_policy_of_the_same_name(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(target, ".repl/170-0/f", days=365)
    after(monkeypatch, 365)
    state = ReplicaState("uuid/sales", 9, policy="default").parameters()
    metastore(target).found = Database(name="sales", locationUri=location(target), parameters=state)
    policy = target.policy.model_copy(update={"databases": {"hr": "s2_hr"}})
    source: Any = SimpleNamespace(at_once=lambda: source, uuid=lambda: "another")
    second = replace(target, policy=policy, source_metastore=source)
    with pytest.raises(Refused, match="'sales' is a replica of uuid/sales, and the source of this policy 'default' is another"):
        sweep(second, "sales")
    source.uuid = lambda: "uuid"
    assert [one.what for one in sweep(second, "sales")] == ["staging"]


@pytest.mark.parametrize("again", [False, True], ids=["it stays dropped", "it is created again"])
def test_a_dropped_database_is_kept_for_the_retention_time(target: Target, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """Counted from when it was dropped: its directory may have been quiet for a year."""
    written(target, "orders/f", days=365)
    found, metastore(target).found = metastore(target).found, None
    retire_database(target.storage, location(target), 170)
    (kept,) = target.storage.ls(Layout(location(target)).dropped_databases)
    if again:
        metastore(target).found = found
    days = target.policy.retention_seconds / DAY
    if again:
        assert sweep(target, "sales") == []
    else:
        with pytest.raises(BadRequest, match="has no database"):
            sweep(target, "sales")
    after(monkeypatch, days + 0.1)
    (swept,) = sweep(target, "sales")
    assert (swept.what, swept.path, swept.moved_to, swept.size) == ("dropped database", kept.uri, "", 3)
    assert target.storage.ls(Layout(location(target)).dropped_databases) == []


def test_a_dropped_database_is_found_where_the_warehouse_is_a_path(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hive's default has no store: its data stayed for ever."""
    metastore(target).setting = metastore(target).warehouse.removeprefix("file://")
    written(target, "orders/f")
    metastore(target).found = None
    retire_database(target.storage, location(target), 170)
    after(monkeypatch, 365)
    assert [one.what for one in sweep(target, "sales")] == ["dropped database"]
    assert target.storage.ls(Layout(location(target)).dropped_databases) == []


@pytest.mark.parametrize("elsewhere", [False, True], ids=["the warehouse", "a directory of its own"])
@pytest.mark.parametrize("name", ["sales.db-9-{token}", "sales.db-9-0a1b2c3d"], ids=["", "by an earlier version"])
def test_a_sweep_of_default_keeps_the_dropped_databases_of_others(
    target: Target, monkeypatch: pytest.MonkeyPatch, name: str, *, elsewhere: bool
) -> None:
    """They went by its policy's times: those of the policy that had them may be longer."""
    warehouse = metastore(target).warehouse
    token = new_token()
    dropped = f"{warehouse}/.repl/retired/{name.format(token=token)}/orders/f"
    own = f"{warehouse}/default.db" if elsewhere else warehouse
    for uri in (dropped, f"{own}/.repl/retired/170/t/f"):
        target.storage.write(uri, b"123")
        for path in [Path(uri.removeprefix("file://")), *Path(uri.removeprefix("file://")).parents][:4]:
            os.utime(path, (time.time() - 365 * DAY,) * 2)
    state = ReplicaState("uuid/default", 9).parameters()
    metastore(target).found = Database(name="default", locationUri=own, parameters=state)
    policy = target.policy.model_copy(update={"databases": {"default": "default"}})
    after(monkeypatch, 365)
    assert [one.path for one in sweep(replace(target, policy=policy), "default")] == [f"{own}/.repl/retired/170"]
    assert target.storage.exists(dropped)


def test_one_that_an_earlier_version_dropped_is_kept_from_now_on(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name does not say since when, so its time begins when it is first seen."""
    metastore(target).found = None
    written(target, "orders/f", days=365)
    old = f"{Layout(location(target)).dropped_databases}/sales.db-170-0a1b2c3d"
    target.storage.rename(location(target), old)
    (planned,) = sweep(target, "sales", dry_run=True)
    assert (planned.path, bool(planned.moved_to), target.storage.exists(old)) == (old, True, True)
    (moved,) = sweep(target, "sales")
    assert target.storage.read(f"{moved.moved_to}/orders/f") == b"123"
    with pytest.raises(BadRequest, match="has no database"):
        sweep(target, "sales")
    after(monkeypatch, target.policy.retention_seconds / DAY + 0.1)
    assert [one.path for one in sweep(target, "sales")] == [moved.moved_to]
    assert not target.storage.exists(moved.moved_to)


@pytest.mark.parametrize("store", ["hdfs://ns1", "hdfs://NS1", "hdfs://nn1.example.com:8020", "hdfs://", ""])
@pytest.mark.parametrize("place", ["orders", "orders/below", ".repl/retired/0000000000001aaaaaaaa/orders"])
def test_old_data_stays_where_a_table_points_at_it_by_another_name_of_its_store(
    target: Target, monkeypatch: pytest.MonkeyPatch, store: str, place: str
) -> None:
    """It was moved aside, and then deleted: the table was empty."""
    bucket: Any = Metastore("hdfs://ns1/w")
    target = replace(target, metastore=bucket, storage=bucket_storage(monkeypatch, url="hdfs://ns1"))
    written_there = f"{location(target)}/{place}/f"
    target.storage.write(written_there, b"1")
    left(target, f"{location(target)}/orders", window=(0, 10), applied=10)
    bucket.found = replica(target)
    bucket.held["own"] = f"{store}/w/sales.db/{place}"
    for days in (target.policy.grace_seconds / DAY + 1, target.policy.retention_seconds / DAY * 2 + 4):
        after(monkeypatch, days)
        sweep(target, "sales")
    assert target.storage.exists(written_there)


def test_a_location_without_a_store_keeps_what_lies_there_and_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Hive keeps ALTER TABLE .. PARTITION .. SET LOCATION '/lake/p1': nothing of the database was swept any more."""
    base = location(target)
    for name in ("orders", "lines"):
        written(target, f"{name}/f")
    left(target, f"{base}/orders", f"{base}/lines", window=(0, 10), applied=10)
    metastore(target).found = replica(target)
    metastore(target).held |= {"own": f"{base}/orders".removeprefix("file://"), "odd": "x", "none": ""}
    after(monkeypatch, target.policy.grace_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales")] == [f"{base}/lines"]
    assert target.storage.exists(f"{base}/orders/f")


@contextmanager
def private(directory: str) -> Iterator[None]:
    """A directory of somebody else's with mode 0700, as HDFS has it: nothing above it is listed or deleted as a whole."""

    def guarded(real: Callable[..., Any], *, whole: bool) -> Callable[..., Any]:
        def call(storage: Storage, uri: str, **options: Any) -> Any:
            if uri == directory or (whole and paths.is_under(directory, uri) and True in options.values()):
                raise Denied(f"{directory}: permission denied")
            return real(storage, uri, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name, whole in {"ls": False, "files": True, "delete": True}.items():
            patch.setattr(Storage, name, guarded(getattr(Storage, name), whole=whole))
        yield


@pytest.mark.parametrize("live", [False, True], ids=["", "beside a table"])
@pytest.mark.parametrize("what", ["old data", "dropped database", "retired", "staging"])
def test_a_closed_directory_in_what_is_old_is_told_and_keeps_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, what: str, *, live: bool
) -> None:
    """As a killed job's scratch directory: the retention of the database ended at it, each night."""
    base, store = location(target), dump_store(target)
    place = {"old data": "orders", "retired": ".repl/retired/170", "staging": ".repl/170-0"}.get(what, "orders")
    for name in ("f", ".hive-staging_1/f", "t/f"):
        written(target, f"{place}/{name}")
    old = f"{base}/{place}"
    if what == "dropped database":
        retire_database(target.storage, base, 9)
        (dropped,) = target.storage.ls(f"{paths.parent(base)}/.repl/retired")
        old = f"{dropped.uri}/orders"
    written(target, "lines/f")
    left(target, *[old] * (what == "old data"), f"{base}/lines", window=(0, 10), applied=10)
    metastore(target).found = replica(target)
    metastore(target).held |= {"t": f"{old}/t"} if live else {}
    dump = store.create(Scope("sales")).finish(dump_header()).directory
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with private(f"{old}/.hive-staging_1"):
        swept = [one for _ in range(2) for one in sweep(target, "sales", store)]
    assert {dump, f"{base}/lines"} <= {one.path for one in swept if not one.problem}
    told = what in ("retired", "staging") or (what == "dropped database" and not live)
    assert {one.problem for one in swept if one.problem} == ({f"{old}/.hive-staging_1: permission denied"} if told else set())
    assert not store.storage.exists(dump)


def test_a_sweep_that_no_load_or_policy_is_in_the_way_of_fails(target: Target, tmp_path: Path) -> None:
    """It was told as one that is left for later, with the job green, and met the same again each time."""
    metastore(target).found = replica(target)
    target.storage.mkdirs(f"{location(target)}/.repl")
    (tmp_path / "w/sales.db/.repl/retired").symlink_to("/")
    with pytest.raises(ReplicationError, match="leads by a symbolic link to /, outside the storage roots") as failed:
        sweep(target, "sales")
    assert not isinstance(failed.value, Refused)


def test_a_dropped_database_in_which_a_table_lies_again_is_kept(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody took a table back from it by hand."""
    written(target, "orders/f")
    retire_database(target.storage, location(target), 170)
    (kept,) = target.storage.ls(Layout(location(target)).dropped_databases)
    metastore(target).held["orders"] = f"{kept.uri}/orders"
    after(monkeypatch, 365)
    assert sweep(target, "sales") == []
    assert target.storage.exists(f"{kept.uri}/orders/f")


def test_listings_are_made_without_the_lock(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads wait for what changes only: all that is slow was done before, and what is old is looked at again alone."""
    for number in range(20):
        written(target, f".repl/{number}-0/f", days=365)
        written(target, f"orders/ds={number}/.f.0123456789abcdef.tmp", days=365)
    metastore(target).held["orders"] = f"{location(target)}/orders"
    listed: list[tuple[bool, str]] = []
    files = Storage.files

    def counted(storage: Storage, uri: str, *, hidden: bool = False) -> Any:
        listed.append((Lock.held, uri))
        return files(storage, uri, hidden=hidden)

    monkeypatch.setattr(Storage, "files", counted)
    swept = sweep(target, "sales")
    assert sorted(one.what for one in swept) == ["staging"] * 20 + ["temporary file"] * 20
    assert {one.size for one in swept} == {3}
    assert {uri for held, uri in listed if held} == {f"{location(target)}/.repl/{number}-0" for number in range(20)}


def test_nothing_to_do_and_a_dry_run_take_no_lock(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lock, "refuses", True)
    assert sweep(target, "sales") == []
    written(target, ".repl/170-0/f", days=365)
    assert [one.what for one in sweep(target, "sales", dry_run=True)] == ["staging"]
    with pytest.raises(Refused, match="another load"):
        sweep(target, "sales")
    assert target.storage.exists(f"{location(target)}/.repl/170-0/f")


@pytest.mark.parametrize("change", ["a table points there", "a file came"])
def test_what_a_load_took_into_use_since_it_was_listed_stays(
    target: Target, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    uri = written(target, ".repl/170-0/f", days=365)
    written(target, ".repl/180-0/f", days=365)
    enter = Lock.__enter__

    def load(lock: Lock) -> Lock:
        if change == "a file came":
            target.storage.write(f"{location(target)}/.repl/170-0/g", b"1")
        else:
            metastore(target).held["orders"] = f"{location(target)}/.repl/170-0"
        return enter(lock)

    monkeypatch.setattr(Lock, "__enter__", load)
    assert [one.path for one in sweep(target, "sales")] == [f"{location(target)}/.repl/180-0"]
    assert target.storage.exists(uri)


def impatient(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
    """Lets a sweep hold the lock for no time, by a clock of its own: threads of other tests sleep and ask for the time, too."""
    clock = iter(range(1_000))
    monkeypatch.setattr(retention, "_HOLD", 0.0)
    own = SimpleNamespace(time=time.time, monotonic=lambda: next(clock) / 2, sleep=sleep)
    monkeypatch.setattr(retention, "time", own)


def test_a_directory_that_must_not_be_read_keeps_nothing_else(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    old = [written(target, f"{name}/.f.0123456789abcdef.tmp", days=365) for name in ("a", "private", "z")]
    files = Storage.files

    def closed(storage: Storage, uri: str, **hidden: bool) -> list[FileStatus]:
        if uri.endswith("/private"):
            raise Denied(f"{uri}: permission denied")
        return files(storage, uri, **hidden)

    monkeypatch.setattr(Storage, "files", closed)
    assert [one.path for one in sweep(target, "sales") if one.what == "temporary file"] == [old[0], old[2]]


def test_a_name_that_is_none_of_a_load_keeps_no_other_from_being_swept(on_objects: Target) -> None:
    """Where somebody else wrote an object with a slash too many, or a file whose name is no UTF-8."""
    files: Any = on_objects.storage._backend("memory://bucket/", on_objects.storage.roots[0])._files  # type: ignore[attr-defined]
    for name in ("/.f.0123456789abcdef.tmp", ".f.0123456789abcdef.tmp"):
        files.objects[f"bucket/w/sales.db/orders/{name}"] = (b"1", 0.0)
    found = [one.path for one in sweep(on_objects, "sales") if one.what == "temporary file"]
    assert found == ["memory://bucket/w/sales.db/orders/.f.0123456789abcdef.tmp"]


def test_the_lock_is_given_to_loads_in_between(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        written(target, f".repl/{number}-0/f", days=365)
    pauses: list[bool] = []
    impatient(monkeypatch, lambda _: pauses.append(Lock.held))
    assert len(sweep(target, "sales")) == 3
    assert pauses
    assert not any(pauses)


def test_a_load_that_comes_in_between_ends_the_sweep(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is told; the rest is for the next time."""
    for number in range(3):
        written(target, f".repl/{number}-0/f", days=365)
    impatient(monkeypatch, lambda _: monkeypatch.setattr(Lock, "refuses", True))
    assert 0 < len(sweep(target, "sales")) < 3


def test_a_bad_dump_is_kept_and_the_others_are_deleted(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    metastore(target).found = replica(target)
    store = dump_store(target)
    directories: list[str] = []
    for _ in range(3):
        header = dump_header()
        directories.append(store.create(Scope("sales")).finish(header).directory)
    target.storage.write(f"{directories[0]}/_dumpmetadata", b"{}")
    target.storage.write(f"{directories[1]}/_finished_dump", b"[1]")
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store) if one.what == "dump"] == [directories[2]]
    assert [target.storage.exists(one) for one in directories] == [True, True, False]


@pytest.mark.parametrize(
    ("closed", "complete"),
    [("", True), ("", False), ("/_finished_dump", True), ("/_attempt_1", False)],
    ids=["a dump", "an unfinished one", "its files", "an unfinished one's files"],
)
def test_a_dump_that_may_not_be_read_keeps_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, closed: str, *, complete: bool
) -> None:
    """One that an administrator made by hand ended the retention of its database."""
    metastore(target).found = replica(target)
    store = dump_store(target)
    header = dump_header()
    theirs, ours = (store.create(Scope("sales")).finish(header).directory for _ in range(2))
    if not complete:
        for one in (theirs, ours):
            interrupted(store, one)
            store.storage.delete(f"{one}/_finished_dump")
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with closed_directory(f"{theirs}{closed}"):
        swept = [one.path for one in sweep(target, "sales", store)]
    assert (swept, store.storage.exists(theirs)) == ([ours], True)


@pytest.mark.parametrize("name", ["_attempt_1", "_finished_dump", "_removed"])
def test_a_directory_with_the_name_of_a_dumps_file_keeps_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A stranger's beside the dumps ended the retention of the database, each night; the last was taken for a dump of ours."""
    root = target.policy.dump_root
    metastore(target).found = replica(target)
    store = dump_store(target)
    ours = store.create(Scope("sales")).finish(dump_header()).directory
    theirs = f"{root}/sales/zzz/{name}/f"
    store.storage.write(theirs, b"1")
    store.create(Scope("sales"), request_of()).abandon()
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store)] == [ours]
    assert store.storage.exists(theirs)


def test_nothing_goes_that_a_planned_dump_may_name_whose_header_cannot_be_read(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot be read, for a block that is lost, say, ended the retention of the database, each night."""
    metastore(target).found = replica(target)
    store = dump_store(target)
    unread, ours = (store.create(Scope("sales")).finish(dump_header()).directory for _ in range(2))
    real = Storage.stream

    def stream(storage: Storage, uri: str, size: int = 1) -> Iterator[bytes]:
        if uri == f"{unread}/_dumpmetadata":
            raise ReplicationError("a block is lost")
        return real(storage, uri, size)

    monkeypatch.setattr(Storage, "stream", stream)
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert sweep(target, "sales", store, planned=lambda: [unread]) == []
    assert [one.path for one in sweep(target, "sales", store)] == [ours]


@pytest.mark.parametrize("earlier", [None, SigningKey(b"the key until then")], ids=["no key", "another key"])
def test_dumps_from_before_the_key_of_the_policy_are_deleted(
    target: Target, monkeypatch: pytest.MonkeyPatch, earlier: SigningKey | None
) -> None:
    """They stayed for ever."""
    root = target.policy.dump_root
    metastore(target).found = replica(target)
    storage = Storage((Root(uri=root),))
    header = dump_header()
    old = TreeStore(storage, root, earlier).create(Scope("sales")).finish(header).directory
    store = TreeStore(storage, root, SigningKey(b"a key of the policy"))
    new = store.create(Scope("sales")).finish(header).directory
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with pytest.raises(Refused, match="is not signed by the signing_key of the policy"):
        store.header(old)
    assert sorted(one.path for one in sweep(target, "sales", store)) == sorted([old, new])
    assert store.dumps("sales") == []


HIVE3 = b"INCREMENTAL\t5\t9\thdfs://s/cm\tnull\n"
HIVE4 = b"BOOTSTRAP\t5\t9\thdfs://s/cm\t0\tNULL\tfalse\nsales\n"


@pytest.mark.parametrize(
    "files",
    [
        {"_dumpmetadata": HIVE3},
        {"hive/_dumpmetadata": HIVE4, "hive/_finished_dump": b""},
        {"_dumpmetadata": HIVE4, "_finished_dump": b""},
    ],
    ids=["3.1", "4.1", "4.1, its directory hive"],
)
def test_a_dump_of_hive_is_told_from_a_broken_one_and_kept(
    target: Target, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]
) -> None:
    root = target.policy.dump_root
    metastore(target).found = replica(target)
    store = dump_store(target)
    for name, data in files.items():
        target.storage.write(f"{root}/sales/5f9c/{name}", data)
    with pytest.raises(BadRequest, match=r"^\S+/sales/5f9c is a dump of Hive's own REPL DUMP, which cannot be loaded here"):
        store.open(f"{root}/sales/5f9c")
    target.storage.write(f"{interrupted(store, f'{root}/sales/begun')}/_dumpmetadata", b"{}")
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store) if one.what == "dump"] == [f"{root}/sales/begun"]
    assert target.storage.exists(f"{root}/sales/5f9c")


@pytest.mark.parametrize("of", [{"policy": "second"}, {"target": "thrift://other:1"}], ids=["its name", "its target"])
@pytest.mark.parametrize("there", [True, False], ids=["loaded", "gone"])
def test_dumps_of_another_policy_with_the_same_dump_root_are_kept(
    target: Target, monkeypatch: pytest.MonkeyPatch, of: dict[str, str], there: bool
) -> None:
    """Both replicate one database: the retention of one deleted what the target of the other had not loaded yet."""
    store = dump_store(target)
    metastore(target).found = replica(target) if there else None
    theirs, ours = (store.create(Scope("sales")).finish(header).directory for header in (dump_header(**of), dump_header()))
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store)] == [ours]
    assert store.dumps("sales") == [theirs]


def test_an_address_that_is_added_to_a_metastore_makes_no_other_policy(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    store = dump_store(target)
    metastore(target).found = replica(target)
    targets = ("thrift://other:1, thrift://127.0.0.1:1", "no address", "")
    dumps = [store.create(Scope("sales")).finish(dump_header(target=one)).directory for one in targets]
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store)] == dumps[:1]


def test_dumps_of_earlier_versions_are_of_the_policy_that_their_writers_noted(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = dump_store(target)
    metastore(target).found = replica(target)
    untold = json.dumps(["uuid", {}, None, {"name": None}])
    requests = (request_of(), request_of("second"), None, '["uuid", 1]', "[" * 10, untold)
    earlier = [replace(dump_header(), policy="", target="") for _ in requests]
    ours, *others = (
        store.create(Scope("sales"), request, resumable=False).finish(header).directory
        for request, header in zip(requests, earlier, strict=True)
    )
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert [one.path for one in sweep(target, "sales", store)] == [ours]
    assert store.dumps("sales") == sorted(others)
    assert "4 old dumps are kept, since they do not tell for which policy they were made" in caplog.text


def test_only_what_an_interrupted_dump_of_the_policy_left_is_deleted(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another policy's was deleted, and whatever else lay beside the dumps, also where somebody wrote deep in it."""
    root = target.policy.dump_root
    store = dump_store(target)
    metastore(target).found = replica(target)
    ours = interrupted(store, f"{root}/sales/ours")
    begun = f"{root}/sales/removed in part"
    store.storage.write(f"{begun}/_removed", b"")
    interrupted(store, f"{root}/sales/theirs", "second")
    interrupted(store, f"{root}/sales/under way", machine=machine(), pid=os.getpid())
    store.storage.write(f"{root}/sales/orders/part-0.parquet", b"somebody's table")
    store.create(Scope("sales"))
    kept = {one.uri for one in store.storage.ls(f"{root}/sales")} - {ours, begun}
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert sorted(one.path for one in sweep(target, "sales", store)) == sorted([ours, begun])
    assert {one.uri for one in store.storage.ls(f"{root}/sales")} == kept


@pytest.mark.parametrize("what", ["complete", "abandoned", "not resumed"])
@pytest.mark.parametrize("survived", range(7))
def test_what_the_killed_deletion_of_a_dump_leaves_is_deleted_by_a_later_sweep(
    on_objects: Target, monkeypatch: pytest.MonkeyPatch, what: str, survived: int
) -> None:
    """Object stores delete file by file: where what said whose it was went first, the rest stayed for ever, without a word."""
    root, files = "memory://bucket/dumps", bucket(on_objects)
    store = TreeStore(on_objects.storage, root)
    metastore(on_objects).found = replica(on_objects)
    request = request_of()
    writer = store.create(Scope("sales"), request)
    for name in ("t1", "t2", "t3"):
        writer.put_table(TableRecord(Table(tableName=name, dbName="sales", sd=StorageDescriptor(parameters={})), ()))
    writer.keep(Checkpoint(9, "hash"))
    if what == "complete":
        writer.finish(replace(dump_header(), kind="bootstrap"))
    elif what == "not resumed":
        writer.suspend()
        monkeypatch.setattr(TreeWriter, "_go_on", damaged)
    pending, real = [None] * survived, files.rm_file

    def dies(key: str) -> None:
        if not pending:
            raise Killed
        pending.pop()
        real(key)

    after(monkeypatch, on_objects.policy.retention_seconds / DAY + 1)
    steps = {"complete": lambda: sweep(on_objects, "sales", store), "abandoned": writer.abandon}
    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(files, "rm_file", dies)
        steps.get(what, lambda: store.create(Scope("sales"), request))()
    monkeypatch.setattr(claims, "is_gone", lambda _: True)
    after(monkeypatch, 30)
    sweep(on_objects, "sales", store)
    assert [name for name in files.objects if "dumps/sales" in name] == []


def damaged(_: object) -> None:
    raise BadRequest("dump again")


def test_an_interrupted_dump_that_somebody_goes_on_with_meanwhile_is_kept(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = target.policy.dump_root
    store = dump_store(target)
    metastore(target).found = replica(target)
    ours = interrupted(store, f"{root}/sales/ours")
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    note = {"request": request_of(), "machine": machine(), "pid": os.getpid()}
    entered = Lock.__enter__

    def enter(lock: Lock) -> Lock:
        store.storage.write(f"{ours}/_attempt_2", json.dumps(note).encode())
        return entered(lock)

    monkeypatch.setattr(Lock, "__enter__", enter)
    assert sweep(target, "sales", store) == []
    assert store.storage.exists(ours)


def test_an_interrupted_dump_that_is_closed_meanwhile_keeps_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The round ended there, and the rest was left."""
    root = target.policy.dump_root
    store = dump_store(target)
    metastore(target).found = replica(target)
    closed, other = (interrupted(store, f"{root}/sales/{name}") for name in ("1", "2"))
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    entered = Lock.__enter__
    with ExitStack() as meanwhile:

        def enter(lock: Lock) -> Lock:
            meanwhile.enter_context(closed_directory(closed))
            return entered(lock)

        monkeypatch.setattr(Lock, "__enter__", enter)
        assert [one.path for one in sweep(target, "sales", store)] == [other]
    assert f"{closed} is passed over" in caplog.text


def test_the_dump_of_a_table_is_kept_with_that_of_the_planned_window_that_takes_it_in(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without events since, its ids are those at which the replica stands already."""
    store = dump_store(target)
    metastore(target).found = replica(target)
    table = store.create(Scope("sales", "orders")).finish(replace(dump_header(begin=9), scope=Scope("sales", "orders"))).directory
    window = store.create(Scope("sales")).finish(dump_header(begin=9, joined={"orders": table})).directory
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    assert sweep(target, "sales", store, planned=lambda: [window]) == []
    assert sorted(one.path for one in sweep(target, "sales", store)) == sorted([table, window])


@pytest.mark.parametrize("window_is", ["closed", "made after the listing", "gone"])
def test_the_dump_of_a_table_is_kept_where_that_of_a_planned_window_could_not_be_read(
    target: Target, monkeypatch: pytest.MonkeyPatch, window_is: str
) -> None:
    """It was deleted, and the window could not be loaded once it was approved. One whose dump is gone keeps no other."""
    root = target.policy.dump_root
    store = dump_store(target)
    metastore(target).found = replica(target)
    scope = Scope("sales", "orders")
    table = store.create(scope).finish(replace(dump_header(begin=9), scope=scope)).directory
    windows = ["elsewhere", f"{root}/sales/gone"]

    def make() -> None:
        windows.append(store.create(Scope("sales")).finish(dump_header(begin=9, joined={"orders": table})).directory)

    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with ExitStack() as meanwhile:
        if window_is == "closed":
            make()
            meanwhile.enter_context(closed_directory(windows[-1]))
        elif window_is == "made after the listing":
            entered = Lock.__enter__

            def enter(lock: Lock) -> Lock:
                make()
                return entered(lock)

            monkeypatch.setattr(Lock, "__enter__", enter)
        swept = [one.path for one in sweep(target, "sales", store, planned=lambda: windows)]
    assert swept == ([table] if window_is == "gone" else [])


@pytest.mark.parametrize("begun_again", [False, True], ids=["gone", "begun again meanwhile"])
def test_dumps_of_a_dropped_database_are_kept_for_the_retention_time(
    target: Target, monkeypatch: pytest.MonkeyPatch, begun_again: bool
) -> None:
    """They stayed for good, unfinished ones as well."""
    root = target.policy.dump_root
    store = dump_store(target)
    header = dump_header()
    dump = store.create(Scope("sales")).finish(header).directory
    interrupted(store, f"{root}/sales/begun")
    metastore(target).found = None
    with pytest.raises(BadRequest, match="the target has no database"):
        sweep(target, "sales", store)
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    if begun_again:  # when the lock is taken
        state = replace(ReplicaState("uuid/sales"), checkpoint=dump).parameters()
        found = iter([None])
        again = Database(name="sales", locationUri=location(target), parameters=state)
        monkeypatch.setattr(metastore(target), "database", lambda _: next(found, again))
    assert {one.what for one in sweep(target, "sales", store)} <= {"dump"}
    assert target.storage.exists(dump) == begun_again
    if not begun_again:
        assert store.dumps("sales") == store.unfinished("sales", time.time() + 1) == []


@pytest.mark.parametrize("pair", [("s", "t"), ("s", "other")], ids=["own", "another policy's"])
@pytest.mark.parametrize("there", [False, True], ids=["no replica yet", "its events are applied"])
def test_the_dump_of_a_window_that_waits_for_approval_is_kept(
    target: Target, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str], there: bool
) -> None:
    """It was deleted, so that the load failed once it was approved, for ever."""
    root = target.policy.dump_root
    store = dump_store(target)
    header = dump_header(begin=9)
    dumps = [store.create(Scope("sales")).finish(header).directory for _ in range(2)]
    metastore(target).found = replica(target) if there else None
    approvals = Approvals(store.storage, root, pair=pair)
    approvals.wait("sales", PlannedWindow("9-9", dumps[0], "incremental", 0, time.time(), "nothing", ()))
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    sweep(target, "sales", store, planned=approvals.dumps)
    assert [target.storage.exists(one) for one in dumps] == [True, False]
    approvals.withdraw("sales", "9-9")
    sweep(target, "sales", store, planned=approvals.dumps)
    assert not target.storage.exists(dumps[0])


@pytest.mark.parametrize("denied", [False, True])
def test_plans_are_read_once_for_all_dumps_and_one_that_is_denied_keeps_only_dumps(
    target: Target, monkeypatch: pytest.MonkeyPatch, *, denied: bool
) -> None:
    """All plans were read once for each dump, with the lock held, too; a plan of another policy ended the sweep."""
    root, reads = target.policy.dump_root, list[bool]()
    store = dump_store(target)
    header = dump_header(begin=9)
    dumps = [store.create(Scope("sales")).finish(header).directory for _ in range(100)]
    metastore(target).found = replica(target)
    written(target, ".repl/170-0/f", days=365)

    def planned() -> list[str]:
        reads.append(Lock.held)
        if denied:
            raise Denied(f"{root}/.plans/other: permission denied")
        return dumps[:1]

    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    swept = [one.what for one in sweep(target, "sales", store, planned=planned)]
    assert (swept.count("staging"), swept.count("dump"), store.dumps("sales")) == (
        (1, 0, sorted(dumps)) if denied else (1, 99, dumps[:1])
    )
    assert reads == ([False] if denied else [False, True])


def test_unfinished_copies_of_external_tables_are_deleted(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this database's tables alone, and what has another name is theirs."""
    root = f"{metastore(target).warehouse}/ext"
    target = replace(target, policy=target.policy.model_copy(update={"external_root": f"{root}/"}))
    metastore(target).held = {"x": f"{root}/x", "y": f"{root}/x/y", "elsewhere": "s3://other/z"}
    for file in (name := f".f.{'0' * 16}.tmp", f"ds=1/{name}", f"y/{name}", ".f.tmp", "f"):
        target.storage.write(f"{root}/x/{file}", b"123")
    target.storage.write(f"{root}/theirs/{name}", b"123")
    assert sweep(target, "sales") == []
    after(monkeypatch, 400)
    wanted = {f"{root}/x/{file}" for file in (name, f"ds=1/{name}", f"y/{name}")}
    assert {one.path for one in sweep(target, "sales")} == wanted
    assert {one.uri for one in target.storage.files(root, hidden=True)} == {
        f"{root}/theirs/{name}",
        f"{root}/x/.f.tmp",
        f"{root}/x/f",
    }


def test_reports_are_kept_for_as_long_as_the_policy_says(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    root = target.policy.dump_root
    store = dump_store(target)
    records = RecordStore.of(target.policy, store, "sales")
    kept = records.keep(Record(new_token(), "window", "sales", "ann@gate", 1.0, window="1-9"), LoadReport("d", "sales", 1, 9))
    files = {one.uri: one.size for one in store.storage.files(f"{root}/.reports/.by-day", hidden=True)}
    assert set(files) == {kept.report, f"{kept.report.removesuffix('.parquet')}.json"}
    after(monkeypatch, 2)
    assert sweep(target, "sales", store) == []  # the policy keeps all
    policy = target.policy.model_copy(update={"keep_reports_days": 3})
    assert sweep(replace(target, policy=policy), "sales", store) == []
    policy = target.policy.model_copy(update={"keep_reports_days": 1})
    swept = sweep(replace(target, policy=policy), "sales", store)
    assert [(one.what, one.path, one.size) for one in swept] == [("report", paths.parent(kept.report), sum(files.values()))]
    assert records.newest() == []


def old_record(target: Target, store: TreeStore, place: str, database: str = "sales") -> str:
    """The directory of a day of records of earlier versions, which had no hash, or of one with another hash."""
    day = f"{target.policy.dump_root}/.reports/.by-day/{place}/2020-01-01"
    store.storage.write(f"{day}/{new_token()}-1-9.json", database.encode())
    return day


@pytest.mark.parametrize("shared", [False, True])
def test_reports_of_earlier_versions_are_kept_where_another_policy_has_a_database_of_the_name(
    target: Target, *, shared: bool
) -> None:
    """They do not tell whose they are: one policy deleted those of another, which keeps them for ever."""
    store = dump_store(target)
    day = old_record(target, store, "sales")
    if shared:
        old_record(target, store, "sales-01234567")
    swept = [one.path for one in sweep(target, "sales", store)]
    assert (swept, store.storage.exists(day)) == (([], True) if shared else ([day], False))


@pytest.mark.parametrize("closed", ["", "/2020-01-01"], ids=["all", "a day"])
def test_reports_that_this_account_may_not_read_keep_nothing_else(
    target: Target, monkeypatch: pytest.MonkeyPatch, closed: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another account's ended the retention of the database."""
    store = dump_store(target)
    day = old_record(target, store, "sales")
    metastore(target).found = replica(target)
    dump = store.create(Scope("sales")).finish(dump_header()).directory
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with closed_directory(paths.parent(day) + closed):
        assert [one.path for one in sweep(target, "sales", store)] == [dump]
    assert "the reports" in caplog.text


@pytest.mark.parametrize("own", [False, True])
def test_plans_of_another_policy_that_this_account_may_not_read_keep_no_dumps(
    target: Target, monkeypatch: pytest.MonkeyPatch, *, own: bool
) -> None:
    """All dumps were kept, for ever, since one of them could wait with such a plan."""
    root = target.policy.dump_root
    store = dump_store(target)
    dump = store.create(Scope("sales")).finish(dump_header()).directory
    metastore(target).found = replica(target)
    ours, theirs = (Approvals(store.storage, root, pair=pair) for pair in (("s", "t"), ("s", "other")))
    (ours if own else theirs).wait("sales", PlannedWindow("9-9", "elsewhere", "incremental", 0, time.time(), "nothing", ()))
    (place,) = store.storage.ls(f"{root}/.plans")
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with closed_directory(place.uri):
        assert [one.path for one in sweep(target, "sales", store, planned=ours.dumps)] == ([] if own else [dump])


def test_loads_of_some_tables_are_kept_with_the_load_that_they_lead_back_to(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an undo to it would leave a repair in place, or take a table for younger than an earlier undo left it."""
    journal = Journal(target.storage, location(target))

    def load(from_evid: int, to_evid: int, applied: int | None) -> None:
        writer = journal.begin(from_evid, to_evid)
        writer.state(ReplicaState("uuid/sales", to_evid))
        writer.done(applied)

    for window in ((0, 10, 10), (10, 11, None), (10, 20, 20), (20, 21, None)):
        load(*window)
    after(monkeypatch, target.policy.retention_seconds / DAY + 0.1)
    assert {one.what for one in sweep(target, "sales")} == {"journal"}
    assert [(entry.from_evid, entry.to_evid, entry.status) for entry in journal.entries()] == [(10, 20, "done"), (20, 21, "part")]
    journal.end()
    assert {one.what for one in sweep(target, "sales")} == {"journal"}
    assert journal.entries() == []


def test_what_a_load_or_an_undo_left_unfinished_is_kept_with_the_load_before_it(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an undo to that load would say that it is done, and leave what the unfinished one has changed."""
    journal = Journal(target.storage, location(target))
    for to_evid, done in ((10, True), (20, True), (30, False)):
        writer = journal.begin(to_evid - 10, to_evid)
        writer.state(ReplicaState("uuid/sales", to_evid))
        if done:
            writer.done(to_evid)
    after(monkeypatch, target.policy.retention_seconds / DAY + 0.1)
    sweep(target, "sales")
    assert [(entry.to_evid, entry.status) for entry in journal.entries()] == [(20, "done"), (30, "open")]


def left(target: Target, *places: str, window: tuple[int, int] = (10, 20), applied: int | None = 20) -> str:
    """A load after which no location points at some directories any more; returns its token."""
    writer = Journal(target.storage, location(target)).begin(*window)
    writer.lane(LaneRecord(("orders",), (), left=places))
    writer.state(ReplicaState("uuid/sales", window[1]))
    writer.done(applied)
    return writer.token


@pytest.mark.parametrize("stays", ["old data", "journal"])
def test_no_undo_leads_to_a_load_whose_journal_outlives_newer_ones(
    target: Target, monkeypatch: pytest.MonkeyPatch, stays: str
) -> None:
    """It said that it was done, and the tables stood where the loads had left them of which no journal told any more."""
    base = location(target)
    place = written(target, "orders_old/f").removesuffix("/f")
    for to_evid in (10, 20, 30, 40):
        left(target, *[place] * (to_evid == 10), window=(to_evid - 10, to_evid), applied=to_evid)
    first, second, *_ = Journal(target.storage, base).entries()
    real, refused = Storage.delete, {"old data": place, "journal": second.directory}[stays]

    def delete(storage: Storage, uri: str, *, recursive: bool = False) -> bool:
        if uri.startswith(refused):
            raise Denied(f"{uri}: permission denied")
        return real(storage, uri, recursive=recursive)

    def move(_: object, source: str, target: str) -> None:
        raise Denied(f"{source} stays, and is not {target}")

    monkeypatch.setattr(Storage, "delete", delete)
    if stays == "old data":
        monkeypatch.setattr(ProtectedMoves, "move", move)
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    for _ in range(2):
        assert [one.path for one in sweep(target, "sales") if one.problem] == [refused]
    found = [(entry.to_evid, entry.status) for entry in Journal(target.storage, base).entries()]
    kept = {"old data": [(10, "former"), (40, "done")], "journal": [(20, "done"), (30, "done"), (40, "done")]}
    assert found == kept[stays]
    state = ReplicaState("uuid/sales", 40).parameters()
    metastore(target).found = Database(name="sales", locationUri=base, parameters=state)
    monkeypatch.setattr(undo, "MetastoreLock", lambda *_: Lock(brief=True))
    with pytest.raises(BadRequest, match="no load of the target database 'sales' that is still kept ended at event 10"):
        undo.undo(target, "sales", None, first.to_evid)


def test_nor_where_the_sweep_is_killed_before_newer_journals_are_deleted(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is none to undo to before the first of them goes; a dry run leaves it."""
    base = location(target)
    written(target, "orders_old/f")
    for to_evid in (10, 20, 30):
        left(target, *[f"{base}/orders_old"] * (to_evid == 10), window=(to_evid - 10, to_evid), applied=to_evid)

    def refuse(*_: object) -> None:
        raise Denied("it stays")

    def dies(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(ProtectedMoves, "move", refuse)
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    sweep(target, "sales", dry_run=True)
    assert {entry.status for entry in Journal(target.storage, base).entries()} == {"done"}
    monkeypatch.setattr(Storage, "delete", dies)
    with pytest.raises(Killed):
        sweep(target, "sales")
    found = [(entry.to_evid, entry.status) for entry in Journal(target.storage, base).entries()]
    assert found == [(10, "former"), (20, "done"), (30, "done")]


@pytest.mark.parametrize("recent", ["marked by a sweep", "undone"])
@pytest.mark.parametrize("side", ["target", "on_objects"])
def test_a_journal_stays_as_long_as_its_old_data_is_not_looked_at(
    side: str, recent: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its load is old, and the files of its journal are new: it was deleted, and nobody knew of the data any more."""
    target: Target = request.getfixturevalue(side)
    base, is_undone = location(target), recent == "undone"
    journal, place = Journal(target.storage, base), f"{base}/orders_old"
    target.storage.write(f"{place}/f", b"123")
    for to_evid in (10, 20, 30):
        writer, places = journal.begin(to_evid - 10, to_evid), (place,) * (to_evid == (30 if is_undone else 10))
        writer.lane(LaneRecord(("orders",), (), left=() if is_undone else places, placed=places if is_undone else ()))
        writer.state(ReplicaState("uuid/sales", to_evid))
        writer.done(to_evid)
    after(monkeypatch, target.policy.retention_seconds / DAY + 1)
    with monkeypatch.context() as patch:
        if is_undone:
            (lane,) = journal.lanes(journal.entries()[-1])
            journal.mark_undone(lane)
            marked = journal.mark(journal.entries()[-1], "undone")
            if side == "target":  # local files have the clock's time
                os.utime(marked.directory.removeprefix("file://"), (time.time(),) * 2)
        else:
            patch.setattr(Storage, "rename", _refused(Storage.rename, place))
            assert [one.path for one in sweep(target, "sales") if one.problem] == [place]
        after(monkeypatch, 60 / DAY)
        assert place not in {one.path for one in sweep(target, "sales") if not one.problem}
    assert target.storage.exists(f"{place}/f")
    for _ in range(2):
        past(monkeypatch, target)
        sweep(target, "sales")
    assert not target.storage.exists(place)
    assert not target.storage.files(Layout(base).retired_root)
    assert [(entry.to_evid, entry.status) for entry in journal.entries()] == [(20 if is_undone else 30, "done")]


def _refused(real: Callable[..., Any], below: str) -> Callable[..., Any]:
    def rename(storage: Storage, source: str, *rest: Any, **options: Any) -> Any:
        if source.startswith(below):
            raise Denied(f"{source}: permission denied")
        return real(storage, source, *rest, **options)

    return rename


def past(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    """The time in which running queries may read old data is over, the one in which it is kept is not."""
    after(monkeypatch, (target.policy.grace_seconds + 60) / DAY)


def test_the_directory_of_the_database_itself_is_never_old_data(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreign table that was taken over may have lain there; the journal lies there, and what else no table points at."""
    metastore(target).held["orders"] = f"{location(target)}/.repl/170-0"
    written(target, ".repl/170-0/f")
    files = {written(target, "orders/f"), written(target, "notes/f")}
    token = left(target, location(target), f"{location(target)}/orders")
    past(monkeypatch, target)
    (swept,) = sweep(target, "sales")
    assert (swept.what, swept.moved_to) == ("old data", Layout(location(target)).retired(token, swept.path))
    assert {file for file in files if target.storage.exists(file)} == {f"{location(target)}/notes/f"}
    assert [entry.token for entry in Journal(target.storage, location(target)).entries()] == [token]


@pytest.mark.parametrize("side", ["target", "on_objects"])
def test_what_a_foreign_table_held_is_kept_for_the_retention_time(
    side: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted from when it was retired. Its directory has the event's name, and an object store knows no time of it."""
    target: Target = request.getfixturevalue(side)
    target.storage.write(f"{location(target)}/foreign/f", b"123")
    retire(target.storage, location(target), f"{location(target)}/foreign", 170)
    assert sweep(target, "sales") == []
    after(monkeypatch, target.policy.retention_seconds / DAY - 0.1)
    assert sweep(target, "sales") == []
    after(monkeypatch, 0.2)
    (swept,) = sweep(target, "sales")
    assert (swept.what, swept.path, swept.size) == ("retired", f"{location(target)}/.repl/retired/170", 3)
    assert target.storage.ls(Layout(location(target)).retired_root) == []


def test_what_is_retired_for_an_event_after_it_was_listed_stays(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    written(target, ".repl/retired/170/foreign-1/f", days=365)
    enter, new = Lock.__enter__, f"{location(target)}/.repl/retired/170/foreign-2/f"

    def load(lock: Lock) -> Lock:
        target.storage.write(new, b"1")
        return enter(lock)

    monkeypatch.setattr(Lock, "__enter__", load)
    assert sweep(target, "sales") == []
    assert target.storage.exists(new)


@pytest.mark.parametrize("ends", ["the load", "its undo"])
@pytest.mark.parametrize("side", ["target", "on_objects"])
def test_old_data_stays_for_the_grace_time_after_a_load_or_its_undo_ended(
    side: str, ends: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have begun long before; an object store tells it by the files of the journal alone."""
    target: Target = request.getfixturevalue(side)
    journal, place = Journal(target.storage, location(target)), f"{location(target)}/orders"
    target.storage.write(f"{place}/f", b"123")
    writer = journal.begin(10, 20)
    writer.lane(LaneRecord(("orders",), (), left=(place,) if ends == "the load" else (), placed=(place,)))
    begun = time.time()
    after(monkeypatch, 0.1)
    if ends == "its undo":
        writer.done(20)
        (entry,) = journal.entries()
        (lane,) = journal.lanes(entry)
        journal.mark_undone(lane)
    else:
        writer.state(ReplicaState("uuid/sales", 20))
        writer.done(20)
    if side == "target":  # local files have the clock's time
        os.utime(journal.entries()[0].directory.removeprefix("file://"), (time.time(),) * 2)
    assert time.time() - begun > target.policy.grace_seconds
    assert sweep(target, "sales") == []
    past(monkeypatch, target)
    assert [one.path for one in sweep(target, "sales")] == [place]


@pytest.fixture
def as_hive_writes(target: Target) -> Target:
    """A local warehouse whose metastore spells locations as Hadoop does: ``file:/w``."""
    spelled: Any = Metastore(metastore(target).warehouse.replace("file://", "file:"))
    return replace(target, metastore=spelled)


def test_local_data_in_use_stays_however_its_place_is_spelled(as_hive_writes: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that was dropped and created again lies where the journal says that old data does."""
    base, storage = location(as_hive_writes), as_hive_writes.storage
    assert base.startswith("file:/")
    assert not base.startswith("file://")
    metastore(as_hive_writes).held["orders"] = f"{base}/orders"
    for name in ("orders", "gone"):
        storage.write(f"{base}/{name}/f", b"123")
    token = left(as_hive_writes, f"{base}/orders", f"{base}/gone")
    past(monkeypatch, as_hive_writes)
    (swept,) = sweep(as_hive_writes, "sales")
    moved = Layout(base).retired(token, f"{base}/gone")
    assert (swept.path, swept.moved_to) == (storage.check(f"{base}/gone"), storage.check(moved))
    assert storage.exists(f"{base}/orders/f")
    assert storage.exists(f"{swept.moved_to}/f")


def test_a_dropped_local_database_goes_however_its_place_is_spelled(
    as_hive_writes: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_hive_writes.storage.write(f"{location(as_hive_writes)}/orders/f", b"123")
    retire_database(as_hive_writes.storage, location(as_hive_writes), 170)
    metastore(as_hive_writes).found = None
    after(monkeypatch, as_hive_writes.policy.retention_seconds / DAY + 0.1)
    assert [one.what for one in sweep(as_hive_writes, "sales")] == ["dropped database"]


def test_old_data_of_loads_that_wait_for_the_load_before_them_is_kept_with_them(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The load that one can go back to is as old as the repair after it: without the repair's old data undo was refused."""
    storage, base = target.storage, location(target)
    for name in ("orders", "items"):
        storage.write(f"{base}/{name}/f", b"123")
    old = left(target, f"{base}/orders")
    repaired = left(target, f"{base}/items", window=(20, 21), applied=None)
    past(monkeypatch, target)
    assert {one.what for one in sweep(target, "sales")} == {"old data"}
    after(monkeypatch, target.policy.retention_seconds / DAY)
    assert [one.path for one in sweep(target, "sales")] == [f"{base}/.repl/retired/{old}"]
    assert storage.exists(f"{base}/.repl/retired/{repaired}/items/f")
    left(target, window=(21, 30), applied=30)
    after(monkeypatch, target.policy.retention_seconds / DAY + 0.1)
    swept = {one.path for one in sweep(target, "sales")}
    assert f"{base}/.repl/retired/{repaired}" in swept


def bucket(target: Target) -> Any:
    return target.storage._backend("memory://bucket/", target.storage.roots[0])._files  # type: ignore[attr-defined]


def test_a_directory_of_an_object_store_is_moved_and_deleted_in_parts(
    on_objects: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loads were refused for as long as all its objects took to be copied, one after another."""
    monkeypatch.setattr(removals, "_BATCH", 1)
    base, files = location(on_objects), bucket(on_objects)
    old = [written(on_objects, f"orders/ds={number}/f") for number in range(10)]
    files.objects["bucket/w/sales.db/orders/"] = b"", 0.0
    token = left(on_objects, f"{base}/orders")
    past(monkeypatch, on_objects)
    pauses: list[bool] = []
    impatient(monkeypatch, lambda _: pauses.append(Lock.held))
    (moved,) = sweep(on_objects, "sales")
    place = Layout(base).retired(token, f"{base}/orders")
    assert (moved.what, moved.moved_to, moved.size) == ("old data", place, 30)
    assert (len(pauses) >= 3, any(pauses)) == (True, False)
    assert [one.uri for one in on_objects.storage.files(place)] == [uri.replace(f"{base}/orders", place) for uri in old]
    assert not on_objects.storage.exists(f"{base}/orders")
    pauses.clear()
    impatient(monkeypatch, lambda _: pauses.append(Lock.held))
    after(monkeypatch, 365)
    assert [one.what for one in sweep(on_objects, "sales") if one.size] == ["retired"]
    assert (len(pauses) >= 3, any(pauses), on_objects.storage.exists(place)) == (True, False, False)


def test_a_staging_directory_is_not_listed_anew_after_each_pause(on_objects: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a million objects the sweep did little but list them, with the lock held. One that is taken into use stays, too."""
    monkeypatch.setattr(removals, "_BATCH", 1)
    staged = [written(on_objects, f".repl/{evid}-0/f{number}") for evid in (170, 180) for number in range(10)]
    listed, pauses, files = list[str](), list[float](), Storage.files

    def counted(storage: Storage, uri: str, *, hidden: bool = False) -> list[FileStatus]:
        listed.append(uri)
        return files(storage, uri, hidden=hidden)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if not on_objects.storage.exists(f"{location(on_objects)}/.repl/170-0"):
            metastore(on_objects).held["orders"] = f"{location(on_objects)}/.repl/180-0"

    monkeypatch.setattr(Storage, "files", counted)
    after(monkeypatch, 365)
    now = time.time()
    impatient(monkeypatch, pause)
    monkeypatch.setattr(retention.time, "time", lambda: now + 365 * DAY)
    assert [one.path for one in sweep(on_objects, "sales")] == [f"{location(on_objects)}/.repl/170-0"]
    assert (len(pauses) >= 5, listed.count(f"{location(on_objects)}/.repl/170-0") <= 5) == (True, True)
    assert on_objects.storage.exists(staged[-1])


@pytest.mark.parametrize("what", ["old data", "retired"])
def test_what_is_in_part_moved_or_deleted_is_not_whole_for_an_undo(
    on_objects: Target, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """An undo that came between two batches, or after a crash, pointed the table at a part of its files."""
    monkeypatch.setattr(removals, "_BATCH", 1)
    base, storage = location(on_objects), on_objects.storage
    for number in range(3):
        written(on_objects, f"orders/ds={number}/f")
    token = left(on_objects, f"{base}/orders")
    past(monkeypatch, on_objects)
    if what == "retired":
        sweep(on_objects, "sales")
        after(monkeypatch, 365)
    journal, seen = Journal(storage, base), set[tuple[int, bool]]()

    def look(_: float = 0.0) -> None:
        locator = OldDataLocator(storage, base, journal.lanes_of(journal.entries()))
        for place in (f"{base}/orders", f"{base}/orders/ds=2"):
            found = locator.locate(place, token)
            if storage.exists(found):
                whole = {f"{base}/orders": 3}.get(place, 1)
                seen.add((len(storage.files(found)) - whole, locator.is_whole(place, found)))

    impatient(monkeypatch, look)
    assert what in {one.what for one in sweep(on_objects, "sales")}
    assert {whole for missing, whole in seen if missing < 0} == {False}
    if what == "old data":
        look()
        assert (0, True) in seen
    assert not [one for one in storage.files(f"{base}/.repl/retired", hidden=True) if ".unfinished" in one.uri]


@pytest.mark.parametrize("same", [True, False])
def test_what_a_sweep_that_was_killed_had_copied_is_moved_by_the_next(
    on_objects: Target, monkeypatch: pytest.MonkeyPatch, *, same: bool
) -> None:
    """What was in both places stayed where it was, and nobody knew of it once the journal was gone."""
    base, storage = location(on_objects), on_objects.storage
    storage.write(f"{base}/orders/a", b"123")
    storage.write(f"{base}/orders/b", b"456")
    place = Layout(base).retired(left(on_objects, f"{base}/orders"), f"{base}/orders")
    storage.write(f"{place}/a", b"123" if same else b"321")
    past(monkeypatch, on_objects)
    (moved,) = sweep(on_objects, "sales")
    assert moved.problem.startswith("" if same else f"{base}/orders/a is not moved to {place}")
    assert bool(moved.problem) != same
    assert [one.uri for one in storage.files(f"{base}/orders")] == ([] if same else [f"{base}/orders/a"])
    assert [storage.read(f"{place}/{name}") for name in "ab"] == [b"123" if same else b"321", b"456"]


def test_what_is_written_into_old_data_while_it_is_moved_goes_along(on_objects: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stayed, and the sweep said that all was moved."""
    base, storage = location(on_objects), on_objects.storage
    storage.write(f"{base}/orders/a", b"123")
    place = Layout(base).retired(left(on_objects, f"{base}/orders"), f"{base}/orders")
    past(monkeypatch, on_objects)
    files, remove = bucket(on_objects), bucket(on_objects).rm_file

    def late(key: str) -> None:
        remove(key)
        if key.endswith("orders/a"):
            storage.write(f"{base}/orders/b", b"456")

    monkeypatch.setattr(files, "rm_file", late)
    assert [one.problem for one in sweep(on_objects, "sales")] == [""]
    assert [storage.read(f"{place}/{name}") for name in "ab"] == [b"123", b"456"]
    assert not storage.exists(f"{base}/orders")


FILTER = {"metastore.server.filter.enabled": "true", "metastore.filter.hook": "org.example.Authorizer"}
MAY_BE = (
    "may be the data of a table that the target's metastore hides from this account (metastore.server.filter.enabled=true with "
    "org.example.Authorizer): delete it by hand if no table lies there"
)


@pytest.mark.parametrize("staged", [".repl/170-0", "repl-170-0"])
def test_a_replica_that_the_metastore_hides_keeps_its_data(target: Target, staged: str) -> None:
    """It lies where a window staged it: that was taken for what a killed load had left, and deleted."""
    uri, directory = written(target, f"{staged}/000000_0", days=30), f"{location(target)}/{staged}"
    metastore(target).found, metastore(target).settings = replica(target), FILTER
    metastore(target).held["salaries"] = directory
    assert sweep(target, "sales") == []
    metastore(target).hidden.add("salaries")
    [told] = sweep(target, "sales")
    assert (told.what, told.path, told.problem) == ("staging", directory, f"{directory} {MAY_BE}")
    assert target.storage.exists(uri)
    metastore(target).held.clear()
    metastore(target).settings = {}
    assert [one.problem for one in sweep(target, "sales")] == [""], "nothing may be hidden: a killed load left it"


@pytest.mark.parametrize("undone", ["nothing", "the load", "a table"])
def test_a_hidden_replica_that_an_undo_brought_back_keeps_its_data(
    target: Target, monkeypatch: pytest.MonkeyPatch, undone: str
) -> None:
    """It points at retired data; once the journal is deleted, too, only the metastore knows."""
    place = f"{location(target)}/x"
    written(target, "x/000000_0", days=1)
    metastore(target).found, metastore(target).settings = replica(target), FILTER
    token = left(target, place, window=(0, 10), applied=10)
    after(monkeypatch, 1)
    assert [one.what for one in sweep(target, "sales")] == ["old data"]
    retired = Layout(location(target)).retired(token, place)
    journal = Journal(target.storage, location(target))
    [entry] = journal.entries()
    if undone == "the load":
        journal.mark(entry, "undone")
    elif undone == "a table":
        journal.mark_undone(journal.lanes(entry)[0])
    after(monkeypatch, target.policy.retention_seconds / DAY + 2)
    told = [[one.problem for one in sweep(target, "sales") if one.what == "retired"] for _ in range(2)]
    hidden = [f"{paths.parent(retired)} {MAY_BE}"]
    assert told == ([[""], []] if undone == "nothing" else [hidden, hidden])
    assert target.storage.exists(f"{retired}/000000_0") == (undone != "nothing")
