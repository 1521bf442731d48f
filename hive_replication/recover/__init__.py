"""Gaps: windows that cannot be applied since events are missing, or since source or target are of another history.

Belongs here: finding a gap before anything is applied, comparing replica and source, bootstrapping again what differs.
Does not belong here: how objects are loaded (``load``), and how tables are compared (``verify``).
"""

from hive_replication.recover.command import Recovery, dump_recovery, recover
from hive_replication.recover.gap import UNFINISHED, Gap, find_gap, history_gap, require_history
from hive_replication.recover.survey import TableFinding, survey

__all__ = [
    "UNFINISHED",
    "Gap",
    "Recovery",
    "TableFinding",
    "dump_recovery",
    "find_gap",
    "history_gap",
    "recover",
    "require_history",
    "survey",
]
