"""How delegation tokens are had and kept. A small HTTP server stands for NameNodes in states that a healthy one does not show."""

from __future__ import annotations

import base64
import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
import urllib3

from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account
from hive_replication.storage.delegation import Delegation, delegation, service_of
from hive_replication.tls import NotTrusted
from tests.dagster_dev import wait_for

Answer = Callable[[str], tuple[int, object]]


def token(number: int, seconds: float) -> str:
    """As WebHDFS writes it; its life begins now."""

    def field(data: bytes) -> bytes:
        return bytes([len(data)]) + data

    now = time.time()
    times = b"".join(b"\x8a" + round(1000 * one).to_bytes(6) for one in (now, now + seconds))
    identifier = b"\0" + field(b"repl") * 2 + field(b"") + times + bytes([number, 1])
    return base64.urlsafe_b64encode(field(identifier) + field(b"password") + field(b"") * 2).decode().rstrip("=")


class NameNode(ThreadingHTTPServer):
    """Gives out tokens that live so long, and renews them for so long."""

    def __init__(self, life: float, renewal: float) -> None:
        self.life, self.renewal = life, renewal
        self.given: list[str] = []
        self.asked: list[str] = []
        self.instead: tuple[int, object] | None = None
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, operation: str) -> tuple[int, object]:
        self.asked.append(operation)
        if self.instead:
            return self.instead
        if operation == "RENEWDELEGATIONTOKEN":
            return 200, {"long": round(1000 * (time.time() + self.renewal))}
        self.given.append(token(len(self.given), self.life))
        return 200, {"Token": {"urlString": self.given[-1]}}


class _Handler(BaseHTTPRequestHandler):
    server: NameNode

    def do_GET(self) -> None:
        status, body = self.server.answer(parse_qs(urlsplit(self.path).query)["op"][0])
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def start() -> Iterator[Callable[[float, float], NameNode]]:
    servers: list[NameNode] = []

    def started(life: float = 1000, renewal: float = 500) -> NameNode:
        servers.append(NameNode(life, renewal))
        return servers[-1]

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


def of(*servers: NameNode) -> Delegation:
    return Delegation(Root(uri="hdfs://nn:8020/", webhdfs=",".join(one.address for one in servers)), "nn:8020")


def test_a_token_is_had_once_and_renewed_at_once(start: Callable[..., NameNode]) -> None:
    server = start()
    made = of(server)
    assert not made.in_use
    assert made.text() == made.text() == server.given[0]
    assert server.asked == ["GETDELEGATIONTOKEN", "RENEWDELEGATIONTOKEN"]
    assert made.until() == pytest.approx(time.time() + 500, abs=20)
    assert made.in_use


def test_a_token_is_renewed_and_replaced_in_time(start: Callable[..., NameNode]) -> None:
    renewing, replacing = start(renewal=3), start(life=4)
    made, other = of(renewing), of(replacing)
    first, second = made.text(), other.text()
    wait_for("a second renewal", lambda: len(renewing.asked) >= 4, 30)
    wait_for("another token", lambda: other.text() != second, 30)
    assert made.text() == first
    assert set(renewing.asked[2:]) == {"RENEWDELEGATIONTOKEN"}


def test_a_renewal_that_is_refused_brings_another_token(start: Callable[..., NameNode]) -> None:
    server = start(renewal=3)
    made = of(server)
    first = made.text()
    renew = server.answer
    server.answer = lambda operation: (  # type: ignore[method-assign]
        (403, "InvalidToken") if operation.startswith("RENEW") and len(server.given) == 1 else renew(operation)
    )
    wait_for("another token", lambda: made.text() != first, 30)


