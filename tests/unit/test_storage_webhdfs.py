"""What answers of WebHDFS mean. A small HTTP server stands for states that a healthy HDFS does not show."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.storage.records import FileChecksum
from hive_replication.storage.webhdfs import WebHdfs

Answer = tuple[int, dict[str, object] | str]  # a text is where a redirect leads to
GOOD: Answer = (200, {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": "AB" * 28 + "00000000", "length": 28}})


def bad(status: int, exception: str) -> Answer:
    return status, {"RemoteException": {"exception": exception, "message": "why"}}


class Server(ThreadingHTTPServer):
    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.asked = list[str]()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        status, body = self.server.answers.pop(0) if len(self.server.answers) > 1 else self.server.answers[0]
        data = json.dumps(body).encode()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(status)
        if isinstance(body, str):
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


@pytest.mark.parametrize(
    ("answer", "error", "asked"),
    [
        (bad(404, "FileNotFoundException"), FileNotFoundError, 1),
        (bad(403, "AccessControlException"), PermissionError, 1),
        (bad(401, "AuthenticationException"), PermissionError, 1),
        (bad(403, "IOException"), ReplicationError, 1),
        (bad(500, "RuntimeException"), ReplicationError, 4),
        (bad(403, "StandbyException"), OSError, 4),
    ],
)
def test_other_answers(serve: Callable[..., Server], answer: Answer, error: type[Exception], asked: int) -> None:
    server = serve(answer)
    with pytest.raises(error):
        WebHdfs(server.address).checksum("/x")
    assert len(server.asked) == asked


def test_trouble_passes(serve: Callable[..., Server]) -> None:
    server = serve(bad(500, "RuntimeException"), GOOD)
    assert WebHdfs(server.address).checksum("/x").value == "ab" * 28


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
