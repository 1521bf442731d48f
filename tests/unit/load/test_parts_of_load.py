"""What is told of a load or a dump of objects that takes long: how far it is of all, not of a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.bootstrap import table_reader
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.format.record_types import PartitionRecord, Scope
from hive_replication.load import bootstrap
from hive_replication.load.plan import bootstrap_objects
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Partition
from hive_replication.progress import LoggedProgress, Silent
from tests import model
from tests.bootstraps import SOURCE, Loading, header, loading, record

NAMES = [f"p={n}" for n in range(5)]


class Lines:
    def __init__(self) -> None:
        self.lines: list[str] = []

    @property
    def texts(self) -> list[str]:
        """Without rate and time left."""
        return [re.sub(r"(: \d+ of \d+), .*", r"\1", line) for line in self.lines]

    def info(self, msg: str, *args: object) -> None:
        self.lines.append(msg % args)


def image(name: str) -> Partition:
    return model.partition_image("t", name, model.Part(7, f"{model.ROOT}/t/{name}"))


def parted() -> Any:
    return model.table_image("t", model.Tab(7, f"{model.ROOT}/t", partitioned=True))


@pytest.mark.parametrize(("most", "parts"), [(2, [3, 5, 6]), (99, [6])])
def test_a_bootstrap_in_parts_tells_how_far_it_is_of_all_that_its_dump_has(
    most: int, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Lines()
    files = list[str]()

    def carry_out(session: Loading, plan: SegmentPlan, *_: object) -> None:
        files.extend(session.progress.count(["f"] if plan.lanes else [], "files copied", 1))

    monkeypatch.setattr(bootstrap, "_MOST", most)
    monkeypatch.setattr(bootstrap_objects, "_BATCH", 2)
    monkeypatch.setattr(Loading, "carry_out", carry_out)
    monkeypatch.setattr(Loading, "finish", lambda *_, **__: None)
    monkeypatch.setattr(Loading, "dry", False)
    table = record("t")
    table.table.partitionKeys = parted().partitionKeys
    session = loading(ReplicaState(SOURCE, 50), header(60), [], [table])
    session.progress = LoggedProgress(log, every=0)
    reader: Any = session.reader
    reader.number_of_objects = 1 + len(NAMES)
    reader.partitions = lambda _: (PartitionRecord("t", name, image(name), ()) for name in NAMES)
    bootstrap.load_objects(session, repair=True)
    told = [line for line in log.texts if line.startswith("tables and partitions")]
    assert told == [f"tables and partitions loaded: {done} of 6" for done in parts]
    of_files = [line.partition(":")[0] for line in log.texts if line.startswith("files")]
    said = [f"files copied, of the part up to {done} of 6 tables and partitions" for done in parts]
    assert of_files == (said if len(parts) > 1 else ["files copied"])


class Source:
    """A metastore with one table of some partitions, and the dump that it goes to."""

    def __getattr__(self, _: str) -> Callable[..., Any]:
        return lambda *_, **__: ()

    def current_event_id(self) -> int:
        return 7

    def table(self, *_: object) -> Any:
        return parted()

    def partition_names(self, *_: object) -> list[str]:
        return NAMES

    def partitions(self, _: str, __: str, names: Sequence[str]) -> Iterator[Partition]:
        return map(image, names)

    def partition_statistics(self, *_: object) -> dict[str, Any]:
        return {}

    def many(self, locations: Sequence[str], **_: object) -> list[tuple[()]]:
        return [() for _ in locations]


def test_a_dump_tells_of_the_partitions_of_a_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    log, one = Lines(), Source()
    monkeypatch.setattr(table_reader, "_BATCH", 2)
    source: Any = SimpleNamespace(metastore=one, policy=SimpleNamespace(metadata_only=False), acid=False)
    anything: Any = one
    for progress in (Silent(), LoggedProgress(log, every=0)):
        ObjectReader(source, Scope("db", None), anything, anything, progress=progress).read("t")
    assert log.texts == [f"partitions of t read: {done} of 5" for done in (2, 4, 5)]
