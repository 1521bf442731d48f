"""Constraints follow what happens to their tables while these are dumped; no event tells what becomes of a constraint then."""

from __future__ import annotations

from typing import Any

import pytest
from hive_metastore.ttypes import SQLForeignKey, SQLNotNullConstraint

from hive_replication.dump.bootstrap.fold import Fold
from hive_replication.dump.bootstrap.table_reader import Read
from hive_replication.dump.format.record_types import TableRecord
from hive_replication.events import event_records as r
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import Database, FieldSchema, Table
from tests import model
from tests.moving import Draft


def table(name: str, *columns: str) -> Table:
    made = model.table_image(name, model.Tab(1, f"{model.ROOT}/{name}", partitioned=False))
    made.sd.cols = [FieldSchema(column, "int", "") for column in columns or ("a",)]
    return made


def foreign_key(child: str, parent: str) -> Constraint:
    key: Any = SQLForeignKey("db", parent, "a", "db", child, "a", 1, 0, 0, "fk", "pk", False, False, False, "hive")
    return Constraint("fks", (key,))


def not_null(name: str) -> Constraint:
    return Constraint("nns", (SQLNotNullConstraint("hive", "db", name, "a", "nn1"),))


def fold_of(*records: TableRecord, children: dict[str, set[str]] | None = None) -> Fold:
    """A fold over tables that were read at the events 10 to 11."""
    draft = Draft()
    for record in records:
        draft.put_table(record)
    fold = Fold(draft, "db", {record.name: Read(10, 11) for record in records}, lambda _: True, Database("db"))
    fold.children = children or {}
    return fold


def alter(before: Table, after: Table, evid: int = 20) -> r.AlterTable:
    return r.AlterTable(evid, 1, "ALTER_TABLE", "db", before.tableName, before, after, truncate=False)


def drop(name: str, evid: int = 20) -> r.DropTable:
    return r.DropTable(evid, 1, "DROP_TABLE", "db", name, table(name))


def test_a_table_with_constraints_whose_columns_change_is_read_again() -> None:
    """The dump had the column's new name, and a constraint on the old one: the replica's table was held."""
    fold = fold_of(TableRecord(table("t"), (), (not_null("t"),)))
    fold.apply(alter(table("t"), table("t", "b")))
    assert (fold.unread, fold.draft.table("t")) == ({"t"}, None)


def test_one_without_constraints_or_with_the_same_columns_is_not() -> None:
    plain, bound = TableRecord(table("t"), ()), TableRecord(table("u"), (), (not_null("u"),))
    fold = fold_of(plain, bound)
    fold.apply(alter(table("t"), table("t", "b")))
    described = table("u")
    described.parameters = {**described.parameters, "comment": "x"}
    fold.apply(alter(table("u"), described))
    assert fold.unread == set()
    assert [fold.draft.table(name) is not None for name in ("t", "u")] == [True, True]


@pytest.mark.parametrize("read", [True, False], ids=["parent in the dump", "parent read later"])
def test_tables_whose_foreign_keys_name_a_column_that_changes_are_read_again(read: bool) -> None:
    fold = fold_of(
        TableRecord(table("parent"), ()),
        TableRecord(table("child"), (), (foreign_key("child", "parent"),)),
        children={"parent": {"child"}},
    )
    if not read:
        fold.reads["parent"] = Read(30, 31)
    fold.apply(alter(table("parent"), table("parent", "b")))
    assert (fold.unread, fold.draft.table("child")) == ({"child"}, None)
    assert fold.draft.table("parent") is not None


@pytest.mark.parametrize("column", ["a", "b"])
@pytest.mark.parametrize("of", ["itself", "another"])
def test_a_table_that_is_renamed_is_read_again_where_its_constraints_name_what_changes(of: str, column: str) -> None:
    key, children = (foreign_key("t", "t"), {"t": {"t"}}) if of == "itself" else (not_null("t"), {})
    fold = fold_of(TableRecord(table("t"), (), (key,)), children=children)
    fold.apply(alter(table("t"), table("u", column)))
    again = of == "itself" or column == "b"
    assert (fold.unread, fold.draft.table("t")) == ({"u"} if again else set(), None)
    assert (fold.draft.table("u") is None) == again


def test_tables_whose_foreign_keys_go_with_their_parent_are_read_again() -> None:
    """Where the parent was created anew, the dump had a foreign key that the source had not any more."""
    fold = fold_of(
        TableRecord(table("parent"), (), (foreign_key("parent", "parent"),)),
        TableRecord(table("child"), (), (foreign_key("child", "parent"),)),
        children={"parent": {"parent", "child"}},
    )
    fold.apply(drop("parent"))
    assert fold.unread == {"child"}
    fold.apply(r.CreateTable(21, 1, "CREATE_TABLE", "db", "parent", table("parent"), ()))
    assert (fold.unread, fold.draft.table("child")) == ({"child"}, None)
    assert fold.draft.table("parent") is not None


@pytest.mark.parametrize(
    "event", [drop("parent", 21), alter(table("parent"), table("parent", "b"), 21)], ids=["dropped", "altered"]
)
def test_a_child_that_was_renamed_follows_its_parent_by_its_new_name(event: r.Event) -> None:
    fold = fold_of(
        TableRecord(table("parent"), ()),
        TableRecord(table("child"), (), (foreign_key("child", "parent"),)),
        children={"parent": {"child"}},
    )
    fold.apply(alter(table("child"), table("child2")))
    assert (fold.unread, fold.draft.table("child2") is not None) == (set(), True)
    fold.apply(event)
    assert ("child2" in fold.unread, fold.draft.table("child2")) == (True, None)


def test_a_child_that_goes_before_its_parent_is_not_read() -> None:
    fold = fold_of(
        TableRecord(table("parent"), ()),
        TableRecord(table("child"), (), (foreign_key("child", "parent"),)),
        children={"parent": {"child"}},
    )
    fold.apply(drop("parent"))
    fold.apply(drop("child"))
    assert (fold.unread, fold.draft.table("child")) == (set(), None)
