"""Column statistics as ANALYZE TABLE ... FOR COLUMNS makes them, for a Hive 3.1.3 that runs no jobs."""

from __future__ import annotations

from hive_metastore.ttypes import ColumnStatisticsData, LongColumnStatsData

from hive_replication.metastore.types import ColumnStatisticsObj


def of_column(name: str, low: int, high: int) -> ColumnStatisticsObj:
    """Statistics of an INT column."""
    data = ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=low, highValue=high, numNulls=0, numDVs=high - low + 1))
    return ColumnStatisticsObj(colName=name, colType="int", statsData=data)
