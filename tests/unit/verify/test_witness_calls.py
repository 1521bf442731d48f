"""What the witness asks metastores of transactional tables."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import Refused
from hive_replication.metastore.types import FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.verify.acid import Seen
from hive_replication.verify.witness.look import Look, _Found, _Part
from hive_replication.verify.witness.sides import Shares
from tests.lags import POLICY

NAMES = [f"d={n}" for n in range(12)]


class Side:
    """One side's metastore and storage: a partition for each name, with a delta of one file."""

    def __init__(self, folder: Path) -> None:
        self.calls, self.uri = Counter[str](), folder.as_uri()
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


def described(source: Side, target: Side) -> _Found:
    here = SimpleNamespace(metastore=source, storage=source.storage, policy=POLICY, threads=None, acid=True)
    there = SimpleNamespace(within_filters=lambda _: SimpleNamespace(metastore=target), storage=target.storage)
    look = Look(here, there, "sales", random.Random(1))  # type: ignore[arg-type]
    part = _Part(Shares(99, 99, 99, 1, random.Random(1)), None, ())
    return look._described((source.table, target.table), NAMES, dict.fromkeys(NAMES, 2), part)


def test_partitions_of_a_transactional_table_are_listed_with_as_few_calls_as_one(sides: tuple[Side, Side]) -> None:
    found = described(*sides)
    assert (found.differences, found.counts.directories, found.counts.files) == ([], len(NAMES), (len(NAMES), len(NAMES)))
    for side in sides:
        assert side.calls == {"write_ids": 1, "hidden_transactions": 1, "partitions": 1}


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
