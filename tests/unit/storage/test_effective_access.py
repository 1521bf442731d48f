"""Directories above a storage root protect what lies below it; nothing but their access can be asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hive_replication.errors import Refused
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.storage.access import Access
from hive_replication.storage.effective_access import EffectiveAccess

OPEN = Access.of_mode("hdfs", "supergroup", 0o755)
TABLE = Access.of_mode("hive", "hive", 0o755)


class _Hdfs:
    """What it answers of directories; a PermissionError where it denies."""

    def __init__(self, **above: Access | PermissionError) -> None:
        self._found = {"/": OPEN, "/data": OPEN, "/data/warehouse": OPEN, "/data/warehouse/t": TABLE}
        self._found |= {f"/{name}": access for name, access in above.items()}

    def read(self, path: str) -> Access:
        found = self._found[path]
        if isinstance(found, PermissionError):
            raise found
        return found


@pytest.fixture
def storage() -> Storage:
    return Storage((Root(uri="hdfs://nn/elsewhere/"), Root(uri="hdfs://nn/data/warehouse/")))


@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        (OPEN, TABLE),
        (Access.of_mode("etl", "finance", 0o750), Access.of_mode("hive", "finance", 0o750)),
        (PermissionError("lacks x"), Access.of_mode("hive", "hive", 0o700)),
    ],
    ids=["open", "private", "denied"],
)
def test_a_directory_above_a_root_protects_what_lies_below(
    storage: Storage, monkeypatch: pytest.MonkeyPatch, data: Access | PermissionError, allowed: Access
) -> None:
    monkeypatch.setattr(Storage, "_backend", lambda *_: SimpleNamespace(access=_Hdfs(data=data)))
    assert EffectiveAccess(storage).of("hdfs://nn/data/warehouse/t") == allowed


@pytest.mark.parametrize("uri", ["hdfs://nn/data/other", "hdfs://other/data", "hdfs://nn/data/warehouse/t", "hdfs://nn/data/.."])
def test_no_other_directory_can_be_asked_for(storage: Storage, uri: str) -> None:
    with pytest.raises(Refused):
        storage.access_above(uri)


def test_stores_without_access_are_not_asked_further(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "_backend", lambda *_: SimpleNamespace(access=None))
    assert EffectiveAccess(storage).of("hdfs://nn/data/warehouse/t") is None
