"""Which replicas a policy leaves out although it includes their names (pure)."""

from __future__ import annotations

from hive_replication.metastore.materialized_views import is_replica_of_materialized
from hive_replication.metastore.types import Table
from hive_replication.policy import Policy


def leaves_out(policy: Policy, replica: Table) -> bool:
    """Whether a policy has nothing to say of a replica that the source has no table for: it may stay (``excluded: keep``).

    The policy alone decides, never the mark of loads: that would hide a table of the policy that bears it by mistake. Other kinds
    are left out on both sides alike; the view that a materialized one is replicated as is an ordinary view but for a parameter.
    """
    return is_replica_of_materialized(replica) and not policy.replicates_materialized_views
