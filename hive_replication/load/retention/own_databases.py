"""Which databases a policy sweeps: its own, and those that left it; never what another policy keeps by other times (pure)."""

from __future__ import annotations

from hive_replication.errors import BadRequest
from hive_replication.load.replica.ownership import refuse_other_policy
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy


def require_own(policy: Policy, database: str, state: ReplicaState) -> None:
    """Makes sure that a policy's times are those by which a database's journals and old data are kept.

    Args:
        policy: the policy, with its patterns resolved.
        database: name on the target.
        state: of the target database; one that left the policy has its mark.

    Raises:
        BadRequest: the policy has no database of this name, and none left it.
        Refused: another policy writes it.
    """
    refuse_other_policy(state, database, policy.name)
    names = policy.databases.values()
    if database not in names and state.policy != policy.name:
        raise BadRequest(
            f"the policy {policy.name!r} has no database {database!r} on the target, and none that left it has this name; it has "
            f"{', '.join(sorted(names))}"
        )
