"""A metastore: Thrift over a socket, served by the interface that Hive's own client is generated from."""

from __future__ import annotations

import socketserver
from contextlib import suppress
from typing import Any

from hive_metastore import ttypes
from hive_metastore.ThriftHiveMetastore import Processor
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from bench.company.listening import Counts, Listener

_NO_LIMIT = 2**31 - 1


class MetastoreServer:
    """Serves a handler: an object with methods named as those of the interface; what it lacks is an unknown call to clients.

    Args:
        handler: answers the calls.
        counts: of calls by their names.
    """

    def __init__(self, handler: Any, counts: Counts) -> None:
        self._processor = Processor(handler)
        calls = self._processor._processMap  # noqa: SLF001 - Thrift has no other way to have fewer
        self._processor._processMap = {name: call for name, call in calls.items() if hasattr(handler, name)}  # noqa: SLF001
        self._processor.on_message_begin(lambda name, _kind, _number: counts.add(f"metastore {name}"))
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        self.close = self._listener.close

    def _serve(self, connection: socketserver.StreamRequestHandler) -> None:
        socket = TSocket()
        socket.setHandle(connection.request)
        protocol = TBinaryProtocolAccelerated(TBufferedTransport(socket, 64 * 1024), string_length_limit=_NO_LIMIT)
        with suppress(TTransportException):
            while True:
                self._processor.process(protocol, protocol)


class Answers:
    """What both sides' metastores answer alike: they are of Hive 3, and keep neither statistics, constraints nor functions."""

    def set_ugi(self, user_name: str, group_names: list[str]) -> list[str]:  # noqa: ARG002
        """Believes who asks."""
        return [user_name]

    def getVersion(self) -> str:  # noqa: N802
        """What metastores of Hive 3 answer."""
        return "3.0"

    def get_table_statistics_req(self, request: ttypes.TableStatsRequest) -> ttypes.TableStatsResult:  # noqa: ARG002
        """No statistics of columns are kept."""
        return ttypes.TableStatsResult(tableStats=[])

    def get_partitions_statistics_req(
        self,
        request: ttypes.PartitionsStatsRequest,  # noqa: ARG002
    ) -> ttypes.PartitionsStatsResult:
        """No statistics of columns are kept."""
        return ttypes.PartitionsStatsResult(partStats={})

    def get_primary_keys(self, request: ttypes.PrimaryKeysRequest) -> ttypes.PrimaryKeysResponse:  # noqa: ARG002
        """There are none."""
        return ttypes.PrimaryKeysResponse(primaryKeys=[])

    def get_foreign_keys(self, request: ttypes.ForeignKeysRequest) -> ttypes.ForeignKeysResponse:  # noqa: ARG002
        """There are none."""
        return ttypes.ForeignKeysResponse(foreignKeys=[])

    def get_all_functions(self) -> ttypes.GetAllFunctionsResponse:
        """There are none."""
        return ttypes.GetAllFunctionsResponse(functions=[])


def no_such(what: str) -> ttypes.NoSuchObjectException:
    """The error of what there is not."""
    return ttypes.NoSuchObjectException(f"{what} does not exist")
