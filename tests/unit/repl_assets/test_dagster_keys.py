"""Names in Dagster and back."""

from __future__ import annotations

import dagster as dg
import pytest
from dagster._core.definitions.partitions.utils.base import INVALID_PARTITION_SUBSTRINGS
from dagster._core.definitions.utils import validate_asset_owner
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.metastore import names as hive
from repl_assets.catalog.keys import Names, Stage, Window, component, hive_name, owner, partition_key, partition_name

_TRICKY = st.sampled_from(
    ["...", "....", "|", "/", "%", "=", " ", "ü", "%2E", "%7C", ".", "a" * 300, "\n", "__dump", "\U0001f600"]
)
_VALUE = st.lists(_TRICKY | st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=5).map("".join)


@given(st.lists(_VALUE, min_size=1, max_size=3))
def test_partition_keys_round_trip(values: list[str]) -> None:
    name = hive.partition_name([f"k{n}" for n in range(len(values))], values)
    key = partition_key(name)
    assert partition_name(key) == name
    assert not any(text in key for text in [*INVALID_PARTITION_SUBSTRINGS, "|"])
    assert hive.partition_values(key) == hive.partition_values(name)  # the key is a name of the same partition in Hive, too


@given(_VALUE, _VALUE)
def test_partition_keys_differ_for_different_partitions(one: str, other: str) -> None:
    first, second = (hive.partition_name(["ds"], [value]) for value in (one, other))
    assert (partition_key(first) == partition_key(second)) == (first == second)


@given(_VALUE)
def test_asset_key_components_round_trip(name: str) -> None:
    part = component(name)
    assert hive_name(part) == name
    assert all(c.isascii() and (c.isalnum() or c in "_.-") for c in part)


@pytest.mark.parametrize("stage", ["source", "dump", "load"])
def test_a_table_named_like_a_stage_is_no_stage_of_another(stage: str) -> None:
    names = Names("p")
    keys = {names.table("db", table, s) for table in ("orders", f"orders__{stage}") for s in ("source", "dump", "load")}
    assert len(keys) == 6


def test_keys_read_as_expected() -> None:
    names = Names("default")
    assert names.database("sales", "load") == dg.AssetKey(["default", "sales__load"])
    assert names.table("sales", "orders", "dump") == dg.AssetKey(["default", "sales", "orders__dump"])
    assert names.table("sales", "orders", "load") == dg.AssetKey(["default", "sales", "orders"])
    assert (names.group("sales"), Names("dr").group("sales")) == ("sales", "dr/sales")
    assert (names.local("notification_log"), Names("dr").local("notification_log")) == ("notification_log", "dr_notification_log")


def test_keys_of_other_projects_that_begin_with_the_name_of_the_policy_are_not_its_own() -> None:
    names, databases = Names("dr"), ["sales", "a-b.c__load"]
    stages: tuple[Stage, ...] = ("source", "dump", "plan", "approval", "load")
    of_databases = [names.database(name, stage) for name in databases for stage in stages] + list(map(names.tables, databases))
    of_tables = [names.table(name, "orders__dump", stage) for name in databases for stage in ("source", "dump", "load")]
    others = [["dr"], ["dr", "sales"], ["dr", "__load"], ["dr", "sales__stg"], ["dr", "hr__load"], ["dr", "hr", "a"]]
    foreign = [dg.AssetKey(path) for path in (*others, ["dr", "sales", "a", "b"], ["dr_2", "sales__load"], ["dr", "a.ff__load"])]
    assert names.own([*foreign, *of_databases, *of_tables], databases) == [*of_databases, *of_tables]


@pytest.mark.parametrize("window", [Window(None, 170), Window(170, 1400), Window(0, 0)])
def test_windows_round_trip(window: Window) -> None:
    assert Window.parse(str(window)) == window


@pytest.mark.parametrize("key", ["", "170", "a-3", "bootstrap", "5-4", "-3", "1-2-3", "bootstrap-"])
def test_other_keys_are_no_windows(key: str) -> None:
    with pytest.raises(ValueError, match="is not a window"):
        Window.parse(key)


@pytest.mark.parametrize(
    ("hive_owner", "expected"),
    [
        ("etl", "team:etl"),
        ("jo@example.com", "jo@example.com"),
        ("nn/host@REALM", "team:nn/host@REALM"),
        ("alice@corp.internal", "team:alice@corp.internal"),
        ("etl@prod.cluster1", "team:etl@prod.cluster1"),
        ("%a@example.com", "team:%a@example.com"),
        ("", None),
        (None, None),
    ],
)
def test_owners_have_the_form_that_dagster_takes(hive_owner: str | None, expected: str | None) -> None:
    assert owner(hive_owner) == expected
    if expected:
        validate_asset_owner(expected, dg.AssetKey("x"))


def test_a_replica_is_found_by_its_asset_key() -> None:
    names = Names("p")
    assert names.replica("db", "t") == (names.table("db", "t", "load"), None)
    assert names.replica("db", "t", "ds=1|2") == (names.table("db", "t", "load"), "ds=1%7C2")
    assert Names.hive_table(names.table("dö", "t__dump", "load")) == ("dö", "t__dump")


def test_in_overflow_a_table_is_a_partition_of_one_asset() -> None:
    names = Names("p", frozenset({"db"}))
    assert names.replica("db", "t", "ds=1") == (dg.AssetKey(["p", "db__tables"]), "t")
    assert names.replica("other", "t")[0] == names.table("other", "t", "load")
