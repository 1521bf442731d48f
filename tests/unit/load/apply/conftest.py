"""A local target with checksums."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.policy import Root
from hive_replication.storage import FileChecksum, Storage


@pytest.fixture
def base(tmp_path: Path) -> str:
    return f"{tmp_path.as_uri()}/sales.db"


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    """Of a local root, with checksums as HDFS has them: the content."""
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    monkeypatch.setattr(storage, "checksum", lambda uri: FileChecksum("content", storage.read(uri).decode()))
    return storage
