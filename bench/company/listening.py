"""Sockets of the simulated servers: a thread a connection, and counts of what was asked."""

from __future__ import annotations

import socketserver
import threading
from collections import Counter
from collections.abc import Callable


class Counts:
    """How often each call was made. Safe to use from many threads."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()
        self._lock = threading.Lock()

    def add(self, call: str) -> None:
        """Counts a call."""
        with self._lock:
            self._made[call] += 1

    def taken(self) -> dict[str, int]:
        """The counts since the last time that they were taken."""
        with self._lock:
            made, self._made = dict(self._made), Counter()
        return made


class Listener:
    """A server on a free port of this machine.

    Args:
        serve: serves one connection until its other side closes it.
    """

    def __init__(self, serve: Callable[[socketserver.StreamRequestHandler], None]) -> None:
        class Handler(socketserver.StreamRequestHandler):
            disable_nagle_algorithm = True

            def handle(self) -> None:
                try:
                    serve(self)
                except (ConnectionError, EOFError):
                    return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            request_queue_size = 256

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, name="listener", daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.server_address[1]

    def close(self) -> None:
        """Takes no more connections."""
        self._server.shutdown()
        self._server.server_close()
