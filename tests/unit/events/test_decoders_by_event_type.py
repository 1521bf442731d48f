"""Decoding of messages recorded from real metastores of Hive 3.1.3 (``json-0.2``) and 4.2.0 (``gzip(json-2.0)``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import DECODERS, KNOWN_NOT_APPLIED, UnreadableMessage, decode, notification
from hive_replication.events.events_of_policy import LogEvent, of_policy
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import Compaction
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.marked_external import MANAGED, MARK
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table
from tests.messages import row

FOLDER = Path(__file__).parents[2] / "fixtures" / "events"
VERSIONS = ("hive3", "hive4")
# Event types that Hive 3.1.3 does not write.
NEW = {
    "ALTER_PARTITIONS",
    "ADD_DEFAULTCONSTRAINT",
    "ADD_CHECKCONSTRAINT",
    "UPDATE_TBL_COL_STAT_EVENT",
    "UPDATE_PART_COL_STAT_EVENT",
    "DELETE_TBL_COL_STAT_EVENT",
    "DELETE_PART_COL_STAT_EVENT",
}
# Those that nothing writes where no compactor runs.
NOT_RECORDED = {"COMMIT_COMPACTION_EVENT"}
# Every type of Hive 4.1's messages and Hive 2's of indexes, see the classes in org.apache.hadoop.hive.metastore.messaging.
TYPES = """
    CREATE_DATABASE DROP_DATABASE ALTER_DATABASE CREATE_TABLE DROP_TABLE ALTER_TABLE ADD_PARTITION DROP_PARTITION
    ALTER_PARTITION ALTER_PARTITIONS INSERT CREATE_FUNCTION DROP_FUNCTION ADD_PRIMARYKEY ADD_FOREIGNKEY ADD_UNIQUECONSTRAINT
    ADD_NOTNULLCONSTRAINT ADD_DEFAULTCONSTRAINT ADD_CHECKCONSTRAINT DROP_CONSTRAINT OPEN_TXN ABORT_TXN COMMIT_TXN
    ALLOC_WRITE_ID_EVENT ACID_WRITE_EVENT UPDATE_TBL_COL_STAT_EVENT UPDATE_PART_COL_STAT_EVENT DELETE_TBL_COL_STAT_EVENT
    DELETE_PART_COL_STAT_EVENT COMMIT_COMPACTION_EVENT RELOAD CREATE_ISCHEMA ALTER_ISCHEMA DROP_ISCHEMA ADD_SCHEMA_VERSION
    ALTER_SCHEMA_VERSION DROP_SCHEMA_VERSION CREATE_CATALOG DROP_CATALOG ALTER_CATALOG CREATE_DATACONNECTOR
    ALTER_DATACONNECTOR DROP_DATACONNECTOR CONFIG_CHANGE_EVENT BATCH_ACID_WRITE_EVENT
    CREATE_INDEX ALTER_INDEX DROP_INDEX
