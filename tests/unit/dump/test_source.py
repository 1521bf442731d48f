"""What a source's metastore says of its cmroot, whose default in Hive is a path without a store; what a policy leaves out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.bootstrap.dump_objects import dump_objects
from hive_replication.dump.cm_roots import CmRoots
from hive_replication.dump.format.record_types import Scope
from hive_replication.dump.source import Source
from hive_replication.dump.statistics import statistics_of
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.types import Database, Table
from hive_replication.policy import Policy
from hive_replication.progress import Silent
from tests import model
from tests.moving import Draft, Moving, moving_source
from tests.statistics import of_column

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


@pytest.mark.parametrize("insert_only", [False, True])
def test_a_policy_without_data_names_transactional_tables_as_left_out(
    monkeypatch: pytest.MonkeyPatch, *, insert_only: bool
) -> None:
    """Also of Hive 4, where others replicate them; the dump tells why its replica lacks them."""
    made = model.table_image

    def image(name: str, tab: model.Tab) -> Table:
        found = made(name, tab)
        transactional = {"transactional": "true"} | ({"transactional_properties": "insert_only"} if insert_only else {})
        found.parameters |= transactional if name == "a" else {}
        return found

    monkeypatch.setattr(model, "table_image", image)
    events, draft = model.Source(), Draft()
    for number in (0, 1):
        events.act("create", number, 0, 0)
    moving = moving_source(events, [], [])
    moving.metastore.features = Features("4.0.1", "uuid")  # type: ignore[misc]
    assert moving.acid
    without_data = replace(moving, policy=moving.policy.model_copy(update={"metadata_only": True}))
    header = dump_objects(without_data, Scope("db"), draft, Silent()).header
    reason = "transactional (ACID) tables need Hive 4 at the source, a policy with data and acid.replicate"
    assert (header.metadata_only, header.left_out, list(draft.tables)) == (True, {"a": reason}, ["b"])


@pytest.mark.parametrize("metadata_only", [False, True])
def test_a_policy_without_data_has_no_column_statistics(monkeypatch: pytest.MonkeyPatch, *, metadata_only: bool) -> None:
    """A21: as it answers COUNT(*) from what a table claims, Hive answers MIN and MAX from these."""
    monkeypatch.setattr(Moving, "table_statistics", lambda *_: [of_column("x", 1, 2)])
    events, draft = model.Source(), Draft()
    events.act("create", 0, 0, 0)
    moving = moving_source(events, [], [])
    policy = moving.policy.model_copy(update={"metadata_only": metadata_only})
    dump_objects(replace(moving, policy=policy), Scope("db"), draft, Silent())
    found = [one.colName for one in statistics_of(draft.tables["a"].table)]
    assert found == ([] if metadata_only else ["x"])
    kinds = ("UPDATE_TBL_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT", "DELETE_TBL_COL_STAT_EVENT")
    assert [policy.takes(kind) for kind in kinds] == [not metadata_only] * 3
