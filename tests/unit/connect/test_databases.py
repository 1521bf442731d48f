"""Which databases a policy by pattern has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from hive_metastore.ttypes import DatabaseType
from pydantic import ValidationError

from hive_replication.connect import Reachable, connect_reachable
from hive_replication.connect import databases as module
from hive_replication.connect import former_databases as module_of_former
from hive_replication.connect import reachable_servers as module_of_reports
from hive_replication.connect.databases import PatternMatches, matched, matched_before, taken_in, with_databases
from hive_replication.doctor.patterns import database_findings
from hive_replication.dump import source as module_of_sources
from hive_replication.errors import BadRequest, MetastoreError, Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import Denied, Storage


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


def test_two_databases_of_one_name_on_the_target_are_refused_where_the_policy_names_them() -> None:
    with pytest.raises(BadRequest, match="replicates both 'x' and 'y' to 'sales_a'"):
        with_databases(policy({"s*": "*"}).model_copy(update={"databases": {"x": "sales_a", "y": "sales_a"}}), [])
    with pytest.raises(ValidationError, match="'a' and 'b' have the same target 'x'"):
        policy({"a": "x", "b": "x"})
    assert policy({"a*": "*", "b*": "*"})


@pytest.mark.parametrize("databases", [{"sales_*": "sales"}, {"sales": "*"}, {"sales_*": "*_*"}])
def test_a_pattern_needs_a_star_in_its_target(databases: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="a pattern needs one"):
        policy(databases)


@pytest.mark.parametrize(
    ("databases", "wrong"),
    [
        ({"sales": ""}, ""),
        ({"": "sales"}, ""),
        ({"sales": "sales.copy"}, "sales.copy"),
        ({"sales-x": "sales"}, "sales-x"),
        ({"sales": "a b"}, "a b"),
        ({"a/b": "../c"}, "a/b"),
        ({" sales ": "sales"}, " sales "),
        ({"sales": "s\n"}, "s\n"),
        ({"sales": "größe"}, "größe"),
        ({"sales_*": "../*"}, "../*"),
    ],
)
def test_names_that_no_metastore_takes_are_refused(databases: dict[str, str], wrong: str) -> None:
    """They came to light only when a database was created, or were taken for a table or a path."""
    with pytest.raises(ValidationError) as error:
        policy(databases)
    assert f"{wrong!r} is no name of a database" in error.value.errors()[0]["msg"]


def test_names_that_a_metastore_takes() -> None:
    made = policy({"Sales_1": "1_COPY", "[!x]?": "*", "*": "dr_*_2"})
    assert [made.target_of(name) for name in ("sales_1", "ab", "hr_x")] == ["1_copy", "ab", "dr_hr_x_2"]


def test_of_two_databases_of_one_name_on_the_target_the_one_is_left_out_that_came_by_a_pattern() -> None:
    """Whoever may create a database at the source must not stop the others of the policy by one."""
    made = policy({"x": "sales_a", "sales_*": "*"})
    assert with_databases(made, ["sales_a", "sales_b"]).databases == {"x": "sales_a", "sales_b": "sales_b"}
    assert taken_in(made, ["sales_a", "sales_b"], {}) == {"sales_*": ["sales_b"]}
    assert taken_in(made, ["sales_a", "sales_b"], {"sales_*": ["sales_a", "sales_b"]}) == {"sales_*": ["sales_b"]}
    two = policy({"dr_*": "*", "s*": "dr_*"}, new=True)
    assert taken_in(two, ["dr_s1", "s1"], {}) == {"dr_*": ["dr_s1"], "s*": []}
    assert taken_in(two, ["dr_s1", "s1"], {"s*": ["s1"]}) == {"dr_*": [], "s*": ["s1"]}  # the replica that there is stays


def test_a_database_that_is_named_later_stays_recorded() -> None:
    """Else its pattern would be as good as new, and take in databases against the policy."""
    made = policy({"sales_a": "x", "sales_*": "*"})
    assert taken_in(made, ["sales_a", "sales_b"], {"sales_*": ["sales_a"]}) == {"sales_*": ["sales_a"]}
    assert with_databases(made, ["sales_a"]).databases == {"sales_a": "x"}


class Source:
    """A metastore's databases."""

    def __init__(self, *names: str, remote: str = "", hidden: str = "") -> None:
        self.names, self.remote, self.hidden = names, remote, hidden

    def uuid(self) -> str:
        return "s"

    def databases(self) -> list[str]:
        return list(self.names)

    def database(self, name: str) -> Database:
        if name == self.hidden:
            raise MetastoreError(f"get_database {name}: Permission denied")
        return Database(name=name, type=DatabaseType.REMOTE if name == self.remote else None)


