"""A DataNode: Hadoop's data transfer over a socket, which checksums what it sends and believes what it is sent.

Names and numbers of fields are those of Hadoop's ``datatransfer.proto``.
"""

from __future__ import annotations

import logging
import socketserver
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from typing import BinaryIO

import google_crc32c

from bench.company.listening import Counts, Listener
from bench.company.protobuf import Message, decoded, delimited, encoded, varint, zigzag

_LOG = logging.getLogger(__name__)

_VERSION, _WRITE, _READ = 28, 80, 81
_CHUNK = 512  # bytes that one CRC is of
CRC32C = 2
_KEPT = 10_000  # blocks that were asked about last


class Blocks:
    """Contents by the ids of blocks: for as long as it takes to read or to write them."""

    def __init__(self) -> None:
        self._ids, self._lock = count(1 << 30), threading.Lock()
        self._contents: OrderedDict[int, bytes] = OrderedDict()

    def new(self, content: bytes = b"") -> int:
        """A block of a content; its id."""
        with self._lock:
            number = next(self._ids)
            self._contents[number] = content
            while len(self._contents) > _KEPT:
                self._contents.popitem(last=False)
            return number

    def content(self, number: int) -> bytes:
        """Content of a block; KeyError where it is forgotten."""
        return self._contents[number]

    def put(self, number: int, content: bytes) -> None:
        """Takes a content."""
        with self._lock:
            self._contents[number] = content

    def take(self, number: int) -> bytes:
        """Content of a block, which is forgotten."""
        with self._lock:
            return self._contents.pop(number)


class DataNode:
    """Sends and takes blocks.

    Args:
        blocks: what it has.
        counts: of blocks that are read and written.
    """

    def __init__(self, blocks: Blocks, counts: Counts) -> None:
        self._blocks, self._counts = blocks, counts
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        self.close = self._listener.close

    def _serve(self, connection: socketserver.StreamRequestHandler) -> None:
        read, write = connection.rfile, connection.wfile
        while len(head := read.read(3)) == 3:
            version, operation = struct.unpack(">HB", head)
            if version != _VERSION or operation not in (_READ, _WRITE):
                _LOG.warning("the simulated DataNode has no operation %s of version %s", operation, version)
                return
            request = decoded(_next(read))
            number = _block_id(request)
            if operation == _READ:
                self._counts.add("DataNode read")
                self._send(write, request, self._blocks.content(number))
                _next(read)  # the client says that it has all
            else:
                self._counts.add("DataNode write")
                write.write(delimited(encoded([(1, 0), (2, b"")])))
                _take(read, write, lambda content, number=number: self._blocks.put(number, content))

    def _send(self, write: BinaryIO, request: Message, content: bytes) -> None:
        offset, length = int(request.get(2, 0)), int(request.get(3, len(content)))
        first = offset // _CHUNK * _CHUNK
        data = content[first : -(-(offset + length) // _CHUNK) * _CHUNK]
        checksums = encoded([(1, encoded([(1, CRC32C), (2, _CHUNK)])), (2, first)])
        answer = delimited(encoded([(1, 0), (4, checksums)]))
        sums = b"".join(struct.pack(">I", google_crc32c.value(data[at : at + _CHUNK])) for at in range(0, len(data), _CHUNK))
        whole = _packet(first, 0, data, sums, last=False) if data else b""
        write.write(answer + whole + _packet(first + len(data), 1, b"", b"", last=True))


def _packet(offset: int, number: int, data: bytes, sums: bytes, *, last: bool) -> bytes:
    header = struct.pack("<BqBqBBBi", 0x09, offset, 0x11, number, 0x18, last, 0x25, len(data))
    return struct.pack(">IH", 4 + len(sums) + len(data), len(header)) + header + sums + data


def _take(read: BinaryIO, write: BinaryIO, keep: Callable[[bytes], None]) -> None:
    """Takes a block that is written and acknowledges each packet, the last one when all of it is kept."""
    content, last = bytearray(), False
    while not last:
        if len(lengths := read.read(6)) < 6:
            raise EOFError  # whoever writes was killed
        length, header_length = struct.unpack(">IH", lengths)
        header = decoded(read.read(header_length))
        body = read.read(length - 4)
        size, number, last = int(header.get(4, 0)), int(header[2]), bool(header.get(3))
        content += body[len(body) - size :]
        if last:
            keep(bytes(content))
        write.write(delimited(encoded([(1, zigzag(number)), (2, 0)])))


def _block_id(request: Message) -> int:
    """The block of an operation: in its header, its base header."""
    base = decoded(bytes(decoded(bytes(request[1]))[1]))
    return int(decoded(bytes(base[1]))[2])


def _next(read: BinaryIO) -> bytes:
    """The next message after its length."""
    length = shift = 0
    while True:
        byte = read.read(1)
        if not byte:
            raise EOFError
        length |= (byte[0] & 0x7F) << shift
        shift += 7
        if byte[0] < 0x80:
            return read.read(length)


def located(number: int, size: int, port: int) -> bytes:
    """A block and where it lies, as ``LocatedBlockProto``."""
    block = encoded([(1, b"BP-1"), (2, number), (3, 1), (4, size)])
    node = encoded([(1, b"127.0.0.1"), (2, b"127.0.0.1"), (3, b"datanode"), (4, port), (5, port), (6, port)])
    token = encoded([(1, b""), (2, b""), (3, b""), (4, b"")])
    return encoded([(1, block), (2, 0), (3, encoded([(1, node)])), (4, 0), (5, token), (6, varint(0)), (7, 1), (8, b"storage")])
