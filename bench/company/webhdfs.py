"""WebHDFS over HTTP: checksums, small files, and the counts of all simulated servers."""

from __future__ import annotations

import json
import socketserver
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from bench.company.files import Files
from bench.company.listening import Counts, Listener

_PREFIX = "/webhdfs/v1"


class Answer(NamedTuple):
    """Status and content of an answer; ``again`` are parameters with which the same request is to come once more."""

    status: int
    content: object
    again: str = ""


#: Takes the path, parameters and body of a request.
Operation = Callable[[str, dict[str, str], bytes], Answer]


class WebHdfs:
    """Shows files over HTTP; a NameNode and a DataNode in one, which redirects to itself at most.

    Args:
        files: what it shows.
        counts: of calls by their names; ``/counts`` takes them.
        writes: further operations, of a file system that can be written; their names are values of ``op``.
    """

    def __init__(self, files: Files, counts: Counts, writes: dict[str, Operation] | None = None) -> None:
        self._files, self._counts = files, counts
        self._operations: dict[str, Operation] = {"GETFILECHECKSUM": self._checksum, **(writes or {})}
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        self.close = self._listener.close

    def _serve(self, connection: socketserver.StreamRequestHandler) -> None:
        while line := connection.rfile.readline():
            headers: dict[str, str] = {}
            while (header := connection.rfile.readline().strip()) != b"":
                name, _, value = header.decode().partition(":")
                headers[name.lower()] = value.strip()
            body = connection.rfile.read(int(headers.get("content-length", 0)))
            url = line.split()[1].decode()
            status, content, again = self._answer(url, body)
            data = json.dumps(content).encode()
            place = f"Location: http://127.0.0.1:{self.port}{url}&{again}\r\n" if again else ""
            head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\n{place}Content-Length: {len(data)}\r\n\r\n"
            connection.wfile.write(head.encode() + data)

    def _answer(self, url: str, body: bytes) -> Answer:
        parts = urlsplit(url)
        if parts.path == "/counts":
            return Answer(200, self._counts.taken())
        parameters = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        operation = self._operations.get(parameters.get("op", ""))
        if operation is None or not parts.path.startswith(_PREFIX):
            return refusal(400, "UnsupportedOperationException", f"not simulated: {parts.path} {parameters.get('op')}")
        self._counts.add(f"WebHDFS {parameters['op']}")
        return operation(unquote(parts.path.removeprefix(_PREFIX)).rstrip("/"), parameters, body)

    def _checksum(self, path: str, _parameters: dict[str, str], _body: bytes) -> Answer:
        found = self._files.checksum(path)
        if found is None:
            return refusal(404, "FileNotFoundException", f"File does not exist: {path}")
        return Answer(200, {"FileChecksum": {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": found, "length": len(found) // 2}})


def refusal(status: int, kind: str, message: str) -> Answer:
    """An answer that says why not, as Hadoop does."""
    return Answer(status, {"RemoteException": {"exception": kind, "message": message}})
