"""Sizes of files that are to be copied: one that may not be looked at stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.copy.file_sizes import sized, source_sizes
from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.copy.threshold_copier import ThresholdCopier
from hive_replication.errors import Unreachable
from hive_replication.events.files import FileRef
from hive_replication.policy import Root
from hive_replication.storage import Denied, FileStatus, Storage


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """With a file, one that may not be looked at, and a link that leads out."""
    made = tmp_path / "root"
    (made / "denied").mkdir(parents=True)
    (made / "plain").write_text("123")
    (tmp_path / "outside").write_text("1")
    (made / "away").symlink_to(tmp_path / "outside")
    return made


class _Denying(Storage):
    """The superuser, as whom tests may run, may look at everything."""

    def status(self, uri: str) -> FileStatus | None:
        if "/denied/" in uri:
            raise Denied(f"{uri}: the account may not look at it")
        return super().status(uri)


def test_a_size_that_cannot_be_known_is_unknown(root: Path) -> None:
    storage, uri = _Denying((Root(uri=root.as_uri()),)), root.as_uri()
    names = ("plain", "none", "denied/f", "away", "nul\0", "plain/below")
    found = source_sizes(storage, [FileRef(f"{uri}/{name}") for name in names])
    assert list(found.values()) == [3, -1, -1, -1, -1, -1]
    kept = FileRef(f"{uri}/denied/f", cm_root=uri, checksum="0")
    (root / "f_0").write_text("12345")
    assert source_sizes(storage, [kept]) == {kept: 5}


def test_a_source_that_does_not_answer_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def status(*_: object) -> None:
        raise Unreachable("the source is down")

    storage = Storage((Root(uri=root.as_uri()),))
    monkeypatch.setattr(storage, "status", status)
    with pytest.raises(Unreachable):
        source_sizes(storage, [FileRef(f"{root.as_uri()}/plain")])


def test_one_file_that_may_not_be_looked_at_keeps_no_other_from_being_copied(root: Path) -> None:
    """A window failed as a whole, and each time again."""
    storage, uri = _Denying((Root(uri=root.as_uri()),)), root.as_uri()
    copier = ThresholdCopier(
        ThreadCopier(storage, storage),
        lambda: pytest.fail("so few are not copied by Spark"),
        lambda tasks: sized(storage, tasks),
        max_files=9,
        max_bytes=9,
    )
    names = ("plain", "denied/f", "away")
    tasks = [CopyTask(FileRef(f"{uri}/{name}"), f"{uri}/replica/{number}", 1, "db.t") for number, name in enumerate(names)]
    found = {answer.task.file.uri.removeprefix(f"{uri}/"): answer for answer in copier.copy(tasks)}
    assert isinstance(found["plain"], CopyResult)
    assert isinstance(found["denied/f"], CopyFailure)
    assert isinstance(found["away"], CopyFailure)
