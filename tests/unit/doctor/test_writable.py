"""Whether the account may write where replication does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.doctor.writable import directories, writable
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.lags import POLICY


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


@pytest.mark.parametrize(
    ("locations", "more", "version", "expected"),
    [
        ({}, False, 3, ["the warehouse hdfs://t/managed"]),
        ({}, False, 4, ["the warehouse hdfs://t/external"]),
        ({"new": "hdfs://t/n"}, False, 4, ["the warehouse hdfs://t/external", "locations.new hdfs://t/n"]),
        ({"new": "hdfs://t/n", "old": "hdfs://t/o"}, False, 4, ["locations.new hdfs://t/n"]),
        ({"new": "hdfs://t/n", "old": "hdfs://t/o"}, True, 3, ["the warehouse hdfs://t/managed", "locations.new hdfs://t/n"]),
    ],
)
def test_where_databases_will_be_created_is_written_to(
    locations: dict[str, str], more: bool, version: int, expected: list[str]
) -> None:
    """Only the first warehouse was, though all databases were to lie elsewhere, where nothing was looked at."""
    policy = POLICY.model_copy(
        update={"databases": {"a": "new", "b": "old"}, "locations": locations, "functions_root": "hdfs://t/f"}
    )
    there = {"new": None, "old": Database(name="old", locationUri="hdfs://t/elsewhere")}
    metastore = SimpleNamespace(features=SimpleNamespace(major=version))
    target = SimpleNamespace(policy=policy, metastore=metastore, warehouses=lambda: ("hdfs://t/managed", "hdfs://t/external"))
    found = [" ".join(one) for one in directories(cast("Target", target), there, more=more)]
    assert found == [*expected, "functions_root hdfs://t/f"]