""".split()  # noqa: SIM905 - fifty names read better as words


def recorded(version: str) -> list[NotificationEvent]:
    return [NotificationEvent(**fields) for fields in json.loads((FOLDER / f"{version}.json").read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("location", "uri", "subdir"),
    [
        ("hdfs://s/w/t", "hdfs://s/w/t/f", ""),
        ("hdfs://s/w/t/", "hdfs://s:8020/w/t/HIVE_UNION_SUBDIR_1/f", "HIVE_UNION_SUBDIR_1"),
        ("/w/t", "hdfs://s/w/t/a/b/f", "a/b"),
        ("file:/w/t", "file:///w/t/a/f", "a"),
        ("hdfs://s/w/t", "hdfs://s/w/tt/a/f", ""),
        ("", "hdfs://s/w/t/f", ""),
        ("hdfs://s/", "hdfs://s/w/t/f", ""),
    ],
)
def test_a_file_of_an_insert_has_its_path_below_the_directory(location: str, uri: str, subdir: str) -> None:
    """Hive tells it of transactional tables alone; files of one name in two sub-directories would be one on the target."""
    table = Table(tableName="t", dbName="db", sd=StorageDescriptor(location=location), partitionKeys=[], parameters={})
    event = r.Insert(5, 5, "INSERT", "db", "t", table, None, "", replace=False, files=(FileRef(uri, "c"),))
    decoded = decode(notification(row(event)))
    assert isinstance(decoded, r.Insert)
    assert decoded.files == (FileRef(uri, "c", subdir=subdir),)
    transactional = replace(
        event, table_object=Table(tableName="t", dbName="db", sd=table.sd, parameters={"transactional": "true"})
    )
    assert getattr(decode(notification(row(transactional))), "files") == event.files  # noqa: B009 - of a union of types


SUM = "00000200000000000000000036fe5d3fbcfa0b9f27e5ba2f39b9d4d1"


@pytest.mark.parametrize("files", [(FileRef(SUM),), (FileRef(SUM), FileRef("")), (FileRef(""),)], ids=["HDFS", "both", "other"])
@pytest.mark.parametrize("transactional", [False, True])
def test_an_insert_by_a_client_of_hive_2_names_no_files(files: tuple[FileRef, ...], transactional: bool) -> None:
    """A later metastore takes its checksums for the files, "" where a store has none, and each INSERT for an overwrite."""
    table = Table(tableName="t", dbName="db", sd=StorageDescriptor(location="hdfs://s/w/t"), partitionKeys=[], parameters={})
    table.parameters |= {"transactional": "true"} if transactional else {}
    found = decode(notification(row(r.Insert(5, 5, "INSERT", "db", "t", table, None, "", replace=True, files=files))))
    assert isinstance(found, r.Insert)
    assert (found.replace, found.files) == ((True, files) if transactional else (False, ()))


def of_kind(version: str, kind: type, table: str | None = None) -> list[r.Event]:
    events = [decode(notification(event)) for event in recorded(version)]
    return [event for event in events if isinstance(event, kind) and table in (None, event.table)]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_event_is_decoded(version: str) -> None:
    rows = recorded(version)
    assert {event.messageFormat for event in rows} == {"json-0.2" if version == "hive3" else "gzip(json-2.0)"}
    for event in rows:
        decoded = decode(notification(event))
        assert (decoded.evid, decoded.time, decoded.type) == (event.eventId, event.eventTime, event.eventType)
        assert isinstance(decoded, r.OtherEvent) == (event.eventType not in DECODERS)
        assert not isinstance(decoded, r.OtherEvent) or decoded.known
    assert {event.eventType for event in rows} >= DECODERS.keys() - NOT_RECORDED - (NEW if version == "hive3" else set())


@pytest.mark.parametrize("version", VERSIONS)
def test_database_events(version: str) -> None:
    (created,), altered, (dropped,) = (of_kind(version, kind) for kind in (r.CreateDatabase, r.AlterDatabase, r.DropDatabase))
    assert (dropped.database, dropped.names) == ("recorded", ())
    assert (created.after.name, created.after.parameters["note"]) == ("recorded", "naïve ☃")
    assert [event.before.parameters.get("note") for event in altered] == ["naïve ☃", "new"]
    marked = {"repl.source.for": "x"} if version == "hive3" else {}  # 4.2.0 leaves replication's own parameters out
    assert altered[0].after.parameters == marked | {"note": "new"}
    assert altered[0].after.locationUri.endswith("/recorded.db")


@pytest.mark.parametrize("version", VERSIONS)
def test_table_events(version: str) -> None:
    created = of_kind(version, r.CreateTable)
    assert [event.table for event in created] == ["plain", "seen", "external", "parts", "parent", "child", "counted"]
    assert [event.after.tableType for event in created[1:3]] == ["VIRTUAL_VIEW", "EXTERNAL_TABLE"]
    assert created[0].after.sd.serdeInfo.parameters["field.delim"] == "\x01"
    assert created[0].after.sd.cols[0].comment == "é"
    dropped = of_kind(version, r.DropTable)
    assert [event.before.tableName for event in dropped[:2]] == ["seen", "renamed"]


@pytest.mark.parametrize("version", VERSIONS)
def test_alterations_are_told_apart(version: str) -> None:
    columns, *rest = of_kind(version, r.AlterTable)
    assert (columns.rename, columns.truncate, columns.relocated, columns.names) == (False, False, False, ("plain",))
    assert [column.name for column in columns.after.sd.cols] == ["id", "added"]
    assert columns.before.sd.cols == columns.after.sd.cols[:1]
    assert rest[0].truncate
    (moved,) = [event for event in rest if event.relocated]
    assert moved.after.sd.location == moved.before.sd.location + "_elsewhere"
    (renamed,) = [event for event in rest if event.rename]
    assert (renamed.names, renamed.relocated) == (("plain", "renamed"), False)


@pytest.mark.parametrize("version", VERSIONS)
def test_inserts(version: str) -> None:
    into, over, part = of_kind(version, r.Insert)
    assert (into.replace, over.replace, part.replace) == (False, True, False)
    assert (into.partition, into.partition_name) == (None, "")
    assert part.partition_name == "ds=1/country=de"
    assert part.partition.values == ["1", "de"]
    (file,) = part.files
    assert file.uri.endswith("/recorded.db/parts/ds=1/country=de/000000_0_copy_1")
    assert len(file.checksum) == 56
    assert file.cm_root.startswith("hdfs://")
    assert file.cm_uri == f"{file.cm_root}/000000_0_copy_1_{file.checksum}"


@pytest.mark.parametrize("version", VERSIONS)
def test_partition_events(version: str) -> None:
    first, _ = of_kind(version, r.AddPartition)
    special = "ds=a b%25%2F%23/country=ü"
    assert [added.name for added in first.partitions] == ["ds=1/country=de", special, "ds=3/country=fr"]
    # A metastore 4 makes tables that are not transactional external, and lists no files of those.
    counts = [None if added.files is None else len(added.files) for added in first.partitions]
    assert counts == ([1, 0, 0] if version == "hive3" else [None] * 3)
    dropped = {name for event in of_kind(version, r.DropPartition) for name in event.partitions}
    assert dropped == {special, "ds=3/country=fr"}
    altered = of_kind(version, r.AlterPartition)
    assert [event.truncate for event in altered].count(True) == 1
    assert altered[0].changes[0].after.parameters["note"] == "altered"
    assert (altered[0].changes[0].before is None) == (version == "hive4")
    (renamed,) = [change for event in altered for change in event.changes if change.rename]
    assert (renamed.before_name, renamed.after_name, renamed.relocated) == ("ds=1/country=de", "ds=one/country=de", False)


def test_every_type_of_hive_is_known_by_name() -> None:
    assert set(TYPES) == DECODERS.keys() | KNOWN_NOT_APPLIED
    unknown = decode(r.Notification(7, 8, "MADE_UP", "db", "t", "no JSON"))
    assert unknown == r.OtherEvent(7, 8, "MADE_UP", "db", "t", known=False)


@pytest.mark.parametrize("kind", sorted(DECODERS.keys() - {"CREATE_DATABASE", "DROP_DATABASE", "DROP_TABLE", *NOT_RECORDED}))
@pytest.mark.parametrize("message", ["", "[]", "null", "{}", '{"tableObjJson": 5}', '{"tableObjJson": "{}"}'])
def test_a_message_that_lacks_something(kind: str, message: str) -> None:
    with pytest.raises(UnreadableMessage, match=rf"event 7 \({kind}\) of db.t"):
        decode(r.Notification(7, 8, kind, "db", "t", message))


@pytest.mark.parametrize("kind", ["CREATE_DATABASE", "DROP_DATABASE", "DROP_TABLE"])
def test_a_message_that_need_not_hold_anything(kind: str) -> None:
    """Hive 2 writes no images here."""
    decoded = decode(r.Notification(7, 8, kind, "db", "t", "{}"))
    assert (decoded.evid, getattr(decoded, "after", None), getattr(decoded, "before", None)) == (7, None, None)


@pytest.mark.parametrize(("kind", "rebalances"), [("REBALANCE", True), ("MAJOR", False), (None, False)])
def test_what_a_compaction_did(kind: str | None, rebalances: bool) -> None:
    message = {"txnid": 9, "timestamp": 8, "compactionId": 3, "type": kind, "dbname": "db", "tableName": "t", "partName": "d=1"}
    decoded = decode(r.Notification(7, 8, "COMMIT_COMPACTION_EVENT", "db", "t", json.dumps(message)))
    assert isinstance(decoded, Compaction)
    assert (decoded.names, decoded.rebalances) == (("t",), rebalances)


@pytest.mark.parametrize("message", ["no base64!", "bm8gZ3ppcA==", "H4sIAAAAAAAA", "é"])
def test_a_message_that_cannot_be_unpacked(message: str) -> None:
    event = NotificationEvent(7, 8, "DROP_TABLE", "db", "t", message, "gzip(json-2.0)")
    with pytest.raises(UnreadableMessage, match="event 7"):
        decode(notification(event))


def test_names_are_lower_case() -> None:
    event = notification(NotificationEvent(7, 8, "DROP_TABLE", "DB", None, "{}", "json-0.2"))
    assert (event.database, event.table) == ("db", "")


@pytest.mark.parametrize("version", VERSIONS)
def test_transactions_are_of_no_database(version: str) -> None:
    """Hive 3.1.3 writes "null" for the database and a space for the table."""
    rows = {event.type: event for event in map(notification, recorded(version)) if "TXN" in event.type or "WRITE" in event.type}
    assert {(kind, event.database) for kind, event in rows.items()} == {
        ("OPEN_TXN", ""),
        ("COMMIT_TXN", ""),
        ("ABORT_TXN", ""),
        ("ALLOC_WRITE_ID_EVENT", "recorded"),
    }
    assert {event.table for event in rows.values()} == ({""} if version == "hive3" else {"", "parent"})


def of_table(table: str, included: Sequence[str]) -> list[str]:
    found = [LogEvent(notification(event)) for event in recorded("hive3")]
    mine = [one for one in found if of_policy(one, "recorded", included.__contains__)]
    return [one.row.type for one in mine if one.event is not None and table in one.event.names]


def test_events_of_a_policy() -> None:
    found = [LogEvent(notification(event)) for event in recorded("hive3")]
    assert not [event for event in found if of_policy(event, "other", lambda _: True)]
    assert "ALTER_TABLE" in of_table("renamed", ["renamed"])  # into the policy
    assert of_table("renamed", ["plain"]) == ["ALTER_TABLE"]  # out of it
    assert of_table("seen", ["plain"]) == []
    kept = {event.row.type for event in found if of_policy(event, "recorded", lambda _: False)}
    assert kept == {
        "CREATE_DATABASE",
        "ALTER_DATABASE",
        "DROP_DATABASE",
        "CREATE_FUNCTION",
        "DROP_FUNCTION",
        "ALLOC_WRITE_ID_EVENT",
    }


text = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)
refs = st.builds(FileRef, text, text, text, text)


@given(refs)
def test_a_line_of_files_comes_back(file: FileRef) -> None:
    line = file.encode()
    assert FileRef.decode(line) == file
    assert line.count("#") == 3


@pytest.mark.parametrize("line", ["", "a", "a#b#c", "a#b#c#d#e"])
def test_a_broken_line_of_files(line: str) -> None:
    with pytest.raises(ValueError, match="instead of 4"):
        FileRef.decode(line)


@pytest.mark.parametrize(
    ("message", "file"),
    [
        ("hdfs://s/f#abc#hdfs://s/cm#", FileRef("hdfs://s/f", "abc", "hdfs://s/cm")),
        ("s3a://b/f###", FileRef("s3a://b/f")),
        ("s3a://b/f###base_5", FileRef("s3a://b/f", subdir="base_5")),
        ("s3a://b/f##hdfs://s/cm#", FileRef("s3a://b/f")),
        ("hdfs://s/weird#name/f%20#abc#hdfs://s/cm#", FileRef("hdfs://s/weird#name/f%20", "abc", "hdfs://s/cm")),
        ("hdfs://s/f", FileRef("hdfs://s/f")),
    ],
)
def test_files_of_messages(message: str, file: FileRef) -> None:
    assert FileRef.from_message(message) == file


def test_names_and_places_of_a_file() -> None:
    nested = FileRef("hdfs://s/t/delta_1/bucket_0", "ab", "hdfs://s/cm/", "delta_1")
    assert (nested.name, nested.relative, nested.cm_uri) == ("bucket_0", "delta_1/bucket_0", "hdfs://s/cm/bucket_0_ab")
    assert FileRef("hdfs://s/" + "x" * 250, "ab" * 28, "hdfs://s/cm").cm_uri.rpartition("/")[2] == ("x" * 250 + "_aba")
    assert FileRef("hdfs://s/f", "", "hdfs://s/cm").cm_uri == FileRef("hdfs://s/f", "ab").cm_uri == ""


def test_a_metastore_of_hive2_keeps_files_under_their_checksum() -> None:
    kept = FileRef.from_message("hdfs://s/t/f#ab").kept_by_hive2("hdfs://s/cm/")
    assert (kept.uri, kept.checksum, kept.cm_uri) == ("hdfs://s/t/f", "ab", "hdfs://s/cm/ab")
    assert FileRef.decode(kept.encode()) == kept
    for unkept in (FileRef("hdfs://s/t/f"), FileRef.missing_directory("hdfs://s/t")):
        assert unkept.kept_by_hive2("hdfs://s/cm") == unkept
    assert FileRef("hdfs://s/t/f", "ab").kept_by_hive2("").cm_uri == ""


def test_the_messages_of_the_tests_are_like_those_of_hive() -> None:
    """The model's messages (``tests.messages``) of recorded events decode to the same records."""
    for version in VERSIONS:
        for kind in (r.CreateTable, r.AlterTable, r.AddPartition, r.AlterPartition, r.Insert, r.DropTable):
            for event in of_kind(version, kind):
                if event.type != "ADD_PARTITION" or all(added.files is not None for added in event.partitions):
                    assert decode(notification(row(event))) == event


