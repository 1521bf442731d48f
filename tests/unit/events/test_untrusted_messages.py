"""Messages that nobody vouches for: damaged, larger than any memory, of another catalog, or of another object than their row."""

from __future__ import annotations

import base64
import gzip
import json
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.events_of_policy import LogEvent, ends_transaction, of_policy
from hive_replication.lag.waiting_event import waiting_event
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database, Function, NotificationEvent, Partition, Table, copy_of
from tests.unit.events.test_decoders_by_event_type import VERSIONS, recorded


def text_of(event: NotificationEvent) -> str:
    """The message as JSON text."""
    packed = str(event.messageFormat).startswith("gzip")
    return gzip.decompress(base64.b64decode(event.message)).decode() if packed else str(event.message)


def with_message(event: NotificationEvent, message: dict[str, Any] | str) -> NotificationEvent:
    made = copy_of(event)
    made.message = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    made.messageFormat = "json-0.2"
    return made


def first(version: str, kind: str) -> NotificationEvent:
    return next(event for event in recorded(version) if event.eventType == kind)


def packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode())).decode()


DAMAGES: dict[str, Callable[[str], str]] = {
    "a flipped byte": lambda text: text[:40] + ("A" if text[40] != "A" else "B") + text[41:],
    "cut off": lambda text: text[: len(text) // 2],
    "not Base64": lambda text: "☃" + text,
    "of another format": lambda _: base64.b64encode(b"PK\x03\x04").decode(),
    "nothing": lambda _: "",
    "not UTF-8": lambda _: base64.b64encode(gzip.compress(b'{"a":"\xff"}')).decode(),
    "two files": lambda text: base64.b64encode(base64.b64decode(text) * 2).decode(),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_packed_message_is_kept_as_it_is(damage: Callable[[str], str]) -> None:
    event = first("hive4", "CREATE_TABLE")
    event.message = damage(event.message)
    row = notification(event)
    assert row.message == event.message
    with pytest.raises(UnreadableMessage, match=rf"event {event.eventId} \(CREATE_TABLE\) of recorded.plain: "):
        decode(row)
    assert LogEvent(row).event is None
    assert waiting_event(row).size is None


def test_a_message_that_is_null() -> None:
    event = first("hive3", "CREATE_TABLE")
    event.message = None
    assert LogEvent(notification(event)).event is None


def test_a_message_that_unpacks_to_too_much() -> None:
    """A gigabyte in a megabyte: no more of it is unpacked than the limit."""
    event = first("hive4", "CREATE_TABLE")
    zeros = gzip.compress(bytes(2**20) * 256)  # 256 MiB
    event.message = base64.b64encode(zeros).decode()
    tracemalloc.start()
    try:
        row = notification(event, most=2**20)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert row.message == event.message
    assert most < 16 * 2**20
    with pytest.raises(UnreadableMessage, match="larger than max_message_bytes of the policy"):
        decode(row)
    assert notification(first("hive4", "CREATE_TABLE"), most=2**20).message.startswith("{")


def test_a_plain_message_that_is_too_large() -> None:
    """It had no limit, and its dump could not be read."""
    event = first("hive4", "CREATE_TABLE")
    event.messageFormat = "json-0.2"
    event.message = json.dumps({"db": "x" * 2**20})
    row = notification(event, most=2**20)
    assert len(row.message) < 100
    with pytest.raises(UnreadableMessage, match="larger than max_message_bytes of the policy"):
        decode(row)
    assert notification(event).message == event.message


ODD_JSON = {
    "deep": "[" * 100_000,
    "deep inside": json.dumps({"tableObjJson": "[" * 100_000}),
    "null": "null",
    "a number": "17",
    "1e999": '{"txnid":1e999}',
    "a list": "[]",
    "half of a pair": '{"db":"recorded","table":"\\ud800"}',
}


@pytest.mark.parametrize("text", ODD_JSON.values(), ids=ODD_JSON.keys())
@pytest.mark.parametrize("version", VERSIONS)
def test_odd_json_is_unreadable_and_no_more(version: str, text: str) -> None:
    kinds = {event.eventType: event for event in recorded(version)}
    for kind, event in kinds.items():
        found = LogEvent(notification(with_message(event, text)))
        read = json.loads(text).keys() if text.startswith(('{"tableObjJson', '{"txnid')) else set[str]()
        expected = isinstance(found.event, r.OtherEvent) or (read and not read & json.loads(text_of(event)).keys())
        assert found.event is None or expected, kind
        waiting_event(found.row)


def test_what_is_told_of_a_message_quotes_little_of_it() -> None:
    event = first("hive4", "DROP_PARTITION")
    table = tjson.loads(Table, json.loads(text_of(event))["tableObjJson"])
    table.partitionKeys[0].name = "\x1b[31m" + "x" * 10_000
    odd_column = {"tableObjJson": tjson.dumps(table)}
    for change in (odd_column, {"table": "stranger\x1b[31m\nall is lost" + "x" * 10_000}):
        with pytest.raises(UnreadableMessage) as error:
            decode(notification(with_message(event, json.loads(text_of(event)) | change)))
        assert str(error.value).isprintable()
        assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "changes",
    [
        {"txnid": "soon"},
        {"txnid": True},
        {"txnid": 1.5},
        {"txnid": 10**30},
        {"txnid": None},
        {"databases": "recorded"},
        {"databases": [1]},
        {"databases": {"recorded": 1}},
    ],
)
def test_an_odd_end_of_a_transaction_may_be_of_any_database(changes: dict[str, Any]) -> None:
    event = first("hive4", "COMMIT_TXN")
    found = LogEvent(notification(with_message(event, json.loads(text_of(event)) | changes)))
    assert found.event is None
    assert ends_transaction(found, "whatever")


@pytest.mark.parametrize(
    ("kind", "key", "change"),
    [
        ("CREATE_TABLE", "tableObjJson", {"1": {"str": "\ud800"}}),
        ("CREATE_TABLE", "tableObjJson", {"4": {"i32": 10**12}}),
        ("CREATE_TABLE", "tableObjJson", {"4": {"i32": 1.5}}),
        ("CREATE_FUNCTION", "functionObjJson", {"1": {"str": "\udc00"}}),
        ("CREATE_FUNCTION", "functionObjJson", {"8": {"lst": ["rec", 1, {"1": {"i32": 1}}]}}),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_an_image_that_no_metastore_would_take(version: str, kind: str, key: str, change: dict[str, Any]) -> None:
    event = first(version, kind)
    message = json.loads(text_of(event))
    message[key] = json.dumps(json.loads(message[key]) | change)
    assert LogEvent(notification(with_message(event, message))).event is None


def test_no_mutation_of_a_message_is_anything_but_read_or_unreadable() -> None:
    """What is read can be written again: nothing in it surprises whoever uses it later."""
    chosen = random.Random(4242)
    events = [event for version in VERSIONS for event in recorded(version)]
    for _ in range(4_000):
        event = chosen.choice(events)
        found = LogEvent(notification(with_message(event, mutated(chosen, text_of(event)))))
        waiting_event(found.row)
        of_policy(found, "recorded", lambda _: True)
        if found.event is not None:
            repr(found.event).encode()
            assert all(isinstance(name, str) and name.encode() is not None for name in found.event.names)


def mutated(chosen: random.Random, text: str) -> str:
    """JSON text with a character changed, or one of its values replaced by another kind of value."""
    if chosen.random() < 0.3:
        place = chosen.randrange(len(text))
        return text[:place] + chosen.choice('{}[]",:0e\\u\ud83d'[:-1] + "x") + text[place + 1 :]
    value = json.loads(text)
    holder: Any = value
    while True:
        key = chosen.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
        inner = holder[key]
        if isinstance(inner, str) and inner.startswith("{") and chosen.random() < 0.8:
            holder[key] = mutated(chosen, inner)
            return json.dumps(value)
        if not (isinstance(inner, dict | list) and inner and chosen.random() < 0.8):
            break
        holder = inner
    holder[key] = chosen.choice([None, True, -1, 10**30, 1e999, 1.5, "", "\ud800", "x" * 300, [], {}, [1], {"a": 1}, "../.."])
    return json.dumps(value)


def test_an_event_of_another_catalog_is_of_no_database() -> None:
    for event in recorded("hive4"):
        if event.catName:
            event.catName = "other"
            found = LogEvent(notification(event))
            assert found.row.database == ""
            assert not of_policy(found, "recorded", lambda _: True)


@pytest.mark.parametrize("kind", ["CREATE_TABLE", "DROP_TABLE", "INSERT", "ADD_PARTITION", "ALTER_TABLE"])
@pytest.mark.parametrize("version", VERSIONS)
def test_where_the_row_names_no_catalog_its_message_does(version: str, kind: str) -> None:
    event = first(version, kind)
    message = {key: _in_catalog(value) for key, value in json.loads(text_of(event)).items()}
    event = with_message(event, message)
    event.catName = None
    found = LogEvent(notification(event))
    assert found.event is not None
    assert not of_policy(found, "recorded", lambda _: True)
    event.catName = "hive"  # then row and message differ
    assert LogEvent(notification(event)).event is None


def _in_catalog(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_catalog(one) for one in value]
    return value.replace('{"str":"hive"}', '{"str":"other"}') if isinstance(value, str) else value


def _renamed(kind: type, field: str, value: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        image = tjson.loads(kind, text)
        setattr(image, field, value)
        return tjson.dumps(image)

    return change


MISMATCHES = {
    "both images": ("ALTER_TABLE", {"tableObjBeforeJson": _renamed(Table, "tableName", "stranger"),
                                    "tableObjAfterJson": _renamed(Table, "tableName", "stranger")}),
    "images of another database": ("ALTER_TABLE", {"tableObjBeforeJson": _renamed(Table, "dbName", "other"),
                                                   "tableObjAfterJson": _renamed(Table, "dbName", "other")}),
    "a new table": ("CREATE_TABLE", {"tableObjJson": _renamed(Table, "tableName", "stranger")}),
    "a dropped table": ("DROP_TABLE", {"tableObjJson": _renamed(Table, "tableName", "stranger")}),
    "of partitions": ("ADD_PARTITION", {"tableObjJson": _renamed(Table, "tableName", "stranger")}),
    "an insert": ("INSERT", {"tableObjJson": _renamed(Table, "dbName", "other")}),
    "a partition": ("ALTER_PARTITION", {"partitionObjAfterJson": _renamed(Partition, "tableName", "stranger")}),
    "a function": ("CREATE_FUNCTION", {"functionObjJson": _renamed(Function, "dbName", "other")}),
    "a database": ("ALTER_DATABASE", {"dbObjAfterJson": _renamed(Database, "name", "other")}),
    "the table's name": ("DROP_TABLE", {"table": lambda _: "stranger"}),
    "the database's name": ("DROP_DATABASE", {"db": lambda _: "other"}),
    "of write ids": ("ALLOC_WRITE_ID_EVENT", {"tableName": lambda _: "stranger"}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "changes"), MISMATCHES.values(), ids=MISMATCHES.keys())
def test_a_message_of_another_object_than_its_row_is_not_read(kind: str, changes: dict[str, Callable[[str], str]]) -> None:
    event = first("hive4", kind)
    message = json.loads(text_of(event))
    assert LogEvent(notification(event)).event is not None
    changed = message | {key: change(message[key]) for key, change in changes.items()}
    with pytest.raises(UnreadableMessage, match=r"stranger|other"):
        decode(notification(with_message(event, changed)))


def test_statistics_that_no_metastore_would_take() -> None:
    event = first("hive4", "UPDATE_TBL_COL_STAT_EVENT")
    message = json.loads(text_of(event))
    value = json.loads(message["colStatsJson"])
    del value["2"]["lst"][2]["2"]  # the column's type
    assert LogEvent(notification(with_message(event, message | {"colStatsJson": json.dumps(value)}))).event is None


@pytest.mark.parametrize("kind", ["UPDATE_TBL_COL_STAT_EVENT", "UPDATE_PART_COL_STAT_EVENT"])
def test_statistics_tell_of_the_engine_that_made_them(kind: str) -> None:
    """Impala's stand beside Hive's."""
    event = first("hive4", kind)
    message = json.loads(text_of(event))
    value = json.loads(message["colStatsJson"])
    found = [decode(notification(event))]
    for engine in ("impala", "Hive"):
        text = json.dumps(value | {"4": {"str": engine}})
        found.append(decode(notification(with_message(event, message | {"colStatsJson": text}))))
    assert [one.engine for one in found if isinstance(one, r.UpdateStatistics)] == ["hive", "impala", "hive"]


def test_statistics_and_constraints_of_another_table() -> None:
    event = first("hive4", "UPDATE_TBL_COL_STAT_EVENT")
    message = json.loads(text_of(event))
    message["colStatsJson"] = message["colStatsJson"].replace('"3":{"str":"parent"}', '"3":{"str":"stranger"}')
    assert LogEvent(notification(with_message(event, message))).event is None
    event = first("hive4", "ADD_PRIMARYKEY")
    message = json.loads(text_of(event).replace('\\"parent\\"', '\\"stranger\\"'))
    assert LogEvent(notification(with_message(event, message))).event is None


def test_a_foreign_key_of_another_database_is_none_of_ours() -> None:
    event = first("hive4", "ADD_FOREIGNKEY")
    assert of_policy(LogEvent(notification(event)), "recorded", lambda _: True)
    message = json.loads(text_of(event))
    (text,) = message["foreignKeyListJson"]
    row = json.loads(text)
    row["4"] = {"str": "other"}
    found = LogEvent(notification(with_message(event, message | {"foreignKeyListJson": [json.dumps(row)]})))
    assert found.event is not None
    assert not of_policy(found, "recorded", lambda _: True)
