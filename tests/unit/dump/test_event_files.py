"""Files that events bring, as a directory's listing at the dump tells them."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hive_replication.dump.format.record_types import FileGroup, Scope
from hive_replication.dump.incremental.dump_events import dump_events
from hive_replication.dump.incremental.event_files import without_later_files
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.errors import MetastoreError
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode, notification
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.files import FileRef
from hive_replication.events.unpack import unpacked_size
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table
from hive_replication.progress import Silent
from tests import model
from tests.messages import row
from tests.moving import Draft, Moving, moving_source

FIRST, SECOND = (FileRef(f"hdfs://s/new/{name}", "", "", "") for name in "ab")


def insert(*files: FileRef, table: str = "t") -> r.Insert:
    return r.Insert(7, 8, "INSERT", "db", table, Table(), None, "", replace=False, files=files)


def altered(before: str = "t", after: str = "t") -> r.AlterTable:
    images = (Table(tableName=name, dbName="db", sd=StorageDescriptor(location="hdfs://s/new")) for name in (before, after))
    return r.AlterTable(7, 8, "ALTER_TABLE", "db", before, *images, truncate=False)


def test_a_listing_has_no_files_of_later_inserts() -> None:
    """A table gets another location, is renamed, and is written to: under its old name it never had what was written last."""
    listed, named = FileGroup("", (FIRST, SECOND), listed=True), FileGroup("", (SECOND,))
    brought = without_later_files([altered(), altered("t", "u"), insert(SECOND, table="u")], [(listed,), (), (named,)])
    assert brought == [(FileGroup("", (FIRST,), listed=True),), (), (named,)]


def test_a_listing_has_what_is_written_into_another_table_at_its_directory() -> None:
    listed, named = FileGroup("", (FIRST, SECOND), listed=True), FileGroup("", (SECOND,))
    assert without_later_files([altered(), insert(SECOND, table="u")], [(listed,), (named,)]) == [(listed,), (named,)]
    created = r.CreateTable(7, 8, "CREATE_TABLE", "db", "t", altered().after, ())
    # The INSERT is of another table that has the name by then.
    events = [altered(), altered("t", "u"), created, insert(SECOND)]
    assert without_later_files(events, [(listed,), (), (), (named,)]) == [(listed,), (), (), (named,)]


def test_a_listing_has_files_of_earlier_inserts() -> None:
    listed, named = FileGroup("", (FIRST, SECOND), listed=True), FileGroup("", (SECOND,))
    assert without_later_files([insert(SECOND), altered()], [(named,), (listed,)]) == [(named,), (listed,)]


def of_partition(kind: str, name: str = "p=0", after: str = "", *, files: tuple[FileRef, ...] = (SECOND,)) -> r.Event:
    """An event of a partition: Hive 4.1 tells nothing of what it was before an ALTER_PARTITIONS."""
    part = Partition(sd=StorageDescriptor(location=f"hdfs://s/new/{name}"))
    match kind:
        case "append" | "overwrite":
            return r.Insert(7, 8, "INSERT", "db", "t", Table(), part, name, replace=kind == "overwrite", files=files)
        case "add":
            return r.AddPartition(7, 8, "ADD_PARTITION", "db", "t", Table(), (r.AddedPartition(name, part, files),))
        case "drop":
            return r.DropPartition(7, 8, "DROP_PARTITION", "db", "t", Table(), (name,))
        case _:
            changed = r.ChangedPartition(name, after or name, None, part)
            return r.AlterPartition(7, 8, "ALTER_PARTITIONS", "db", "t", Table(), (changed,), truncate=kind == "truncate")


LISTED, UNKNOWN = FileGroup("p=0", (FIRST, SECOND), listed=True), FileGroup("p=0", ())


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([of_partition("append")], FileGroup("p=0", (FIRST,), listed=True)),
        ([of_partition("overwrite")], UNKNOWN),
        ([of_partition("overwrite", files=())], UNKNOWN),
        ([of_partition("truncate"), of_partition("append")], UNKNOWN),
        ([of_partition("overwrite", "p=1")], FileGroup("p=0", (FIRST,), listed=True)),
        ([of_partition("alter", "p=0", "p=1"), of_partition("overwrite", "p=1")], UNKNOWN),
        ([of_partition("alter", "p=0", "p=1"), of_partition("add", files=()), of_partition("overwrite", files=())], LISTED),
        ([of_partition("drop"), of_partition("add", files=()), of_partition("overwrite", files=())], LISTED),
        ([altered("t", "u"), insert(SECOND, table="u")], FileGroup("p=0", (FIRST,), listed=True)),
    ],
)
def test_a_listing_is_none_of_what_a_later_event_replaces(later: list[r.Event], expected: FileGroup) -> None:
    """What is left of it without the later files is not what the partition held: the replica's would be emptied for nothing."""
    events = [of_partition("alter"), *later]
    assert without_later_files(events, [(LISTED,), *((),) * len(later)])[0] == (expected,)


