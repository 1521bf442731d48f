"""Constraints, column statistics and functions: names, claims, folds, comparisons, and what a load plans for them."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore import ttypes as t

from hive_replication.dump.bootstrap.fold import changed_constraints
from hive_replication.dump.format.encoding import constraints_fields, constraints_of
from hive_replication.dump.format.record_types import FunctionRecord, TableRecord
from hive_replication.dump.functions import why_left_out
from hive_replication.dump.statistics import changed_statistics, statistics_of, with_kept_statistics, with_statistics
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.load.apply.change_data import merged_image
from hive_replication.load.operations.constraints import FOREIGN, SetConstraints, on_target
from hive_replication.load.operations.functions import (
    DropFunction,
    create_function,
    foreign_functions,
    given_up_functions,
    homes_of,
    state_id,
)
from hive_replication.load.operations.statistics import Columns, SetStatistics
from hive_replication.load.plan.bootstrap_functions import plan_functions
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.load.replica.state import LAST_ID, ReplicaState
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.constraints import Constraint, grouped
from hive_replication.metastore.statistics import ACCURATE, claimed, with_claims
from hive_replication.metastore.types import (
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    Function,
    Partition,
    ResourceUri,
    StorageDescriptor,
    Table,
)
from hive_replication.verify.constraints_and_statistics import constraint_differences, statistics_differences
from hive_replication.verify.functions import function_differences
from tests import model
from tests.replica import MAPPING, TARGET
from tests.statistics import of_column

HEAD = (7, 8, "TYPE", "db", "t")
JAR = "hdfs://src/jars/f.jar"


def key(name: str, *columns: str, table: str = "t") -> Constraint:
    rows = [
        t.SQLPrimaryKey(table_db="db", table_name=table, column_name=column, key_seq=n, pk_name=name)
        for n, column in enumerate(columns)
    ]
    return grouped("pks", reversed(rows))[0]


def foreign(parent: str, database: str = "db", name: str = "fk") -> Constraint:
    row = t.SQLForeignKey(database, parent, "a", "db", "t", "b", 1, 0, 0, name, None)
    return Constraint("fks", (row,))


class Keys:
    """Constraints of a table of the target."""

    def __init__(self, *held: Constraint) -> None:
        self.held, self.added = list(held), 0

    def constraints(self, _db: str, _table: str) -> list[Constraint]:
        return list(self.held)

    def drop_constraint(self, _db: str, _table: str, name: str) -> None:
        self.held = [one for one in self.held if one.name != name]

    def add_constraint(self, _db: str, constraint: Constraint) -> None:
        self.held.append(constraint)
        self.added += 1


def function(*uris: str, name: str = "f", class_name: str = "C") -> Function:
    return Function(name, "db", class_name, "me", 1, 0, 1, [ResourceUri(1, uri) for uri in uris])


def test_a_constraint_of_several_columns_is_one() -> None:
    found = grouped("pks", [*key("K", "a", "b").rows, *key("k", "c", table="u").rows])
    assert [(one.table, one.name, [row.column_name for row in one.rows]) for one in found] == [
        ("t", "k", ["a", "b"]),
        ("u", "k", ["c"]),
    ]
    assert constraints_of(constraints_fields([key("k", "a"), foreign("p")])) == (key("k", "a"), foreign("p"))


def test_names_of_constraints_have_no_case_and_no_place() -> None:
    assert key("K", "A").on("other", "u").described() == key("k", "a").described() != key("k", "b").described()
    assert foreign("p").on("other", "u", "q").described() == foreign("x").described()


def test_foreign_keys_join_the_tables_of_both_ends() -> None:
    event = r.AddConstraints(*HEAD, constraints=(foreign("p"), foreign("q", "elsewhere", "fk2")))
    assert event.names == ("t", "p")


@pytest.mark.parametrize(("whole", "expected"), [(FOREIGN, "q"), (frozenset[str](), "p")])
def test_a_foreign_key_to_another_parent_is_replaced_where_all_are_known(whole: frozenset[str], expected: str) -> None:
    """Else a repair left it, and the comparison named it again. Of an event that is repeated the parent may be renamed since."""
    metastore = Keys(foreign("p"))
    target: Any = SimpleNamespace(metastore=metastore)
    for _ in range(2):
        SetConstraints(7, "t", (foreign("q"),), whole=whole).carry_out(target, "db")
    assert [one.parent for one in metastore.held] == [("db", expected)]
    assert metastore.added == int(expected == "q")


def test_foreign_keys_out_of_the_policy_are_left_out() -> None:
    kept, left = on_target(
        (key("k", "a"), foreign("p"), foreign("out"), foreign("p", "elsewhere")), MAPPING, "t", lambda name: name != "out"
    )
    assert [(one.kind, one.parent) for one in kept] == [("pks", None), ("fks", ("db", "p"))]
    assert ["db.out" in left[0], "elsewhere.p" in left[1], len(left)] == [True, True, 2]


@pytest.mark.parametrize(
    ("text", "columns", "kept"),
    [
        (
            '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true","b":"true"}}',
            {"a"},
            '{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}',
        ),
        ('{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}', set(), '{"BASIC_STATS":"true"}'),
        ('{"COLUMN_STATS":{"a":"true"}}', set(), None),
        ('{"COLUMN_STATS": {"a": "true"}}', {"a"}, '{"COLUMN_STATS": {"a": "true"}}'),
        ("true", set(), "true"),
        (None, {"a"}, '{"COLUMN_STATS":{"a":"true"}}'),
    ],
)
def test_claims(text: str | None, columns: set[str], kept: str | None) -> None:
    parameters = {"k": "v"} | ({ACCURATE: text} if text else {})
    changed = with_claims(parameters, columns)
    assert changed == {"k": "v"} | ({ACCURATE: kept} if kept else {})
    assert claimed(changed) == columns


@pytest.mark.parametrize(
    "text",
    [
        '{"COLUMN_STATS":null}',
        '{"COLUMN_STATS":5}',
        '{"COLUMN_STATS":[["a"]]}',
        '{"COLUMN_STATS":{"\\ud800":"true"}}',
        '["a"]',
        "null",
        "[" * 100_000,
        '{"COLUMN_STATS":' * 3_000,
        "9" * 5_000,
    ],
    ids=lambda text: text[:24],
)
def test_what_is_no_claim_claims_nothing(text: str) -> None:
    """A user of the source may set the parameter to any text, which ended each load, and each comparison, of the database."""
    parameters = {ACCURATE: text}
    assert claimed(parameters) == frozenset()
    assert with_claims(parameters, ()) == parameters
    assert claimed(with_claims(parameters, {"a"})) == {"a"}
    image = model.table_image("t", model.Tab(1, "l", False))
    current, image.parameters = model.table_image("t", model.Tab(1, "l", False)), parameters
    assert (merged_image(image, current, "hdfs://t/t").parameters or {})[ACCURATE] == text
    assert list(statistics_differences(image, current, logged=True)) == []


def test_folding_constraints_twice_does_no_harm() -> None:
    record = TableRecord(model.table_image("t", model.Tab(1, "l", False)), (), (key("k", "a"),))
    added = r.AddConstraints(*HEAD, constraints=(key("n", "b"), key("k", "c")))
    once = changed_constraints(record, added)
    assert {one.name: one.rows[0].column_name for one in once.constraints} == {"n": "b", "k": "c"}
    assert changed_constraints(once, added) == once
    dropped = changed_constraints(once, r.DropConstraint(*HEAD, constraint="k"))
    assert [one.name for one in changed_constraints(dropped, r.DropConstraint(*HEAD, constraint="k")).constraints] == ["n"]


def test_folding_statistics_twice_does_no_harm() -> None:
    part = with_statistics(Partition(parameters={"k": "v", ACCURATE: '{"COLUMN_STATS":{"a":"true"}}'}), [of_column("a", 1, 1)])
    text = '{"COLUMN_STATS":{"a":"true","b":"true"}}'
    update = r.UpdateStatistics(*HEAD, partition_name="p=1", columns=(of_column("b", 2, 3),), accurate=text)
    once = changed_statistics(part, update)
    assert (statistics_of(once), once.parameters) == ([of_column("a", 1, 1), of_column("b", 2, 3)], {"k": "v", ACCURATE: text})
    assert changed_statistics(once, update) == once
    delete = r.DeleteStatistics(*HEAD, partition_name="p=1", column="a")
    after = changed_statistics(changed_statistics(once, delete), delete)
    assert (statistics_of(after), claimed(after.parameters)) == ([of_column("b", 2, 3)], {"b"})
    assert changed_statistics(once, replace(update, columns=(of_column("a", 5, 6),), engine="impala")) == once
    everything = changed_statistics(once, replace(delete, column=""))
    assert (statistics_of(everything), everything.parameters) == ([], {"k": "v"})


def test_an_alter_keeps_statistics_of_columns_that_stay_as_they_are() -> None:
    """Also of a partition, and of columns that Spark writes in capital letters."""

    def part(*columns: tuple[str, ...]) -> Partition:
        return Partition(sd=StorageDescriptor(cols=[FieldSchema(*column) for column in columns]), parameters={})

    before = part(("a", "int"), ("b", "int"), ("c", "int"), ("d", "int"))
    before = with_statistics(before, [of_column(name, 1, 2) for name in "abcd"])
    after = with_kept_statistics(part(("D", "INT"), ("a", "int", "new comment"), ("b", "bigint"), ("e", "int")), before)
    assert [one.colName for one in statistics_of(after)] == ["a", "d"]


def test_which_functions_are_replicated() -> None:
    assert "without USING" in why_left_out(function(), ())
    assert "outside the source's storage roots" in why_left_out(function(JAR, "hdfs://else/g.jar"), (FileRef(JAR),))
    assert "somebody else" in why_left_out(function("ivy://a:b:1"), ())
    assert why_left_out(function(JAR, "ivy://a:b:1"), (FileRef(JAR),)) == ""


def test_a_functions_paths_tell_its_event() -> None:
    made = create_function(
        MAPPING,
        function(JAR, "hdfs://src/other/f.jar", "ivy://a:b:1"),
        (FileRef(JAR), FileRef("hdfs://src/other/f.jar", subdir="1")),
        9,
    )
    home = f"{TARGET}/.repl/functions/db/f"
    assert [one.uri for one in made.image.resourceUris or ()] == [f"{home}/9/f.jar", f"{home}/9/1/f.jar", "ivy://a:b:1"]
    assert (state_id(made.image, homes_of(MAPPING, "f")), state_id(function(JAR), (home,)), made.table) == (9, None, "f()")


def test_a_function_stays_a_replica_when_the_policy_names_a_root_for_its_files() -> None:
    """Else the drop of its database is refused for ever, and its own is passed over."""
    before, rooted = (
        create_function(MAPPING, function(JAR), (FileRef(JAR),), 9).image,
        replace(MAPPING, functions_root="hdfs://dst/jars"),
    )
    target = _functions("refuse", before)
    target.policy.functions_root = rooted.functions_root
    assert foreign_functions(target, "db", TARGET, [before]) == []
    made = create_function(rooted, function(JAR), (FileRef(JAR),), 20)
    assert (made.directory, state_id(before, made.homes)) == ("hdfs://dst/jars/db/f/20", 9)
    made.carry_out(target, "db")
    assert target.metastore.held == {"f": made.image}
    DropFunction(30, "f()", "f", made.homes).carry_out(replica := _functions("refuse", before), "db")
    assert replica.metastore.held == {}
    again = create_function(rooted, function(JAR), (FileRef(JAR),), 9, before)
    assert again.directory == f"{TARGET}/.repl/functions/db/f/9/1"


class Functions:
    """Functions of a target database."""

    def __init__(self, parameters: dict[str, str], *held: Function) -> None:
        self.parameters, self.held = parameters, {one.functionName: one for one in held}

    def database(self, name: str) -> Database:
        return Database(name=name, parameters=self.parameters)

    def function(self, _db: str, name: str) -> Function | None:
        return self.held.get(name)

    def drop_function(self, _db: str, name: str) -> None:
        del self.held[name]

    def create_function(self, made: Function) -> None:
        assert made.functionName not in self.held
        self.held[made.functionName] = made


def _functions(conflicts: str, *held: Function, **marks: Any) -> Any:
    found = FailoverMarks(**marks).parameters()
    return SimpleNamespace(metastore=Functions(found, *held), policy=SimpleNamespace(conflicts=conflicts))


@pytest.mark.parametrize("conflicts", ["refuse", "keep-aside"])
def test_functions_of_an_old_source_become_replicas_in_a_failback(conflicts: str) -> None:
    """Else what happens to them at the opened database never reaches the old source."""
    mine = function("hdfs://dst/old.jar")
    target = _functions(conflicts, mine, endpoint="SOURCE", successor="s/db", behind={"own()": 0})
    made = create_function(MAPPING, function(JAR, class_name="New"), (FileRef(JAR),), 60)
    made.carry_out(target, "db")
    assert target.metastore.held == {"f": made.image}

    target = _functions(conflicts, mine, endpoint="SOURCE", successor="s/db")
    DropFunction(60, "f()", "f", made.homes).carry_out(target, "db")
    assert target.metastore.held == {}
    by_hand = _functions(conflicts, function(), endpoint="SOURCE", successor="s/db")
    DropFunction(60, "f()", "f", made.homes).carry_out(by_hand, "db")
    assert by_hand.metastore.held == {"f": function()}, "it has no resources: it is never replicated"


def test_what_an_old_source_made_itself_goes_or_is_kept_aside() -> None:
    mine, marks = function("hdfs://dst/old.jar"), {"successor": "s/db", "behind": {"f()": 0}}
    target, aside = (_functions(conflicts, mine, **marks) for conflicts in ("replace", "keep-aside"))
    assert [given_up_functions(one, "db", [mine]) for one in (target, aside)] == [{"f"}, set()]
    assert given_up_functions(_functions("replace", mine), "db", [mine]) == set()
    lanes = plan_functions(MAPPING, TargetView(ReplicaState("s", 40)), (), {"f": mine}, 50, given_up={"f"})
    ((gone,),) = (lane.operations for lane in lanes)
    assert isinstance(gone, DropFunction)
    gone.carry_out(aside, "db")
    gone.carry_out(target, "db")
    assert (aside.metastore.held, target.metastore.held) == ({"f": mine}, {})


@pytest.mark.parametrize("conflicts", ["refuse", "adopt", "replace", "keep-aside"])
@pytest.mark.parametrize("equal", [True, False])
def test_conflicts_of_the_policy_settle_functions(conflicts: str, *, equal: bool) -> None:
    there = function("hdfs://dst/mine/f.jar", class_name="C" if equal else "Other")
    target = _functions(conflicts, there)
    made = create_function(MAPPING, function(JAR), (FileRef(JAR),), 9)
    if conflicts == "replace" or (equal and conflicts != "refuse"):
        made.carry_out(target, "db")
        assert target.metastore.held == {"f": made.image}
    else:
        with pytest.raises(Refused, match="exists and is not a replica"):
            made.carry_out(target, "db")
        assert target.metastore.held == {"f": there}
    DropFunction(10, "f()", "f", made.homes).carry_out(stranger := _functions(conflicts, there), "db")
    assert stranger.metastore.held == {"f": there}


def test_functions_of_a_bootstrap() -> None:
    def replica(name: str, evid: int) -> Function:
        return create_function(MAPPING, function(JAR, name=name), (FileRef(JAR),), evid).image

    found = {name: replica(name, evid) for name, evid in {"same": 50, "older": 40, "later": 60, "gone": 40, "new": 60}.items()}
    found["stranger"] = function("hdfs://dst/mine.jar", name="stranger")
    records = [FunctionRecord(function(JAR, name=name), (FileRef(JAR),)) for name in ("same", "older", "later", "missing")]

    def planned(**options: bool) -> dict[str, str]:
        lanes = plan_functions(MAPPING, TargetView(ReplicaState("s", 40)), records, found, 50, **options)
        return {lane.names[0]: lane.operations[0].kind for lane in lanes}

    create, drop = "CreateFunction", "DropFunction"
    assert planned() == {"older()": create, "missing()": create, "gone()": drop}
    assert planned(other_history=True) == dict.fromkeys(("same()", "older()", "later()", "missing()"), create) | {
        "gone()": drop,
        "new()": drop,
    }


def test_comparison() -> None:
    assert list(constraint_differences([key("k", "a"), foreign("p")], [key("k", "a"), foreign("p")])) == []
    ours, theirs = constraint_differences([foreign("p")], [foreign("q")])
    assert (ours.endswith("-> p is on the source only"), theirs.endswith("-> q is on the target only")) == (True, True)
    assert list(function_differences(function(JAR), function("hdfs://dst/x/9/f.jar"))) == []
    assert list(function_differences(function(JAR), function(JAR, class_name="D"))) == [
        "class is 'D' on the target, 'C' on the source"
    ]
    assert list(function_differences(None, function(JAR))) == ["the function is on the target only"]


@pytest.mark.parametrize(
    ("source", "target", "claims", "logged", "differences"),
    [
        ([of_column("a", 1, 2)], [of_column("a", 1, 2)], ("a", "a"), True, []),
        (
            [of_column("a", 1, 2)],
            [of_column("a", 1, 2)],
            ("", "a"),
            False,
            ["statistics of column a are accurate on the target only, as it says"],
        ),
        ([of_column("a", 1, 3)], [of_column("a", 1, 2)], ("a", "a"), False, ["statistics of column a differ"]),
        ([of_column("a", 1, 3)], [of_column("a", 1, 2)], ("a", ""), False, []),
        ([of_column("a", 1, 3)], [of_column("a", 1, 2)], ("", ""), True, ["statistics of column a differ"]),
        ([of_column("a", 1, 3)], [], ("a", "a"), False, []),
        ([of_column("a", 1, 3)], [], ("a", "a"), True, ["statistics of column a differ"]),
    ],
)
def test_comparison_of_statistics(
    source: list[object], target: list[object], claims: tuple[str, str], logged: bool, differences: list[str]
) -> None:
    things = [
        with_statistics(Partition(parameters=with_claims({}, {claim} - {""})), found)  # type: ignore[arg-type]
        for claim, found in zip(claims, (source, target), strict=True)
    ]
    assert list(statistics_differences(*things, logged=logged)) == differences


def _of_doubles(low: float) -> ColumnStatisticsObj:
    """Statistics of a DOUBLE column as a metastore or a dump gives them: no two are the same object."""
    doubles = t.DoubleColumnStatsData(low, float("1.5"), 0, 2, b"\xff\x00")
    return ColumnStatisticsObj("a", "double", t.ColumnStatisticsData(doubleStats=doubles))


@pytest.mark.parametrize(
    ("source", "target", "equal"),
    [(math.nan, math.nan, True), (math.nan, -math.inf, False), (math.nan, 0.5, False), (0.0, -0.0, True), (0.5, 0.5, True)],
)
def test_statistics_with_nan_are_equal_to_themselves(source: float, target: float, *, equal: bool) -> None:
    """They differed in each comparison, and each repair wrote them again. Databases of metastores may give -0 back as 0."""
    ours, theirs = ([_of_doubles(float(str(value)))] for value in (source, target))
    things = [with_statistics(Partition(parameters={}), found) for found in (ours, theirs)]
    assert list(statistics_differences(*things, logged=True)) == ([] if equal else ["statistics of column a differ"])
    table, written = Table(dbName="db", tableName="t", sd=StorageDescriptor(cols=[]), parameters={LAST_ID: "7"}), list[object]()
    metastore = SimpleNamespace(
        table=lambda *_: table,
        partition_statistics=lambda *_: {},
        table_statistics=lambda *_: theirs,
        set_statistics=lambda _db, _table, differing: written.extend(differing[""]),
    )
    SetStatistics(7, "t", (Columns("", tuple(ours), ""),)).carry_out(SimpleNamespace(metastore=metastore), "db")  # type: ignore[arg-type]
    assert len(written) == (0 if equal else 1)
