"""Where data goes: how often the metastore is asked for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import NameChange, created
from hive_replication.load.apply.change_data import with_data
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.free_places import FreePlaces
from hive_replication.load.apply.lane_placement import Visibility
from hive_replication.load.apply.placement import Placer
from hive_replication.load.apply.taken_places import TakenPlaces
from hive_replication.load.layout.directories import Layout, staging_name
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.transactions import ReplayCommit, Written
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Denied, FileChecksum, FileStatus, NoChecksum, Storage, paths
from tests.bucket import storage_with_bucket
from tests.unit.load.apply.fakes import NOWHERE, SOURCE, Metastore, content, replica

TABLES = 40


def test_a_restarted_bootstrap_reads_the_tables_once(tmp_path: Path) -> None:
    """The plain directories are there from the attempt before; some are of tables that were renamed since."""
    base = f"{tmp_path.as_uri()}/sales.db"
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    for number in range(TABLES):
        storage.mkdirs(f"{base}/t{number}")
    metastore = Metastore({"renamed": f"{base}/t7/", "other": f"{base}/other", "view": ""})
    target: Target = SimpleNamespace(metastore=metastore, storage=storage, policy=NOWHERE)  # type: ignore[assignment]
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]

    def lane(number: int) -> LanePlan:
        content = op.Content((), staging_name(170, number, transactional=False))
        created = op.CreateTable(170, f"t{number}", Table(tableName=f"t{number}"), content, f"{base}/t{number}")
        return LanePlan((f"t{number}",), 0, (created,))

    with ThreadPoolExecutor(8) as pool:
        placed = list(pool.map(placer.place, map(lane, range(TABLES))))
    assert metastore.read == {"renamed": 1, "other": 1, "view": 1}
    assert [one.directories[0, ""] for one in placed] == [
        f"{base}/.repl/170-7" if number == 7 else f"{base}/t{number}" for number in range(TABLES)
    ]


def test_the_partitions_of_a_lane_are_not_followed_once_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Counter[int]()

    def name_changes(operation: op.AddPartitions) -> tuple[NameChange, ...]:
        asked[operation.evid] += 1
        return created(operation.table, *operation.partitions)

    monkeypatch.setattr(op.AddPartitions, "name_changes", property(name_changes))
    base = f"{tmp_path.as_uri()}/sales.db"
    metastore, storage = Metastore({}), Storage((Root(uri=tmp_path.as_uri()),))
    target: Target = SimpleNamespace(metastore=metastore, storage=storage, policy=NOWHERE)  # type: ignore[assignment]
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]

    def added(number: int) -> op.Operation:
        content = op.Content((), staging_name(number, 0, transactional=False))
        return op.AddPartitions(number, "t", (op.NewPartition(f"ds={number}", Partition(sd=StorageDescriptor()), content),))

    placed = placer.place(LanePlan(("t",), 0, tuple(map(added, range(TABLES)))))
    assert placed.directories == {(number, f"ds={number}"): f"{base}/t/ds={number}" for number in range(TABLES)}
    assert set(asked.values()) == {3}  # what is there before, what commits add, and what is placed


class Partitions(Metastore):
    """Tables ``slow`` and ``quick``; reading the partitions of the one waits until those of the other are placed."""

    def __init__(self, base: str) -> None:
        super().__init__({name: f"{base}/{name}" for name in ("slow", "quick")})
        self.keys = [FieldSchema("ds", "string", "")]
        self.quick_is_placed, self.begun = Event(), Event()

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> list[Partition]:
        if table == "slow":
            self.begun.set()
            assert self.quick_is_placed.wait(20)
        return []


def test_reading_the_partitions_of_a_table_keeps_no_other_lane_waiting(tmp_path: Path) -> None:
    base = f"{tmp_path.as_uri()}/sales.db"
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    asked = Counter[str]()
    for table in ("slow", "quick"):
        storage.mkdirs(f"{base}/{table}/ds=1")
    exists = storage.exists

    def counted(uri: str) -> bool:
        asked[uri] += 1
        return exists(uri)

    storage.exists = counted  # type: ignore[method-assign]
    metastore = Partitions(base)
    target: Target = SimpleNamespace(metastore=metastore, storage=storage, policy=NOWHERE)  # type: ignore[assignment]
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]

    def lane(table: str) -> LanePlan:
        content = op.Content((), staging_name(1, 0, transactional=False))
        new = op.NewPartition("ds=1", Partition(values=["1"], sd=StorageDescriptor()), content)
        return LanePlan((table,), 0, (op.AddPartitions(1, table, (new,)),))

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(placer.place, lane("slow"))
        assert metastore.begun.wait(20)
        quick = pool.submit(placer.place, lane("quick"))
        try:
            assert quick.result(10).directories == {(0, "ds=1"): f"{base}/quick/ds=1"}
        finally:
            metastore.quick_is_placed.set()
        assert slow.result().directories == {(0, "ds=1"): f"{base}/slow/ds=1"}
    assert asked == {f"{base}/{table}{name}": 1 for table in ("slow", "quick") for name in ("", "/ds=1")}


def placed(
    storage: Storage, base: str, *operations: op.Operation, tables: dict[str, str] | None = None, parts: Sequence[Partition] = ()
) -> dict[DataKey, str]:
    """Where a lane of table t puts its data; the target has some tables already, or partitions of t."""
    metastore = Metastore(tables or {}, parts)
    target: Target = SimpleNamespace(metastore=metastore, storage=storage, policy=NOWHERE, source_storage=SOURCE)  # type: ignore[assignment]
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]
    return placer.place(LanePlan(("t",), 0, operations)).directories


def creation(base: str, *files: str, keys: Iterable[str] = ()) -> op.CreateTable:
    image = Table(tableName="t", partitionKeys=[FieldSchema(key, "string", "") for key in keys])
    return op.CreateTable(7, "t", image, content(*files), f"{base}/t")


def addition(day: int, *files: str) -> op.AddPartitions:
    image = Partition(values=[str(day)], sd=StorageDescriptor())
    return op.AddPartitions(7, "t", (op.NewPartition(f"ds={day}", image, content(*files)),))


def test_staged_files_of_an_earlier_attempt_come_before_a_free_plain_path(storage: Storage, base: str) -> None:
    storage.write(f"{base}/.repl/7-1/two", b"two")
    storage.write(f"{base}/t/one", b"one")  # left by a table that is dropped by now
    assert placed(storage, base, creation(base, "one", "two")) == {(0, ""): f"{base}/.repl/7-1"}


@pytest.mark.parametrize("staged", [b"", b"other"])
def test_what_is_staged_but_not_wanted_is_no_reason_to_stage(storage: Storage, base: str, staged: bytes) -> None:
    if staged:
        storage.write(f"{base}/.repl/7-1/one", staged)
    else:
        storage.mkdirs(f"{base}/.repl/7-1")
    assert placed(storage, base, creation(base, "one")) == {(0, ""): f"{base}/t"}


def test_staged_files_that_another_table_has_are_left_to_it(storage: Storage, base: str) -> None:
    """A source with another history may have had the same event id."""
    storage.write(f"{base}/.repl/7-1/one", b"one")
    assert placed(storage, base, creation(base, "one"), tables={"u": f"{base}/.repl/7-1"}) == {(0, ""): f"{base}/t"}


def test_a_partition_goes_where_its_files_are_staged(storage: Storage, base: str) -> None:
    storage.write(f"{base}/.repl/7-1/ds=1/one", b"one")
    found = placed(storage, base, addition(1, "one"), addition(2, "one"))
    assert found == {(0, "ds=1"): f"{base}/.repl/7-1/ds=1", (1, "ds=2"): f"{base}/t/ds=2"}


def test_staged_files_of_a_renamed_partition_are_left_to_it(storage: Storage, base: str) -> None:
    storage.write(f"{base}/.repl/7-1/ds=1/one", b"one")
    renamed = Partition(values=["2"], sd=StorageDescriptor(location=f"{base}/.repl/7-1/ds=1"))
    assert placed(storage, base, addition(1, "one"), parts=[renamed]) == {(0, "ds=1"): f"{base}/t/ds=1"}


def test_a_large_table_is_staged_where_its_further_partitions_are(storage: Storage, base: str) -> None:
    """An attempt that drops a table first carries all of it out at once, the next one in parts: this is the first of them."""
    for name in "12":
        storage.write(f"{base}/.repl/7-1/ds={name}/{name}", name.encode())
    first = creation(base, keys=["ds"]), addition(1, "1")
    found = placed(storage, base, *first)
    assert found == {(0, ""): f"{base}/.repl/7-1", (1, "ds=1"): f"{base}/.repl/7-1/ds=1"}
    storage.write(f"{base}/t/ds=1/other", b"other")  # so that the plain path is not free
    assert placed(storage, base, *first) == found


def test_a_copy_whose_blocks_are_lost_is_in_the_way_of_no_other(storage: Storage, base: str) -> None:
    storage.write(f"{base}/t/one", b"one")
    lost(storage, f"{base}/t/one")
    assert placed(storage, base, creation(base, "one")) == {(0, ""): f"{base}/.repl/7-1"}


@pytest.fixture(params=["no checksums", "others"])
def undecided(storage: Storage, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Storage:
    """Of a store without checksums, or where no copy has the one that was recorded, as in an encryption zone."""
    others = {"no checksums": None, "others": FileChecksum("content", "of other blocks")}
    monkeypatch.setattr(storage, "checksum", lambda _: others[request.param])
    return storage


def test_a_retry_uses_what_was_copied_where_checksums_decide_nothing(undecided: Storage, base: str) -> None:
    """It was taken for a stranger's: each retry copied everything once more, and left the first copy where it was."""
    for name in ("one", "two"):
        undecided.write(f"{base}/t/{name}", name.encode())
    assert placed(undecided, base, creation(base, "one", "two", "three")) == {(0, ""): f"{base}/t"}
    for name in ("one", "two"):
        undecided.write(f"{base}/t/ds=1/{name}", name.encode())
    assert placed(undecided, base, addition(1, "one", "two", "three")) == {(0, "ds=1"): f"{base}/t/ds=1"}


