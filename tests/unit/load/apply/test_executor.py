"""What becomes of the other lanes of a segment where one of them fails in a way that nobody foresaw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask, Proof
from hive_replication.errors import LockLost, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.executor import Executor, SegmentResult
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.placement import Placer
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.statistics import ACCURATE
from hive_replication.metastore.types import Table
from hive_replication.progress import Silent
from hive_replication.storage import Storage
from tests.faults import Killed
from tests.unit.load.apply.fakes import OURS, Replicas, replicas_target

_STEPS = [(Placer, "place"), (TableChanges, "carry_out")]


def run(
    metastore: Replicas,
    storage: Storage,
    *operations: op.Operation,
    copy: Callable[[Iterable[CopyTask]], Iterator[CopyResult | CopyFailure]] = lambda _: iter(()),
) -> SegmentResult:
    """Carries out operations, each in a lane of its own."""
    replica = TargetDatabase(replicas_target(metastore, storage), "sales", lambda: None, dry=False)
    known = KnownObjects(cast("Any", metastore), "sales", ReplicaState(OURS))
    copier: Any = SimpleNamespace(copy=copy)
    executor = Executor(replica, OURS, copier, Silent(), Tally(), known)
    return executor.run([LanePlan((one.table,), 5, (one,)) for one in operations], lambda *_: None)


def failing(real: Callable[..., Any], error: BaseException) -> Callable[..., Any]:
    """A step of a lane that fails for the table t alone."""

    def step(self: object, lane: Any, *more: Any) -> Any:
        if getattr(lane, "lane", lane).names == ("t",):
            raise error
        return real(self, lane, *more)

    return step


@pytest.mark.parametrize(("of", "name"), _STEPS)
def test_an_error_that_nobody_foresaw_holds_its_lane_alone(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, of: type, name: str
) -> None:
    """It ended each window of the database: what a user of the source had written into one table is in the log for good."""
    metastore, error = Replicas(base, "t", "u"), TypeError("'int' object is not iterable")
    monkeypatch.setattr(of, name, failing(getattr(of, name), error))
    (held,) = run(metastore, storage, op.DropTable(6, "t"), op.DropTable(7, "u")).held
    assert (held.tables, held.after, held.evid, held.refused) == (("t",), 5, 6, False)
    assert held.reason.endswith("TypeError: 'int' object is not iterable")
    assert metastore.calls == ["drop u"]
    assert caplog.records[-1].exc_info is not None
    assert caplog.records[-1].exc_info[1] is error, "the log does not say where it was"


@pytest.mark.parametrize(("of", "name"), _STEPS)
@pytest.mark.parametrize("error", [Unreachable("it is down"), LockLost("it was lost"), KeyboardInterrupt(), Killed()], ids=repr)
def test_what_is_of_no_lane_ends_all(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch, of: type, name: str, error: BaseException
) -> None:
    monkeypatch.setattr(of, name, failing(getattr(of, name), error))
    with pytest.raises(type(error)):
        run(Replicas(base, "t", "u"), storage, op.DropTable(6, "t"), op.DropTable(7, "u"))


def test_what_a_user_writes_into_a_parameter_holds_no_table(base: str, storage: Storage) -> None:
    metastore = Replicas(base, "t", "u")
    images = [Table("t", "sales", sd=metastore.there["t"].sd, parameters={ACCURATE: text}) for text in ("5", "[" * 3_000)]
    assert run(metastore, storage, *(op.AlterTable(6, name, image) for name, image in zip("tu", images, strict=True))).held == []
    assert sorted(metastore.calls) == ["alter t", "alter u"]


def test_each_of_two_lanes_with_files_of_one_path_gets_its_own_answer(
    base: str, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one whose file was copied was held for the conflict of the other, which was carried out without its own."""

    def place(_: object, lane: LanePlan) -> LanePlacement:
        (one,) = lane.operations
        task = CopyTask(FileRef(f"hdfs://src/{one.table}/a"), f"{base}/t/a", one.evid, f"sales.{one.table}")
        return LanePlacement(lane, tasks=[((0, ""), task)])

    def copy(tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        first, second = (replace(task, size=1) for task in tasks)  # as copiers that look at the sizes first
        yield CopyResult(first, "source", 1, Proof("CRC32C", "", recorded=False), 1)
        yield CopyFailure(second, "it has other content", "conflict")

    monkeypatch.setattr(Placer, "place", place)
    metastore = Replicas(base, "t", "u")
    (held,) = run(metastore, storage, op.DropTable(6, "t"), op.DropTable(7, "u"), copy=copy).held
    assert (held.tables, held.reason, metastore.calls) == (("u",), "it has other content", ["drop t"])
