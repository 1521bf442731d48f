"""Which tables a replica was made with, against what its policy takes now (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hive_replication.dump.format.record_types import MadeWith
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy, PolicyScope
from hive_replication.policy.scope import of_expressions
from hive_replication.statements import ALL, Tables


def made_with(state: ReplicaState, source: Source, database: str, tables: Callable[[], Iterable[str]]) -> MadeWith | None:
    """What a dump of events has to know of the replica that it is for; None where nothing is to be told.

    Args:
        state: of the target database.
        source: the source side, with the policy of the dump.
        database: of the source.
        tables: names of the target's tables; asked where an earlier version made the replica, so that nothing else tells.
    """
    coming = tuple(sorted(state.coming))
    if state.applied is not None and not state.scope:
        return MadeWith("", coming, tuple(sorted(tables())))
    return MadeWith(state.scope, coming) if coming or changed(state, source, database) else None


def require_made_with(state: ReplicaState, database: str, tables: Tables) -> None:
    """Makes sure that a replica was made with the tables that a statement says are replaced (Hive's REPLACE).

    Raises:
        BadRequest: it was made with others, or there is none.
    """
    made = PolicyScope.parse(state.scope) if state.scope else None
    wanted = of_expressions(tables.include, tables.exclude)
    if made is None or (_plain(made), made.exclude) != (_plain(wanted), wanted.exclude):
        found = f"with tables {list(made.tables)} and exclude {list(made.exclude)}" if made else "by no load that says its tables"
        raise BadRequest(f"the replica {database} was made {found}, not with the tables that REPLACE names: name those, or none")


def without_data(state: ReplicaState, policy: Policy) -> bool:
    """Whether a replica has its tables without their data (``metadata_only``): as it was made, else as its policy says."""
    try:
        return PolicyScope.parse(state.scope).metadata_only
    except BadRequest:
        return policy.metadata_only


def _plain(scope: PolicyScope) -> tuple[str, ...]:
    return ("*",) if scope.tables == of_expressions(ALL.include).tables else scope.tables


def changed(state: ReplicaState, source: Source, database: str) -> bool:
    """Whether a policy takes other tables or partitions of a source database than its replica was made with.

    So it does, too, where the source gives transactional tables by now: its Hive 3 became Hive 4.
    """
    if state.applied is None or not state.scope:
        return False
    return state.scope != source.policy.scope(database, acid=source.acid).text
