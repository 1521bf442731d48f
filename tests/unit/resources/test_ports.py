"""Ports of embedded servers are reserved until the servers have taken them."""

import socket

import pytest

from hive_replication.errors import BadRequest
from resources.embedded import ports


def test_no_two_clusters_get_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with ports.reserve() as reserved:
        port = reserved.getsockname()[1]
        monkeypatch.setattr(ports, "_PORTS", range(port, port + 1))
        with pytest.raises(BadRequest, match="no free loopback port"):
            ports.reserve()


def test_a_server_takes_its_reserved_port() -> None:
    with ports.reserve() as reserved, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(reserved.getsockname())
        server.listen()
        socket.create_connection(reserved.getsockname()).close()


def test_ports_of_stopped_servers_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_PORTS", range(31000, 31002))
    with pytest.raises(BadRequest, match="no free loopback port"):
        ports.reserve([31000, 31001])
