"""Which tables a replica was made with, against what its policy takes now (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hive_replication.dump.format.record_types import MadeWith
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy


def made_with(state: ReplicaState, policy: Policy, tables: Callable[[], Iterable[str]]) -> MadeWith | None:
    """What a dump of events has to know of the replica that it is for; None where nothing is to be told.

    Args:
        state: of the target database.
        policy: the policy of the dump.
        tables: names of the target's tables; asked where an earlier version made the replica, so that nothing else tells.
    """
    coming = tuple(sorted(state.coming))
    if state.applied is not None and not state.scope:
        return MadeWith("", coming, tuple(sorted(tables())))
    return MadeWith(state.scope, coming) if coming or changed(state, policy) else None


def changed(state: ReplicaState, policy: Policy) -> bool:
    """Whether a policy takes other tables than its replica was made with."""
    return state.applied is not None and state.scope not in ("", policy.scope.text)
