from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from thrift.transport.TTransport import TTransportException

from hive_replication.errors import BadRequest, MissingEvents, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.connection import Connections
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


@dataclass
class Server:
    """A metastore whose log has events of certain sizes, and whose memory may not hold a large answer."""

    sizes: dict[range, int]
    memory: float = float("inf")
    asked: list[int] = field(default_factory=list[int])
    answers: list[int] = field(default_factory=list[int])

    @property
    def last(self) -> int:
        return max(ids[-1] for ids in self.sizes)

    def get_current_notificationEventId(self) -> Any:  # noqa: N802
        return SimpleNamespace(eventId=self.last)

    def get_next_notification(self, request: Any) -> Any:
        first = request.lastEvent + 1
        texts = {ids: "x" * size for ids, size in self.sizes.items()}
        left = ((i, text) for ids, text in texts.items() for i in ids if i >= first)
        events = [NotificationEvent(eventId=i, message=text) for i, text in islice(left, request.maxEvents)]
        self.asked.append(request.maxEvents)
        size = sum(len(one.message) for one in events)
        if size > self.memory:
            raise TTransportException(message="read 0 bytes")
        self.answers.append(size)
        return SimpleNamespace(events=events)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Reads all of a server's log."""

    def read(server: Server, until: int = 0) -> list[int]:
        monkeypatch.setattr(Connections, "_connect", Mock(return_value=Mock(client=server)))
        monkeypatch.setattr("tenacity.nap.time.sleep", Mock())
        with Metastore("thrift://a:1") as metastore:
            return [event.eventId for event in (metastore.events_left(0, until) if until else metastore.events(0))]

    return read


def test_small_events_are_read_a_thousand_a_call(read: Callable[..., list[int]]) -> None:
    server = Server({range(1, 1_001): 2_000})
    assert read(server) == [*range(1, 1_001)]
    assert len(server.asked) == 3
    many = Server({range(1, 10_001): 2_000})
    assert read(many) == [*range(1, 10_001)]
    assert len(many.asked) == 12


def test_no_answer_has_many_events_that_are_large(read: Callable[..., list[int]]) -> None:
    server = Server({range(1, 201): 2 << 20})
    assert read(server) == [*range(1, 201)]
    assert max(server.answers) == 50 * (2 << 20)  # before anything is known of them
    assert max(server.answers[1:]) <= 16 << 20
    later = Server({range(1, 301): 1_000, range(301, 401): 2 << 20, range(401, 1_401): 1_000})
    assert read(later) == [*range(1, 1_401)]


def test_a_metastore_that_cannot_hold_an_answer_is_asked_for_less(read: Callable[..., list[int]]) -> None:
    for server in (
        Server({range(1, 201): 2 << 20}, memory=64 << 20),
        Server({range(1, 2_001): 1_000, range(2_001, 3_001): 2 << 20}, memory=64 << 20),
    ):
        assert read(server) == [*range(1, server.last + 1)]
        assert 0 < len(server.asked) - len(server.answers) <= 5  # answers that were lost


def test_what_the_log_has_left_is_read_to_its_end_whatever_gets_lost(read: Callable[..., list[int]]) -> None:
    """After a lost answer a quarter of the events was all there was."""
    server = Server({range(1, 401): 2 << 20, range(401, 1_001): 1_000}, memory=64 << 20)
    assert read(server, 600) == [*range(1, 601)]
    assert len(server.asked) > len(server.answers)
    assert read(Server({range(41, 61): 1_000, range(71, 101): 1_000}), 80) == [*range(41, 61), *range(71, 81)]
