"""Servers that speak Thrift and do not take the account that is told to them: they are no metastores, or refuse it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hive_metastore.ThriftHiveMetastore import Processor
from hive_metastore.ttypes import ConfigValSecurityException, MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TSocket import TSocket

from hive_replication.doctor.settings import source_settings
from hive_replication.errors import Unreachable
from hive_replication.metastore.client import Metastore

Serve = Callable[[Any], str]


class Elsewhere:
    """A service that does not know a metastore's calls, as HiveServer2 without SASL."""

    def process(self, asked: TBinaryProtocol, answers: TBinaryProtocol) -> None:
        name, _, number = asked.readMessageBegin()
        asked.skip(TType.STRUCT)
        answers.writeMessageBegin(name, TMessageType.EXCEPTION, number)
        TApplicationException(TApplicationException.UNKNOWN_METHOD, f"Invalid method name: '{name}'").write(answers)
        answers.writeMessageEnd()


class Handler:
    """A metastore that has the databases, and answers ``set_ugi`` so, time and again."""

    def __init__(self, *answers: TException | None) -> None:
        self.answers = list(answers)

    def set_ugi(self, user: str, _groups: list[str]) -> list[str]:
        if answer := self.answers.pop(0) if self.answers else None:
            raise answer
        return [user]

    def get_databases(self, _pattern: str) -> list[str]:
        return ["sales"]

    def get_config_value(self, name: str, default: str) -> str:
        """As ``HMSHandler`` of Hive 2.3, which tells settings of some beginnings only."""
        if not name.startswith(("hive", "hdfs", "mapred")):
            raise ConfigValSecurityException(f"For security reasons, the config key {name} cannot be accessed")
        return default


@pytest.fixture
def serve() -> Iterator[Serve]:
    listeners: list[socket.socket] = []

    def answer(listener: socket.socket, processor: Any) -> None:
        with suppress(OSError):
            while True:
                ours, link = listener.accept()[0], TSocket()
                link.setHandle(ours)
                with ours, suppress(TException):
                    while True:
                        processor.process(TBinaryProtocol(link), TBinaryProtocol(link))

    def start(processor: Any) -> str:
        listeners.append(listener := socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=answer, args=(listener, processor), daemon=True).start()
        return f"thrift://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for one in listeners:
        one.close()


def test_a_service_that_is_no_metastore_is_told_by_its_address(serve: Serve) -> None:
    uri = serve(Elsewhere())
    with pytest.raises(Unreachable, match=rf"at {uri}: {uri} speaks Thrift and is no metastore: check metastore in the policy"):
        Metastore(uri).databases()


def test_the_next_address_is_asked_where_one_is_no_metastore(serve: Serve) -> None:
    assert Metastore(f"{serve(Elsewhere())},{serve(Processor(Handler()))}").databases() == ["sales"]


def test_a_metastore_that_refuses_the_account_is_quoted(serve: Serve) -> None:
    uri = serve(Processor(Handler(MetaException("not in hive.users"))))
    with pytest.raises(Unreachable, match=r"does not take the account \S+: set_ugi at \S+: not in hive.users"):
        Metastore(uri).databases()


def test_a_metastore_that_lost_its_own_database_for_a_moment_is_asked_again(serve: Serve) -> None:
    handler = Handler(MetaException("Communications link failure"), None)
    assert Metastore(serve(Processor(handler))).databases() == ["sales"]


def test_a_setting_of_later_versions_is_not_set_in_hive_2(serve: Serve) -> None:
    """Nothing of a source of Hive 2 was examined by the doctor, which asks for ``metastore.catalog.default`` first."""
    metastore = Metastore(serve(Processor(Handler())))
    assert metastore.config_value("metastore.catalog.default", "hive") == "hive"
    found = [(one.check, one.verdict) for one in source_settings(metastore.config_value, 0.0)]
    assert ("event retention", "warning") in found
    assert "catalog" not in dict(found)
