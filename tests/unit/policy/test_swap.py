"""The policy of the other direction."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.errors import BadRequest
from hive_replication.policy import Policy, load_policy
from hive_replication.policy.swap import swapped

SIDES = {
    "source": {"metastore": "thrift://a:9083", "roots": [{"uri": "hdfs://a:8020/", "webhdfs": "http://a:9870"}]},
    "target": {"metastore": "thrift://b:9083", "roots": [{"uri": "hdfs://b:8020/"}], "paths": ["hdfs://b:8020/lake"]},
    "dump_root": "hdfs://b:8020/repl/dumps",
}


def test_sides_and_names_are_swapped_and_settings_stay() -> None:
    settings = {"databases": {"sales": "copy", "fin_*": "*"}, "external_root": "hdfs://b:8020/external", "conflicts": "replace"}
    policy = Policy.model_validate({**SIDES, **settings, "locations": {"copy": "hdfs://b:8020/copy"}})
    back = swapped(policy)
    source = policy.target.model_copy(update={"paths": ("hdfs://b:8020/lake", "hdfs://b:8020/external")})
    assert (back.source, back.target, back.databases) == (source, policy.source, {"copy": "sales", "fin_*": "*"})
    assert (back.conflicts, back.dump_root, back.external_root, back.locations) == ("replace", policy.dump_root, None, {})
    assert swapped(back) == policy.model_copy(update={"target": source, "external_root": None, "locations": {}})


def test_partition_filters_keep_their_databases() -> None:
    databases = {"sales": "copy", "hr": "hr", "fin_*": "*"}
    filters = {"sales": {"*": "dt > '2026'"}, "fin_*": {"orders": "n = 1"}, "h*": {"*": "n = 2"}}
    back = swapped(Policy.model_validate({**SIDES, "databases": databases, "partition_filters": filters}))
    expected = {"fin_*": {"orders": "n = 1"}, "h*": {"*": "n = 2"}, "copy": {"*": "dt > '2026'"}}  # hr by h*
    assert back.partition_filters == expected


def test_a_database_gets_no_filter_by_its_other_name() -> None:
    """Writes outside it would not be replicated back after a failover."""
    filters = {"sales*": {"orders": "dt >= '2026'"}}
    settings = {"databases": {"sales": "sales", "crm": "sales_crm"}, "partition_filters": filters}
    policy = Policy.model_validate({**SIDES, **settings})
    back = swapped(policy)
    assert back.partition_filters == {**filters, "sales_crm": {}}
    assert {name: back.filters(name).texts for name in ("sales", "sales_crm")} == {
        "sales": policy.filters("sales").texts, "sales_crm": (),
    }  # fmt: skip
    there_again = swapped(back)
    assert all(there_again.filters(name) == policy.filters(name) for name in ("sales", "crm"))


def test_priorities_keep_their_databases_in_any_case() -> None:
    settings = {"databases": {"sales": "copy", "hr": "hr"}, "priorities": {"Sales": 5, "h*": 2}}
    assert swapped(Policy.model_validate({**SIDES, **settings})).priorities == {"h*": 2, "copy": 5}


def test_other_names_of_a_pattern_cannot_be_turned_back() -> None:
    with pytest.raises(BadRequest, match="'fin_\\*': 'copy_\\*' gives databases other names"):
        swapped(Policy.model_validate({**SIDES, "databases": {"fin_*": "copy_*"}}))


def test_owners_are_turned_round_where_that_can_be_done() -> None:
    policy = Policy.model_validate({**SIDES, "databases": {"sales": "sales"}, "owners": {"alice": "bob"}})
    assert (swapped(policy).owners, swapped(swapped(policy))) == ({"bob": "alice"}, policy)
    with pytest.raises(BadRequest, match="gives two owners one name"):
        swapped(policy.model_copy(update={"owners": {"alice": "ops", "bob": "ops"}}))


def test_principals_are_turned_round_as_owners_are() -> None:
    privileges = {"replicate": True, "principals": {"analysts": "analysts_dr"}}
    policy = Policy.model_validate({**SIDES, "databases": {"sales": "sales"}, "privileges": privileges})
    back = swapped(policy)
    assert (back.privileges.replicate, back.privileges.principals) == (True, {"analysts_dr": "analysts"})
    assert swapped(back) == policy
    two = policy.privileges.model_copy(update={"principals": {"a": "ops", "b": "ops"}})
    with pytest.raises(BadRequest, match="principals gives two principals one name"):
        swapped(policy.model_copy(update={"privileges": two}))


def test_the_command_prints_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(yaml.safe_dump({**SIDES, "databases": {"sales": "copy"}}))
    assert run(["--config", str(path), "policy", "swap"]) == 0
    printed = capsys.readouterr().out
    assert "give this one a name of its own, before failover reverse" in printed.splitlines()[0]
    (tmp_path / "back.yaml").write_text(printed)
    assert load_policy(tmp_path / "back.yaml") == swapped(load_policy(path))


def test_priorities_keep_their_databases() -> None:
    databases = {"sales": "copy", "hr": "hr", "low": "sales_old", "fin_*": "*"}
    policy = Policy.model_validate({**SIDES, "databases": databases, "priorities": {"sales": 5, "s*": 1, "fin_*": -1}})
    back = swapped(policy)
    assert {name: back.priority(name) for name in ("copy", "hr", "sales_old", "fin_a")} == {
        "copy": 5, "hr": 0, "sales_old": 0, "fin_a": -1,
    }  # fmt: skip
    there_again = swapped(back)
    assert all(there_again.priority(name) == policy.priority(name) for name in ("sales", "hr", "low", "fin_a"))
