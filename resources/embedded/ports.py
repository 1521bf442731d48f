"""Loopback ports for embedded servers, which two clusters that start at the same time never share."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from hive_replication.errors import BadRequest

# Below the range from which systems take ports for outgoing connections: those may be taken while a server is down.
_PORTS = range(20000, 32000)


def reserve(taken: Collection[int] = ()) -> socket.socket:
    """A socket that is bound to a free port and does not listen.

    While it is open nobody else can reserve the port, but a server can take it: a server sets ``SO_REUSEADDR`` before it
    binds, and two sockets that both set it may share a port as long as one listens.

    Args:
        taken: ports of servers that may be down.

    Raises:
        BadRequest: no port is free.
    """
    for port in sorted({*_PORTS} - {*taken}, key=lambda _: random.random()):  # noqa: S311 - no secret
        reserved = socket.socket()
        try:
            reserved.bind(("127.0.0.1", port))
        except OSError:
            reserved.close()
            continue
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return reserved
    raise BadRequest("no free loopback port")
