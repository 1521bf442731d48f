"""Which tables a policy takes, and the text of it that a replica keeps."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.errors import BadRequest
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.policy_scope import changed, made_with, require_made_with
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore.types import Database
from hive_replication.policy import PolicyScope
from hive_replication.policy.scope import PartitionFilters
from hive_replication.statements import Tables
from tests.moving import POLICY


def test_patterns_match_as_hives_names_do() -> None:
    scope = PolicyScope(("*A1", "Orders"), ("X[AB]*",))
    assert [scope.includes(name) for name in ("fa1", "orders", "xa1", "other")] == [True, True, False, False]
    policy = POLICY.model_copy(update={"tables": ("*A1",)})
    assert (policy.includes("xa1"), policy.target_of("db")) == (True, "db")


def test_regular_expressions_stand_between_slashes() -> None:
    scope = PolicyScope(("/t[0-9]+|X/", "other*"), (r"/t\D*0/",))
    names = ("t1", "T22", "x", "xx", "t0", "at1", "t1a", "other_1")
    assert [name for name in names if scope.includes(name)] == ["t1", "T22", "x", "other_1"]
    assert PolicyScope.parse(scope.text) == PolicyScope(("/t[0-9]+|X/", "other*"), (r"/t\D*0/",))
    with pytest.raises(BadRequest, match="does not say"):
        PolicyScope.parse(scope.text.replace("+", "+("))
    with pytest.raises(ValueError, match="not a regular expression"):
        type(POLICY).model_validate(POLICY.model_dump(mode="json") | {"tables": ["/a(/"]})


def test_what_a_statement_says_it_replaces() -> None:
    made = ReplicaState("uuid/db", 7, scope=PolicyScope(("/a/",), ("/b/",)).text)
    require_made_with(made, "db", Tables("a", "b"))
    require_made_with(replace(made, scope=PolicyScope().text), "db", Tables(".*"))
    for state, tables in ((made, Tables("a")), (made, Tables(".*")), (ReplicaState("uuid/db", 7), Tables("a"))):
        with pytest.raises(BadRequest, match="not with the tables that REPLACE names"):
            require_made_with(state, "db", tables)


def test_names_of_databases_have_no_case() -> None:
    settings = POLICY.model_dump(mode="json") | {"databases": {"Sales": "Sales_Copy", "ETL_*": "x_*"}}
    policy = type(POLICY).model_validate(settings)
    assert (policy.databases["sales"], policy.target_of("etl_a")) == ("sales_copy", "x_etl_a")
    with pytest.raises(ValueError, match="named twice"):
        type(POLICY).model_validate(settings | {"databases": {"Sales": "a", "sales": "b"}})


def test_the_text_is_the_same_for_the_same_lists() -> None:
    scope = PolicyScope(("b", "A"), ("x",), acid=False)
    assert scope.text == PolicyScope(("a", "B", "b"), ("X",), acid=False).text
    assert PolicyScope.parse(scope.text) == PolicyScope(("a", "b"), ("x",), acid=False)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"tables":1}', "[" * 100_000])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="does not say"):
        PolicyScope.parse(text)


def test_who_is_taken_in() -> None:
    before = PolicyScope(("a",))
    now = PolicyScope(("*",), ("c",))
    assert [name for name in "abc" if now.takes_in(name, before)] == ["b"]
    assert [name for name in "abc" if now.takes_in(name, replace(now, metadata_only=True))] == ["a", "b"]


def test_materialized_views_are_part_of_it_where_they_are_replicated() -> None:
    policy = type(POLICY).model_validate(POLICY.model_dump(mode="json") | {"materialized_views": "definition"})
    scope = policy.scope("db")
    assert (scope.materialized_views, PolicyScope.parse(scope.text)) == (True, scope)
    assert "materialized_views" not in POLICY.scope("db").text  # as replicas of earlier versions have it
    assert not scope.takes_in("a", POLICY.scope("db"))  # names do not tell


def test_partition_filters_are_part_of_it_where_there_are_some() -> None:
    filters = PartitionFilters((("a*", "dt > '2026'"), ("*", "n = 1")))
    scope = PolicyScope(("*",), ("c",), filters=filters)
    assert PolicyScope.parse(scope.text) == scope
    assert "filters" not in PolicyScope().text  # as replicas of earlier versions have it
    assert [found and found.text for found in map(filters.of, ("ab", "b"))] == ["dt > '2026'", "n = 1"]
    other = replace(scope, filters=PartitionFilters((("A*", "dt > '2026'"), ("b", "n = 2"), ("*", "n = 1"))))
    assert [name for name in "abcd" if other.takes_in(name, scope)] == ["b"]
    assert [name for name in "abcd" if PolicyScope().takes_in(name, other)] == ["a", "b", "c", "d"]


def test_the_state_keeps_long_scopes_whom_it_awaits_and_who_left() -> None:
    text = PolicyScope(tuple(f"table_{n}" for n in range(5_000))).text
    held = {"x": f"{TAKEN_IN_REASON}and so on", "y": "failed"}
    state = ReplicaState("uuid/db", 7, at={"x": 5, "y": 6}, held=held, scope=text, left={"z": 3})
    parameters = state.parameters()
    assert max(map(len, parameters.values())) <= 4_000
    read = replica_state(Database(parameters=parameters))
    assert (read.scope, read.left, read.coming) == (text, {"z": 3}, {"x"})


def test_what_a_dump_is_told_of_its_replica() -> None:
    source: Any = SimpleNamespace(policy=POLICY, acid=True)
    same = ReplicaState("uuid/db", 7, scope=POLICY.scope("db").text)
    assert (changed(same, source, "db"), made_with(same, source, "db", list)) == (False, None)
    assert not changed(ReplicaState("uuid/db", 7), source, "db")  # made by an earlier version
    other = replace(same, scope=PolicyScope(("a",)).text)
    found = made_with(other, source, "db", list)
    assert (changed(other, source, "db"), found and found.scope) == (True, other.scope)
    earlier = made_with(ReplicaState("uuid/db", 7), source, "db", lambda: ["b", "a"])
    assert earlier is not None
    assert (earlier.scope, earlier.there) == ("", ("a", "b"))


def test_a_source_that_gives_transactional_tables_by_now_is_a_change() -> None:
    """Its Hive 3 became Hive 4: its transactional tables never came, and nothing said so."""
    before, now = (POLICY.scope("db", acid=acid) for acid in (False, True))
    assert (before.transactions, now.transactions) == (False, True)
    made = ReplicaState("uuid/db", 7, scope=before.text)
    sources: list[Any] = [SimpleNamespace(policy=POLICY, acid=acid) for acid in (False, True)]
    assert [changed(made, source, "db") for source in sources] == [False, True]
    without = POLICY.model_copy(update={"metadata_only": True})
    assert without.scope("db", acid=False) == without.scope("db")  # as earlier versions wrote it


def test_scopes_that_earlier_versions_kept_are_read_though_a_pattern_has_a_slash_in_front_alone() -> None:
    assert PolicyScope.parse(PolicyScope(("/t[0-9]+",)).text).tables == ("/t[0-9]+",)


@pytest.mark.parametrize("setting", ["databases", "partition_filters", "priorities"])
@pytest.mark.parametrize(
    ("pattern", "message"),
    [("/sal(es*/", "'sal(es*' is not a regular expression"), ("/sal[e]s", "'/sal[e]s' has no slash at its end")],
)
def test_patterns_of_databases_are_checked_as_those_of_tables_are(setting: str, pattern: str, message: str) -> None:
    """The first ended commands with re.error; by the second all partitions were replicated where some were meant."""
    value = {"databases": "*", "partition_filters": {"orders": "dt = 1"}, "priorities": 1}[setting]
    settings = POLICY.model_dump(mode="json") | {setting: {pattern: value}}
    with pytest.raises(ValueError, match=re.escape(message)):
        type(POLICY).model_validate(settings)


def test_classes_of_characters_in_patterns_of_databases_keep_their_case() -> None:
    """``\\D`` was taken for ``\\d``."""
    pattern = r"/Ab_\D*/"
    filters = {pattern: {"orders": "dt = 1"}}
    settings = POLICY.model_dump(mode="json") | {"databases": {pattern: "*"}, "partition_filters": filters}
    policy = type(POLICY).model_validate(settings)
    assert [name for name in ("ab_x", "ab_1", "AB_Y") if policy.has_database(name)] == ["ab_x", "AB_Y"]
    assert [bool(policy.filters(name).texts) for name in ("ab_x", "ab_1")] == [True, False]
    assert list(policy.databases) == list(policy.partition_filters) == [pattern]


def test_regular_expressions_of_databases_stay_as_they_are_written() -> None:
    """The first was refused for ``?p``, the second lacked the names with ``_``."""
    settings = POLICY.model_dump(mode="json") | {"databases": {"/(?P<x>a.*)_(?P=x)/": "*", "/B[A-z]*/": "*"}}
    policy = type(POLICY).model_validate(settings)
    assert [name for name in ("a1_a1", "a1_a2", "b", "b_x", "c") if policy.has_database(name)] == ["a1_a1", "b", "b_x"]
