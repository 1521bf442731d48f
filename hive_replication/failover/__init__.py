"""Failover and failback: a replica becomes the source, and the old source its replica.

Belongs here: what is left to be done by the marks of both databases (``phases``, pure), the steps of a failover, and
the failback.

Keep out of here: how windows, recoveries and comparisons work (``dump``, ``load``, ``recover``, ``verify``), and the marks
themselves, which loads have to know (``load/replica/failover_marks``).
"""

from hive_replication.failover.finish import finish, rollback
from hive_replication.failover.phases import Phase
from hive_replication.failover.plan import FailoverPlan, PlannedStep, plan
from hive_replication.failover.reverse import reverse
from hive_replication.failover.reverse_findings import FailoverReverse
from hive_replication.failover.role import ReplicaRole, role_now, role_of
from hive_replication.failover.start import FailoverStart, start, start_unplanned
from hive_replication.failover.status import FailoverStatus, status

__all__ = [
    "FailoverPlan",
    "FailoverReverse",
    "FailoverStart",
    "FailoverStatus",
    "Phase",
    "PlannedStep",
    "ReplicaRole",
    "finish",
    "plan",
    "reverse",
    "role_now",
    "role_of",
    "rollback",
    "start",
    "start_unplanned",
    "status",
]
