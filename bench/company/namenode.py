"""A NameNode: Hadoop's RPC over a socket, as ``hdfs-native`` speaks it without Kerberos.

Names and numbers of fields are those of Hadoop's ``RpcHeader.proto``, ``hdfs.proto`` and ``ClientNamenodeProtocol.proto``.
"""

from __future__ import annotations

import logging
import socketserver
import struct
from collections.abc import Callable

from bench.company import formula
from bench.company.files import Entry, Files
from bench.company.listening import Counts, Listener
from bench.company.protobuf import Message, decoded, delimited, encoded, read_delimited, signed

_LOG = logging.getLogger(__name__)

_FIRST = 7  # bytes of a connection: "hrpc", version, service class, kind of authentication
_NEGOTIATES = -33  # the call that a client begins with
_SUCCESS, _ERROR = 0, 1
_SASL_SUCCESS = 0
_MOST = 1000  # entries of a page of a listing (Hadoop's dfs.ls.limit)
_DIRECTORY, _FILE = 1, 2
NOT_FOUND = "java.io.FileNotFoundException"
_UNKNOWN = "org.apache.hadoop.ipc.RpcNoSuchMethodException"

#: Answers a call: its argument in, its answer out.
Method = Callable[[Message], bytes]


class Refusal(Exception):
    """A call is answered with an exception of Java.

    Args:
        kind: its class.
        message: its text.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class NameNode:
    """Shows files over Hadoop's RPC.

    Args:
        files: what it shows.
        counts: of calls by their names.
        writes: further calls, of a file system that can be written.
    """

    def __init__(self, files: Files, counts: Counts, writes: dict[str, Method] | None = None) -> None:
        self._files, self._counts = files, counts
        self._methods: dict[str, Method] = {"getFileInfo": self._info, "getListing": self._listing, **(writes or {})}
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        self.close = self._listener.close

    def _serve(self, connection: socketserver.StreamRequestHandler) -> None:
        if len(connection.rfile.read(_FIRST)) < _FIRST:
            return
        while length := connection.rfile.read(4):
            request = connection.rfile.read(struct.unpack(">I", length)[0])
            if answer := self._answer(request):
                connection.wfile.write(struct.pack(">I", len(answer)) + answer)

    def _answer(self, request: bytes) -> bytes:
        header, at = read_delimited(request, 0)
        call = signed(int(decoded(header)[3]))
        if call == _NEGOTIATES:
            return _response(call, delimited(encoded([(2, _SASL_SUCCESS)])))
        if call < 0:
            return b""  # who asks: believed, and not answered
        method, at = read_delimited(request, at)
        argument, _ = read_delimited(request, at)
        name = bytes(decoded(method)[1]).decode()
        self._counts.add(f"NameNode {name}")
        found = self._methods.get(name)
        if found is None:
            _LOG.warning("the simulated NameNode has no call %s", name)
            return _response(call, b"", Refusal(_UNKNOWN, f"Unknown method {name}"))
        try:
            return _response(call, delimited(found(decoded(argument))))
        except Refusal as error:
            return _response(call, b"", error)

    def _info(self, request: Message) -> bytes:
        entry = self._files.status(path_of(request))
        return encoded([(1, status(entry, entry.name))]) if entry else b""

    def _listing(self, request: Message) -> bytes:
        path, after = path_of(request), bytes(request[2]).decode()
        found = self._files.ls(path)
        if found is None:
            raise Refusal(NOT_FOUND, f"File {path} does not exist.")
        rest = [entry for entry in found if entry.name > after] if after else found
        page = [(1, status(entry, entry.name)) for entry in rest[:_MOST]]
        return encoded([(1, encoded([*page, (2, max(0, len(rest) - _MOST))]))])


def path_of(request: Message, field: int = 1) -> str:
    """The path in a request, without a slash at its end."""
    return bytes(request[field]).decode().rstrip("/")


def status(entry: Entry, name: str) -> bytes:
    """An entry as ``HdfsFileStatusProto``."""
    is_dir = entry.size is None
    fields: list[tuple[int, int | bytes]] = [
        (1, _DIRECTORY if is_dir else _FILE),
        (2, name.encode()),
        (3, entry.size or 0),
        (4, encoded([(1, 0o755 if is_dir else 0o644)])),
        (5, b"etl"),
        (6, b"hadoop"),
        (7, entry.modified * 1000),
        (8, 0 if is_dir else entry.modified * 1000),
    ]
    return encoded(fields if is_dir else [*fields, (10, 3), (11, formula.BLOCK)])


def _response(call: int, body: bytes, error: Refusal | None = None) -> bytes:
    fields: list[tuple[int, int | bytes]] = [(1, call & 0xFFFFFFFF), (2, _ERROR if error else _SUCCESS)]
    if error:
        fields += [(4, error.kind.encode()), (5, str(error).encode())]
    return delimited(encoded(fields)) + body