def test_what_a_message_names_stays() -> None:
    named = FileGroup("", (FIRST,))
    assert without_later_files([insert(FIRST), insert(FIRST)], [(named,), (named,)]) == [(named,), (named,)]


@pytest.mark.parametrize("partition", ["", "p=0"])
def test_files_in_sub_directories_of_what_is_new_are_listed(partition: str) -> None:
    """Hive does not look into them when it tells what a new table or partition has, and names none: so does CTAS on Tez."""
    source = model.Source(empty=True)
    source.act("create", 0, 0, int(bool(partition)))
    if partition:
        source.act("insert", 0, 0, 0)
    location = f"{model.ROOT}/a/{partition}".rstrip("/")
    nested = {f"HIVE_UNION_SUBDIR_{n}/000000_0": f"c{n}" for n in (1, 2)}
    source.storage[location] |= nested | {"000000_0": "of a later INSERT"}
    draft = Draft()
    dump_events(moving_source(source, [], []), Scope("db"), 0, None, 0, draft, Silent())
    (group,) = draft.events[-1].groups
    assert (group.partition, {file.relative: file.checksum for file in group.files}) == (partition, nested)


@pytest.mark.parametrize("partition", ["", "p=0"])
@pytest.mark.parametrize("kind", ["insert", "overwrite"])
def test_what_a_client_of_hive_2_inserts_is_listed(kind: str, partition: str) -> None:
    """Its checksums came as files, which the load refused to read: the table was held at each of its writes."""
    source = model.Source()
    source.act("create", 0, 0, int(bool(partition)))
    for change in ("insert", kind):
        source.act(change, 0, 0, 0)
    event = source.events[-1]
    assert isinstance(event, r.Insert)
    source.events[-1] = replace(event, replace=True, files=tuple(FileRef(file.checksum) for file in event.files))
    draft = Draft()
    dump_events(moving_source(source, [], []), Scope("db"), event.evid - 1, None, 0, draft, Silent())
    (group,) = draft.events[-1].groups
    assert (group.partition, group.listed) == (partition, True)
    assert group.files == source.refs(f"{model.ROOT}/a/{partition}".rstrip("/"))


@pytest.mark.parametrize("counted", [None, "0", "1", "3"])
@pytest.mark.parametrize("partition", ["", "p=0"])
def test_files_in_sub_directories_of_what_is_new_come_beside_those_that_are_named(partition: str, counted: str | None) -> None:
    """Nobody lists what has as many files as its event names."""
    source = model.Source()
    for kind in ("create", "nothing", "insert") if partition else ("nothing", "create"):
        source.act(kind, 0, 0, int(bool(partition)))
    event = source.events[-1]
    new = event.partitions[0].partition if isinstance(event, r.AddPartition) else event.after  # type: ignore[attr-defined]
    new.parameters |= {"numFiles": counted} if counted else {}
    files = source.storage[f"{model.ROOT}/a/{partition}".rstrip("/")]
    named, nested = dict(files), {f"HIVE_UNION_SUBDIR_{n}/000000_0": f"c{n}" for n in (1, 2)}
    assert named
    files |= nested
    source.act("insert", 0, 0, 0)
    draft = Draft()
    dump_events(moving_source(source, [], []), Scope("db"), 0, None, 0, draft, Silent())
    (group,) = next(one.groups for one in draft.events if one.notification.evid == event.evid)
    assert {file.relative: file.checksum for file in group.files} == (named if counted == "1" else named | nested)
    assert (group.partition, group.listed) == (partition, False)