class Target:
    """The target's databases: sources of replicas by name."""

    def __init__(self) -> None:
        self.replicas: dict[str, str] = {}
        self.policy = ""
        self.answers = True

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def databases(self) -> list[str]:
        if not self.answers:
            raise Unreachable("the target is down")
        return list(self.replicas)

    def database(self, name: str) -> Database | None:
        source = self.replicas.get(name)
        return Database(name=name, parameters=ReplicaState(source, 1, policy=self.policy).parameters()) if source else None


@pytest.fixture(autouse=True)
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    made = Target()
    monkeypatch.setattr(module_of_former, "Metastore", Mock(of=Mock(return_value=made)))
    return made


def kept(tmp_path: Path) -> Policy:
    return policy({"s*": "*"}, new=True).model_copy(update={"dump_root": f"file://{tmp_path}/dumps"})


def kept_below(tmp_path: Path, made: Policy) -> Path:
    return tmp_path / f"dumps/.policies/default-{pair_hash(made.pair)}"


def found(made: Policy, *names: str) -> list[str]:
    source: Any = Source(*names)
    return sorted(matched(made, source, 5.0)[0].databases)


def test_the_databases_of_a_policy_are_remembered(tmp_path: Path) -> None:
    made = kept(tmp_path)
    assert found(made, "s1") == ["s1"]
    assert found(made) == ["s1"]
    for number in range(2, 30):
        assert len(found(made, f"s{number}")) == number
    assert len(list(kept_below(tmp_path, made).iterdir())) == 10


def test_policies_of_one_name_keep_their_databases_apart(tmp_path: Path) -> None:
    """Else the second one had the databases of the first, and lacked its own."""
    first = kept(tmp_path).model_copy(update={"databases": {"*": "s1_*"}, "new_databases": False})
    other = first.source.model_copy(update={"metastore": "thrift://127.0.0.1:2"})
    second = first.model_copy(update={"source": other, "databases": {"*": "s2_*"}})
    for _ in range(2):
        assert found(first, "hr", "sales") == ["hr", "sales"]
        assert found(second, "finance", "ops", "sales") == ["finance", "ops", "sales"]
    assert matched_before(second, 5.0)[1].databases == {"*": ["finance", "ops", "sales"]}


