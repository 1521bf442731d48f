"""Foreign keys in a comparison, and functions: those to tables that are left out, and those that are, are on neither side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hive_metastore.ttypes import ColumnStatisticsData, ColumnStatisticsObj, LongColumnStatsData, SQLForeignKey

from hive_replication.dump.source import Source
from hive_replication.load.replica.target import Target
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import Database, Function, PrincipalType, ResourceUri, Table
from hive_replication.policy import Policy
from hive_replication.storage import Storage
from hive_replication.verify import compare_database
from tests.lags import POLICY
from tests.unit.verify.test_compare import SOURCE, descriptor

KEY = SQLForeignKey(
    pktable_db="sales", pktable_name="parent", pkcolumn_name="id", fktable_db="sales", fktable_name="child",
    fkcolumn_name="id", key_seq=1, fk_name="of_parent", pk_name="of_parents",
)  # fmt: skip
FOREIGN = (Constraint("fks", (KEY,)),)
LEFT_OUT = [{"transactional": "true"}, {"storage_handler": "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"}]


def table(name: str, **parameters: str) -> Table:
    found = descriptor(SOURCE)
    found.location = ""
    return Table(tableName=name, dbName="sales", tableType="EXTERNAL_TABLE", sd=found, partitionKeys=[], parameters=parameters)


@dataclass
class Metastore:
    """Tables, of which ``child`` may have a foreign key."""

    held: Sequence[Table]
    keys: Sequence[Constraint] = ()
    made: Sequence[Function] = ()
    counted: Sequence[object] = ()
    uri: str = "thrift://s"
    features: Any = field(default_factory=lambda: SimpleNamespace(major=3))
    asked: list[str] = field(default_factory=list)

    def database(self, name: str) -> Database:
        return Database(name)

    def within(self, _: object) -> Metastore:
        return self

    def table_names(self, _: str) -> list[str]:
        return [one.tableName for one in self.held]

    def table(self, _: str, name: str) -> Table | None:
        self.asked.append(name)
        return next((one for one in self.held if one.tableName == name), None)

    def constraints(self, _: str, name: str) -> Sequence[Constraint]:
        return self.keys if name.startswith("child") else ()

    def table_statistics(self, *_: object) -> Sequence[object]:
        return self.counted

    def functions(self, _: str) -> Sequence[Function]:
        return self.made


def differences(source: Metastore, target: Metastore, policy: Policy = POLICY) -> dict[str, tuple[str, ...]]:
    nowhere = Storage(())
    sides = Source(cast("Any", source), nowhere, policy), Target(cast("Any", target), nowhere, policy, nowhere)
    return {one.table: one.differences for one in compare_database(*sides, "sales")}


@pytest.mark.parametrize("parameters", LEFT_OUT)
def test_a_foreign_key_to_a_table_that_is_left_out_is_no_difference(parameters: dict[str, str]) -> None:
    """It was one for ever, and a planned failover was refused."""
    children = [table(f"child{number}") for number in range(40)]
    source = Metastore([table("parent", **parameters), *children], FOREIGN)
    assert differences(source, Metastore(children)) == {one.tableName: () for one in children}
    assert source.asked.count("parent") < 20, "it is not read for each table"


def test_a_foreign_key_to_a_table_of_the_replica_is_compared() -> None:
    both = [table("parent"), table("child")]
    assert differences(Metastore(both, FOREIGN), Metastore(both, FOREIGN)) == {"child": (), "parent": ()}
    for source, target, where in (FOREIGN, (), "source"), ((), FOREIGN, "target"):
        (told,) = differences(Metastore(both, source), Metastore(both, target))["child"]
        assert told.startswith("constraint fk ")
        assert told.endswith(f"is on the {where} only")


def test_a_foreign_key_on_the_target_alone_whose_table_the_source_lacks_is_told() -> None:
    child = [table("child")]
    (told,) = differences(Metastore(child), Metastore([*child, table("parent")], FOREIGN))["child"]
    assert told.endswith("is on the target only")


def test_functions_that_are_never_replicated_are_no_difference() -> None:
    """Operators make them on both sides; no repair would remove them, and a planned failover was refused for ever."""

    def function(name: str, *uris: str) -> Function:
        return Function(name, "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, uri) for uri in uris])

    source = Metastore([], made=[function("both"), function("elsewhere", "hdfs://lib/e.jar")])
    target = Metastore([], made=[function("both"), function("mine"), function("elsewhere", "hdfs://dst/e.jar")])
    assert differences(source, target) == {}
    told = differences(source, Metastore([], made=[function("stranger", "hdfs://dst/s.jar")]))
    assert told == {"stranger()": ("the function is on the target only",)}


@pytest.mark.parametrize("uri", ["http://[x/f.jar", "http://a\u2100b/f.jar", "hdfs://[x/f.jar", "[", "", None])
def test_a_function_whose_resource_is_at_no_place_ends_no_comparison(uri: Any) -> None:
    """It ended verify, same_objects, repairs, recoveries and failovers of its database in a traceback."""
    odd = Function("odd", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, uri)])
    mine = Function("mine", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, "hdfs://dst/s.jar")])
    found = differences(Metastore([], made=[odd]), Metastore([], made=[odd, mine]))
    assert {name: told for name, told in found.items() if told} == {"mine()": ("the function is on the target only",)}


def test_replicas_without_data_have_no_functions_and_no_statistics() -> None:
    """Loads leave them out, and no repair would bring them."""
    jar = Function("f", "sales", "C", "me", PrincipalType.USER, 0, 1, [ResourceUri(1, "hdfs://src/f.jar")])
    long = LongColumnStatsData(numNulls=0, numDVs=3)
    counted = [ColumnStatisticsObj("id", "int", ColumnStatisticsData(longStats=long))]
    version = SimpleNamespace(major=4)
    source = Metastore([table("t", **{"spark.sql.statistics.numRows": "3"})], counted=counted, features=version)
    target = Metastore([table("t")], made=[jar])
    assert differences(source, target, POLICY.model_copy(update={"metadata_only": True})) == {"t": ()}
    with_data = differences(source, target)
    assert with_data == {"t": ("statistics of column id differ",), "f()": ("the function is on the target only",)}
