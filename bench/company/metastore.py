"""A metastore: Thrift over a socket, served by the interface that Hive's own client is generated from."""

from __future__ import annotations

import logging
import socketserver
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hive_metastore import ttypes
from hive_metastore.ThriftHiveMetastore import Processor
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from bench.company import formula
from bench.company.formula import Slice
from bench.company.listening import Counts, Listener
from hive_replication.metastore.types import Database, Partition, Table

_LOG = logging.getLogger(__name__)

#: The newest event of the source's log, which tells of another database.
NEWEST = 1_000_000
_NO_LIMIT = 2**31 - 1
_SETTINGS = {"hive.repl.cm.enabled": "true", "hive.metastore.warehouse.dir": formula.WAREHOUSE}


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


class SourceMetastore:
    """The metastore of the company, of Hive 3.

    Args:
        store: URI of its HDFS, e.g. ``hdfs://127.0.0.1:8020``.
    """

    def __init__(self, store: str) -> None:
        self._store = store

    def set_ugi(self, user_name: str, group_names: list[str]) -> list[str]:  # noqa: ARG002
        """Believes who asks."""
        return [user_name]

    def getVersion(self) -> str:  # noqa: N802
        """What metastores of Hive 3 answer."""
        return "3.0"

    def get_metastore_db_uuid(self) -> str:
        """What tells it from others."""
        return "00000000-0000-0000-0000-00000c000001"

    def get_config_value(self, name: str, defaultValue: str) -> str:  # noqa: N803
        """A setting."""
        return {**_SETTINGS, "hive.repl.cmrootdir": f"{self._store}/cmroot"}.get(name, defaultValue)

    def get_database(self, name: str) -> Database:
        """A database."""
        return formula.database(_slice(name), self._store)

    def get_tables(self, db_name: str, pattern: str) -> list[str]:  # noqa: ARG002
        """Names of all tables of a database."""
        return [formula.table_name(number) for number in range(_slice(db_name).tables)]

    def get_table_req(self, req: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        """A table."""
        of = _slice(req.dbName)
        return ttypes.GetTableResult(table=self._table(of, req.tblName))

    def get_table_objects_by_name_req(self, req: ttypes.GetTablesRequest) -> ttypes.GetTablesResult:
        """Those of some tables that exist."""
        of = _slice(req.dbName)
        numbers = (of.table_number(name) for name in req.tblNames)
        return ttypes.GetTablesResult(tables=[formula.table(of, one, self._store) for one in numbers if one is not None])

    def get_partition_names(self, db_name: str, tbl_name: str, max_parts: int) -> list[str]:
        """Names of a table's partitions."""
        of = _slice(db_name)
        self._table(of, tbl_name)
        most = of.partitions if max_parts < 0 else min(max_parts, of.partitions)
        return [f"{formula.KEY}={formula.partition_value(number)}" for number in range(most)]

    def get_partitions_by_names(self, db_name: str, tbl_name: str, names: list[str]) -> list[Partition]:
        """Those of some partitions that exist."""
        of = _slice(db_name)
        table = of.table_number(tbl_name)
        if table is None:
            raise _no_such(f"{db_name}.{tbl_name}")
        numbers = (of.partition_number(name) for name in names)
        return [formula.partition(of, table, one, self._store) for one in numbers if one is not None]

    def get_num_partitions_by_filter(self, db_name: str, tbl_name: str, filter: str) -> int:  # noqa: A002, ARG002
        """How many partitions a table has."""
        return _slice(db_name).partitions

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

    def get_current_notificationEventId(self) -> ttypes.CurrentNotificationEventId:  # noqa: N802
        """The newest event."""
        return ttypes.CurrentNotificationEventId(eventId=NEWEST)

    def get_next_notification(self, rqst: ttypes.NotificationEventRequest) -> ttypes.NotificationEventResponse:
        """Events of another database, as many as are asked for."""
        last = min(NEWEST, rqst.lastEvent + (rqst.maxEvents or 1000))
        return ttypes.NotificationEventResponse(events=list(_events(rqst.lastEvent + 1, last)))

    def _table(self, of: Slice, name: str) -> Table:
        number = of.table_number(name)
        if number is None:
            raise _no_such(f"{of.name}.{name}")
        return formula.table(of, number, self._store)


def _slice(name: str) -> Slice:
    found = Slice.of(name)
    if found is None:
        raise _no_such(f"database {name}")
    return found


def _no_such(what: str) -> ttypes.NoSuchObjectException:
    return ttypes.NoSuchObjectException(f"{what} does not exist")


def _events(first: int, last: int) -> Iterator[ttypes.NotificationEvent]:
    for evid in range(first, last + 1):
        message = f'{{"server":"","servicePrincipal":"","db":"other","timestamp":{formula.WRITTEN}}}'
        yield ttypes.NotificationEvent(
            eventId=evid,
            eventTime=formula.WRITTEN,
            eventType="CREATE_DATABASE",
            dbName="other",
            message=message,
            messageFormat="json-0.2",
        )