def test_an_unreadable_alter_may_be_a_rename_into_the_policy() -> None:
    event = r.Notification(7, 8, "ALTER_TABLE", "db", "t", "{}")
    assert of_policy(LogEvent(event), "db", lambda table: table == "u")
    assert not of_policy(LogEvent(event), "other", lambda table: table == "u")
    assert not of_policy(LogEvent(replace(event, type="DROP_TABLE")), "db", lambda table: table == "u")


@pytest.mark.parametrize(
    ("kind", "external", "stored"),
    [
        ("MANAGED_TABLE", "TRUE", "EXTERNAL_TABLE"),
        ("MANAGED_TABLE", "true", "EXTERNAL_TABLE"),
        ("MANAGED_TABLE", "FALSE", "MANAGED_TABLE"),
        ("EXTERNAL_TABLE", "", "MANAGED_TABLE"),
        ("EXTERNAL_TABLE", "TRUE", "EXTERNAL_TABLE"),
        ("VIRTUAL_VIEW", "TRUE", "VIRTUAL_VIEW"),
        ("VIRTUAL_VIEW", "", "VIRTUAL_VIEW"),
    ],
)
def test_a_table_is_of_the_type_that_the_metastore_makes_of_its_parameter(kind: str, external: str, stored: str) -> None:
    """A table that became external by its parameter alone stayed managed on a replica of Hive 4, which deletes its files."""
    before = Table(tableName="t", dbName="db", sd=StorageDescriptor(), tableType="MANAGED_TABLE", parameters={})
    after = Table(tableName="t", dbName="db", sd=StorageDescriptor(), tableType=kind, parameters={})
    after.parameters = {"EXTERNAL": external} if external else {}
    message = json.dumps({"tableObjBeforeJson": tjson.dumps(before), "tableObjAfterJson": tjson.dumps(after)})
    event = decode(r.Notification(1, 2, "ALTER_TABLE", "db", "t", message))
    assert isinstance(event, r.AlterTable)
    assert (event.after.tableType, event.after.parameters) == (stored, after.parameters)


