"""What a source's metastore says of its cmroot, whose default in Hive is a path without a store."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.cm_roots import CmRoots
from hive_replication.dump.source import Source
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy

POLICY = Policy.model_validate(
    {
        "source": {"metastore": "thrift://s:1", "roots": [{"uri": "hdfs://src:8020/"}, {"uri": "hdfs://lake/"}]},
        "target": {"metastore": "thrift://t:1", "roots": [{"uri": "hdfs://dst:8020/"}]},
        "dump_root": "hdfs://dst:8020/dumps",
        "databases": {"sales": "sales"},
    }
)


class _Metastore:
    """A metastore with these settings."""

    def __init__(self, major: int, **settings: str) -> None:
        self.features = SimpleNamespace(major=major)
        self._settings = {"hive.repl.cm.enabled": "true"} | settings

    def config_value(self, name: str, default: str) -> str:
        return self._settings.get(name, default)


class _AllEncrypted:
    """A store of which each database's directory, and the cmroot, begins a zone."""

    def about_webhdfs(self, uri: str, _: object, **__: object) -> tuple[str, ...]:
        return (uri.removeprefix("hdfs://src:8020"),)


def source(major: int, **settings: str) -> Source:
    return Source(_Metastore(major, **settings), _AllEncrypted(), POLICY)  # type: ignore[arg-type]


def kept(made: Source, location: str) -> CmRoots:
    return made.lister(made.boundary("sales", Database(name="sales", locationUri=location))).cm_roots


@pytest.mark.parametrize("major", [2, 3])
@pytest.mark.parametrize("location", ["hdfs://src:8020/w/sales.db", "hdfs://lake/sales"])
def test_a_cmroot_that_is_a_path_lies_beside_the_database(major: int, location: str) -> None:
    """Every bootstrap held all managed tables: their files named a cmroot that is no URI."""
    made = source(major, **{"hive.repl.cmrootdir": "/user/hive/cmroot"})
    store = location.rpartition("//")[2].partition("/")[0]
    assert kept(made, location) == CmRoots(f"hdfs://{store}/user/hive/cmroot")
    assert made.cm_root() == "hdfs://src:8020/user/hive/cmroot"


def test_so_does_the_cmroot_of_what_is_not_encrypted() -> None:
    settings: Any = {"hive.repl.cmrootdir": "/zone/cm", "hive.repl.cm.nonencryptionzone.rootdir": "/plain"}
    found = kept(source(4, **settings), database := "hdfs://src:8020/w/sales.db")
    assert found == CmRoots("hdfs://src:8020/plain", {database: f"{database}/.cmroot"})


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"hive.repl.cmrootdir": "hdfs://lake/cm"}, "hdfs://lake/cm"),
        ({"hive.repl.cmrootdir": ""}, ""),
        ({"hive.repl.cmrootdir": "/cm", "hive.repl.cm.enabled": "false"}, ""),
    ],
)
def test_others_stay_as_they_are(settings: dict[str, str], found: str) -> None:
    assert kept(source(3, **settings), "hdfs://src:8020/w/sales.db") == CmRoots(found)
