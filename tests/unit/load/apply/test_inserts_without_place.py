"""INSERTs that find other files of their names: what the source took away before stays until a later event replaces it.

An INSERT OVERWRITE that is dumped after the next one names nothing of its own (``without_later_files``): its table stays as it
is, and an INSERT between the two has a name of Hive's that the target still has. Each load of the lane failed there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.executor import Executor
from hive_replication.load.apply.lane_run import MissingFiles
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.collapse import collapsed
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.load.report import Held
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.parallel import Threads
from hive_replication.progress import Silent
from hive_replication.storage import Storage
from tests.unit.load.apply import fakes
from tests.unit.load.apply.test_changes_in_a_lane import numbered

OURS = "uuid/sales"
NAME = "000000_0"


class Metastore(fakes.Metastore):
    """A database of one replica."""

    features = SimpleNamespace(major=3)

    def __init__(self, base: str) -> None:
        super().__init__({"t": f"{base}/t"})
        location = StorageDescriptor(location=f"{base}/t", cols=[])
        self.there = Table("t", "sales", sd=location, partitionKeys=[], parameters={SOURCE: OURS})

    def database(self, name: str) -> Database:
        return Database(name, locationUri=self.locations["t"].rpartition("/")[0], parameters={SOURCE: OURS})

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        return iter([self.there] if "t" in names else [])

    def table(self, database: str, name: str) -> Table:
        return self.there

    def alter_table(self, _: str, name: str, image: Table) -> None:
        self.there = image


class Load:
    """A load of the lane of t; ``ends``: event that replaces what t has, as far as the source's log tells."""

    def __init__(self, storage: Storage, base: str, ends: int | None, append: str) -> None:
        self.storage, self.ends, self.metastore = storage, ends, Metastore(base)
        self.target = fakes.replica(cast("Any", self.metastore), storage, append=append, conflicts="refuse", preserve=())
        self.target.policy.parallelism = SimpleNamespace(changes=2)  # type: ignore[misc]
        self.target.threads = Threads(2, "lane")  # type: ignore[misc]
        self.target.feeds = lambda _: False  # type: ignore[method-assign]
        self.asked = list[tuple[int, str]]()

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult]:
        for task in tasks:
            self.storage.write(task.target, task.file.checksum.encode())
            yield CopyResult(task, "source", 1, Proof("content", task.file.checksum, recorded=True), 1)

    def replan(self, lane: LanePlan, files: list[MissingFiles]) -> LanePlan | None:
        self.asked += [(one.evid, name) for one, name in files]
        superseded = [one for one, _ in files if self.ends is not None and one.evid < self.ends]
        return replace(lane, operations=tuple(one for one in lane.operations if one not in superseded)) if superseded else None

    def run(self, lane: LanePlan) -> list[Held]:
        database = TargetDatabase(self.target, "sales", lambda: None, dry=False)
        known = KnownObjects(cast("Any", self.metastore), "sales", ReplicaState(OURS))
        return Executor(database, OURS, cast("Any", self), Silent(), Tally(), known).run([lane], self.replan).held

    @property
    def content(self) -> dict[str, str]:
        found = self.storage.named_files(str(self.metastore.there.sd.location))
        return {name: self.storage.read(status.uri).decode() for name, status in found.items()}


def changed(evid: int, kind: type[op.AppendData | op.ReplaceData], *files: tuple[str, str]) -> op.Operation:
    content = numbered(evid, *(name for name, _ in files))
    content = replace(
        content, files=tuple(replace(one, checksum=new) for one, (_, new) in zip(content.files, files, strict=True))
    )
    return kind(evid, "t", "", Table("t", "sales", sd=StorageDescriptor(cols=[]), parameters={SOURCE: OURS}), content)


@pytest.fixture(params=["in_place", "atomic"])
def append(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("collapse", [True, False])
def test_it_is_passed_over_where_a_later_event_is_known_to_replace_all(
    storage: Storage, base: str, append: str, *, collapse: bool
) -> None:
    """In this window or in a later one: until then what was there stays, and so does what else was added."""
    storage.write(f"{base}/t/{NAME}", b"old")
    inserts = changed(4, op.AppendData, (NAME, "new")), changed(5, op.AppendData, (f"{NAME}_copy_1", "more"))
    for last, content in ((), {NAME: "old", f"{NAME}_copy_1": "more"}), ((6,), {NAME: "last"}):
        load = Load(storage, base, 6, append)
        lane = LanePlan(("t",), 2, (*inserts, *(changed(evid, op.ReplaceData, (NAME, "last")) for evid in last)))
        assert load.run(collapsed(lane) if collapse else lane) == []
        assert load.content == content
        assert load.asked == ([] if collapse and last else [(4, "")])


def test_it_holds_its_lane_where_no_later_event_is_known(storage: Storage, base: str, append: str) -> None:
    """With what comes before it done, and nothing of it lost."""
    storage.write(f"{base}/t/{NAME}", b"old")
    load = Load(storage, base, None, append)
    earlier, insert = changed(3, op.AppendData, ("other", "other")), changed(4, op.AppendData, (NAME, "new"))
    (held,) = load.run(LanePlan(("t",), 2, (earlier, insert)))
    assert ((held.after, held.evid), load.content) == ((3, 4), {NAME: "old", "other": "other"})


def test_what_another_insert_of_the_lane_has_brought_is_in_its_way_too(storage: Storage, base: str, append: str) -> None:
    """The overwrite between the two left it there."""
    storage.mkdirs(f"{base}/t")
    load = Load(storage, base, 6, append)
    inserts = changed(3, op.AppendData, (NAME, "old")), changed(4, op.AppendData), changed(5, op.AppendData, (NAME, "new"))
    assert load.run(LanePlan(("t",), 2, inserts)) == []
    assert (load.content, load.asked) == ({NAME: "old"}, [(5, "")])


def test_what_comes_again_is_not_in_its_own_way(storage: Storage, base: str, append: str) -> None:
    """After a load that was killed, and after a replacement that the lane knows."""
    storage.write(f"{base}/t/{NAME}", b"new")
    load = Load(storage, base, 9, append)
    emptied, again = changed(5, op.ReplaceData), changed(6, op.AppendData, (NAME, "last"))
    assert load.run(LanePlan(("t",), 2, (changed(4, op.AppendData, (NAME, "new")), emptied, again))) == []
    assert (load.content, load.asked) == ({NAME: "last"}, [])
