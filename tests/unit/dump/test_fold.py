"""A bootstrap dump of a source that changes between any two calls stands at the event that it names, whatever was read when."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hive_replication.dump.bootstrap.acid_snapshot import Snapshot
from hive_replication.dump.bootstrap.dump_objects import dump_objects
from hive_replication.dump.bootstrap.fold import Fold
from hive_replication.dump.bootstrap.table_reader import Read
from hive_replication.dump.format.record_types import DumpHeader, PartitionRecord, Scope, TableRecord
from hive_replication.dump.incremental.dump_events import dump_events
from hive_replication.dump.statistics import statistics_of
from hive_replication.errors import MetastoreError, ReplicationError
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.types import (
    ColumnStatisticsObj,
    Database,
    FieldSchema,
    NotificationEvent,
    Partition,
    Table,
)
from hive_replication.policy import PolicyScope
from hive_replication.policy.scope import PartitionFilters
from hive_replication.progress import Silent
from hive_replication.storage import Denied, FileStatus
from tests import model
from tests.moving import MOVING_KINDS, Draft, Moving, moving_source, paces
from tests.statistics import of_column
from tests.unit.dump.test_shared_directories import TABLE as EXTERNAL
from tests.unit.dump.test_shared_directories import partition

#: A table is renamed, then created again, while nobody can read the rename.
_RENAMED = [("rename", 0, 0, 1), ("nothing", 0, 0, 0), ("nothing", 0, 0, 0), ("create", 0, 0, 0)]
_RENAMED_BACK = [*_RENAMED, ("add many", 2, 0, 0), ("rename", 1, 0, 0), ("rename", 1, 0, 0), ("insert", 1, 0, 0)]
#: A table is created, renamed (nobody can read it), created again, and the renamed one is dropped.
_DROPPED = [*[("rename", 0, 0, 0)] * 3, ("insert", 2, 0, 0), ("rename", 0, 0, 0), ("insert", 2, 0, 0), ("drop", 0, 0, 0)]


@example([("insert", 0, 0, 1)], _RENAMED_BACK, [0, 1, 0, 0, 1, 2, 2], frozenset([4]), False)  # read over what was moved there
@example([], _DROPPED, [0, 1, 5], frozenset([5]), False)  # its names were read later than the dump's end
@example(
    [],
    [("nothing", 0, 0, 0), ("create", 0, 0, 0), ("create", 1, 0, 1), ("nothing", 0, 0, 0), ("insert", 1, 0, 0)],
    [0, 0, 5],
    frozenset(),
    True,
)
@settings(deadline=None, max_examples=150)
@given(model.actions(), model.actions(MOVING_KINDS), paces, st.frozensets(st.integers(1, 12), max_size=3), st.booleans())
def test_the_dump_stands_at_its_last_event(
    before: model.Actions, meanwhile: model.Actions, pace: list[int], unreadable: frozenset[int], unions: bool
) -> None:
    """Also where some events of that time cannot be read, or do not name all files: what they may be about is read again."""
    source = model.Source(unions=unions)
    for action in before:
        source.act(*action)
    begin, draft = source.evid, Draft()
    moving = moving_source(source, meanwhile, pace, frozenset(begin + number for number in unreadable))
    header = dump_objects(moving, Scope("db"), draft, Silent()).header
    assert begin <= header.from_evid <= header.to_evid
    assert draft.state() == source.past[header.to_evid]


def _sharing() -> model.Source:
    """A source with a table of which two partitions lie in one directory, the third one inside it."""
    source, place = model.Source(), "hdfs://src/elsewhere/x"
    source.act("create", 0, 0, 1)
    source.act("add many", 0, 0, 0)
    tab = source.tables["a"]
    for key, location in zip(model.PARTS, (place, place, f"{place}/inner"), strict=True):
        source.storage.pop(tab.parts[key].location)
        tab.parts[key].location = location
    source.storage |= {place: {"old": "c0"}, f"{place}/inner": {"old": "c1"}}
    source.past[-1] = source.state()
    return source


@pytest.mark.parametrize("calls", range(16))
@pytest.mark.parametrize("changes", [("insert",), ("overwrite", "insert"), ("truncate",)], ids="+".join)
def test_an_event_reaches_all_partitions_of_a_directory(changes: tuple[str, ...], calls: int) -> None:
    """The dump had what was inserted during it in one partition alone, and no later window brought it to the others."""
    source, draft = _sharing(), Draft()
    moving = moving_source(source, [(change, 0, part, 0) for part, change in enumerate(changes)], [0] * calls + [1] * 9)
    header = dump_objects(moving, Scope("db"), draft, Silent()).header
    assert draft.state() == source.past[header.to_evid]


def _folded(*events: r.Event, filters: PartitionFilters | None = None, inner: str = "x/inner") -> set[tuple[str, str]]:
    """What is listed again of a draft of an external table with two partitions at ``x`` and one at another directory."""
    draft = Draft()
    draft.put_table(TableRecord(EXTERNAL, ()))
    for key, place in zip(model.PARTS, ("x", "x", inner), strict=True):
        draft.put_partition(PartitionRecord("t", key, _partition(key, place), (FileRef(f"hdfs://nn/d/{place}/old"),)))
    fold = Fold(draft, "db", {"t": Read(5, 5)}, lambda _: True, Database(name="db"), filters=filters or PartitionFilters())
    for event in events:
        fold.apply(event)
    return fold.unlisted


def _partition(key: str, place: str) -> Partition:
    return partition(key.partition("=")[2], f"hdfs://nn/d/{place}")


def _inserted(key: str, place: str, *, over: bool = False, evid: int = 6) -> r.Insert:
    files = (FileRef(f"hdfs://nn/d/{place}/new"),)
    return r.Insert(evid, 1, "INSERT", "db", "t", EXTERNAL, _partition(key, place), key, replace=over, files=files)


def test_others_at_the_directory_of_an_event_are_listed_again() -> None:
    assert _folded(_inserted("p=0", "x")) == {("t", "p=1")}
    assert _folded(_inserted("p=0", "x", over=True)) == {("t", "p=1"), ("t", "p=2")}, "what lay inside is gone, too"
    assert _folded(_inserted("p=2", "x/inner")) == {("t", "p=0"), ("t", "p=1")}
    assert _folded(_inserted("p=2", "y"), inner="y") == set()
    assert _folded(_inserted("p=0", "x", evid=5)) == set(), "the table was read after it"


def test_partitions_that_came_to_a_directory_during_the_dump_are_listed_again() -> None:
    first, second = _partition("p=3", "y"), _partition("p=2", "y")
    new = r.AddPartition(6, 1, "ADD_PARTITION", "db", "t", EXTERNAL, (r.AddedPartition("p=3", first, ()),))
    assert _folded(_inserted("p=0", "x"), new, _inserted("p=2", "y", evid=7)) == {("t", "p=1"), ("t", "p=3")}
    renamed = r.ChangedPartition("p=2", "p=4", second, _partition("p=4", "y"))
    moved = r.AlterPartition(7, 1, "ALTER_PARTITION", "db", "t", EXTERNAL, (renamed,), truncate=False)
    found = _folded(_inserted("p=2", "y"), moved, _inserted("p=2", "y", evid=8), inner="y")
    assert ("t", "p=4") in found


def test_an_insert_outside_a_filter_reaches_a_partition_inside() -> None:
    filters = PartitionFilters.read([("t", "p <> '0'")])
    assert _folded(_inserted("p=0", "x"), filters=filters) == {("t", "p=1")}


def test_a_table_with_too_many_partitions_to_look_at_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(import_module("hive_replication.dump.bootstrap.shared_partitions"), "MOST_PARTITIONS", 2)
    assert _folded(_inserted("p=0", "x"), _inserted("p=0", "x", evid=7)) == set()
    (warning,) = [one for one in caplog.records if one.name.endswith("shared_partitions")]
    assert warning.getMessage().startswith("it has more than 2 partitions: beyond 2 nobody looks")


@pytest.mark.parametrize(("major", "acid"), [(3, False), (4, True)])
def test_a_dump_says_whether_the_source_gives_transactional_tables(
    monkeypatch: pytest.MonkeyPatch, major: int, acid: bool
) -> None:
    """It said what the policy wishes, so that those of a Hive 3 did not come when it became a Hive 4."""
    monkeypatch.setattr(Snapshot, "take", lambda _, end: end)
    moving = moving_source(model.Source(), [], [])
    cast("Moving", moving.metastore).features = Features(str(major), "uuid")
    header = dump_objects(moving, Scope("db"), Draft(), Silent()).header
    window = dump_events(moving, Scope("db"), 0, 0, 0, Draft(), Silent()).header
    assert [PolicyScope.parse(one.taken).transactions for one in (header, window)] == [acid, acid]


def _iceberg(monkeypatch: pytest.MonkeyPatch, *versions: int) -> None:
    """Tables of these versions are of a kind that is left out."""
    made = model.table_image

    def image(name: str, tab: model.Tab) -> Table:
        found = made(name, tab)
        found.parameters |= {"storage_handler": "iceberg"} if tab.version in versions else {}
        return found

    monkeypatch.setattr(model, "table_image", image)


def _dumped(change: str, calls: int) -> tuple[DumpHeader, Draft]:
    """A dump of the table ``a``, which is changed at event 2, after some calls of the dump."""
    source, draft = model.Source(), Draft()
    source.act("create", 0, 0, 0)
    moving = moving_source(source, [(change, 0, 0, 0)], [0] * calls + [1] * 9)
    return dump_objects(moving, Scope("db"), draft, Silent()).header, draft


@pytest.mark.parametrize("calls", range(9))
@pytest.mark.parametrize("change", ["drop", "rename"])
def test_a_table_that_goes_during_the_dump_is_not_said_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, change: str, calls: int
) -> None:
    """Its replica has to go, too."""
    _iceberg(monkeypatch, 1, 2)
    header, draft = _dumped(change, calls)
    assert ("a" in header.skipped, draft.tables) == (header.to_evid == 1, {})
    assert len(header.skipped) == (header.to_evid == 1 or change == "rename")


@pytest.mark.parametrize("calls", range(9))
def test_a_table_that_is_left_out_and_made_during_the_dump_is_said_to_be(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """The dump said nothing of it, and no later window does: nobody knew why its replica was missing."""
    _iceberg(monkeypatch, 1)
    moving = moving_source(model.Source(), [("create", 0, 0, 0)], [0] * calls + [1] * 9)
    header = dump_objects(moving, Scope("db"), Draft(), Silent()).header
    assert list(header.skipped) == ["a"] * header.to_evid


@pytest.mark.parametrize("calls", range(12))
def test_a_database_that_is_altered_during_the_dump_is_as_at_its_last_event(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """Its owner was read before the event id from which on events are folded: a change between the two came with nothing."""
    source, owners = model.Source(), ["etl"]
    source.act("create", 0, 0, 0)

    def database(*_: object) -> Database:
        found = Database("db", locationUri=model.ROOT, parameters={"repl.source.for": "x"}, ownerName=owners[-1])
        moving._moves()
        return found

    def act(*_: object) -> None:
        before = database()
        owners.append("finance")
        source.evid += 1
        source.events.append(r.AlterDatabase(source.evid, 1, "ALTER_DATABASE", "db", "", before, database()))

    monkeypatch.setattr(Moving, "database", database)
    moved = moving_source(source, [("", 0, 0, 0)], [0] * calls + [1] * 9)
    moving = cast("Moving", moved.metastore)
    monkeypatch.setattr(source, "act", act)
    header = dump_objects(moved, Scope("db"), Draft(), Silent()).header
    assert header.source_database.ownerName == ("etl" if header.to_evid == 1 else "finance")


@pytest.mark.parametrize("calls", range(9))
def test_a_table_that_becomes_one_that_is_left_out_during_the_dump_is_not_in_it(
    monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    _iceberg(monkeypatch, 2)
    header, draft = _dumped("alter", calls)
    assert ("a" in header.skipped, "a" in draft.tables) == ((True, False) if header.to_evid == 2 else (False, True))


@pytest.mark.parametrize("calls", range(9))
@pytest.mark.parametrize("before", [True, False], ids=["made before the dump", "made during the dump"])
def test_a_table_that_is_no_longer_one_that_is_left_out_during_the_dump_is_in_it(
    monkeypatch: pytest.MonkeyPatch, before: bool, calls: int
) -> None:
    """The dump lacked it, and no later window brought it: its replica was missing, and nothing was held."""
    _iceberg(monkeypatch, 1)
    source, draft, changes = model.Source(), Draft(), [("create", 0, 0, 0), ("alter", 0, 0, 0)]
    if before:
        source.act(*changes.pop(0))
    moving = moving_source(source, changes, [0] * calls + [len(changes)] * 9)
    header = dump_objects(moving, Scope("db"), draft, Silent()).header
    assert draft.state() == (source.past[2] if header.to_evid == 2 else {})
    assert ("a" in header.skipped) == (header.to_evid == 1)


@pytest.mark.parametrize("untold", [True, False])
def test_a_table_that_is_no_longer_one_that_is_left_out_is_read_again(untold: bool) -> None:
    """Also where a metastore of Hive 2 does not tell whether its data changed with it; one that is left out still is not."""
    plain, iceberg = (model.table_image("a", model.Tab(1, f"{model.ROOT}/a", partitioned=False)) for _ in range(2))
    iceberg.parameters = {"storage_handler": "iceberg"}
    fold = Fold(Draft(), "db", {}, lambda _: True, Database(name="db"))
    for after, unread in ((iceberg, set[str]()), (plain, {"a"})):
        fold.apply(r.AlterTable(6, 1, "ALTER_TABLE", "db", "a", iceberg, after, truncate=False, untold=untold))
        assert fold.unread == unread


@pytest.mark.parametrize("calls", range(9))
def test_a_table_that_is_left_out_and_made_anew_during_the_dump_is_not_said_to_be_left_out(
    monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The dump had it, and said that it is left out."""
    _iceberg(monkeypatch, 1)
    source, draft = model.Source(), Draft()
    source.act("create", 0, 0, 0)
    moving = moving_source(source, [("drop", 0, 0, 0), ("create", 0, 0, 0)], [0] * calls + [2] * 9)
    header = dump_objects(moving, Scope("db"), draft, Silent()).header
    assert ("a" in header.skipped, "a" in draft.tables) == ((False, True) if header.to_evid == 3 else (True, False))


