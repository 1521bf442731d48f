from __future__ import annotations

import pytest

from hive_replication.errors import BadRequest, MissingEvents, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.notification_log import consecutive
from hive_replication.metastore.transport import addresses
from hive_replication.metastore.types import NotificationEvent


def ids(after: int, *found: int) -> list[int]:
    return [event.eventId for event in consecutive((NotificationEvent(eventId=i) for i in found), after)]


def test_dense_ids_pass() -> None:
    assert ids(4, 5, 6, 7) == [5, 6, 7]
    assert ids(4) == []


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ((6,), "lacks the events 5 to 5"),  # purged
        ((5, 6, 9), "lacks the events 7 to 8"),
        ((5, 5), "event 5 again after event 5"),
        ((5, 6, 4), "event 4 again after event 6"),
    ],
)
def test_holes_and_repeats_are_errors(found: tuple[int, ...], message: str) -> None:
    with pytest.raises(MissingEvents, match=message):
        ids(4, *found)


def test_what_comes_before_a_hole_is_passed_on() -> None:
    stream = consecutive((NotificationEvent(eventId=i) for i in (1, 2, 4)), 0)
    assert [next(stream).eventId, next(stream).eventId] == [1, 2]


def test_addresses() -> None:
    assert list(map(str, addresses("thrift://a:1, thrift://[::1]:2,thrift://b"))) == [
        "thrift://a:1",
        "thrift://[::1]:2",
        "thrift://b:9083",
    ]
    assert list(map(str, addresses("https://a:1/hms/,http://b:2"))) == ["https://a:1/hms", "http://b:2/metastore"]


@pytest.mark.parametrize(
    "uri", ["", "a:9083", "http://a", "https://u:p@a:1", "ftp://a:1", "thrift://", "thrift://a:x", "thrift://a:1,"]
)
def test_a_broken_address_is_a_bad_request(uri: str) -> None:
    with pytest.raises(BadRequest, match=r"thrift://host:9083|names no port"):
        addresses(uri)


def test_an_unreachable_metastore_is_named() -> None:
    uri = "thrift://127.0.0.1:1,thrift://127.0.0.1:2"
    with (
        Metastore(uri, retries=2) as metastore,
        pytest.raises(Unreachable, match=r"get_databases \* at thrift://127.0.0.1:1,.* check that") as e,
    ):
        metastore.databases()
    assert e.value.exit_code == 1
