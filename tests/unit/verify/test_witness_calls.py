"""What the witness asks metastores of transactional tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from threading import Barrier
from types import SimpleNamespace

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    Function,
    Partition,
    PrincipalType,
    ResourceUri,
    SerDeInfo,
    StorageDescriptor,
    Table,
)
from hive_replication.policy import Root
from hive_replication.storage import FileStatus, Storage
from hive_replication.verify.acid import Seen
from hive_replication.verify.witness.comparison import objects_of
from hive_replication.verify.witness.files import EVERY
from hive_replication.verify.witness.look import Look, _Found, _Part
from hive_replication.verify.witness.sides import Shares
from tests.lags import POLICY

NAMES = [f"d={n}" for n in range(12)]


class Side:
    """One side's metastore and storage: a partition for each name, with a delta of one file."""

    def __init__(self, folder: Path) -> None:
        self.calls, self.uri = Counter[str](), folder.as_uri()
        self.made: list[Function] = []
        for name in NAMES:
            (folder / name / "delta_0000001_0000001").mkdir(parents=True)
            (folder / name / "delta_0000001_0000001" / "000000_0").write_text(name)
        self.storage = Storage((Root(uri=self.uri),))

    @property
    def table(self) -> Table:
        keys = [FieldSchema(name="d", type="string")]
        kind = {"transactional": "true", "transactional_properties": "insert_only"}
        return Table(tableName="t", dbName="sales", sd=self._described(""), partitionKeys=keys, parameters=kind)

    def _described(self, name: str) -> StorageDescriptor:
        return StorageDescriptor(location=f"{self.uri}/{name}", cols=[], serdeInfo=SerDeInfo(parameters={}), parameters={})

    def database(self, name: str) -> Database:
        return Database(name=name, locationUri=self.uri, parameters=ReplicaState("uuid/sales", 5).parameters())

    def table_names(self, _: str) -> list[str]:
        return []

    def functions(self, _: str) -> list[Function]:
        self.calls["functions"] += 1
        return self.made

    def current_event_id(self) -> int:
        return 5

    def events(self, *_: object, **__: object) -> list[object]:
        return []

    def write_ids(self, _: str, names: Iterable[str]) -> dict[str, WriteIds]:
        self.calls["write_ids"] += 1
        return {name: WriteIds(1) for name in names}

    def hidden_transactions(self) -> frozenset[int]:
        self.calls["hidden_transactions"] += 1
        return frozenset()

    def partitions(self, _: str, __: str, names: Sequence[str]) -> list[Partition]:
        self.calls["partitions"] += 1
        return [Partition(values=[name[2:]], sd=self._described(name), parameters={}) for name in names]


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Side, Side]:
    return Side(tmp_path / "source"), Side(tmp_path / "target")


def looking(source: Side, target: Side) -> Look:
    here = SimpleNamespace(metastore=source, storage=source.storage, policy=POLICY, threads=None, acid=True)
    there = SimpleNamespace(within_filters=lambda _: SimpleNamespace(metastore=target), storage=target.storage)
    return Look(here, there, "sales", random.Random(1))  # type: ignore[arg-type]


def described(source: Side, target: Side) -> _Found:
    look = looking(source, target)
    part = _Part(Shares(99, 99, 99, 1, random.Random(1)), None, {})
    return look._described((source.table, target.table), NAMES, dict.fromkeys(NAMES, 2), part)


def test_partitions_of_a_transactional_table_are_listed_with_as_few_calls_as_one(sides: tuple[Side, Side]) -> None:
    found = described(*sides)
    assert (found.differences, found.counts.directories, found.counts.files) == ([], len(NAMES), (len(NAMES), len(NAMES)))
    for side in sides:
        assert side.calls == {"write_ids": 1, "hidden_transactions": 1, "partitions": 1}


