"""Counters for tests: Thrift calls that reach a metastore, and event messages that are decoded."""

from __future__ import annotations

import select
import socket
import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import pytest

from hive_replication.events import decoders_by_event_type as decode
from hive_replication.metastore.connection import addresses

_HEADER = 8  # bytes of a binary Thrift message before its name: version and type, then the name's length


class CountingProxy(socketserver.ThreadingTCPServer):
    """A proxy that counts calls by Thrift's name, without heartbeats of locks, which depend on time.

    Args:
        uri: ``thrift://host:port`` of the metastore.
    """

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, uri: str) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        (behind,) = addresses(uri)
        self.behind = behind.host, behind.port
        self.uri = f"thrift://127.0.0.1:{self.server_address[1]}"
        self.calls: Counter[str] = Counter()
        self.down = False  # connections are cut, new ones end at once

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, name="counting", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class _Passing(socketserver.BaseRequestHandler):
    server: CountingProxy  # pyright: ignore[reportIncompatibleVariableOverride]
    request: socket.socket

    def handle(self) -> None:
        """A client sends nothing more before it has its answer: what comes first after an answer begins a call."""
        with socket.create_connection(self.server.behind) as metastore:
            begun = b""
            while not self.server.down:
                for ready in select.select([self.request, metastore], [], [], 0.2)[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    (metastore if ready is self.request else self.request).sendall(data)
                    begun = self._count(begun, data) if ready is self.request else b""

    def _count(self, begun: bytes, data: bytes) -> bytes:
        """Counts a call once its name is there."""
        length = struct.unpack(">i", (begun + data)[4:_HEADER])[0] if len(begun + data) >= _HEADER else _HEADER
        end = _HEADER + length
        if len(begun) < end <= len(begun + data):
            name = (begun + data)[_HEADER:end].decode()
            if name != "heartbeat":
                self.server.calls[name] += 1
        return (begun + data)[:end]


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts how often each event's message is decoded from now on."""
    found = Counter[int]()

    def counting(decoder: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def count(head: tuple[int, ...], message: object) -> object:
            found[head[0]] += 1
            return decoder(head, message)

        return count

    monkeypatch.setattr(decode, "DECODERS", {kind: counting(decoder) for kind, decoder in decode.DECODERS.items()})
    return found
