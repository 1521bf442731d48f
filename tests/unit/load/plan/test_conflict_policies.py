"""Conflict policies (design: conflicts and gaps): what is done with something that stands where a replica belongs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hive_replication.errors import Refused
from hive_replication.load.operations.conflict_resolutions import Adopt, DropForeignTable, KeepAside, KeepPartitionsAside
from hive_replication.load.plan.conflicts import Conflicts, is_foreign, refuse_other_writers
from hive_replication.load.replica.state import LAST_ID, SOURCE
from hive_replication.metastore.types import Database, FieldSchema, Partition, Table
from hive_replication.policy.model import ConflictPolicy
from tests.model import Part, Tab, partition_image, table_image

SOURCE_ID = "uuid/db"
POLICIES: tuple[ConflictPolicy, ...] = ("refuse", "adopt", "replace", "keep-aside")


def table(**parameters: str) -> Table:
    made = table_image("a", Tab(1, "hdfs://dst/w/db.db/a", partitioned=False))
    made.parameters |= parameters
    return made


def partition(**parameters: str) -> Partition:
    made = partition_image("a", "p=0", Part(1, "hdfs://dst/w/db.db/a/p=0"))
    made.parameters |= parameters
    return made


def conflicts(policy: ConflictPolicy) -> Conflicts:
    return Conflicts(policy, SOURCE_ID, "db")


def changed(change: Callable[[Table], object]) -> Table:
    made = table()
    change(made)
    return made


def test_who_is_foreign() -> None:
    assert is_foreign(table(), SOURCE_ID)
    assert is_foreign(table(**{SOURCE: "other/db"}), SOURCE_ID)
    assert not is_foreign(table(**{SOURCE: SOURCE_ID}), SOURCE_ID)


def test_refuse_leaves_it() -> None:
    with pytest.raises(Refused, match=r"target table db\.a exists and is not a replica of this source: rename or drop it"):
        conflicts("refuse").table(9, table(), table())
    with pytest.raises(Refused, match=r"target partition db\.a/p=0 exists .*: drop it there"):
        conflicts("refuse").partition(9, "a", "p=0", partition(), partition())
    assert conflicts("refuse").surplus(9, table()) is None


def test_replace_drops_it() -> None:
    assert conflicts("replace").table(9, table(), table()) == DropForeignTable(9, "a")
    assert conflicts("replace").surplus(9, table()) == DropForeignTable(9, "a")
    # A partition's data is replaced as that of a replica; its old directory goes to retention either way.
    assert conflicts("replace").partition(9, "a", "p=0", partition(), partition()) is None


def test_keep_aside_gives_it_a_name_of_the_event() -> None:
    assert conflicts("keep-aside").table(9, table(), table()) == KeepAside(9, "a", "a_kept_9")
    assert conflicts("keep-aside").surplus(9, table()) == KeepAside(9, "a", "a_kept_9")
    kept = changed(lambda made: setattr(made, "tableName", "a_kept_7"))
    assert conflicts("keep-aside").surplus(9, kept) is None, "its name is in the report of a load before"
    kept = conflicts("keep-aside").partition(9, "a", "p=0", partition(), None)
    assert kept == KeepPartitionsAside(9, "a", ("p=0",), "a_kept_9")


def test_adopt_takes_over_what_has_the_same_schema() -> None:
    assert conflicts("adopt").table(9, table(comment="mine"), table()) == Adopt(9, "a", SOURCE_ID)
    assert conflicts("adopt").partition(9, "a", "p=0", partition(), partition()) is None
    assert conflicts("adopt").surplus(9, table()) is None  # nothing of the source's that it could become


@pytest.mark.parametrize(
    ("theirs", "reason"),
    [
        (changed(lambda t: setattr(t, "tableType", "VIRTUAL_VIEW")), "it is a VIRTUAL_VIEW, the source's a MANAGED_TABLE"),
        (changed(lambda t: t.partitionKeys.append(FieldSchema(name="p", type="string"))), "its partition keys are p string"),
        (changed(lambda t: setattr(t, "viewOriginalText", "select 1")), "its view text is another"),
        (changed(lambda t: t.sd.cols.append(FieldSchema(name="y", type="int"))), "its columns are x int, y int, .* x int"),
        (changed(lambda t: setattr(t.sd, "inputFormat", "orc")), "its input format is orc"),
        (changed(lambda t: setattr(t.sd, "outputFormat", "orc")), "its output format is orc"),
        (changed(lambda t: setattr(t.sd.serdeInfo, "serializationLib", "json")), "its serde is json, the source's text"),
    ],
)
def test_adopt_refuses_another_schema(theirs: Table, reason: str) -> None:
    with pytest.raises(Refused, match=f"cannot be adopted: {reason}"):
        conflicts("adopt").table(9, theirs, table())


def test_adopt_refuses_a_name_that_a_rename_brings_data_to() -> None:
    with pytest.raises(Refused, match="a rename brings another table with its data"):
        conflicts("adopt").table(9, table())


def test_adopt_refuses_a_partition_of_another_schema() -> None:
    theirs = partition()
    theirs.sd.inputFormat = "orc"
    with pytest.raises(Refused, match="cannot be adopted: its input format is orc"):
        conflicts("adopt").partition(9, "a", "p=0", theirs, partition())
    assert conflicts("adopt").partition(9, "a", "p=0", theirs, None) is None  # it is dropped at the source


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mark", [{SOURCE: "other/db"}, {LAST_ID: "3"}], ids=["another source's", "Hive's own"])
def test_what_another_replication_writes_is_always_refused(policy: ConflictPolicy, mark: dict[str, str]) -> None:
    with pytest.raises(Refused, match="two writers to one target"):
        conflicts(policy).table(9, table(**mark), table())
    with pytest.raises(Refused, match="two writers to one target"):
        conflicts(policy).partition(9, "a", "p=0", partition(**mark), partition())
    assert conflicts(policy).surplus(9, table(**mark)) is None
    with pytest.raises(Refused, match=r"holds 'a', a replica of"):
        refuse_other_writers(Database(name="db"), [table(**mark)], conflicts(policy))
    with pytest.raises(Refused, match="is a replica of"):
        refuse_other_writers(Database(name="db", parameters=mark), [], conflicts(policy))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_database_with_foreign_tables_becomes_a_replica_unless_they_are_refused(policy: ConflictPolicy) -> None:
    if policy == "refuse":
        with pytest.raises(Refused, match="exists and is not a replica of this source"):
            refuse_other_writers(Database(name="db"), [table()], conflicts(policy))
    else:
        refuse_other_writers(Database(name="db"), [table()], conflicts(policy))
    refuse_other_writers(Database(name="db"), [table(**{SOURCE: SOURCE_ID})], conflicts(policy))


def test_what_stays_when_the_source_drops_the_database() -> None:
    ours = table(**{SOURCE: SOURCE_ID})
    assert [conflicts(policy).dropped_with([ours, table()]) for policy in POLICIES[1:]] == [["a"], [], ["a"]]
    assert conflicts("refuse").dropped_with([ours]) == []
    with pytest.raises(Refused, match="'a' is not our replica"):
        conflicts("refuse").dropped_with([table()])
    for policy in POLICIES:
        with pytest.raises(Refused, match="'a' is not our replica"):
            conflicts(policy).dropped_with([table(**{SOURCE: "other/db"})])


def test_only_an_adopted_table_s_files_are_compared() -> None:
    assert [conflicts(policy).compares(table()) for policy in POLICIES] == [False, True, False, False]
    assert not conflicts("adopt").compares(table(**{SOURCE: SOURCE_ID}))
    assert not conflicts("adopt").compares(None)
