"""What the target's metastore drops with a table that a load makes anew."""

from __future__ import annotations

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
        self.refused, self.asked = refused, list[str]()
        self.keys, self.granted = list[Constraint](), list[Grant]()

    def foreign_keys_to(self, _: str, table: str) -> tuple[Constraint, ...]:
        self.asked.append(table)
        return (foreign(table),)

    def grants(self, *_: object) -> list[Grant]:
        if self.refused == "reading":
            raise MetastoreError("only HiveServer2 may")
        return [Grant(Securable(name), DR, "SELECT", False, DR) for name in ("p", "", "t")]

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
    assert ([one.name for one in there.keys], [one.on.table for one in there.granted]) == (["fk"], ["p"])


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
    assert [one.what for one in skipped] == (["db.t", "db.p"] if refused == "writing" else [])
    assert len(there.keys) == (refused == "reading")
