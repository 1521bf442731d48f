"""Lag of replicas behind their source in seconds, events and bytes, for databases and tables.

Belongs here: reading the waiting events cheaply, and the figures computed from them. Nothing is changed on either side.

Keep out of here: who shows the figures (``cli``, ``repl_assets``, ``sensors``).
"""

from hive_replication.lag.compute_lag import HALF_REVERSED, HIDDEN, Lag, TableLag
from hive_replication.lag.reader import MOST_EVENTS, LagReader, lag, lags_reachable

__all__ = ["HALF_REVERSED", "HIDDEN", "MOST_EVENTS", "Lag", "LagReader", "TableLag", "lag", "lags_reachable"]