@pytest.mark.parametrize("calls", range(9))
@pytest.mark.parametrize("change", ["alter", "rename"])
@pytest.mark.parametrize("changed", [("y", "int"), ("x", "string"), ("z", "int")], ids=["renamed", "retyped", "dropped"])
def test_statistics_of_a_column_that_an_alter_changes_during_the_dump_are_not_in_it(
    monkeypatch: pytest.MonkeyPatch, changed: tuple[str, str], change: str, calls: int
) -> None:
    """The metastore deletes them, and no event tells of it."""
    made = model.table_image

    def image(name: str, tab: model.Tab) -> Table:
        found = made(name, tab)
        found.sd.cols = [FieldSchema(*(("x", "int") if tab.version == 1 else changed)), FieldSchema("z", "int")]
        found.sd.cols = list({one.name: one for one in found.sd.cols}.values())
        return found

    def statistics(moving: Moving, _: str, name: str, __: object) -> list[ColumnStatisticsObj]:
        found = moving.source.tables.get(name)
        return [of_column(column, 1, 2) for column in ("z", "x") if found and (column == "z" or found.version == 1)]

    monkeypatch.setattr(model, "table_image", image)
    monkeypatch.setattr(Moving, "table_statistics", statistics)
    header, draft = _dumped(change, calls)
    ((name, record),) = draft.tables.items()
    kept = ["z"] if header.to_evid == 2 else ["z", "x"]
    assert (name, [one.colName for one in statistics_of(record.table)]) == (record.table.tableName, kept)