def test_sizes_of_files_without_checksums_are_read_of_several_partitions_at_a_time(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another, the two listings of each were most of what a look took."""
    both, files, asked = Barrier(2), Storage.files, list[str]()
    number = count()

    def slow(storage: Storage, uri: str) -> list[FileStatus]:
        asked.append(uri)
        if next(number) - 2 * len(NAMES) in (0, 1):  # after those that say which files there are
            both.wait(5)  # the first for the second
        return files(storage, uri)

    monkeypatch.setattr(Storage, "files", slow)
    assert described(*sides).differences == []
    assert Counter(asked) == {f"{side.uri}/{name}": 2 for side in sides for name in NAMES}


def test_a_partition_that_cannot_be_listed_hides_no_difference_of_another(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(sides[1].uri.removeprefix("file://")) / "d=3" / "delta_0000001_0000001" / "000001_0").write_text("more")
    many = Seen.many

    def closed(seen: Seen, things: Sequence[Table | Partition]) -> object:
        if any((one.sd.location or "").endswith("source/d=5") for one in things):
            raise Refused("d=5 lies outside the storage roots")
        return many(seen, things)

    monkeypatch.setattr(Seen, "many", closed)
    monkeypatch.setattr(Seen, "files", lambda seen, thing: closed(seen, [thing])[0])  # type: ignore[index]
    assert {one.partition for one in described(*sides).differences} == {"d=3", "d=5"}


def test_a_table_that_a_metastore_does_not_show_is_a_difference_of_its_own(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its database was compared no more."""

    def refused(_: Side, __: str, name: str) -> list[str]:
        if name == "closed":
            raise MetastoreError("get_partition_names sales.closed: Permission denied")
        return NAMES

    def tables(side: Side, _: str, names: Iterable[str]) -> list[Table]:
        return [Table(**{**vars(side.table), "tableName": name}) for name in names]

    monkeypatch.setattr(Side, "table_names", lambda *_: ["closed", "t"])
    monkeypatch.setattr(Side, "tables", tables, raising=False)
    monkeypatch.setattr(Side, "partition_names", refused, raising=False)
    look = looking(*sides)
    look._threads = SimpleNamespace(map=map)
    found = look.at(None, ())
    (wrong,) = found.wrong
    assert (wrong.table, wrong.partition) == ("closed", "")
    assert wrong.text == "it cannot be compared: get_partition_names sales.closed: Permission denied"
    assert found.counts.described == len(NAMES)
    assert look.at({"closed": {"": ()}}, ()).wrong == [wrong], "a further look, by which it is confirmed, has not met it"


def function(side: Side, name: str, kind: str, *resources: str) -> Function:
    uris = [ResourceUri(1, f"{side.uri}/{one}") for one in resources]
    return Function(name, "sales", kind, "me", PrincipalType.USER, 0, 1, uris)


def test_functions_that_are_lost_or_replaced_are_wrong_at_each_look(sides: tuple[Side, Side]) -> None:
    """No check asked for them: what was changed on the target, or at the source without an event, stayed unseen."""
    source, target = sides
    source.made = [
        function(source, "same", "C", "a.jar"),
        function(source, "lost", "C", "a.jar"),
        function(source, "other_class", "New", "a.jar"),
        function(source, "other_jar", "C", "new.jar"),
        function(source, "without_jar", "C"),
        Function("elsewhere", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, "s3a://other/a.jar")]),
        Function("odd", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, "http://[x/f.jar")]),
    ]
    target.made = [
        function(target, "Same", "C", ".repl/5/a.jar"),
        function(target, "other_class", "C", "a.jar"),
        function(target, "other_jar", "C", "a.jar"),
        function(target, "stranger", "C", "a.jar"),
        function(target, "elsewhere", "C", "a.jar"),
        function(target, "of_an_operator", "C"),
    ]
    look = looking(source, target)
    wrong = {one.table: one.text for one in look.at(None, ()).wrong}
    assert wrong == {
        "lost()": "the function is on the source only",
        "other_class()": "class is 'C' on the target, 'New' on the source",
        "other_jar()": "resources is 'a.jar' on the target, 'new.jar' on the source",
        "stranger()": "the function is on the target only",
    }
    assert [side.calls["functions"] for side in sides] == [1, 1]
    assert {one.table for one in look.at({"lost()": {"": ()}}, ()).wrong} == wrong.keys()


@pytest.mark.parametrize("transactional", [False, True])
def test_a_damaged_file_that_is_known_is_found_at_each_look_however_many_files_there_are(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch, *, transactional: bool
) -> None:
    """By chance others were looked at: no further look confirmed it, or the next round forgot it."""
    folder = "d=3/delta_0000001_0000001"
    for side in sides:
        for n in range(2 * EVERY):
            (Path(side.uri.removeprefix("file://")) / folder / f"more_{n:03}").write_text("text")
    (Path(sides[1].uri.removeprefix("file://")) / folder / "more_007").write_text("tEXT")
    made, table = Side.table.fget, "t"
    assert made is not None
    plain = {} if transactional else {"parameters": {}}
    monkeypatch.setattr(Side, "table_names", lambda *_: [table])
    monkeypatch.setattr(Side, "table", property(lambda side: Table(**{**vars(made(side)), **plain})))
    monkeypatch.setattr(Side, "tables", lambda side, *_: [side.table], raising=False)
    monkeypatch.setattr(Side, "partition_names", lambda *_: NAMES, raising=False)
    look = looking(*sides)
    look._threads = SimpleNamespace(map=map)
    with monkeypatch.context() as others:
        others.setattr(random, "sample", lambda names, number: list(names)[:number])
        (known,) = look.at({table: {"d=3": ()}}, ()).differences
        assert (known.difference.partition, known.wrong) == ("d=3", True)
        others.setattr(random, "sample", lambda names, number: list(names)[len(names) - number :])
        assert not look.at({table: {"d=3": ()}}, ()).differences, "by chance it is looked at or not"
        assert look.at(objects_of([known.difference]), ()).wrong == [known.difference], "a further look of the same round"
        assert look.at(None, [known]).wrong == [known.difference], "the next round"
