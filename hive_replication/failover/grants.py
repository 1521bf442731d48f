"""Grants of a replica that is to be opened: the source's log has no events of them, so that no last window brings them all."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.errors import MetastoreError, Refused
from hive_replication.failover.sides import Sides, require_replica_still
from hive_replication.load.privileges import replicate
from hive_replication.load.privileges.replicate import Replica
from hive_replication.metastore.lock import MetastoreLock

_SHOWN = 3


def replicate_grants(sides: Sides) -> None:
    """Makes the grants on all of the replica those of the source, where the policy replicates them (``privileges``).

    A right that was revoked at the source would be there again after the failover, and after a failback at the source itself.

    Raises:
        Refused: some differ still, or a metastore does not tell its own.
        Unreachable: a side does not answer.
    """
    connection, name, database = sides.connection, sides.name, sides.target_name
    source, target = connection.source, connection.target
    if not target.policy.privileges.replicate:
        return
    ends = f"hive-repl privileges {name} shows them; grant or revoke them on both sides, or set replicate of privileges to false"
    with MetastoreLock(target.metastore, database) as lock:
        state = require_replica_still(target.metastore.database(database), database, name)
        replica = Replica(name, database, sides.source_identity, state, target.policy.includes)
        try:
            report = replicate.replicate_privileges(source.metastore, target, replica, lock.check)
        except MetastoreError as error:
            raise Refused(f"grants on {database!r} cannot be compared with the source's ({error}): {ends}") from error
    if report.left or report.problems:  # what waits, or lacks a role, is not among what is left
        rows = replace(report, found=report.left).rows()
        left = [" ".join(filter(None, (*does, on and f"on {on}", who and f"for {who}"))) for *does, on, who, _ in rows]
        why = "; ".join((*left[:_SHOWN], *report.problems[:_SHOWN]))
        raise Refused(f"grants on {database!r} differ from the source's ({why}): {ends}, then run it again")
