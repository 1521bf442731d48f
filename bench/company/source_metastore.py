"""The source's metastore: the company by its formula, which nothing changes."""

from __future__ import annotations

from collections.abc import Iterator

from hive_metastore import ttypes

from bench.company import formula
from bench.company.formula import Slice
from bench.company.metastore import Answers, no_such
from hive_replication.metastore.types import Database, Partition, Table

#: The newest event of the log, which tells of another database.
NEWEST = 1_000_000
_SETTINGS = {"hive.repl.cm.enabled": "true", "hive.metastore.warehouse.dir": formula.WAREHOUSE}


class SourceMetastore(Answers):
    """Answers the calls.

    Args:
        store: URI of its HDFS, e.g. ``hdfs://127.0.0.1:8020``.
    """

    def __init__(self, store: str) -> None:
        self._store = store

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
            raise no_such(f"{db_name}.{tbl_name}")
        numbers = (of.partition_number(name) for name in names)
        return [formula.partition(of, table, one, self._store) for one in numbers if one is not None]

    def get_num_partitions_by_filter(self, db_name: str, tbl_name: str, filter: str) -> int:  # noqa: A002, ARG002
        """How many partitions a table has."""
        return _slice(db_name).partitions

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
            raise no_such(f"{of.name}.{name}")
        return formula.table(of, number, self._store)


def _slice(name: str) -> Slice:
    found = Slice.of(name)
    if found is None:
        raise no_such(f"database {name}")
    return found


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
