"""Which databases a policy by pattern has."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hive_replication.databases import taken_in, with_databases
from hive_replication.errors import BadRequest
from hive_replication.policy import Policy, Root, Warehouse


def policy(databases: dict[str, str], *, new: bool = False) -> Policy:
    side = Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://s:8020/"),))
    return Policy(source=side, target=side, dump_root="hdfs://s:8020/dumps", databases=databases, new_databases=new)


def test_names_come_before_patterns_and_the_first_pattern_counts() -> None:
    made = policy({"sales_*": "dr_*", "*_eu": "*", "sales_x": "y"})
    assert [made.target_of(name) for name in ("sales_a", "sales_eu", "web_eu", "sales_x", "hr")] == [
        "dr_sales_a", "dr_sales_eu", "web_eu", "y", "hr",
    ]  # fmt: skip
    assert taken_in(made, ["sales_a", "sales_eu", "web_eu", "sales_x", "hr", "sys"], {}) == {
        "sales_*": ["sales_a", "sales_eu"],
        "*_eu": ["web_eu"],
    }
    assert with_databases(made, ["sales_a"]).databases == {"sales_x": "y", "sales_a": "dr_sales_a"}


@pytest.mark.parametrize(("new", "expected"), [(False, ["sales_a"]), (True, ["sales_a", "sales_b"])])
def test_later_databases_only_where_the_policy_says_so(new: bool, expected: list[str]) -> None:
    known = {"sales_*": ["sales_a"]}
    assert taken_in(policy({"sales_*": "*"}, new=new), ["sales_a", "sales_b"], known) == {"sales_*": expected}
    gone = taken_in(policy({"sales_*": "*"}), [], known)
    assert gone == known  # that it was dropped is to be replicated too
    assert taken_in(policy({"s*": "*"}), ["sales_b"], known) == {"s*": ["sales_b"]}


def test_two_databases_of_one_name_on_the_target_are_refused() -> None:
    with pytest.raises(BadRequest, match="replicates both 'x' and 'sales_a' to 'sales_a'"):
        with_databases(policy({"x": "sales_a", "sales_*": "*"}), ["sales_a"])
    with pytest.raises(ValidationError, match="'a' and 'b' have the same target 'x'"):
        policy({"a": "x", "b": "x"})
    assert policy({"a*": "*", "b*": "*"})


@pytest.mark.parametrize("databases", [{"sales_*": "sales"}, {"sales": "*"}, {"sales_*": "*_*"}])
def test_a_pattern_needs_a_star_in_its_target(databases: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="a pattern needs one"):
        policy(databases)