def test_databases_that_an_earlier_version_kept_count_where_all_are_in_this_source(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    place = tmp_path / "dumps/.policies/default"
    place.mkdir(parents=True)
    (place / "3.json").write_text('{"s*": ["s1", "s2"]}', encoding="utf-8")
    assert sorted(matched_before(made, 5.0)[0].databases) == ["s1", "s2"]
    assert found(made, "s1", "s2", "s3") == ["s1", "s2"]
    assert found(made, "s1", "s3") == ["s1", "s2"]  # one that is dropped later is kept
    other = made.model_copy(update={"source": made.source.model_copy(update={"metastore": "thrift://127.0.0.1:2"})})
    assert found(other, "s1", "s3") == ["s1", "s3"]
    assert "this source has no s2" in caplog.text


def with_source(made: Policy, *addresses: str) -> Policy:
    return made.model_copy(update={"source": made.source.model_copy(update={"metastore": ",".join(addresses)})})


def test_databases_that_an_earlier_version_kept_stay_although_one_was_dropped_since(tmp_path: Path, target: Target) -> None:
    """Names never leave that list: all other databases of the source were taken in, and a drop was not loaded."""
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    place = tmp_path / "dumps/.policies/default"
    place.mkdir(parents=True)
    (place / "3.json").write_text('{"s*": ["s1", "s2"]}', encoding="utf-8")
    target.replicas = {"s1": "s/s1", "s2": "another/s2"}
    for _ in range(2):
        assert found(made, "s1", "s3") == ["s1", "s2"]
    assert len(list(kept_below(tmp_path, made).iterdir())) == 1


def test_another_address_of_the_same_source_leaves_the_databases_as_they_are(tmp_path: Path, target: Target) -> None:
    """Its list began anew, with all databases of the source; and an unplanned failover had none at all."""
    one = with_source(kept(tmp_path), "thrift://127.0.0.1:2").model_copy(update={"new_databases": False})
    assert found(one, "s1", "s2") == ["s1", "s2"]
    target.replicas = {"s1": "s/s1"}
    two, three = with_source(one, "thrift://127.0.0.1:2", "thrift://127.0.0.1:3"), with_source(one, "thrift://127.0.0.1:3")
    assert sorted(matched_before(two, 5.0)[0].databases) == ["s1", "s2"], "its source is down"
    target.answers = False
    with pytest.raises(Unreachable, match="the target is down"):
        found(two, "s1", "s2", "s3")
    assert matched_before(two, 5.0)[1].databases == {}
    target.answers = True
    assert found(two, "s1", "s2", "s3") == ["s1", "s2"]
    target.replicas = {"s1": "another/s1"}
    assert found(three, "s1", "s2", "s3") == ["s1", "s2", "s3"], "it is another source"


def test_another_place_for_dumps_leaves_the_databases_as_they_are(tmp_path: Path, target: Target) -> None:
    """All others that the patterns match were taken in; so it was where the place was lost."""
    made = kept(tmp_path).model_copy(update={"databases": {"s*": "dr_*", "x": "x"}, "new_databases": False})
    assert found(made, "s1", "s2", "x") == ["s1", "s2", "x"]
    target.replicas, target.policy = {"dr_s1": "s/s1", "dr_s2": "s/s2", "dr_s4": "another/s4", "x": "s/x"}, "default"
    moved = made.model_copy(update={"dump_root": f"file://{tmp_path}/others"})
    target.answers = False
    with pytest.raises(Unreachable, match="the target is down"):
        found(moved, "s1", "s2", "s3", "s4", "x")
    target.answers = True
    for _ in range(2):
        assert found(moved, "s1", "s2", "s3", "s4", "x") == ["s1", "s2", "x"]


def test_a_pattern_in_place_of_a_name_is_new_although_the_target_has_a_replica(tmp_path: Path, target: Target) -> None:
    """Where the policy's dumps are, nothing was lost."""
    target.replicas = {"s1": "s/s1"}
    (tmp_path / "dumps/s1").mkdir(parents=True)
    assert found(kept(tmp_path).model_copy(update={"new_databases": False}), "s1", "s2") == ["s1", "s2"]


def test_another_name_of_the_policy_leaves_the_databases_as_they_are(tmp_path: Path, target: Target) -> None:
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    assert found(made, "s1", "s2") == ["s1", "s2"]
    target.replicas, target.policy = {"s1": "s/s1"}, made.name
    named = made.model_copy(update={"name": "finance"})
    assert found(named, "s1", "s2", "s3") == ["s1", "s2"]
    apart = named.model_copy(update={"name": "ops", "databases": {"s*": "ops_*"}})
    assert found(apart, "s1", "s2", "s3") == ["s1", "s2", "s3"], "its replicas are others"


def test_a_source_whose_databases_overlap_those_of_another_goes_on_with_its_own(tmp_path: Path, target: Target) -> None:
    first = with_source(kept(tmp_path), "thrift://127.0.0.1:2").model_copy(
        update={"databases": {"*": "dr_*"}, "new_databases": False}
    )
    second, moved = with_source(first, "thrift://127.0.0.1:3"), with_source(first, "thrift://127.0.0.1:4")
    assert found(first, "hr", "sales") == ["hr", "sales"]
    assert found(second, "finance", "ops", "sales") == ["finance", "ops", "sales"]
    target.replicas = {"dr_sales": "s/sales", "dr_ops": "s/ops", "dr_hr": "another/hr"}
    (kept_below(tmp_path, first) / "2.json").write_text("damaged", encoding="utf-8")
    assert found(moved, "finance", "ops", "sales", "web") == ["finance", "ops", "sales"]


def test_the_database_that_is_asked_for_is_known_where_none_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unplanned failover ended with: the policy has no database."""
    monkeypatch.setattr(module_of_reports, "reach", Mock(return_value=Reachable(source="down")))
    made = kept(tmp_path)
    assert list(connect_reachable(made, "s1")[0].source.policy.databases) == ["s1"]
    assert not connect_reachable(made, "x")[0].source.policy.databases


def test_a_database_whose_name_is_taken_stops_nothing_and_is_not_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor does one that was recorded: it stays so, since another policy of this name may have it."""
    made = kept(tmp_path).model_copy(update={"databases": {"finance": "sdr", "s*": "*"}})
    source: Any = Source("finance", "sdr", "s1")
    place = kept_below(tmp_path, made)
    place.mkdir(parents=True)
    (place / "1.json").write_text('{"s*": ["s1", "sdr"]}', encoding="utf-8")
    found, patterns = matched(made, source, 5.0)
    assert (found.databases, patterns.databases) == ({"finance": "sdr", "s1": "s1"}, {"s*": ["s1"]})
    assert list(patterns.left_out) == ["sdr"]
    assert "the source database sdr is left out: its name on the target would be 'sdr', which is that of 'finance'" in caplog.text
    assert matched_before(made, 5.0) == (found, PatternMatches(patterns.databases))
    (place / "1.json").unlink()
    matched(made, source, 5.0)
    assert (place / "1.json").read_text(encoding="utf-8") == '{"s*": ["s1"]}'
    assert next(one.found for one in database_findings(patterns)).startswith("matched by a pattern and not replicated")


def test_databases_of_data_connectors_are_left_out(tmp_path: Path) -> None:
    """Their tables are another system's, and the target has no such connector: their loads failed."""
    made = kept(tmp_path)
    source: Any = Source("s1", "s2", remote="s2")
    for record in (False, True, True):
        found, patterns = matched(made, source, 5.0, record=record)
        assert (found.databases, patterns.databases) == ({"s1": "s1"}, {"s*": ["s1"]})
        assert "data connector" in patterns.left_out["s2"]
    dumped = module_of_sources.Source(source, None, made)  # type: ignore[arg-type]
    source.uri = "thrift://s:1"
    assert dumped.database("s1").name == "s1"
    with pytest.raises(BadRequest, match="data connector"):
        dumped.database("s2")


@pytest.mark.parametrize("record", [True, False])
def test_a_database_that_the_metastore_hides_is_taken_in_and_stops_no_other(
    record: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing could be connected, not even by the doctor; where that database is asked for, it says that it is hidden."""
    source: Any = Source("s1", "s2", "s3", remote="s1", hidden="s2")
    found, patterns = matched(kept(tmp_path), source, 5.0, record=record)
    assert (list(found.databases), list(patterns.left_out)) == (["s2", "s3"], ["s1"])
    assert "get_database s2: Permission denied" in caplog.text


def test_a_database_whose_kind_was_not_known_is_asked_about_again(tmp_path: Path) -> None:
    """A remote one whose first answer failed was recorded as an ordinary one, for good."""
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    source: Any = Source("s1", "s2", "s3", remote="s2", hidden="s2")
    for _ in range(2):
        assert list(matched(made, source, 5.0)[0].databases) == ["s1", "s2", "s3"]
    assert [path.name for path in kept_below(tmp_path, made).iterdir()] == ["1.json"]
    assert list(matched_before(made, 5.0)[0].databases) == ["s1", "s2", "s3"]
    source.hidden = ""
    for record in (False, True):
        found, patterns = matched(made, source, 5.0, record=record)
        assert (list(found.databases), list(patterns.left_out)) == (["s1", "s3"], ["s2"])
    assert list(matched(made, source, 5.0)[0].databases) == ["s1", "s3"]
    assert list(matched_before(made, 5.0)[0].databases) == ["s1", "s3"]


def test_an_ordinary_database_whose_kind_was_not_known_stays(tmp_path: Path) -> None:
    """Also where its pattern takes in no new ones; and it is asked about until its kind is known."""
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    source: Any = Source("s1", "s2", hidden="s2")
    matched(made, source, 5.0)
    source.hidden = ""
    assert list(matched(made, source, 5.0)[0].databases) == ["s1", "s2"]
    source.remote, source.hidden = "s2", "s2"
    assert list(matched(made, source, 5.0)[0].databases) == ["s1", "s2"]
    assert (kept_below(tmp_path, made) / "2.json").read_text(encoding="utf-8") == '{"s*": ["s1", "s2"]}'


def test_a_report_comes_where_a_replica_is_hidden(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which databases the patterns had cannot be told by the replicas then: what replicates waits, and reports do not."""
    target.replicas = {"s1": "s/s1"}

    def hidden(name: str) -> Database:
        raise MetastoreError(f"get_database {name}: Permission denied")

    monkeypatch.setattr(target, "database", hidden)
    made: Policy = kept(tmp_path).model_copy(update={"new_databases": False})
    source: Any = Source("s1")
    assert list(matched(made, source, 5.0, record=False)[0].databases) == ["s1"]
    with pytest.raises(MetastoreError):
        matched(made, source, 5.0)


def test_policies_of_one_name_and_one_pair_keep_the_databases_of_their_own_patterns(tmp_path: Path) -> None:
    """Each took the list of the other for one without its patterns: all databases were new to it, and a file was written."""
    one, two = (
        kept(tmp_path).model_copy(update={"databases": {pattern: "*"}, "new_databases": False}) for pattern in ("a*", "b*")
    )
    assert (found(one, "a1", "b1"), found(two, "a1", "b1")) == (["a1"], ["b1"])
    for _ in range(2):
        assert (found(one, "a1", "a2", "b1", "b2"), found(two, "a1", "a2", "b1", "b2")) == (["a1"], ["b1"])
    assert sorted(file.name for file in kept_below(tmp_path, one).iterdir()) == ["1.json", "2.json"]
    assert [list(matched_before(each, 5.0)[0].databases) for each in (one, two)] == [["a1"], ["b1"]]


@pytest.mark.parametrize("second", [{"a*": "*", "*": "*"}, {"x": "a1", "*": "*"}], ids=["by a pattern", "by its name"])
@pytest.mark.parametrize("new", [True, False])
def test_a_policy_takes_no_databases_from_another_one_that_has_a_pattern_of_it(
    second: dict[str, str], new: bool, tmp_path: Path
) -> None:
    """The other no longer replicated them, without a word; so it was where a pattern stood before another one for a time."""
    one, two = (
        kept(tmp_path).model_copy(update={"databases": databases, "new_databases": new}) for databases in ({"*": "*"}, second)
    )
    for _ in range(3):
        assert found(one, "a1", "b1", "x") == ["a1", "b1", "x"]
        assert {"a1", "b1", "x"} - set(found(two, "a1", "b1", "x")) == ({"a1"} if "x" in second else set[str]())
        assert sorted(matched_before(one, 5.0)[0].databases) == ["a1", "b1", "x"]
        assert sorted(matched_before(two, 5.0)[0].databases) == found(two)
    assert len(list(kept_below(tmp_path, one).iterdir())) <= 2


def test_databases_of_a_pattern_that_was_edited_are_known_while_the_source_is_down(tmp_path: Path) -> None:
    """Failover knew nothing of their replicas, just when it was needed."""
    one = kept(tmp_path).model_copy(update={"databases": {"a*": "*", "fin_*": "*"}})
    assert found(one, "a1", "fin_1") == ["a1", "fin_1"]
    edited = one.model_copy(update={"databases": {"a*": "*", "fin*": "*"}})
    policy, patterns = matched_before(edited, 5.0)
    assert (sorted(policy.databases), patterns.databases) == (["a1", "fin_1"], {"a*": ["a1"], "fin*": ["fin_1"]})


def test_a_regular_expression_of_another_case_is_new(tmp_path: Path) -> None:
    """Its case is that of classes of characters: it had those of the former one, of which none matched."""
    made = kept(tmp_path).model_copy(update={"databases": {r"/fin_?\d+/": "*"}, "new_databases": False})
    assert found(made, "fin_1", "fin_eu") == ["fin_1"]
    edited = made.model_copy(update={"databases": {r"/fin_?\D+/": "*"}})
    assert found(edited, "fin_1", "fin_eu") == ["fin_eu"]


def test_a_pattern_without_databases_is_new_when_its_first_one_comes(tmp_path: Path) -> None:
    made = kept(tmp_path).model_copy(update={"new_databases": False})
    assert found(made, "x") == []
    assert found(made, "s1") == ["s1"]
    assert found(made, "s1", "s2") == ["s1"]


def test_reports_record_nothing_and_come_without_the_storage_of_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = kept(tmp_path)
    source: Any = Source("s1")
    assert list(matched(made, source, 5.0, record=False)[0].databases) == ["s1"]
    assert not (tmp_path / "dumps").exists()
    for problem in (Unreachable("the storage root cannot be reached"), Denied("the account x may not")):
        monkeypatch.setattr(Storage, "ls", raising(problem))
        assert list(matched(made, source, 5.0, record=False)[0].databases) == ["s1"]
        assert str(problem) in caplog.text
        monkeypatch.setattr(module_of_reports, "reach", lambda _: Reachable())
        monkeypatch.setattr(Metastore, "databases", lambda *_: ["s1"])
        monkeypatch.setattr(Metastore, "database", lambda *_: None)
        assert list(connect_reachable(made)[0].source.policy.databases) == ["s1"]
        monkeypatch.setattr(module_of_reports, "reach", lambda _: Reachable(source="down"))
        assert not connect_reachable(made)[0].source.policy.databases


def raising(problem: Exception) -> Any:
    def ask(*_: object) -> None:
        raise problem

    return ask


def test_two_instances_take_in_databases_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another instance wrote between reading and writing is not lost."""
    made, others = kept(tmp_path), [["s2"]]

    def meanwhile(policy: Policy, there: list[str], known: Mapping[str, list[str]]) -> dict[str, list[str]]:
        if others:
            assert found(made, *others.pop()) == ["s2"]
        return taken_in(policy, there, known)

    monkeypatch.setattr(module, "taken_in", meanwhile)
    assert found(made, "s1") == ["s1", "s2"]
    assert found(made) == ["s1", "s2"]


@pytest.mark.parametrize("text", ['{"s*": ["s1', "", "[]", '{"s*": "s1"}'])
def test_a_damaged_file_of_databases_is_told_of(text: str, tmp_path: Path) -> None:
    made = kept(tmp_path)
    place = tmp_path / "dumps/.policies/default.json"  # where earlier versions wrote it
    place.parent.mkdir(parents=True)
    place.write_text('{"s*": ["s0"]}', encoding="utf-8")
    assert sorted(matched_before(made, 5.0)[0].databases) == ["s0"]
    place.write_text(text, encoding="utf-8")
    with pytest.raises(BadRequest, match=r"default\.json, .* is damaged: delete it"):
        found(made, "s1")
    place.unlink()
    assert found(made, "s1") == ["s1"]
