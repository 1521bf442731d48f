"""Whether the account may write where replication does."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.doctor.writable import writable
from hive_replication.policy import Root
from hive_replication.storage import Storage


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=tmp_path.as_uri()),))


def test_a_directory_stays_as_it_was(storage: Storage, tmp_path: Path) -> None:
    [finding] = writable(storage, f"{tmp_path.as_uri()}/a/b", "dump root", "write")
    assert finding.verdict == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_a_directory_is_named(storage: Storage, tmp_path: Path) -> None:
    """The probe's name was said to exist, and the account to need rights."""
    (tmp_path / "file").write_text("")
    [finding] = writable(storage, f"{tmp_path.as_uri()}/file", "dump root", "write")
    assert (finding.verdict, finding.advice) == ("error", "name a directory in the policy")
    assert finding.found.endswith("/file is a file")