@pytest.mark.parametrize("content", [b"six", b"another"])
def test_other_content_is_no_earlier_copy(undecided: Storage, base: str, content: bytes) -> None:
    undecided.write(f"{base}/t/one", content)
    assert placed(undecided, base, creation(base, "one", "two")) == {(0, ""): f"{base}/.repl/7-1"}


@pytest.mark.parametrize(("end", "place"), [(b"1", "t"), (b"2", ".repl/7-1")])
def test_a_late_difference_is_seen(
    undecided: Storage, base: str, monkeypatch: pytest.MonkeyPatch, end: bytes, place: str
) -> None:
    """The source wrote the file anew with the same size: the copier overwrites nothing, and the table was held for good."""
    content = bytes(1 << 20) + b"1"
    monkeypatch.setattr(SOURCE, "status", lambda uri: FileStatus(uri, len(content), False, 0.0))
    monkeypatch.setattr(SOURCE, "stream", lambda _: iter([content[:7], content[7:]]))
    undecided.write(f"{base}/t/one", content[:-1] + end)
    assert placed(undecided, base, creation(base, "one", "two")) == {(0, ""): f"{base}/{place}"}


def test_files_that_were_added_are_proven_and_not_copied_again(undecided: Storage, base: str) -> None:
    undecided.write(f"{base}/t/one", b"one")
    undecided.write(f"{base}/t/two", b"six")
    metastore = Metastore({"t": f"{base}/t"})
    target = replica(metastore, undecided)
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]
    added = op.AppendData(7, "t", "", None, content("one", "two", "three"))  # type: ignore[arg-type]
    found = placer.place(LanePlan(("t",), 0, (added,)))
    assert found.modes == {(0, ""): "append"}
    staged = [f"{base}/.repl/7-1/{name}" for name in ("two", "three")]
    assert [task.target for _, task in found.tasks] == [f"{base}/t/one", *staged]


