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

Answer = tuple[int, dict[str, object]]
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
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

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
