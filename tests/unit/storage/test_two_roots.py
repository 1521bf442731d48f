"""Two roots of one store, each with settings of its own."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from hive_replication.policy import Root
from hive_replication.storage import Storage

_KEYS = {name: Root(uri=f"s3://lake/{name}/", options={"endpoint_url": name}) for name in ("finance", "sales")}


@pytest.mark.parametrize("order", [("finance", "sales"), ("sales", "finance")])
def test_each_is_used_by_its_own_settings(monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]) -> None:
    """Those of the root that was asked first counted for both: the other's tables were held."""
    monkeypatch.setattr(
        "hive_replication.storage.storage.connect_backend", lambda *given: Mock(**{"ls.return_value": [given[2]]})
    )
    storage = Storage(tuple(_KEYS.values()))
    for name in (*order, *order):
        (used,) = storage.ls(f"s3://lake/{name}/t")
        assert used.options == {"endpoint_url": name}  # type: ignore[attr-defined] (the store's answer is its root)


def test_roots_with_the_same_settings_share_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[str]()
    monkeypatch.setattr("hive_replication.storage.storage.connect_backend", lambda *given: made.append(given[1]) or Mock())
    storage = Storage((Root(uri="s3://lake/a/"), Root(uri="s3://lake/b/"), Root(uri="s3://other/")))
    for uri in ("s3://lake/a/t", "s3://lake/b/t", "s3://other/t"):
        storage.status(uri)
    assert made == ["lake", "other"]


@pytest.mark.parametrize("first", ["w", "cm"])
def test_each_has_checksums_or_not(first: str) -> None:
    storage = Storage((Root(uri="hdfs://localhost:1/w/", webhdfs="http://localhost:1"), Root(uri="hdfs://localhost:1/cm/")))
    storage.has_checksums(f"hdfs://localhost:1/{first}/x")
    assert [storage.has_checksums(f"hdfs://localhost:1/{name}/x") for name in ("w", "cm")] == [True, False]