def lost(storage: Storage, uri: str) -> None:
    """HDFS has no checksum of the file any more."""
    known = storage.checksum

    def checksum(asked: str) -> FileChecksum | None:
        if asked == uri:
            raise NoChecksum("No active nodes contain this block")
        return known(asked)

    storage.checksum = checksum  # type: ignore[method-assign]


@pytest.mark.parametrize("append", ["in_place", "atomic"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_nothing_is_added_at_a_location_that_is_none_of_the_databases(
    storage: Storage, base: str, append: str, *, partitioned: bool
) -> None:
    """Whoever may alter a replica could have the load write, and give access, to the directory of another database."""
    hr = f"{base.removesuffix('sales.db')}hr.db/salaries"
    storage.write(f"{hr}/one", b"one")
    name = "ds=1" if partitioned else ""
    metastore = Metastore(
        {"t": f"{base}/t" if partitioned else hr},
        [Partition(values=["1"], sd=StorageDescriptor(location=hr))] if partitioned else (),
    )
    if partitioned:
        metastore.keys = [FieldSchema("ds", "string", "")]
    insert = op.AppendData(7, "t", name, None, content("two"))

    def place(*paths: str) -> dict[DataKey, str]:
        target = replica(metastore, storage, append=append, target=SimpleNamespace(paths=paths))
        placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]
        return placer.place(LanePlan(("t",), 0, (insert,))).live

    with pytest.raises(Refused, match=r"is not written: .*hr.db/salaries lies outside .* target.paths of the policy"):
        place()
    assert set(place(hr).values()) <= {hr}


def test_a_repair_replaces_a_copy_whose_blocks_are_lost(storage: Storage, base: str) -> None:
    for name in ("one", "two"):
        storage.write(f"{base}/t/{name}", name.encode())
    metastore = Metastore({"t": f"{base}/t"})
    repair = op.ReplaceData(7, "t", "", None, content("one", "two"), compare=True)

    def modes() -> dict[DataKey, Visibility]:
        target = replica(metastore, storage)
        placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]
        return placer.place(LanePlan(("t",), 0, (repair,))).modes

    assert modes() == {(0, ""): "same"}
    lost(storage, f"{base}/t/two")
    assert modes() == {(0, ""): "replace"}


