"""Replicas that lie where no load may write, as after a change of ``external_root``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.doctor.outside import outside, shared_root
from hive_replication.load.replica.state import SOURCE
from hive_replication.metastore.types import Database, StorageDescriptor, Table

ROOT = "hdfs://dst:8020"
HOME = Database("sales", locationUri=f"{ROOT}/w/sales.db", parameters={SOURCE: "uuid/sales"})


def table(name: str, location: str | None, source: str = "uuid/sales") -> Table:
    parameters = {SOURCE: source}
    return Table(tableName=name, dbName="sales", sd=StorageDescriptor(location=location), parameters=parameters)


TABLES = {
    "plain": table("plain", f"{ROOT}/w/sales.db/plain"),
    "early": table("early", f"{ROOT}/old/lake/early"),
    "early_too": table("early_too", f"{ROOT}/old/lake/early_too"),
    "late": table("late", f"{ROOT}/new/lake/late"),
    "view": table("view", None),
    "foreign": table("foreign", f"{ROOT}/hr", "other/sales"),
    "left": table("left", f"{ROOT}/old/left"),
}


def found(external_root: str | None, *paths: str) -> list[tuple[str, str]]:
    policy = SimpleNamespace(
        external_root=external_root,
        functions_root=None,
        target=SimpleNamespace(paths=paths),
        includes=lambda name: name != "left",
    )
    metastore = SimpleNamespace(table_names=lambda _: list(TABLES), tables=lambda _, names: [TABLES[name] for name in names])
    target: Any = SimpleNamespace(policy=policy, metastore=metastore, default_locations=lambda *_: ())
    return [(one.verdict, one.found) for one in outside(target, HOME)]


@pytest.mark.parametrize("root", [f"{ROOT}/new", None], ids=["changed", "taken out"])
def test_replicas_of_an_earlier_external_root_are_named(root: str | None) -> None:
    """Their next INSERT is held."""
    more = 1 if root else 2
    wanted = f"early lies at {ROOT}/old/lake/early, and {more} more, where no load may write: it is held"
    assert found(root) == [("warning", wanted)]


def test_nothing_is_said_where_the_earlier_one_is_among_the_paths_of_the_target() -> None:
    assert found(f"{ROOT}/new", f"{ROOT}/old") == []


@pytest.mark.parametrize(
    ("root", "named"),
    [
        (f"{ROOT}/w/sales.db", ["sales"]),
        (f"{ROOT}/w/sales.db/ext/", ["sales"]),
        ("hdfs://nn1:8020/w/sales.db/ext", ["sales"]),
        (f"{ROOT}/own/mart/ext", ["mart"]),
        (f"{ROOT}/w/sales.db2", []),
        (f"{ROOT}/w/ext", []),
        (f"{ROOT}/", []),
        (None, []),
    ],
)
def test_external_tables_of_all_databases_must_not_lie_in_the_directory_of_one(root: str | None, named: list[str]) -> None:
    """Retention and DROP DATABASE move what no table of this one database points at."""
    there = {"sales": HOME, "mart": None, "new": None, "default": Database("default", locationUri=f"{ROOT}/w")}
    policy: Any = SimpleNamespace(external_root=root, locations={"mart": f"{ROOT}/own/mart"})
    found = list(shared_root(policy, there))
    assert [(one.verdict, one.check) for one in found] == [("error", "external_root")] * len(named)
    assert all(f"lies in the directory of {name}" in one.found for one, name in zip(found, named, strict=True))
