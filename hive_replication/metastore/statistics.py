"""Column statistics of tables and partitions, and what their owners claim of them (``COLUMN_STATS_ACCURATE``)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from hive_metastore.ttypes import (
    ColumnStatistics,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    PartitionsStatsRequest,
    SetPartitionsStatsRequest,
    TableStatsRequest,
)

from hive_replication.bounded_json import value_of
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.connection import Connections
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.tables import at_once, batches

ACCURATE = "COLUMN_STATS_ACCURATE"
#: How many files a table or partition has, those in its sub-directories included.
FILES = "numFiles"
#: What engines tell of files and rows of a table or partition in its parameters.
STATISTICS = frozenset(
    {
        ACCURATE, "STATS_GENERATED", "STATS_GENERATED_VIA_STATS_TASK", FILES, "numFilesErasureCoded", "numPartitions", "numRows",
        "rawDataSize", "totalSize",
    }
)  # fmt: skip
#: How the names of those begin that Spark and Impala write for themselves; with Impala's come marks of who wrote them.
_OWN = ("spark.sql.statistics.", "impala.lastComputeStatsTime", "impala_intermediate_stats_", "impala.events.catalog")
#: The engine whose statistics are replicated: Hive 4 keeps those of others, as Impala's, beside them.
ENGINE = "hive"
_COLUMNS = "COLUMN_STATS"
_CATALOG = "hive"
_BATCH = 100  # partitions a call; each is a transaction of the metastore's, and its columns are rows


class Statistics(Connections):
    """Column statistics."""

    def table_statistics(self, db: str, table: str, columns: Sequence[str]) -> list[ColumnStatisticsObj]:
        """Statistics of a table's own columns; of those that have some."""
        request = TableStatsRequest(dbName=db, tblName=table, colNames=list(columns), catName=_CATALOG, engine=ENGINE)
        answer = self.call(f"get_table_statistics {db}.{table}", lambda client: client.get_table_statistics_req(request))
        return list(answer.tableStats or ())

    def partition_statistics(
        self, db: str, table: str, columns: Sequence[str], names: Iterable[str]
    ) -> dict[str, list[ColumnStatisticsObj]]:
        """Statistics of partitions, by partition name; of those that have some."""
        found: dict[str, list[ColumnStatisticsObj]] = {}
        for batch in batches(names, at_once(columns, _BATCH)):
            request = PartitionsStatsRequest(
                dbName=db, tblName=table, colNames=list(columns), partNames=batch, catName=_CATALOG, engine=ENGINE
            )
            found |= self._partition_statistics(db, table, request)
        return found

    def set_statistics(self, db: str, table: str, statistics: Mapping[str, Sequence[ColumnStatisticsObj]]) -> None:
        """Sets statistics of a table (key "") or of its partitions (by name); repeating it changes nothing.

        The metastore then claims the columns to be accurate in the parameters of the table or partition.

        Raises:
            MetastoreError: there is no such table, partition or column.
        """
        own = {name: found for name, found in statistics.items() if not name}
        most = at_once(max(statistics.values(), key=len, default=()), _BATCH)
        for batch in (list(own), *batches(filter(None, statistics), most)):
            described = [_described(db, table, name, statistics[name]) for name in batch if statistics[name]]
            if described:
                self._set(db, table, described)

    def delete_statistics(self, db: str, table: str, partition: str, column: str) -> None:
        """Deletes the statistics of one column; none is fine.

        Args:
            db: database.
            table: its table.
            partition: name of the partition, "" for the table's own.
            column: the column.
        """
        what = f"delete_column_statistics {db}.{table} {partition} {column}"
        try:
            if partition:
                self.call(what, lambda client: client.delete_partition_column_statistics(db, table, partition, column, ENGINE))
            else:
                self.call(what, lambda client: client.delete_table_column_statistics(db, table, column, ENGINE))
        except NotFound:
            return

    def _partition_statistics(self, db: str, table: str, request: PartitionsStatsRequest) -> dict[str, list[ColumnStatisticsObj]]:
        answer = self.call(
            f"get_partitions_statistics {db}.{table}", lambda client: client.get_partitions_statistics_req(request)
        )
        return {name: list(found) for name, found in (answer.partStats or {}).items() if found}

    def _set(self, db: str, table: str, described: list[ColumnStatistics]) -> None:
        request = SetPartitionsStatsRequest(colStats=described, needMerge=False, engine=ENGINE)
        self.call(f"set_aggr_stats_for {db}.{table}", lambda client: client.set_aggr_stats_for(request))


def _described(db: str, table: str, partition: str, found: Sequence[ColumnStatisticsObj]) -> ColumnStatistics:
    described = ColumnStatisticsDesc(
        isTblLevel=not partition, dbName=db, tableName=table, partName=partition or None, catName=_CATALOG
    )
    return ColumnStatistics(statsDesc=described, statsObj=list(found), engine=ENGINE)


def are_same(one: ColumnStatisticsObj | None, other: ColumnStatisticsObj | None) -> bool:
    """Whether statistics of a column are equal, or both missing; NaN, the least value of some columns, is equal to NaN here."""
    return one == other or (one is not None and other is not None and tjson.dumps(one) == tjson.dumps(other))


def is_statistic(key: str) -> bool:
    """Whether a parameter tells something of the files or rows of its table or partition."""
    return key in STATISTICS or key.startswith(_OWN)


def claimed(parameters: Mapping[str, str] | None) -> frozenset[str]:
    """Columns whose statistics a table's or partition's parameters claim to be accurate (Hive's ``StatsSetupConst``)."""
    columns = _claims(parameters).get(_COLUMNS)
    return frozenset(cast("dict[str, object]", columns)) if isinstance(columns, dict) else frozenset()


def with_claims(parameters: Mapping[str, str], columns: Collection[str]) -> dict[str, str]:
    """Parameters that claim exactly these columns; what they claim of the rows (``BASIC_STATS``) stays."""
    if claimed(parameters) == frozenset(columns):
        return dict(parameters)
    kept = {key: value for key, value in _claims(parameters).items() if key != _COLUMNS}
    wanted = dict.fromkeys(sorted(columns), "true")
    text = json.dumps(kept | ({_COLUMNS: wanted} if wanted else {}), separators=(",", ":"))
    others = {key: value for key, value in parameters.items() if key != ACCURATE}
    return others | ({ACCURATE: text} if text != "{}" else {})


def _claims(parameters: Mapping[str, str] | None) -> dict[str, object]:
    """What parameters claim. Users may write any text there: Hive takes one that it cannot read for no claim, as this does."""
    try:
        found = value_of((parameters or {}).get(ACCURATE) or "{}")
    except ValueError:
        return {}  # Hive 1 wrote "true"
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}