@pytest.mark.parametrize("mode", ["append", "union"])
def test_a_location_that_is_altered_after_the_placement_is_left(storage: Storage, base: str, mode: Visibility) -> None:
    hr = f"{base.removesuffix('sales.db')}hr.db/salaries"
    storage.write(f"{hr}/one", b"one")
    storage.write(f"{base}/.repl/7-1/two", b"two")
    altered = Table(tableName="t", dbName="sales", sd=StorageDescriptor(location=hr))
    boundary = TargetBoundary(replica(Metastore({}), storage), "sales", base)
    insert = op.AppendData(7, "t", "", None, content("two"))
    with pytest.raises(Refused, match="lies outside"):
        with_data(storage, boundary, altered, insert, "sales.t", f"{base}/.repl/7-1", mode)
    assert [file.uri for file in storage.files(hr)] == [f"{hr}/one"]


def test_an_outage_while_all_files_are_staged_is_no_fault_of_the_table(
    storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With append: atomic, each table of the window was held for it."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage.write(f"{base}/t/one", b"one")
    storage.write(f"{base}/.repl/7-1/two", b"two")

    def down(*_: object, **__: object) -> int:
        raise Unreachable("the storage root cannot be reached")

    monkeypatch.setattr(storage, "create", down)
    monkeypatch.setattr(storage, "write", down)
    live = Table(tableName="t", dbName="sales", sd=StorageDescriptor(location=f"{base}/t"))
    boundary = TargetBoundary(replica(Metastore({}), storage), "sales", base)
    with pytest.raises(Unreachable, match="cannot be reached"):
        with_data(
            storage, boundary, live, op.AppendData(7, "t", "", None, content("two")), "sales.t", f"{base}/.repl/7-1", "union"
        )


def test_the_base_of_a_transaction_is_staged_until_it_is_committed(storage: Storage, base: str) -> None:
    """Hive reads that of the lowest open write: readers saw the files of an INSERT OVERWRITE one by one."""
    target = replica(Metastore({"t": f"{base}/t"}), storage)
    files = tuple(
        FileRef(f"hdfs://s/t/{name}/{file}", file, subdir=name) for name in ("base_0000007", "delta_1") for file in "ab"
    )
    commit = ReplayCommit(9, "t", "p", 5, (Written("t", "t", "", 7, op.Content(files, "9-0")),))
    known = KnownObjects(target.metastore, "sales", ReplicaState())

    def places() -> list[str]:
        placed = Placer(target, "sales", base, lambda: Locations(()), known).place(LanePlan(("t",), 0, (commit,)))
        return [task.target.removeprefix(f"{base}/t/") for _, task in placed.tasks]

    assert places() == [".repl-base_0000007/a", ".repl-base_0000007/b", "delta_1/a", "delta_1/b"]
    storage.write(f"{base}/t/.repl-base_0000007/a", b"")
    assert places()[0] == ".repl-base_0000007/a", "a killed load has copied some of it"
    storage.rename(f"{base}/t/.repl-base_0000007", f"{base}/t/base_0000007")
    assert places() == ["base_0000007/a", "base_0000007/b", "delta_1/a", "delta_1/b"], "one was killed after its rename"


def test_what_a_truncate_left_is_copied_once(storage: Storage, base: str) -> None:
    """Of a source that is a replica the commit names its file, which is none that Hive reads as data."""
    target = replica(Metastore({"t": f"{base}/t"}), storage)
    files = (
        FileRef("hdfs://s/t/base_0000007/_metadata_acid", "c", subdir="base_0000007"),
        FileRef("hdfs://s/t/d/a", "c", subdir="d"),
    )
    commit = ReplayCommit(9, "t", "p", 5, (Written("t", "t", "", 7, op.Content(files, "9-0")),))
    known = KnownObjects(target.metastore, "sales", ReplicaState())

    def place() -> str:
        placed = Placer(target, "sales", base, lambda: Locations(()), known).place(LanePlan(("t",), 0, (commit,)))
        return placed.tasks[0][1].target.removeprefix(f"{base}/t/")

    assert place() == ".repl-base_0000007/_metadata_acid"
    storage.write(f"{base}/t/.repl-base_0000007/_metadata_acid", b"")
    assert place() == ".repl-base_0000007/_metadata_acid", "a killed load has copied it"
    storage.rename(f"{base}/t/.repl-base_0000007", f"{base}/t/base_0000007")
    assert place() == "base_0000007/_metadata_acid", "one was killed after its rename"


def test_a_new_table_is_not_made_where_another_ones_base_is_staged(storage: Storage, base: str) -> None:
    """The copier overwrites nothing, and would refuse the file again and again."""
    free = FreePlaces(replica(Metastore({}), storage), Layout(base), lambda: Locations(()), lambda _: False)
    storage.write(f"{base}/t/.repl-base_0000007/a", b"other")
    assert not free.is_free(f"{base}/t", {})
    assert not free.is_free(f"{base}/t", {"base_0000007/a": FileRef(f"{base}/none", "checksum")})
    storage.write(f"{base}/u/.hive-staging_1/a", b"")
    assert free.is_free(f"{base}/u", {})


def test_files_are_added_to_a_table_on_another_store(tmp_path: Path, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``external_root`` may be a bucket: what is staged beside the database is copied there, since it cannot be renamed."""
    storage = storage_with_bucket(monkeypatch, tmp_path.as_uri())
    boundary = TargetBoundary(replica(Metastore({}), storage, external_root="memory://bucket/ext"), "sales", base)
    _added(storage, boundary, base, "memory://bucket/ext/t")


@pytest.mark.parametrize("message", ["{} can't be moved into an encryption zone.", "{} is on fire"])
def test_files_are_added_to_a_table_in_an_encryption_zone(
    storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    rename = storage.rename

    def zoned(source: str, target: str) -> None:
        if target.startswith(f"{base}/t/") and not source.startswith(f"{base}/t/"):
            raise ReplicationError(message.format(source))
        rename(source, target)

    monkeypatch.setattr(storage, "rename", zoned)
    monkeypatch.setattr(storage, "checksum", lambda _: None)
    boundary = TargetBoundary(replica(Metastore({}), storage), "sales", base)
    if "zone" in message:
        _added(storage, boundary, base, f"{base}/t")
    else:
        with pytest.raises(ReplicationError, match="is on fire"):
            _added(storage, boundary, base, f"{base}/t")


def _added(storage: Storage, boundary: TargetBoundary, base: str, live: str) -> None:
    """Adds two files, of which a killed load had copied one already."""
    for file in (f"{live}/one", f"{live}/two", f"{base}/.repl/7-1/two", f"{base}/.repl/7-1/three"):
        storage.write(file, paths.name(file).encode())
    current = Table(tableName="t", dbName="sales", sd=StorageDescriptor(location=live))
    insert = op.AppendData(7, "t", "", None, content("two", "three"))
    with_data(storage, boundary, current, insert, "sales.t", f"{base}/.repl/7-1", "append")
    assert {name: storage.read(f"{live}/{name}") for name in storage.named_files(live)} == {
        "one": b"one",
        "two": b"two",
        "three": b"three",
    }
    assert storage.files(f"{base}/.repl", hidden=True) == []


def test_tables_of_two_databases_with_one_path_get_two_directories(storage: Storage, base: str) -> None:
    """``s3://a/data/x`` and ``s3://b/data/x``: as long as the one was empty both got one, and what one got showed in both."""
    root = f"{base.removesuffix('sales.db')}ext"
    place = f"{root}/data/x"
    table = op.CreateTable(7, "t", Table(tableName="t", partitionKeys=[]), content("one"), place)
    parts = Partition(values=["1"], sd=StorageDescriptor(location=f"{root}/days/1"))
    own = op.AddPartitions(7, "t", (op.NewPartition("ds=1", parts, content("one")),))

    def given(database: str, *operations: op.Operation) -> list[str]:
        target, where = replica(Metastore({}), storage, external_root=root), f"{base.removesuffix('sales.db')}{database}.db"
        known = KnownObjects(target.metastore, database, ReplicaState())
        placer = Placer(target, database, where, lambda: Locations(()), known)
        return list(placer.place(LanePlan(("t",), 0, operations)).directories.values())

    storage.mkdirs(base)
    for _ in range(2):
        assert given("sales", table) == [place]
        assert given("sales", own) == [f"{root}/days/1"]
    assert given("hr", table) == [f"{base.removesuffix('sales.db')}hr.db/.repl/7-1"]
    assert given("hr", own) == [f"{base.removesuffix('sales.db')}hr.db/t/ds=1"]
    assert given("sales", table) == [place]
    storage.delete(base, recursive=True)  # as after a rename, or metatool -updateLocation
    assert given("hr", table) == [place]


def test_partitions_beside_each_other_leave_one_mark(storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = f"{base.removesuffix('sales.db')}ext"
    written, write = list[str](), storage.write_once

    def counted(uri: str, data: bytes) -> None:
        written.append(uri)
        write(uri, data)

    monkeypatch.setattr(storage, "write_once", counted)
    taken = TakenPlaces(replica(Metastore({}), storage, external_root=root), "sales", base)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(taken.owns_place, [f"{root}/days/{day}" for day in range(1_000)]))
    assert len(written) == len(storage.files(f"{root}/.repl/owners", hidden=True)) == 1
    assert taken.owns_place(f"{root}/alone")
    other = TakenPlaces(replica(Metastore({}), storage, external_root=root), "hr", f"{base.removesuffix('sales.db')}hr.db")
    storage.mkdirs(base)
    assert [other.owns_place(f"{root}/{place}") for place in ("days/2", "alone", "other")] == [False, False, True]


@pytest.mark.parametrize(("live", "expected"), [(["old"], False), ([], True)])
def test_a_mark_of_a_database_on_a_store_that_the_policy_no_longer_has(
    storage: Storage, base: str, live: list[str], *, expected: bool
) -> None:
    root, old = f"{base.removesuffix('sales.db')}ext", "hdfs://old/sales.db"
    TakenPlaces(replica(Metastore({}), storage, external_root=root), "sales", old).owns(f"{root}/x")
    metastore: Any = SimpleNamespace(databases=lambda: live, database=lambda name: Database(name, locationUri=f"{old}/"))
    taken = TakenPlaces(replica(metastore, storage, external_root=root), "sales", base)
    assert taken.owns(f"{root}/x") == expected


@pytest.mark.parametrize("error", [Denied("no right"), ReplicationError("quota of the directory is exceeded")])
def test_a_mark_that_may_not_be_written_holds_nothing(
    storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Another policy's account may have made the directory of the marks."""
    root = f"{base.removesuffix('sales.db')}ext"

    def denied(uri: str, _: bytes) -> None:
        raise error

    monkeypatch.setattr(storage, "write_once", denied)
    taken = TakenPlaces(replica(Metastore({}), storage, external_root=root), "sales", base)
    assert taken.owns(f"{root}/x")


def placer_of(metastore: Metastore, storage: Storage, base: str, root: str | None = None) -> Placer:
    target = replica(metastore, storage, external_root=root)
    known = KnownObjects(target.metastore, "sales", ReplicaState())
    return Placer(target, "sales", base, lambda: Locations(()), known)


def new_table(name: str, plain: str, number: int = 1, *, partitioned: bool = False) -> LanePlan:
    image = Table(tableName=name, partitionKeys=[FieldSchema("ds", "string", "")] if partitioned else [])
    files = op.Content((), staging_name(7, number, transactional=False))
    return LanePlan((name,), 0, (op.CreateTable(7, name, image, files, plain),))


@pytest.mark.parametrize("beside", [False, True])
def test_a_new_table_stays_out_of_the_directory_of_a_renamed_one(storage: Storage, base: str, *, beside: bool) -> None:
    """Its files were rows of the other one: nothing was at its own path, so nobody looked who lies above it."""
    root = f"{base.removesuffix('sales.db')}ext"
    above = root if beside else base
    storage.write(f"{above}/a/one", b"one")
    metastore = Metastore({"b": f"{above}/a"})
    placer = placer_of(metastore, storage, base, root)
    lanes = [new_table("c", f"{above}/a/sub", 1), new_table("d", f"{above}/a/x/y", 2), new_table("e", f"{above}/other/sub", 3)]
    found = [placer.place(lane).directories[0, ""] for lane in lanes]
    assert found == [f"{base}/.repl/7-1", f"{base}/.repl/7-2", f"{above}/other/sub"]
    assert metastore.read == {"b": 1}


def test_a_new_table_stays_out_of_the_directories_of_partitions(storage: Storage, base: str) -> None:
    storage.write(f"{base}/a/ds=1/one", b"one")
    metastore = Metastore({"b": f"{base}/a"}, [Partition(values=["1"], sd=StorageDescriptor(location=f"{base}/a/ds=1"))])
    metastore.keys = [FieldSchema("ds", "string", "")]
    placer = placer_of(metastore, storage, base)
    lanes = [new_table("c", f"{base}/a/ds=1/sub", 1), new_table("d", f"{base}/a/sub", 2)]
    assert [placer.place(lane).directories[0, ""] for lane in lanes] == [f"{base}/.repl/7-1", f"{base}/a/sub"]


def test_a_new_table_does_not_get_another_ones_directory_into_its_own(storage: Storage, base: str) -> None:
    storage.mkdirs(f"{base}/c/sub")  # of a table without rows yet
    placer = placer_of(Metastore({"b": f"{base}/c/sub"}), storage, base)
    assert placer.place(new_table("c", f"{base}/c")).directories == {(0, ""): f"{base}/.repl/7-1"}


def test_of_directories_right_below_the_databases_nothing_is_asked(storage: Storage, base: str) -> None:
    metastore = Metastore({"b": f"{base}/a"})
    placer = placer_of(metastore, storage, base)
    for number in range(TABLES):
        assert placer.place(new_table(f"t{number}", f"{base}/t{number}")).directories == {(0, ""): f"{base}/t{number}"}
    assert not metastore.read


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("other", ["x", "x/sub", "."])
def test_tables_at_one_location_get_two_directories_in_one_window(
    storage: Storage, base: str, other: str, *, partitioned: bool
) -> None:
    """Below the database's directory both got the same one, and what came for the one was the other's, too."""
    placer, place = placer_of(Metastore({}), storage, base), f"{base}/dir/x"
    second = paths.normalise(f"{base}/dir" if other == "." else f"{base}/dir/{other}")
    lanes = [new_table("t", place, 1, partitioned=partitioned), new_table("u", second, 2, partitioned=partitioned)]
    found = [placer.place(lane).directories[0, ""] for lane in lanes]
    assert found == [place, f"{base}/.repl/7-2"]
    assert placer.place(lanes[0]).directories[0, ""] == place