@pytest.mark.parametrize("answer", ["soon", None, [], 10**400], ids=["a text", "null", "a list", "too great"])
def test_a_renewal_that_tells_no_time_brings_another_token(start: Callable[..., NameNode], answer: object) -> None:
    """It ended the thread that renews tokens."""
    server = start(renewal=3)
    made = of(server)
    first = made.text()
    renew = server.answer
    server.answer = lambda operation: (  # type: ignore[method-assign]
        (200, {"long": answer}) if operation.startswith("RENEW") and len(server.given) == 1 else renew(operation)
    )
    wait_for("another token", lambda: made.text() != first, 30)


def test_a_standby_namenode_is_passed_over(start: Callable[..., NameNode]) -> None:
    standby, active = start(), start()
    standby.instead = 403, {"RemoteException": {"exception": "StandbyException"}}
    assert of(standby, active).text() == active.given[0]


def test_a_proxy_that_does_not_reach_its_namenode_is_passed_over(
    start: Callable[..., NameNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The advice was to take kerberos out of the policy."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    proxy, active = start(), start()
    proxy.instead = 503, "<html>No server is available"
    assert of(proxy, active).text() == active.given[0]
    with pytest.raises(Unreachable, match="gives no delegation token now"):
        of(proxy).text()


def test_a_refused_token_is_replaced_and_another_is_not(start: Callable[..., NameNode]) -> None:
    server = start()
    made = of(server)
    first = made.text()
    made.refused("another")
    assert made.text() == first
    made.refused(first)
    assert made.text() == server.given[1]


@pytest.mark.parametrize(
    "answer", [(200, {"Token": None}), (200, {}), (403, "no"), (404, "none"), (200, {"Token": {"urlString": "x"}})]
)
def test_who_gives_no_token_is_told(start: Callable[..., NameNode], answer: tuple[int, object]) -> None:
    server = start()
    server.instead = answer
    with pytest.raises(ReplicationError, match=r"take kerberos out of this side of the policy|is no delegation token"):
        of(server).text()


def test_who_does_not_answer_is_unreachable() -> None:
    with pytest.raises(Unreachable, match="gives no delegation token"):
        Delegation(Root(uri="hdfs://nn:8020/", webhdfs="http://127.0.0.1:1"), "nn:8020").text()


def test_services_as_hdfs_native_looks_for_them() -> None:
    assert [service_of(one) for one in ("nn:8020", "lake")] == ["nn:8020", "ha-hdfs:lake"]


def test_a_given_token_is_used_as_it_is() -> None:
    root = Root(uri="hdfs://given:8020/", webhdfs="http://127.0.0.1:1", kerberos=Account())
    given = token(1, 1000)
    made = delegation("given:8020", root, given)
    assert made
    assert made.text() == made.another() == given


def test_another_clusters_nameservice_of_the_same_name_is_told_from_the_first(
    start: Callable[..., NameNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two policies of one code location: the second one's HDFS was asked with a token of the first one's."""
    monkeypatch.setattr("hive_replication.storage.delegation._SHARED", {})
    monkeypatch.setattr("hive_replication.storage.delegation.connections", lambda *_: urllib3.PoolManager())  # there is no KDC
    one, standby, other = start(), start(), start()

    def used(*servers: NameNode) -> Delegation | None:
        webhdfs = ",".join(server.address for server in servers)
        return delegation("nameservice1", Root(uri="hdfs://nameservice1/", webhdfs=webhdfs, kerberos=Account()), None)

    first = used(one, standby)
    assert first
    assert first.text() == one.given[0]
    assert used(standby) is first  # the same cluster, of which not all NameNodes are named
    with pytest.raises(BadRequest, match=r"another cluster's in this process, .* give this policy a code location of its own"):
        used(other)


def test_an_error_of_a_renewal_does_not_tell_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr("hive_replication.storage.delegation.explained", lambda *_: NotTrusted("it speaks TLS"))
    made, held = Delegation(Root(uri="hdfs://nn:8020/", webhdfs="http://127.0.0.1:1"), "nn:8020"), token(1, 100)
    with pytest.raises(NotTrusted) as caught:
        made._renewed(held)  # pyright: ignore[reportPrivateUsage]
    assert held not in "".join(traceback.format_exception(caught.value))
