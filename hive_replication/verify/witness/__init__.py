"""The witness: all objects of a source and its replica, compared from both metastores and storages alone.

Belongs here: reading both sides, and telling what is wrong from what waits (pure). It shares no assumption with plans and loads.

Keep out of here: state ids of objects, gates, reports of loads, and anything that could make a replica look right because the
replication believes that it is.
"""

from hive_replication.verify.witness.comparison import Counts, Difference, Remembered, Round
from hive_replication.verify.witness.rounds import witness

__all__ = ["Counts", "Difference", "Remembered", "Round", "witness"]
