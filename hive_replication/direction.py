"""What turns the direction of replication: failover and failback, each step recorded with who did it and when."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress

from hive_replication import failover
from hive_replication.connect import Connection, Reachable, connect_reachable
from hive_replication.copy.tasks import Copier
from hive_replication.errors import ReplicationError
from hive_replication.failover import FailoverPlan, FailoverReverse, FailoverStart, FailoverStatus
from hive_replication.failover.sides import Sides
from hive_replication.load.records.record import Action
from hive_replication.policy import Policy
from hive_replication.progress import Progress
from hive_replication.recorded import Notes, recorded


def failover_start(
    connection: Connection,
    name: str,
    *,
    wait: float | None = None,
    abort: bool | None = None,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> FailoverStart:
    """Brings a planned failover to the point where the target can be opened; repeating it goes on where it stopped.

    Args:
        connection: both sides.
        name: source database.
        wait: seconds for which open write transactions may end; ``acid.open_txn_timeout`` of the policy where None.
        abort: whether they are aborted then; as ``acid.at_timeout`` of the policy says where None.
        copier: copies files; threads of this process where None.
        progress: shows how far it is.

    Raises:
        BadRequest: there is no finished replica.
        Refused: transactions do not end, tables are held or differ, grants differ, writers go on, the failover is done already,
            one to another target is, or the source is a replica itself or was opened and its own failback is not done; or
            the target is marked as incompatible.
        Unreachable: a side does not answer.
    """
    database = _database(connection, name)
    with _step(connection, "failover start", database) as notes:
        done = failover.start(connection, database, wait=wait, abort=abort, copier=copier, progress=progress)
        notes.to_evid = done.status.event
        notes.text = f"transactions aborted: {', '.join(map(str, done.aborted))}" if done.aborted else ""
    return done


def failover_open(policy: Policy, name: str, *, force: bool = False) -> FailoverStatus:
    """An unplanned failover: opens the target where it stands, without the source.

    Args:
        policy: the policy.
        name: source database.
        force: also where the source answers.

    Raises:
        BadRequest: there is no finished replica.
        Refused: the source answers, so that a planned failover loses nothing; or a load runs.
        Unreachable: the target does not answer.
    """
    connection, reach = connect_reachable(policy, name.lower())
    database = _database(connection, name)
    with _step(connection, "failover open", database, reach) as notes:
        done = failover.start_unplanned(connection, database, reach, force=force)
        notes.to_evid = done.event
    return done


def failover_finish(policy: Policy, name: str) -> FailoverStatus:
    """Opens the target of a failover that is ready, and closes the source; after an unplanned one it closes the old source.

    Args:
        policy: the policy.
        name: source database.

    Raises:
        Refused: no failover is ready, or the source was written since.
        Unreachable: a side does not answer.
    """
    connection, reach = connect_reachable(policy, name.lower())
    database = _database(connection, name)
    with _step(connection, "failover finish", database, reach) as notes:
        done = failover.finish(connection, database, reach)
        notes.to_evid = done.event
    return done


def failover_rollback(policy: Policy, name: str) -> FailoverStatus:
    """Takes back a failover whose target is not open; replication goes on. Arguments and errors as :func:`failover_finish`."""
    connection, reach = connect_reachable(policy, name.lower())
    database = _database(connection, name)
    with _step(connection, "failover rollback", database, reach):
        return failover.rollback(connection, database, reach)


def failover_reverse(
    connection: Connection,
    name: str,
    *,
    dry_run: bool = False,
    drop: bool = False,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> FailoverReverse:
    """Makes the old source a replica of the database that a failover opened; only what differs is copied.

    Args:
        connection: from the opened database to the old source: the sides of the policy are swapped.
        name: the opened database.
        dry_run: compare only.
        drop: whether what only the old source has may be dropped there.
        copier: copies files; threads of this process where None.
        progress: shows how far it is.

    Raises:
        BadRequest: there is no such database on one of the sides.
        Refused: it was not opened by a failover from there; the old source has changes of its own and ``conflicts`` of the policy
            says ``refuse``; something would be dropped that ``drop`` does not allow; the old source was itself opened in place of
            another that is no replica of it yet; or another load runs.
        Unreachable: a side does not answer.
    """
    database = _database(connection, name)
    if dry_run:
        return failover.reverse(connection, database, dry_run=True, progress=progress)
    with _step(connection, "failover reverse", database) as notes:
        done = failover.reverse(connection, database, drop=drop, copier=copier, progress=progress)
        notes.to_evid = done.loads[-1].to_evid if done.loads else None
    return done


@contextmanager
def _step(connection: Connection, action: Action, database: str, reach: Reachable | None = None) -> Generator[Notes]:
    """Records a step that changed a mark of either side, also one that was refused after it; steps are repeated at will.

    A start that is repeated has changed more than marks where it is refused: it ends transactions, and loads windows.
    """
    target, before = connection.target.policy.target_of(database), Sides.now(connection, database, reach).marks

    def changed() -> bool:
        with suppress(ReplicationError):
            now = Sides.now(connection, database, reach)
            return now.marks != before or (action == "failover start" and now.phase == "started")
        return True  # nobody knows

    with recorded(connection, action, target, None, begun=changed) as notes:
        yield notes
        notes.changed = changed()


def _database(connection: Connection, name: str) -> str:
    """Name of a source database.

    Raises:
        BadRequest: it is none of the policy.
    """
    database = name.lower()
    connection.source.policy.require_database(database)
    return database


def failover_status(policy: Policy, name: str) -> FailoverStatus:
    """Where a failover stands, and what the target does not have of the source, as far as the servers answer.

    Args:
        policy: the policy.
        name: source database.

    Raises:
        BadRequest: the policy has no such database.
        Unreachable: the target does not answer.
    """
    connection, reach = connect_reachable(policy, name.lower())
    return failover.status(connection, _database(connection, name), reach)


def failover_plan(policy: Policy, name: str) -> FailoverPlan:
    """What a failover would take now, and what would be lost.

    Args:
        policy: the policy.
        name: source database.

    Raises:
        BadRequest: the policy has no such database, or the target no finished replica of it.
        Unreachable: the target does not answer.
    """
    connection, reach = connect_reachable(policy, name.lower())
    return failover.plan(connection, _database(connection, name), reach)
