"""A partitioned table is scanned a batch at a time: what is found is as in one piece, and little is held."""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.drift import DriftScan, NoReplica, TableDrift, scan
from hive_replication.drift.baselines import Baseline, Memory
from hive_replication.drift.snapshots import Snapshots
from hive_replication.errors import Unreachable
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy.checks import Drift
from hive_replication.storage import Denied, FileStatus
from tests.lags import POLICY

OURS, THEIRS = "hdfs://source:8020/t", "hdfs://target:8020/t"
MARKS = {"hive_replication.source": "s/sales", "repl.last.id": "5"}


class Metastore:
    """One side's: a table with partitions that are made when they are asked for, and counted while they live."""

    def __init__(self, location: str, names: Callable[[], Iterable[str]]) -> None:
        self._location, self._names = location, names
        self.events = 5
        self.opened = False  # by a failover
        self.alive = self.most = 0

    def database(self, name: str) -> Any:
        parameters = {"hive_replication.source": "s/sales", "hive_replication.applied.id": "5", "repl.last.id": "5"}
        parameters = {} if self.opened else parameters
        return SimpleNamespace(name=name, parameters=parameters, locationUri="hdfs://target:8020/")

    def table(self, db: str, name: str) -> Table:
        keys = [FieldSchema(name="p", type="string")]
        place = StorageDescriptor(location=self._location)
        return Table(dbName=db, tableName=name, sd=place, partitionKeys=keys, parameters=dict(MARKS), tableType="EXTERNAL_TABLE")

    def partition_names(self, *_: str) -> list[str]:
        return list(self._names())

    def partitions(self, _: str, __: str, names: Iterable[str]) -> Iterator[Partition]:
        present = {*self._names()}
        for name in names:
            if name in present:
                part = Partition(
                    values=[name.partition("=")[2]],
                    sd=StorageDescriptor(location=f"{self._location}/{name}"),
                    parameters={"repl.last.id": "5"},
                )
                weakref.finalize(part, self._gone)
                self.alive += 1
                self.most = max(self.most, self.alive)
                yield part

    def _gone(self) -> None:
        self.alive -= 1

    def current_event_id(self) -> int:
        return self.events

    def event(self, _: int) -> None:
        return None


class Storage:
    """One side's: files by directory."""

    roots = ()

    def __init__(self, modified: float) -> None:
        self.modified, self.many = modified, SimpleNamespace(map=map)
        self.extra: dict[str, int] = {}
        self.kept: dict[str, bytes] = {}
        self.listed, self.scratch = 0, 0
        self.jobs: list[str] = []

    def files(self, uri: str, *, hidden: bool = False) -> list[FileStatus]:
        del hidden
        self.listed += 1
        modified = time.time() if uri.removeprefix(f"{OURS}/") in self.jobs else self.modified
        return [FileStatus(f"{uri}/f", 10 + self.extra.get(uri, 0), False, modified)]

    def ls(self, _: str) -> list[FileStatus]:
        self.scratch += 1
        return [FileStatus(f"{OURS}/{name}", 0, True, time.time()) for name in self.jobs]

    def checksum(self, uri: str) -> str:
        return str(self.extra.get(uri.removesuffix("/f"), 0))

    def read(self, uri: str, *, most: int) -> bytes:
        try:
            return self.kept[uri]
        except KeyError:
            raise FileNotFoundError(uri) from None

    def write(self, uri: str, content: bytes) -> None:
        self.kept[uri] = content


class Sides:
    """A replicated table."""

    def __init__(self, names: Callable[[], Iterable[str]], drift: Drift | None = None) -> None:
        policy = POLICY.model_copy(update={"drift": drift})
        self.ours, self.theirs = Metastore(OURS, names), Metastore(THEIRS, names)
        self.files, self.copies = Storage(1000.0), Storage(2000.0)
        self.source: Any = SimpleNamespace(
            policy=policy, identity="s", acid=False, metastore=self.ours, storage=self.files, database=self.ours.database
        )
        self.target: Any = SimpleNamespace(policy=policy, identity="t", metastore=self.theirs, storage=self.copies)
        self.waits: list[float] = []

    def scan(self, sleep: Callable[[float], object] = lambda _: None) -> TableDrift:
        def wait(seconds: float) -> None:
            self.waits.append(seconds)
            sleep(seconds)

        found = DriftScan(self.source, self.target, "sales", 1.0, wait).table("t")
        assert found is not None
        return replace(found, seconds=0)

    def known(self) -> dict[str, Baseline]:
        return Memory(self.target.storage, "hdfs://target:8020/").read("t")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BATCH", 4)
    monkeypatch.setattr(scan.DriftScan, "_has_events", lambda *_, **__: False)


