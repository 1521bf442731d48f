"""The source's metastore: the company by its formula, which nothing changes."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from dataclasses import replace

from hive_metastore import ttypes

from bench.company import formula
from bench.company.formula import Slice
from bench.company.metastore import Answers, no_such
from hive_replication.metastore.thrift_json import dumps
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
        self._added: tuple[Slice | None, int] = (None, 0)
        self._grown: list[tuple[int, int]] = []  # partitions that were there, and since when in seconds since the epoch

    def grow(self, name: str, partitions: int) -> None:
        """Adds partitions to a database, to its tables in turn, with an event each; the log is of one database at a time.

        Args:
            name: of the database.
            partitions: that it then has beside those of its formula, no fewer than before.
        """
        self._grown.append((partitions, int(time.time())))
        self._added = _slice(name), partitions

    def get_metastore_db_uuid(self) -> str:
        """What tells it from others."""
        return "00000000-0000-0000-0000-00000c000001"

    def get_config_value(self, name: str, defaultValue: str) -> str:  # noqa: N803
        """A setting."""
        return {**_SETTINGS, "hive.repl.cmrootdir": f"{self._store}/cmroot"}.get(name, defaultValue)

    def get_database(self, name: str) -> Database:
        """A database."""
        return formula.database(self._slice(name), self._store)

    def get_tables(self, db_name: str, pattern: str) -> list[str]:  # noqa: ARG002
        """Names of all tables of a database."""
        return [formula.table_name(number) for number in range(self._slice(db_name).tables)]

    def get_table_req(self, req: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        """A table."""
        of = self._slice(req.dbName)
        return ttypes.GetTableResult(table=self._table(of, req.tblName))

    def get_table_objects_by_name_req(self, req: ttypes.GetTablesRequest) -> ttypes.GetTablesResult:
        """Those of some tables that exist."""
        of = self._slice(req.dbName)
        numbers = (of.table_number(name) for name in req.tblNames)
        return ttypes.GetTablesResult(tables=[formula.table(of, one, self._store) for one in numbers if one is not None])

    def get_partition_names(self, db_name: str, tbl_name: str, max_parts: int) -> list[str]:
        """Names of a table's partitions."""
        of = self._slice(db_name)
        self._table(of, tbl_name)
        most = of.partitions if max_parts < 0 else min(max_parts, of.partitions)
        return [f"{formula.KEY}={formula.partition_value(number)}" for number in range(most)]

    def get_partitions_by_names(self, db_name: str, tbl_name: str, names: list[str]) -> list[Partition]:
        """Those of some partitions that exist."""
        of = self._slice(db_name)
        table = of.table_number(tbl_name)
        if table is None:
            raise no_such(f"{db_name}.{tbl_name}")
        numbers = (of.partition_number(name) for name in names)
        return [formula.partition(of, table, one, self._store) for one in numbers if one is not None]

    def get_num_partitions_by_filter(self, db_name: str, tbl_name: str, filter: str) -> int:  # noqa: A002, ARG002
        """How many partitions a table has."""
        return self._slice(db_name).partitions

    def get_current_notificationEventId(self) -> ttypes.CurrentNotificationEventId:  # noqa: N802
        """The newest event."""
        return ttypes.CurrentNotificationEventId(eventId=NEWEST + self._added[1])

    def get_next_notification(self, rqst: ttypes.NotificationEventRequest) -> ttypes.NotificationEventResponse:
        """Events, as many as are asked for: of another database, and after those of the partitions that were added."""
        of, added = self._added
        last = min(NEWEST + added, rqst.lastEvent + (rqst.maxEvents or 1000))
        numbers = range(rqst.lastEvent + 1, last + 1)
        found = [self._event(one, of) if of and one > NEWEST else _other(one) for one in numbers]
        return ttypes.NotificationEventResponse(events=found)

    def _event(self, evid: int, of: Slice) -> ttypes.NotificationEvent:
        _, written = self._grown[bisect_left(self._grown, (evid - NEWEST, 0))]
        return _added(evid, written, of, self._store)

    def _slice(self, name: str) -> Slice:
        """A database as it is now."""
        found, (of, added) = _slice(name), self._added
        return replace(found, partitions=found.partitions + added // found.tables) if of == found else found

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


def _other(evid: int) -> ttypes.NotificationEvent:
    return _event(evid, formula.WRITTEN, "CREATE_DATABASE", "other", None, {"db": "other"})


def _added(evid: int, written: int, of: Slice, store: str) -> ttypes.NotificationEvent:
    """The event of a partition that was added then."""
    number, table = divmod(evid - NEWEST - 1, of.tables)
    number += of.partitions
    partition, name = formula.partition(of, table, number, store), formula.table_name(table)
    place = f"{partition.sd.location}/"
    sums = ((formula.file_name(file), formula.checksum(table, number, file)) for file in range(of.files))
    files = [f"{place}{file}#{checksum}#{store}/cmroot#" for file, checksum in sums]
    message = {
        "db": of.name,
        "table": name,
        "tableObjJson": dumps(formula.table(of, table, store)),
        "partitionListJson": [dumps(partition)],
        "partitionFiles": [{"partitionName": f"{formula.KEY}={formula.partition_value(number)}", "files": files}],
    }
    return _event(evid, written, "ADD_PARTITION", of.name, name, message)


def _event(
    evid: int, written: int, kind: str, database: str, table: str | None, message: dict[str, object]
) -> ttypes.NotificationEvent:
    content = {"server": "", "servicePrincipal": "", "timestamp": written, **message}
    return ttypes.NotificationEvent(
        eventId=evid,
        eventTime=written,
        eventType=kind,
        dbName=database,
        tableName=table,
        message=json.dumps(content, separators=(",", ":")),
        messageFormat="json-0.2",
    )
