"""What is kept of loads and of what operators did: whole reports as Parquet, and one small record each, below the dump root.

Keep out of here: decisions about loads, and how records are shown (``cli``, ``repl_assets``).
"""

from hive_replication.load.records.record import Figures, Record, is_unused, window_name
from hive_replication.load.records.record_store import RecordStore, last_asked

__all__ = ["Figures", "Record", "RecordStore", "is_unused", "last_asked", "window_name"]