def ten() -> list[str]:
    return [f"p={number}" for number in range(10)]


def test_what_is_found_is_that_of_all_batches() -> None:
    sides = Sides(ten)
    assert sides.scan() == TableDrift("t", 10, listings=20)
    assert sides.known().keys() == {*ten()}
    assert sides.scan() == TableDrift("t", 10, listings=10)
    sides.files.extra = {f"{OURS}/p={number}": 1 for number in (1, 2, 9)}
    found = sides.scan()
    assert [(one.partition, one.reason) for one in found.drifted] == [(f"p={number}", "1 changed") for number in (1, 2, 9)]
    assert (found.looked, found.waiting, len(sides.waits)) == (10, "", 2), "one wait in each batch with suspects"
    assert sides.files.scratch == 2, "scratch directories are looked for in each batch with suspects"
    assert sides.known().keys() == {*ten()} - {"p=1", "p=2", "p=9"}
    sides.copies.extra = {f"{THEIRS}/p={number}": 1 for number in (1, 2, 9)}
    assert sides.scan().drifted == ()
    assert sides.known().keys() == {*ten()}


def test_what_was_copied_at_once_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clocks of two clusters do not tell whether it was written again meanwhile."""
    sides, asked = Sides(ten), list[str]()
    monkeypatch.setattr(Storage, "checksum", lambda _, uri: asked.append(uri))
    monkeypatch.setattr(Storage, "stream", lambda *_: iter([b"x"]), raising=False)
    sides.copies.modified = sides.files.modified + 1.0
    assert sides.scan() == TableDrift("t", 10, listings=40)
    assert (len(asked), len(sides.waits)) == (20, 3), "two checksums of each file, and a wait in each batch"
    assert sides.scan() == TableDrift("t", 10, listings=10)
    assert (len(asked), len(sides.waits)) == (20, 3)


def test_baselines_of_partitions_that_are_gone_are_dropped_in_all_batches() -> None:
    names = ten()
    sides = Sides(lambda: names)
    sides.scan()
    names.remove("p=5")
    assert sides.scan().looked == 9
    assert sides.known().keys() == {*names}


def test_a_batch_that_changes_meanwhile_is_left_for_later_and_others_are_not() -> None:
    sides = Sides(ten)
    sides.scan()
    sides.files.extra = {f"{OURS}/p=1": 1, f"{OURS}/p=9": 1}

    def meanwhile(_: float) -> None:
        if len(sides.waits) == 1:
            sides.files.extra[f"{OURS}/p=1"] = 2

    found = sides.scan(meanwhile)
    assert ([one.partition for one in found.drifted], found.writing) == (["p=9"], ("p=1",))


def test_a_job_that_begins_between_two_batches_writes_to_the_later_ones() -> None:
    sides = Sides(ten)
    sides.scan()
    sides.files.extra = {f"{OURS}/p={number}": 1 for number in (1, 5, 9)}

    def begins(_: float) -> None:
        sides.files.jobs = ["_temporary"]

    found = sides.scan(begins)
    assert ([one.partition for one in found.drifted], found.writing) == (["p=1"], ("p=5", "p=9"))
    assert sides.files.scratch == 2, "where a job writes, it is not looked for again"


def test_a_batch_for_which_events_wait_is_left_for_later_and_others_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Sides(ten)
    sides.scan()
    sides.files.extra = {f"{OURS}/p=1": 1, f"{OURS}/p=9": 1}
    answers = [False, True]
    monkeypatch.setattr(scan.DriftScan, "_has_events", lambda *_, **__: answers.pop(0))
    found = sides.scan()
    assert ([one.partition for one in found.drifted], found.waiting) == (["p=1"], "events wait")
    assert sides.known()["p=9"], "what was known of it stays"


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_partition_that_may_not_be_read_hides_no_other(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BATCH", 3)
    sides = Sides(ten)
    storage, place = (sides.files, OURS) if side == "ours" else (sides.copies, THEIRS)
    files = storage.files

    def refused(uri: str, *, hidden: bool = False) -> list[FileStatus]:
        if uri in {f"{place}/p=1", f"{place}/p=8"}:
            raise Denied("the account lacks rx")
        return files(uri, hidden=hidden)

    with monkeypatch.context() as chmod:
        chmod.setattr(storage, "files", refused)
        found = sides.scan()
        assert found.is_unread
        assert found.waiting == "it cannot be read: p=1: the account lacks rx, and 1 other partition"
        assert sides.known().keys() == {*ten()} - {"p=1", "p=8"}
    assert sides.scan().waiting == ""
    before = sides.known()
    monkeypatch.setattr(storage, "files", refused)
    sides.files.extra = {f"{OURS}/p=8": 1, f"{OURS}/p=2": 1}
    found = sides.scan()
    assert [one.partition for one in found.drifted] == ["p=2"]
    assert found.is_unread
    assert sides.known() == {name: base for name, base in before.items() if name != "p=2"}


def test_a_file_that_may_not_be_read_is_not_taken_for_one_that_is_being_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Sides(ten)
    sides.scan()
    sides.files.extra = {f"{OURS}/p=1": 1, f"{OURS}/p=2": 1}

    def refused(uri: str) -> str:
        if "p=1" in uri:
            raise Denied("the account lacks r")
        return "1"

    monkeypatch.setattr(sides.files, "checksum", refused)
    found = sides.scan()
    assert ([one.partition for one in found.drifted], found.writing) == (["p=2"], ())
    assert found.waiting == "it cannot be read: p=1: the account lacks r"


def test_storage_that_does_not_answer_concerns_the_table_and_a_metastore_all(monkeypatch: pytest.MonkeyPatch) -> None:
    sides, error = Sides(ten), Unreachable("the storage root cannot be reached")

    def down(*_: object, **__: object) -> Any:
        raise error

    monkeypatch.setattr(sides.files, "files", down)
    found = sides.scan()
    assert (found.is_unread, found.waiting) == (True, f"it cannot be read: {error}")
    monkeypatch.setattr(sides.theirs, "current_event_id", down)
    with pytest.raises(Unreachable):
        sides.scan()


def test_the_difference_to_a_snapshot_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sides, made, asked = Sides(ten, Drift(snapshots=True)), list[str](), list[object]()

    def about_webhdfs(_: str, ask: Callable[[Any, str], Any]) -> Any:
        return ask(None, "/t")

    def create(*values: str) -> None:
        made.append(values[-1])

    def since(*values: object) -> Any:
        asked.append(values)
        return SimpleNamespace(touches=lambda path: path == "p=6")

    module = "hive_replication.drift.snapshots"
    sides.files.about_webhdfs = about_webhdfs  # type: ignore[attr-defined]
    monkeypatch.setattr(f"{module}.create_snapshot", create)
    monkeypatch.setattr(f"{module}.since_snapshot", since)
    monkeypatch.setattr(Snapshots, "_directories", lambda *_: {OURS: 1})
    monkeypatch.setattr(Snapshots, "_present", lambda *_: list(made))
    monkeypatch.setattr(Snapshots, "_delete", lambda *_: None)
    first = sides.scan()
    assert (first.spared, first.listings, first.whole) == (0, 20, f"no snapshot of {OURS} is left of an earlier scan")
    found = sides.scan()
    assert (found.spared, found.listings, found.whole, len(asked)) == (9, 1, "", 1)


@pytest.mark.parametrize("during", [True, False], ids=["during a table", "between two tables"])
def test_a_scan_that_a_failover_overtakes_leaves_no_snapshot(during: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sides, made, created = Sides(ten, Drift(snapshots=True)), list[str](), list[str]()

    def about_webhdfs(_: str, ask: Callable[[Any, str], Any]) -> Any:
        return ask(None, "/t")

    def create(*values: str) -> None:
        created.append(values[-1])
        made.append(values[-1])
        if during:
            sides.theirs.opened = True

    def delete(_: Snapshots, __: str, names: Iterable[str]) -> None:
        for name in list(names):
            made.remove(name)

    sides.files.about_webhdfs = about_webhdfs  # type: ignore[attr-defined]
    sides.files.holds = lambda _: True  # type: ignore[attr-defined]
    sides.files.roots = (SimpleNamespace(uri="hdfs://source:8020/"),)  # type: ignore[assignment]
    monkeypatch.setattr("hive_replication.drift.snapshots.create_snapshot", create)
    monkeypatch.setattr(Snapshots, "_directories", lambda *_: {OURS: 1})
    monkeypatch.setattr(Snapshots, "_present", lambda *_: list(made))
    monkeypatch.setattr(Snapshots, "_delete", delete)
    both = DriftScan(sides.source, sides.target, "sales", 1.0, lambda _: None)
    with pytest.raises(NoReplica) if during else nullcontext():
        assert both.table("t") is not None
    assert (len(created), len(made)) == (1, 0 if during else 1)
    sides.theirs.opened = True
    with pytest.raises(NoReplica, match="is no replica any more: nothing can drift"):
        both.table("t2")
    both.finish()
    assert (len(created), made) == (1, [])


def test_no_more_than_a_few_partitions_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BATCH", 100)
    gc.collect()
    sides = Sides(lambda: [f"p={number}" for number in range(1000)])
    assert sides.scan().looked == 1000
    assert max(sides.ours.most, sides.theirs.most) < 10