@pytest.mark.parametrize("partitioned", [0, 1])
@pytest.mark.parametrize("often", [1, 9], ids=["once", "always"])
def test_an_insert_leaves_what_stands_for_a_directory_that_could_not_be_listed(
    monkeypatch: pytest.MonkeyPatch, partitioned: int, often: int
) -> None:
    """The dump had the inserted files alone, as if there were no others."""
    source, draft, denied = model.Source(), Draft(), list[str]()
    for kind in ("create", "insert", "insert"):
        source.act(kind, 0, 0, partitioned)
    listed = Moving.files

    def files(moving: Moving, location: str) -> list[FileStatus]:
        if not location.endswith(model.PARTS[0] if partitioned else "/a") or len(denied) == often:
            return listed(moving, location)
        if not denied:
            source.act("insert", 0, 0, partitioned)
        denied.append(location)
        raise Denied(location)

    monkeypatch.setattr(Moving, "files", files)
    dump_objects(moving_source(source, [], []), Scope("db"), draft, Silent())
    found = draft.parts["a"][model.PARTS[0]].files if partitioned else draft.tables["a"].files
    if often > 1:
        assert FileRef.unreadable_directory(denied[0]) in found
    else:
        assert draft.state() == source.past[source.evid]


@pytest.mark.parametrize("call", ["table", "partition_names", "partitions"])
def test_a_table_that_the_metastore_does_not_show_stops_no_other(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A metastore that asks HDFS who may read a directory refused one table, and the database had no dump at all."""
    source, shown = model.Source(), getattr(Moving, call)
    for table in (0, 1):
        for kind in ("create", "add many", "insert"):
            source.act(kind, table, 0, 1)

    def refused(moving: Moving, database: str, name: str, *more: object) -> object:
        if name == "a":
            raise MetastoreError("get_table db.a: Permission denied")
        return shown(moving, database, name, *more)

    monkeypatch.setattr(Moving, call, refused)
    draft = Draft()
    header = dump_objects(moving_source(source, [], []), Scope("db"), draft, Silent()).header
    assert (header.skipped, header.unshown) == ({}, {"a": "get_table db.a: Permission denied"})
    assert draft.tables["a"].files == (FileRef.unshown_table(f"{model.ROOT}/a"),)
    assert draft.parts["a"] == {}
    draft.drop_table("a")
    assert draft.state() == {"b": source.state()["b"]}
    with pytest.raises(MetastoreError, match="Permission denied"):
        dump_objects(moving_source(source, [], []), Scope("db", "a"), Draft(), Silent())


@pytest.mark.parametrize("answer", ["refused", "no location", "left out"])
def test_a_table_of_which_the_metastore_shows_nothing_to_put_is_named_all_the_same(
    monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """A view, or one that is in no list; where the list shows that it is of a kind that is left out, the dump says so."""
    source, shown = model.Source(), Moving.tables
    source.act("create", 0, 0, 0)

    def refused(*_: object) -> None:
        raise MetastoreError("get_table db.a: Permission denied")

    def answered(moving: Moving, database: str, names: Iterable[str]) -> Iterator[Table]:
        for table in shown(moving, database, names):
            table.sd.location = None
            table.parameters |= {"storage_handler": "x"} if answer == "left out" else {}
            yield table

    monkeypatch.setattr(Moving, "table", refused)
    monkeypatch.setattr(Moving, "tables", refused if answer == "refused" else answered)
    draft = Draft()
    header = dump_objects(moving_source(source, [], []), Scope("db"), draft, Silent()).header
    assert (list(header.skipped), list(header.unshown)) == ((["a"], []) if answer == "left out" else ([], ["a"]))
    assert draft.tables == {}


@pytest.mark.parametrize("calls", range(9))
def test_a_table_that_is_not_shown_and_dropped_during_the_dump_is_not_in_it(monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    shown = Moving.table

    def refused(moving: Moving, database: str, name: str) -> Table | None:
        if shown(moving, database, name) is None:
            return None
        raise MetastoreError("get_table db.a: Permission denied")

    monkeypatch.setattr(Moving, "table", refused)
    header, draft = _dumped("drop", calls)
    assert ("a" in header.unshown) == (header.to_evid == 1)
    assert "a" not in draft.tables or header.to_evid == 1


#: A partition is added while the table is read.
_FIRST = [("insert", 0, 0, 0)], [0, 0, 0, 0, 1, *[0] * 9]


def _external(monkeypatch: pytest.MonkeyPatch, polls: float) -> model.Source:
    """A source with an external table, which gets a partition each time that the log is read, at first."""
    made, source = model.table_image, model.Source()

    def image(name: str, tab: model.Tab) -> Table:
        found = made(name, tab)
        found.tableType, found.parameters = "EXTERNAL_TABLE", found.parameters | {"EXTERNAL": "TRUE"}
        return found

    def events(moving: Moving, after: int, until: int) -> Iterator[NotificationEvent]:
        if source.evid <= polls:
            source.evid += 1
            source._add("a", source.tables["a"], [f"p={source.evid}"])
            source.past.append(source.state())
        return polled(moving, after, until)

    polled = Moving.events
    monkeypatch.setattr(model, "table_image", image)
    monkeypatch.setattr(Moving, "events", events)
    source.act("create", 0, 0, 1)
    return source


def test_a_dump_ends_though_an_external_table_gets_partitions_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has to be listed, which is done at once; after twenty of them the dump failed, and had read all in vain."""
    source, draft = _external(monkeypatch, 25), Draft()
    header = dump_objects(moving_source(source, *_FIRST), Scope("db"), draft, Silent()).header
    assert header.to_evid > 25
    assert draft.state() == source.past[header.to_evid]


def test_a_dump_that_lists_without_end_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("hive_replication.dump.bootstrap.dump_objects"), "_LISTINGS", 30)
    source = _external(monkeypatch, math.inf)
    monkeypatch.setattr(Draft, "suspend", lambda _: None)
    with pytest.raises(ReplicationError, match="faster than it can be listed"):
        dump_objects(moving_source(source, *_FIRST), Scope("db"), Draft(), Silent())


def test_a_view_with_partitions_is_dumped_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have no storage; the dump of the whole database ended in an error."""
    source, draft = model.Source(), Draft()
    source.act("create", 0, 0, 1)
    source.act("add many", 0, 0, 0)
    assert list(moving_source(source, [], []).metastore.partition_names("db", "a"))
    made = model.table_image

    def image(name: str, tab: model.Tab) -> Table:
        found = made(name, tab)
        found.tableType = "VIRTUAL_VIEW"
        return found

    def partitions(name: str) -> list[Partition]:
        return [Partition(values=[key.split("=")[1]]) for key in sorted(source.tables[name].parts)]

    monkeypatch.setattr(model, "table_image", image)
    monkeypatch.setattr(source, "partitions", partitions)
    dump_objects(moving_source(source, [], []), Scope("db"), draft, Silent())
    assert [table.tableType for table in (one.table for one in draft.tables.values())] == ["VIRTUAL_VIEW"]
    assert list(draft.partitions("a")) == []
