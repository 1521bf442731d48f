"""How far replicas are behind their source: in seconds, events and bytes, of databases and of tables.

Belongs here: reading what waits in the source's log, cheaply and again and again, and the figures made of it (pure). Changes
nothing on either side. Does not belong here: who is told of them (``cli``, ``repl_assets``, ``sensors``).
"""

from hive_replication.lag.figures import Lag, TableLag
from hive_replication.lag.reader import LagReader, lag

__all__ = ["Lag", "LagReader", "TableLag", "lag"]
