"""Files that a rename at the source has moved since, where the copy in cmroot does not have the recorded checksum."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.copy.copy_file import copy_file
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.events.files import FileRef
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.lane_run import where_they_are
from hive_replication.load.bootstrap import _without
from hive_replication.load.load_boundary import LoadBoundary
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.lanes import Lane
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.plan.superseded import Move
from hive_replication.load.window import _Planner
from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, Storage
from hive_replication.storage.boundary import Boundary


class Later:
    """A table was renamed after the event."""

    def __init__(self, *moves: Move) -> None:
        self._moves = moves

    def superseded(self, *_: object) -> int | None:
        return None

    def moves(self, *_: object) -> tuple[Move, ...]:
        return self._moves


def lane(*files: FileRef) -> LanePlan:
    return LanePlan(("t",), 4, (op.AppendData(5, "t", partition="", image=cast("Any", None), content=op.Content(files, "5-0")),))


def session(base: str, *moves: Move) -> Any:
    boundary = SimpleNamespace(data=Boundary("source.paths", (f"{base}/db",)))
    header = SimpleNamespace(to_evid=5, scope=SimpleNamespace(table=None))
    return SimpleNamespace(
        lookahead=Later(*moves), boundary=LoadBoundary(cast("Any", boundary)), reader=SimpleNamespace(header=header)
    )


def again(base: str, plan: LanePlan, *moves: Move) -> LanePlan | None:
    lanes = {("t",): cast("Lane", SimpleNamespace(events=[SimpleNamespace(evid=5, names=("tmp",))]))}
    planner = _Planner(session(base, *moves), cast("Any", None), lanes)
    return planner.replan(plan, [(plan.operations[0], "")])


def copied(base: str, plan: LanePlan, storage: Storage) -> list[CopyResult | CopyFailure]:
    files = plan.operations[0].contents
    tasks = [CopyTask(one, f"{base}/target/{one.name}", 5, "db.t") for _, content in files for one in content.files]
    placed = where_they_are(LanePlacement(plan, tasks=[((0, ""), task) for task in tasks]))
    return [copy_file(task, storage, storage) for _, task in placed.tasks]


@pytest.fixture
def base(tmp_path: Path) -> str:
    return tmp_path.as_uri()


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """Files whose checksums depend on more than their content, as those of HDFS do: cmroot has other blocks."""
    storage = Storage((Root(uri=tmp_path.as_uri()),))

    def checksum(uri: str) -> FileChecksum:
        return FileChecksum("content", f"{'1' if '/cm/' in uri else '0'}{storage.read(uri).hex()}")

    monkeypatch.setattr(storage, "checksum", checksum)
    return storage


def test_a_file_is_found_where_the_rename_of_its_table_moved_it(base: str, storage: Storage) -> None:
    """The window, and then the same in a bootstrap, whose table is renamed before its load."""
    file = FileRef(f"{base}/db/tmp/f", f"0{b'rows'.hex()}", f"{base}/cm")
    plan = lane(file)
    storage.write(f"{base}/db/t/f", b"rows", overwrite=False)
    storage.write(file.cm_uri, b"rows", overwrite=False)
    (lost,) = copied(base, plan, storage)
    assert isinstance(lost, CopyFailure)
    assert lost.kind == "gone"
    move = (f"{base}/db/tmp", f"{base}/db/t")
    planned = again(base, plan, move)
    assert planned is not None
    (found,) = copied(base, planned, storage)
    assert isinstance(found, CopyResult)
    assert (found.origin, found.proof.recorded, found.task.file.uri) == ("source", True, f"{base}/db/t/f")
    assert again(base, planned, move) is None  # it was looked for there
    of_bootstrap = _without(session(base, move), plan, [(plan.operations[0], "")])
    assert of_bootstrap is not None
    assert of_bootstrap.moves == planned.moves


def test_another_version_that_lies_there_is_not_taken(base: str, storage: Storage) -> None:
    plan = lane(FileRef(f"{base}/db/tmp/f", f"0{b'rows'.hex()}", f"{base}/cm"), FileRef(f"{base}/db/tmp/unrecorded"))
    for name in ("f", "unrecorded"):
        storage.write(f"{base}/db/t/{name}", b"ROWS", overwrite=False)
    planned = again(base, plan, (f"{base}/db/tmp", f"{base}/db/t"))
    assert planned is not None
    assert [getattr(one, "kind", "") for one in copied(base, planned, storage)] == ["gone", "gone"]


def test_nothing_is_read_outside_of_what_the_policy_allows(base: str) -> None:
    plan = lane(FileRef(f"{base}/db/tmp/f", "00", f"{base}/cm"))
    assert again(base, plan, (f"{base}/db/tmp", f"{base}/other/t")) is None
    assert again(base, plan) is None
