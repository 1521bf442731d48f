"""Recovery from gaps: windows that cannot be applied because events are missing, or because a side was restored.

Belongs here: finding a gap before anything is applied, comparing replica and source, and a new bootstrap of what differs.

Keep out of here: how objects are loaded (``load``) and how tables are compared (``verify``).
"""

from hive_replication.recover.command import Recovery, dump_recovery, recover
from hive_replication.recover.gap import UNFINISHED, Gap, find_gap, history_gap, interrupted_gap, require_history
from hive_replication.recover.survey import TableFinding, survey

__all__ = [
    "UNFINISHED",
    "Gap",
    "Recovery",
    "TableFinding",
    "dump_recovery",
    "find_gap",
    "history_gap",
    "interrupted_gap",
    "recover",
    "require_history",
    "survey",
]