def test_a_table_that_a_load_has_made_external_for_a_rename_is_managed() -> None:
    """Its replica may be a source, dumped while the load is dead in that moment."""
    marked = Table(tableName="t", dbName="db", sd=StorageDescriptor(), tableType="EXTERNAL_TABLE", parameters={})
    marked.parameters = {"EXTERNAL": "TRUE", MARK: MANAGED, "note": "kept"}
    message = json.dumps({"tableObjJson": tjson.dumps(marked)})
    event = decode(r.Notification(1, 2, "DROP_TABLE", "db", "t", message))
    assert isinstance(event, r.DropTable)
    assert event.before is not None
    assert (event.before.tableType, event.before.parameters) == ("MANAGED_TABLE", {"note": "kept"})


@pytest.mark.parametrize("kind", ["ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITIONS", "DROP_PARTITION"])
def test_events_of_a_views_partitions_are_of_none(kind: str) -> None:
    """They have no storage, and could not be read; so a view was held for what is no concern of replicas."""
    view = Table(tableName="v", dbName="db", sd=StorageDescriptor(), tableType="VIRTUAL_VIEW", parameters={})
    view.partitionKeys = [FieldSchema("a", "string")]
    part = tjson.dumps(Partition(values=["1"], dbName="db", tableName="v"))
    message = {"tableObjJson": tjson.dumps(view), "partitionListJson": [part], "partitions": [{"a": "1"}]}
    message |= {"partitionObjBeforeJson": part, "partitionObjAfterJson": part}
    event = decode(r.Notification(1, 2, kind, "db", "v", json.dumps(message)))
    assert isinstance(event, r.AddPartition | r.AlterPartition | r.DropPartition)
    assert (event.table, event.name_changes) == ("v", ())
