"""What every kind of operation says of itself, and the texts of kinds, which are in journals on storage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from inspect import isabstract
from pkgutil import walk_packages

import pytest

from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import created, dropped, renamed
from hive_replication.load import __path__ as load_path
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Partition, Table

#: As 11f67ea wrote them.
KINDS = {
    "AbortTransaction",
    "AddPartitions",
    "Adopt",
    "AllocateWriteIds",
    "AlterDatabase",
    "AlterPartitions",
    "AlterTable",
    "AppendData",
    "CommitTransaction",
    "CopySchemas",
    "CreateDatabase",
    "CreateFunction",
    "CreateTable",
    "DeleteStatistics",
    "DropConstraint",
    "DropDatabase",
    "DropFunction",
    "DropPartitions",
    "DropStranger",
    "DropTable",
    "ImpressWriteIds",
    "KeepAside",
    "KeepPartitionsAside",
    "MarkLeft",
    "OpenTransactions",
    "RenamePartition",
    "RenameTable",
    "ReplaceData",
    "SetColumns",
    "SetConstraints",
    "SetStatistics",
    "TruncateTransactional",
}
FILE = FileRef("hdfs://s/w/f")
CONTENT = op.Content((FILE,), "1-0")


def kinds(of: type[op.Operation] = op.Operation) -> Iterator[type[op.Operation]]:
    """All classes that can be instantiated, each once: a dataclass with slots is made twice."""
    for one in of.__subclasses__():
        if one is getattr(import_module(one.__module__), one.__name__, None):
            yield from () if isabstract(one) or one.__name__.startswith("_") else (one,)
            yield from kinds(one)


def test_kinds_are_what_journals_hold() -> None:
    for module in walk_packages(load_path, "hive_replication.load."):
        import_module(module.name)
    found = list(dict.fromkeys(kinds()))
    assert {one.__name__ for one in found if "kind" not in one.__dict__} == set()
    assert sorted(one.kind for one in found) == sorted(KINDS)


def test_a_kind_that_forgets_something_cannot_be_made() -> None:
    @dataclass(frozen=True, slots=True)
    class Forgetful(op.Operation):
        kind = "Forgetful"

    with pytest.raises(TypeError, match="changes_data_of, contents, name_changes, partitions, without"):
        Forgetful(1, "t")  # type: ignore[abstract]


def test_an_operation_of_a_site() -> None:
    """It has to say only what it does."""

    @dataclass(frozen=True, slots=True)
    class Vacuum(op.CustomOperation):
        hours: int = 0

        def carry_out(self, target: Target, database: str) -> None:
            """Does nothing."""

    one = Vacuum(1, "t", 3)
    assert (one.kind, list(one.contents), list(one.places), one.partitions, one.name_changes) == ("Vacuum", [], [], (), ())
    assert one.without({"", "ds=1"}) is one


@pytest.mark.parametrize(
    ("operation", "names", "partitions", "changes_data_of"),
    [
        (op.CreateTable(1, "t", Table(), CONTENT, ""), created("t"), (), ()),
        (op.RenameTable(1, "t", Table(tableName="U")), renamed(("t", ""), ("u", "")), (), ()),
        (op.DropTable(1, "t"), dropped("t"), (), ()),
        (
            op.AddPartitions(1, "t", (op.NewPartition("p=1", Partition(), CONTENT),)),
            created("t", "p=1"),
            ("p=1",),
            (("t", ""),),
        ),
        (op.AlterPartitions(1, "t", (("p=1", Partition()),)), (), ("p=1",), ()),
        (op.RenamePartition(1, "t", "p=1", "p=2", Partition()), renamed(("t", "p=1"), ("t", "p=2")), ("p=2",), ()),
        (op.DropPartitions(1, "t", ("p=1", "p=2")), dropped("t", "p=1", "p=2"), (), ()),
        (op.DropPartitions(1, "t", ()), (), (), ()),
        (op.ReplaceData(1, "t", "p=1", Partition(), CONTENT), (), ("p=1",), (("t", "p=1"),)),
        (op.AppendData(1, "t", "", Table(), CONTENT), (), (), (("t", ""),)),
    ],
    ids=lambda one: one.kind if isinstance(one, op.Operation) else "",
)
def test_what_an_operation_does(operation: op.Operation, names: object, partitions: object, changes_data_of: object) -> None:
    assert (operation.name_changes, operation.partitions_changed) == (names, partitions)
    assert operation.changes_data_of == changes_data_of


def test_without_the_files_of_some_objects() -> None:
    added = op.AddPartitions(1, "t", tuple(op.NewPartition(name, Partition(), CONTENT) for name in ("p=1", "p=2")))
    kept = added.without({"p=1"})
    assert [(new.name, new.content.files) for new in kept.added] == [("p=1", ()), ("p=2", (FILE,))]  # type: ignore[attr-defined]
    made = op.CreateTable(1, "t", Table(), CONTENT, "").without({""})
    assert made.content.files == ()  # type: ignore[attr-defined]
    append = op.AppendData(1, "t", "p=1", Partition(), CONTENT)
    assert (append.without({"p=1"}), append.without({""})) == (None, append)
    assert op.DropTable(1, "t").without({""}) == op.DropTable(1, "t")
