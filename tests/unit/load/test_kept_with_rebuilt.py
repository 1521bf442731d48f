"""What the target's metastore drops with a table that a load makes anew."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.kept_with_rebuilt import KeptWithRebuilt
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.privileges import Grant, Principal, Securable
from hive_replication.metastore.types import PrincipalType, Table
from tests.unit.load.test_constraints_statistics_functions import foreign

DR = Principal(PrincipalType.USER, "dr")


class Metastore:
    """A metastore whose table ``p`` has a foreign key of ``t`` and grants."""

    def __init__(self, refused: str = "") -> None:
        self.refused, self.asked, self.calls = refused, list[str](), list[str]()
        self.keys, self.granted = list[Constraint](), list[Grant]()

    def foreign_keys_to(self, _: str, table: str) -> tuple[Constraint, ...]:
        self.asked.append(table)
        if self.refused == "reading":
            raise MetastoreError("a row cannot be read")
        return (foreign(table),)

    def grants(self, _: str, tables: Collection[str], __: object) -> list[Grant]:
        assert not tables
        self.calls.append("all")
        if self.refused == "reading":
            raise MetastoreError("only HiveServer2 may")
        on = (Securable("p", column="c"), Securable(""), Securable("t", column="c"))
        return [Grant(one, DR, "SELECT", False, DR) for one in on]

    def grants_on_table(self, _: str, table: str) -> list[Grant]:
        self.calls.append(table)
        if self.refused == "reading":
            raise MetastoreError("only HiveServer2 may")
        return [Grant(Securable(table), DR, "SELECT", False, DR)]

    def table_names(self, _: str) -> list[str]:
        return ["p", "t"]

    def constraints(self, *_: object) -> list[Constraint]:
        return self.keys

    def add_constraint(self, _: str, constraint: Constraint) -> None:
        if self.refused == "writing":
            raise MetastoreError("no such key")
        self.keys.append(constraint)

    def grant(self, _: str, grants: list[Grant]) -> None:
        if self.refused == "writing":
            raise MetastoreError("no")
        self.granted += grants


def given_back(metastore: Metastore, *operations: op.Operation, settled: tuple[str, ...] = ()) -> list[Any]:
    target = SimpleNamespace(metastore=metastore, threads=None)
    reader = SimpleNamespace(header=SimpleNamespace(to_evid=9))
    session: Any = SimpleNamespace(target=target, database="db", dry=False, skipped=[], reader=reader)
    kept = KeptWithRebuilt(session)
    assert len(list(kept.watched([LanePlan(("p",), 0, operations)]))) == 1
    kept.give_back(settled)
    return session.skipped


ANEW = op.DropTable(9, "p"), op.CreateTable(9, "p", Table("p"), op.Content((), ""), "")


def test_foreign_keys_and_grants_of_a_table_that_is_made_anew_come_again() -> None:
    there = Metastore()
    assert given_back(there, *ANEW) == []
    assert ([one.name for one in there.keys], [one.on.of("db") for one in there.granted]) == (["fk"], ["db.p", "db.p(c)"])


def test_grants_on_partitions_and_columns_are_asked_for_once() -> None:
    """The metastore tells those of all databases only: each of 2,000 tables of a repair asked for them all."""
    there = Metastore()
    anew = (op.DropTable(9, name) for name in "pqr"), (replace(ANEW[1], table=name) for name in "pqr")
    assert given_back(there, *(one for kind in anew for one in kind)) == []
    assert there.calls == ["p", "all", "q", "r"]
    assert there.asked == ["p", "q", "r"]


def test_nothing_is_read_of_tables_that_go_or_come_and_keys_of_the_dump_stay() -> None:
    there = Metastore()
    for one in ANEW:
        assert given_back(there, one) == []
    assert there.asked == []
    assert given_back(there, *ANEW, settled=("t",)) == []
    assert there.keys == []


@pytest.mark.parametrize("refused", ["reading", "writing"])
def test_what_the_metastore_refuses_holds_nothing_and_is_told(refused: str) -> None:
    there = Metastore(refused)
    skipped = given_back(there, *ANEW)
    assert [one.what for one in skipped] == (["db.t", "db.p", "db.p(c)"] if refused == "writing" else [])
    assert there.keys == []
