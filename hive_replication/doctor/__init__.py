"""Whether replication can work here: settings of both metastores, permissions, clocks, space.

Belongs here: asking both sides and judging the answers, each with the exact Hive setting to change. Does not belong here:
changing anything. The only writes are probe files, which are removed again, and a lock that is released at once.
"""

from hive_replication.doctor.examine import examine
from hive_replication.doctor.finding import Finding
from hive_replication.doctor.settings import short_retention

__all__ = ["Finding", "examine", "short_retention"]