def test_partitions_that_the_metastore_does_not_show_hold_their_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """New columns may have come to them, and one such table ended the dump of each window."""

    def refused(*_: object) -> None:
        raise MetastoreError("get_partitions db.a: Permission denied")

    source, draft = model.Source(), Draft()
    source.act("create", 0, 0, 1)
    source.act("alter", 0, 0, 0)
    created, changed = source.events
    assert isinstance(changed, r.AlterTable)
    changed.after.sd.cols = [*(changed.before.sd.cols or ()), FieldSchema("new", "string")]
    monkeypatch.setattr(Moving, "partitions", refused)
    dump_events(moving_source(source, [], []), Scope("db"), created.evid, None, 0, draft, Silent())
    (group,) = draft.events[0].groups
    assert group == FileGroup("", (FileRef.unshown_table(f"{model.ROOT}/a"),))


def of_spark(table: Table, place: str) -> None:
    """What Spark writes of an external table in a format that Hive does not read."""
    table.tableType, table.sd.location = "EXTERNAL_TABLE", f"{model.ROOT}/{table.tableName}-__PLACEHOLDER__"
    table.sd.serdeInfo.parameters = {"path": place}
    table.parameters |= {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "json"}


def test_tables_of_spark_are_listed_where_spark_reads_them() -> None:
    """Their location does not exist: they were held for ever, or empty where stores have no directories."""
    source, places = model.Source(empty=True), [f"hdfs://src/data/{name}" for name in ("first", "second")]
    source.act("create", 0, 0, 0)
    source.act("alter", 0, 0, 0)
    source.act("alter", 0, 0, 0)
    created, moved, altered = source.events
    assert isinstance(created, r.CreateTable)
    assert isinstance(moved, r.AlterTable)
    assert isinstance(altered, r.AlterTable)
    of_spark(created.after, places[0])
    for table, place in zip((moved.before, moved.after, altered.before, altered.after), (0, 1, 1, 1), strict=True):
        of_spark(table, places[place])
    source.storage |= {place: {"part-0": f"of {place}"} for place in places}
    draft = Draft()
    dump_events(moving_source(source, [], []), Scope("db"), 0, None, 0, draft, Silent())
    found = [[file.uri for group in one.groups for file in group.files] for one in draft.events]
    assert found == [[f"{places[0]}/part-0"], [f"{places[1]}/part-0"], []]
    assert [decode(notification(row(one))).relocated for one in (moved, altered)] == [True, False]  # type: ignore[attr-defined]


def test_few_events_are_decoded_at_once_where_their_messages_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """200 with 1,000 partitions each took gigabytes."""
    source, decoded = model.Source(empty=True), list[int]()
    for kind in ("create", *["nothing"] * 8):
        source.act(kind, 0, 0, 1)
    decode = PresentLocations.decode_batch

    def counted(self: PresentLocations, batch: Iterable[NotificationEvent]) -> list[LogEvent]:
        found = decode(self, batch)
        decoded.append(len(found))
        return found

    monkeypatch.setattr(PresentLocations, "decode_batch", counted)
    for text, sizes in (("", [source.evid]), (" " * (3 << 20), [3] * (source.evid // 3) + [source.evid % 3])):
        log = moving_source(source, [], [])
        plain = log.metastore.events

        def events(after: int, until: int, plain: Any = plain, text: str = text) -> Iterator[NotificationEvent]:
            for event in plain(after, until):
                event.message += text
                yield event

        monkeypatch.setattr(log.metastore, "events", events)
        decoded.clear()
        dump_events(log, Scope("db"), 0, None, 0, Draft(), Silent())
        assert decoded == [size for size in sizes if size]


def test_a_packed_message_counts_as_what_it_unpacks_to() -> None:
    text = " ".join(map(str, range(5_000))).encode()
    assert unpacked_size(base64.b64encode(gzip.compress(text)).decode()) == len(text)
    assert unpacked_size("{}") == 2
    assert unpacked_size("H4sI????") <= 64 * 8  # damaged
