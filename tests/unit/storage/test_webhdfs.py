"""What answers of WebHDFS mean. A small HTTP server stands for states that a healthy HDFS does not show."""

from __future__ import annotations

import json
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import cast

import pytest
import urllib3

from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.kerberos import tickets
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account, Tls
from hive_replication.storage import Late, NoChecksum, Storage
from hive_replication.storage.delegation import Delegation
from hive_replication.storage.file_status import FileChecksum
from hive_replication.storage.hdfs_facts import is_encrypted, server_defaults
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.storage.webhdfs_hosts import ClusterHosts
from hive_replication.storage.webhdfs_pool import addresses_of, connections

Answer = tuple[int, dict[str, object] | str]  # a text is where a redirect leads to
CLOSED: Answer = (0, "")  # the connection is
GOOD: Answer = (200, {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": "AB" * 28 + "00000000", "length": 28}})


def bad(status: int, exception: str) -> Answer:
    return status, {"RemoteException": {"exception": exception, "message": "why"}}


class Server(ThreadingHTTPServer):
    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.asked = list[str]()
        self.datanodes: dict[str, dict[str, str]] = {}
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path.startswith("/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"):
            self.answer(200, {"beans": [{"LiveNodes": json.dumps(self.server.datanodes)}]})
            return
        self.server.asked.append(self.path)
        status, body = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        self.answer(status, body)

    def answer(self, status: int, body: dict[str, object] | str) -> None:
        data = body.encode() if status == 200 and isinstance(body, str) else json.dumps(body).encode()
        if not status:
            self.close_connection = True
            return
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        while (
            self.headers.get("Transfer-Encoding") == "chunked" and self.rfile.read(int(self.rfile.readline(), 16) + 2) != b"\r\n"
        ):
            pass  # until the piece without content
        self.send_response(status)
        if isinstance(body, str) and status != 200:
            self.send_header("Location", f"{body}{self.path}&namenoderpcaddress=nn:8020")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_PUT(self) -> None:
        self.do_GET()

    def log_message(self, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers = list[Server]()

    def start(*answers: Answer) -> Server:
        servers.append(Server(list(answers)))
        threading.Thread(target=servers[-1].serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        live = {f"localhost:{number}": {"infoAddr": one.address[7:]} for number, one in enumerate(servers)}
        for one in servers:  # each may be a NameNode, and lists all
            one.datanodes = live
        return servers[-1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_padding_is_cut_and_paths_are_encoded(serve: Callable[..., Server]) -> None:
    server = serve(GOOD)
    assert WebHdfs(server.address).checksum("/a b/é#?%20") == FileChecksum("MD5-of-0MD5-of-512CRC32C", "ab" * 28)
    assert server.asked[0].startswith("/webhdfs/v1/a%20b/%C3%A9%23%3F%2520?op=GETFILECHECKSUM&user.name=")


def test_the_next_address_is_asked_where_one_is_standby(serve: Callable[..., Server]) -> None:
    standby, active = serve(bad(403, "StandbyException")), serve(GOOD)
    assert WebHdfs(f"{standby.address}, {active.address}/").checksum("/x").value == "ab" * 28
    assert (len(standby.asked), len(active.asked)) == (1, 1)


def test_a_connection_that_was_closed_just_then_is_made_again_once(serve: Callable[..., Server]) -> None:
    good: Answer = (200, {"QuotaUsage": {}})
    once, twice = serve(CLOSED, good), serve(CLOSED, CLOSED, good)
    assert WebHdfs(once.address).asked("/x", "GETQUOTAUSAGE", "QuotaUsage") == {}
    with pytest.raises(OSError, match="no answer"):
        WebHdfs(twice.address).asked("/x", "GETQUOTAUSAGE", "QuotaUsage")
    assert (len(once.asked), len(twice.asked)) == (2, 2)


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        (bad(404, "FileNotFoundException"), FileNotFoundError, 1),
        (bad(403, "AccessControlException"), PermissionError, 1),
        (bad(401, "AuthenticationException"), PermissionError, 1),
        (bad(403, "IOException"), ReplicationError, 1),
        (bad(500, "RuntimeException"), ReplicationError, 4),
        (bad(403, "StandbyException"), OSError, 4),
        ((404, "<html>"), ReplicationError, 1),
        (bad(503, "IOException"), ReplicationError, 4),
        ((502, "<html>"), OSError, 4),
        ((503, "<html>"), OSError, 4),
        ((504, "<html>"), OSError, 4),
    ],
)
def test_other_answers(serve: Callable[..., Server], answer: Answer, error: type[Exception], asked: int) -> None:
    server = serve(answer)
    with pytest.raises(error):
        WebHdfs(server.address).checksum("/x")
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (bad(403, "IOException"), NoChecksum),
        (bad(500, "RuntimeException"), NoChecksum),
        ((502, "no gateway"), Unreachable),
        ((404, "no such page: FileNotFoundException"), ReplicationError),
        ((403, "login first"), ReplicationError),
    ],
)
def test_what_hadoop_says_of_a_file_is_told_from_what_others_answer(
    serve: Callable[..., Server], answer: Answer, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    storage = Storage((Root(uri="hdfs://localhost:1/", webhdfs=serve(answer).address),))
    with pytest.raises(error) as caught:
        storage.checksum("hdfs://localhost:1/x")
    assert isinstance(caught.value, NoChecksum) is (error is NoChecksum)


def test_trouble_passes(serve: Callable[..., Server]) -> None:
    server = serve(bad(500, "RuntimeException"), GOOD)
    assert WebHdfs(server.address).checksum("/x").value == "ab" * 28


@pytest.mark.parametrize("trouble", [bad(403, "StandbyException"), CLOSED])
def test_what_the_namenode_tells_of_a_path_is_asked_again(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, trouble: Answer
) -> None:
    """The zones of a database, and extended attributes, were not, while all other calls waited for the end of a failover."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    server = serve(trouble, trouble, (200, {"FileStatus": {"encBit": True}}))
    storage = Storage((Root(uri="hdfs://nn:8020/", webhdfs=server.address),))
    assert storage.about_webhdfs("hdfs://nn:8020/w/t", is_encrypted, again=True)
    server.answers = [bad(403, "StandbyException")]
    with pytest.raises(Unreachable, match="StandbyException"):
        storage.about_webhdfs("hdfs://nn:8020/w/t", is_encrypted)
    assert len(server.asked) == 4


def test_the_datanode_that_answered_is_asked_at_once_the_next_time(serve: Callable[..., Server]) -> None:
    datanode = serve(GOOD)
    namenode = serve((307, datanode.address))
    hdfs = WebHdfs(namenode.address)
    for name in "abc":
        assert hdfs.checksum(f"/{name}").value == "ab" * 28
    assert (len(namenode.asked), len(datanode.asked)) == (1, 3)
    assert datanode.asked[2].startswith("/webhdfs/v1/c?op=GETFILECHECKSUM&user.name=")
    assert datanode.asked[2].endswith("&namenoderpcaddress=nn:8020")


def test_a_lost_datanode_is_asked_no_more(serve: Callable[..., Server]) -> None:
    lost, datanode = serve(GOOD, bad(500, "IOException")), serve(GOOD)
    namenode = serve((307, lost.address), (307, datanode.address))
    hdfs = WebHdfs(namenode.address)
    for name in "abc":
        assert hdfs.checksum(f"/{name}").value == "ab" * 28
    assert (len(namenode.asked), len(lost.asked), len(datanode.asked)) == (2, 2, 2)


class SlowHandler(Handler):
    """A server that reads the checksums of all blocks of a file for a while before it answers."""

    size, wait = 0, 0.6

    def do_GET(self) -> None:
        if "op=GETFILESTATUS" in self.path:
            self.answer(200, {"FileStatus": {"length": self.size}})
            return
        self.server.asked.append(self.path)
        time.sleep(self.wait)
        with suppress(OSError):  # nobody waits for it any more
            self.answer(*GOOD)


@pytest.fixture
def slowly(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], Server]:
    monkeypatch.setattr("hive_replication.storage.webhdfs.TIMEOUT", urllib3.Timeout(connect=5, read=0.2))
    monkeypatch.setattr("hive_replication.storage.webhdfs_requests._LEAST", 0)

    def start(size: int, seconds: int) -> Server:
        server = serve(GOOD)
        server.RequestHandlerClass = type("Slow", (SlowHandler,), {"size": size})
        monkeypatch.setattr("hive_replication.storage.webhdfs_requests._PACE", size // seconds)
        return server

    return start


def test_the_checksum_of_a_file_of_many_blocks_may_take_long(slowly: Callable[[int, int], Server]) -> None:
    """Of a terabyte it took more than all other answers may: the file was copied three times and its database stopped."""
    server = slowly(1 << 40, 9)
    assert WebHdfs(server.address).checksum("/x").value == "ab" * 28
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("size", "error", "asked"),
    [(1 << 40, Late("/x has no checksum within 1 s: no answer from WebHDFS"), 2), (1 << 20, OSError("no answer"), 4)],
    ids=["large", "small"],
)
def test_a_checksum_that_never_comes_is_trouble_of_its_file_where_that_is_large(
    slowly: Callable[[int, int], Server], monkeypatch: pytest.MonkeyPatch, size: int, error: Exception, asked: int
) -> None:
    monkeypatch.setattr(SlowHandler, "wait", 1.5)
    server = slowly(size, 1)
    with pytest.raises(type(error), match=str(error)):
        WebHdfs(server.address).checksum("/x")
    assert len(server.asked) == asked


def test_a_small_file_is_sent_to_the_datanode(serve: Callable[..., Server]) -> None:
    datanode = serve((201, {}))
    standby, active = serve(bad(403, "StandbyException")), serve((307, datanode.address))
    WebHdfs(f"{standby.address},{active.address}").write("/a b", b"text", overwrite=True)
    assert [len(one.asked) for one in (standby, active, datanode)] == [1, 1, 1]
    assert datanode.asked[0].startswith("/webhdfs/v1/a%20b?op=CREATE&overwrite=true&user.name=")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (bad(403, "FileAlreadyExistsException"), FileExistsError),
        (bad(403, "AccessControlException"), PermissionError),
        (bad(403, "StandbyException"), OSError),
        (bad(500, "RuntimeException"), ReplicationError),
    ],
)
def test_files_that_cannot_be_written(serve: Callable[..., Server], answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error):
        WebHdfs(serve(answer).address).write("/x", b"", overwrite=False)


def test_a_namenode_that_is_down_is_asked_last_from_then_on(serve: Callable[..., Server]) -> None:
    down, active = serve(GOOD), serve((201, {}))
    hdfs = WebHdfs(f"{down.address},{active.address}")
    down.shutdown()
    down.server_close()
    for _ in range(2):
        hdfs.write("/x", iter([b"content"]), overwrite=False)
    assert len(active.asked) == 2
    assert hdfs._addresses == [active.address, down.address]  # pyright: ignore[reportPrivateUsage]


def test_another_datanode_takes_what_a_lost_one_cannot(serve: Callable[..., Server]) -> None:
    lost, living = serve(GOOD), serve((201, {}))
    namenode = serve((307, lost.address), (307, living.address))
    lost.shutdown()
    lost.server_close()
    WebHdfs(namenode.address).write("/x", iter([b"con", b"tent"]), overwrite=False)
    assert ["excludedatanodes=localhost:0" in asked for asked in namenode.asked] == [False, True]
    assert len(living.asked) == 1


def test_nothing_is_sent_to_hosts_outside_the_cluster(serve: Callable[..., Server]) -> None:
    stranger = serve(GOOD)
    namenode = serve((307, stranger.address))
    namenode.datanodes = {}
    hdfs = WebHdfs(namenode.address)
    with pytest.raises(ReplicationError, match=r"no live DataNode of its cluster.*webhdfs_hosts"):
        hdfs.checksum("/x")
    with pytest.raises(ReplicationError, match="no live DataNode of its cluster"):
        hdfs.write("/x", b"secret", overwrite=True)
    assert stranger.asked == []
    named = WebHdfs(namenode.address, [stranger.address.removeprefix("http://")])
    assert named.checksum("/x").value == "ab" * 28


@pytest.mark.parametrize("location", ["file:///etc/passwd", "http://user@127.0.0.1:1", "//", "http://[", ""])
def test_odd_redirects_are_refused(serve: Callable[..., Server], location: str) -> None:
    with pytest.raises(ReplicationError, match="redirects"):
        WebHdfs(serve((307, location)).address).write("/x", b"", overwrite=True)


def test_addresses_with_a_scheme_in_capitals_are_encrypted_as_the_policy_says() -> None:
    """The policy's certificate authorities were not read, and redirects without TLS were followed."""
    address = "HTTPS://127.0.0.1:9871"
    with pytest.raises(BadRequest, match="/no/such"):
        WebHdfs(address, tls=Tls(ca="/no/such.pem"))
    hosts = ClusterHosts(urllib3.PoolManager(), addresses_of(f"{address}, {address}"), ["dn:9864"])
    with pytest.raises(ReplicationError, match="without TLS, which is not followed"):
        hosts.require("http://dn:9864/x")


@pytest.mark.parametrize("body", ["<html>Log in</html>", "[]", "[" * 100_000, '{"FileChecksum": 1}', '{"FileChecksum": {}}'])
def test_a_login_page_is_one_clear_error(serve: Callable[..., Server], body: str) -> None:
    hdfs = WebHdfs(serve((200, body)).address)
    with pytest.raises(ReplicationError, match="set webhdfs of the storage root"):
        hdfs.checksum("/x")
    with pytest.raises(ReplicationError, match="set webhdfs of the storage root"):
        hdfs.examine()
    with pytest.raises(ReplicationError, match="answered 200"):
        hdfs.write("/x", b"", overwrite=True)
    assert hdfs.space() is None


def test_numbers_that_are_none_are_one_clear_error(serve: Callable[..., Server]) -> None:
    endless = serve((200, '{"FileChecksum": {"algorithm": "MD5", "bytes": "ab", "length": Infinity}}'))
    with pytest.raises(ReplicationError, match="is not answered by WebHDFS"):
        WebHdfs(endless.address).checksum("/a")
    full = serve((200, '{"beans": [{"CapacityTotal": 1e999, "CapacityRemaining": 1}]}'))
    assert WebHdfs(full.address).space() is None


def test_an_answer_without_end_is_not_read(serve: Callable[..., Server]) -> None:
    with pytest.raises(ReplicationError, match="longer than"):
        WebHdfs(serve((200, " " * (2 << 20))).address).checksum("/x")


def test_each_namenode_is_examined(serve: Callable[..., Server]) -> None:
    found: Answer = (200, {"FileStatus": {}})
    standby, active, down = serve(bad(403, "StandbyException")), serve(found), serve(found)
    down.shutdown()
    down.server_close()
    states = WebHdfs(",".join(one.address for one in (standby, active, down))).examine()
    assert (states[standby.address], states[active.address]) == ("standby", "active")
    assert "no answer" in states[down.address]
    with pytest.raises(OSError, match="StandbyException"):
        WebHdfs(standby.address).examine()


def test_examined(serve: Callable[..., Server]) -> None:
    server = serve((200, {"FileStatus": {"type": "DIRECTORY"}}))
    assert WebHdfs(server.address).examine() == {server.address: "active"}


def test_many_threads_wait_for_the_first_list_of_datanodes(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    datanode = serve(GOOD)
    hdfs = WebHdfs(serve((307, datanode.address)).address)
    listed = ClusterHosts._listed

    def slowly(hosts: ClusterHosts, address: str) -> dict[str, str] | None:
        time.sleep(0.2)
        return listed(hosts, address)

    monkeypatch.setattr(ClusterHosts, "_listed", slowly)
    with ThreadPoolExecutor(8) as pool:
        assert {found.value for found in pool.map(hdfs.checksum, [f"/{number}" for number in range(8)])} == {"ab" * 28}


def test_a_lost_list_of_datanodes_is_asked_for_again(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    datanode = serve(GOOD)
    hdfs = WebHdfs(serve((307, datanode.address)).address)
    answers: list[Callable[..., dict[str, str] | None]] = [lambda *_: None, ClusterHosts._listed]
    monkeypatch.setattr(ClusterHosts, "_listed", lambda *given: answers.pop(0)(*given))
    assert hdfs.checksum("/x").value == "ab" * 28


class Given(Delegation):
    """A token of this account; no thread keeps it."""

    def __init__(self) -> None:
        pass

    def text(self) -> str:
        return "T0KEN"

    def refused(self, text: str) -> None:
        """Gets none."""


def said(call: Callable[[], object]) -> str:
    """What Python, and with it Dagster, tells of an error: itself and all that it came from."""
    with pytest.raises(OSError, match="WebHDFS") as caught:
        call()
    return "".join(traceback.format_exception(caught.value))


def test_no_error_tells_the_token_that_was_sent(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster stores errors with their causes."""
    monkeypatch.setattr("time.sleep", lambda _: None)
    server = serve(CLOSED)
    hdfs = WebHdfs(server.address, delegation=Given())
    calls = [
        lambda: hdfs.checksum("/x"),
        lambda: hdfs.write("/x", b"", overwrite=True),
        lambda: hdfs.told("/x", "GETFILESTATUS"),
        hdfs.examine,
    ]
    assert [said(call) for call in calls if "T0KEN" in said(call)] == []
    assert "delegation=T0KEN" in server.asked[0]


def test_no_error_tells_the_token_where_nobody_listens() -> None:
    hdfs = WebHdfs("http://127.0.0.1:1", delegation=Given())
    text = said(lambda: hdfs.told("/x", "GETFILESTATUS"))
    assert "T0KEN" not in text


def test_no_refused_redirect_tells_the_token(serve: Callable[..., Server]) -> None:
    hdfs = WebHdfs(serve((307, "//")).address, delegation=Given())
    with pytest.raises(ReplicationError, match=r"redirects to .*delegation=\*\*\*"):
        hdfs.write("/x", b"", overwrite=True)


@pytest.mark.parametrize("kind", [[], {}, ["CRC32C"]], ids=str)
def test_defaults_with_a_checksum_of_no_type(kind: object) -> None:
    answer = {"bytesPerChecksum": 512, "checksumType": kind, "trashInterval": 0, "encryptDataTransfer": False}
    web = cast("WebHdfs", SimpleNamespace(asked=lambda *_: answer))
    with pytest.raises(ReplicationError, match="GETSERVERDEFAULTS is answered without"):
        server_defaults(web, "/")


def test_a_proof_of_the_server_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no Base64 ended the caller with an error of Python's."""
    asked = SimpleNamespace(complete=False, step=lambda _=b"": b"ticket")
    monkeypatch.setattr(tickets, "context", lambda *_, **__: asked)
    first = SimpleNamespace(status=401, drain_conn=lambda: None)
    answers = [first, SimpleNamespace(status=200, headers={"WWW-Authenticate": "Negotiate x"})]
    monkeypatch.setattr(urllib3.PoolManager, "request", lambda *_, **__: answers.pop(0))
    pool = connections(["http://nn:9870"], None, Account())
    with pytest.raises(ReplicationError, match="nn:9870 takes a ticket and does not prove who it is"):
        pool.request("GET", "http://nn:9870/webhdfs/v1/")
