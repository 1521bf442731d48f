"""Which databases a policy sweeps: its own, and those that left it; never what another policy keeps by other times."""

from __future__ import annotations

from hive_replication.dump.format.interface import DumpStore
from hive_replication.errors import BadRequest
from hive_replication.load.records import RecordStore
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target, refuse_others_replica


def require_own(target: Target, database: str, state: ReplicaState, gone_from: DumpStore | None = None) -> None:
    """Makes sure that a policy's times are those by which a database's journals and old data are kept.

    Args:
        target: the target side, with the policy, whose patterns are resolved.
        database: name on the target.
        state: of the target database; one that left the policy has its mark.
        gone_from: the store of its dumps where the target has no such database: records beside them tell whose it was.

    Raises:
        BadRequest: the policy has no database of this name, and none that left it, or was dropped, had it.
        Refused: another policy writes it, or one of the same name from another source.
    """
    policy, names = target.policy, target.policy.databases.values()
    refuse_others_replica(target, database, state)
    if database in names or (gone_from is not None and RecordStore.of(policy, gone_from, database).has_own()):
        return
    if state.policy != policy.name:
        raise BadRequest(
            f"the policy {policy.name!r} has no database {database!r} on the target, and none that left it has this name; it has "
            f"{', '.join(sorted(names))}"
        )


def source_names(target: Target, database: str, state: ReplicaState) -> list[str]:
    """Names of a target database at the source, under which its dumps lie.

    One that left the policy has it in its mark, or else had its own name. Dumps of a database that the policy has by now under
    another name are those of that one.
    """
    databases = target.policy.databases
    earlier = state.source.rpartition("/")[2] or database
    return [name for name, one in databases.items() if one == database] or ([] if earlier in databases else [earlier])
