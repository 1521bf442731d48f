"""Functions in a comparison: copies of their resources that are damaged or gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from hive_replication.dump.source import Source
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Function, PrincipalType, ResourceUri
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage
from hive_replication.verify import compare_database
from tests.lags import POLICY
from tests.unit.verify.test_foreign_keys import Metastore


def _side(root: Path, resource: Path) -> tuple[Metastore, Storage]:
    made = Function("f", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, f"file://{resource}")])
    return Metastore([], made=[made]), Storage((Root(uri=f"file://{root}"),))


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (b"1", b"1", ""),
        (b"1", b"2", "has other content than file://{0}/source/f.jar at the source"),
        (b"1", None, "is missing on the target"),
        (None, b"1", ""),
    ],
)
def test_a_function_whose_resource_is_old_or_gone_differs(
    tmp_path: Path, ours: bytes | None, theirs: bytes | None, told: str
) -> None:
    """It compared as equal, by the names of the files alone, and every query that called it failed, or answered as before."""
    places = tmp_path / "source" / "f.jar", tmp_path / "target" / "5" / "f.jar"
    for place, content in zip(places, (ours, theirs), strict=True):
        place.parent.mkdir(parents=True)
        if content is not None:
            place.write_bytes(content)
    (source, here), (target, there) = _side(tmp_path / "source", places[0]), _side(tmp_path / "target", places[1])
    sides = Source(cast("Any", source), here, POLICY), Target(cast("Any", target), there, POLICY, there)
    (found,) = compare_database(*sides, "sales")
    assert found.differences == ((f"its resource file://{places[1]} {told.format(tmp_path)}",) if told else ())


def test_a_resource_that_cannot_be_read_stops_no_other_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = tmp_path / "f.jar"
    jar.write_bytes(b"1")
    metastore, storage = _side(tmp_path, jar)
    sides = Source(cast("Any", metastore), storage, POLICY), Target(cast("Any", metastore), storage, POLICY, storage)

    def denied(*_: object) -> bool:
        raise Denied("the account lacks r")

    monkeypatch.setattr(Storage, "exists", denied)
    (found,) = compare_database(*sides, "sales")
    assert found.differences == ("its resources cannot be compared: the account lacks r",)
