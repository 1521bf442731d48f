"""Checks whether replication can work: settings of both metastores, permissions, clocks, free space.

Belongs here: findings, each with the Hive setting to change.

Keep out of here: changes. The only writes are probe files, which are deleted again, and a lock that is released at once.
"""

from hive_replication.doctor.examine import examine
from hive_replication.doctor.finding import Finding
from hive_replication.doctor.policy import examine_policy
from hive_replication.doctor.settings import short_retention

__all__ = ["Finding", "examine", "examine_policy", "short_retention"]
