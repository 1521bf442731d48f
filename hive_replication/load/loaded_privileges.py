"""Grants and roles after a load (policy ``privileges``): nothing that goes wrong with them holds anything else back."""

from __future__ import annotations

import time
from collections.abc import Callable

from hive_replication.errors import Unreachable
from hive_replication.load.privileges.replicate import Replica, replicate_privileges
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError


def with_privileges(session: Session, source: Metastore | None, check: Callable[[], None]) -> None:
    """Replicates grants on what a load has brought, and their roles; the load's sums say how many, and why some are not.

    Args:
        session: a load that is done.
        source: the source's metastore; that of the target's policy where None.
        check: raises if the load's lock is lost.

    Raises:
        Refused: it is lost.
    """
    target = session.target
    if not (target.policy.privileges.replicate and session.replica.there):
        return
    began, source, scope = time.monotonic(), source or target.source_metastore, session.reader.header.scope
    replica = Replica(
        source_database=scope.database,
        database=session.database,
        identity=session.identity,
        state=session.state,
        includes=session.includes,
        table=(scope.table, session.mapping.table(scope.table)) if scope.table else None,
    )
    problems: tuple[str, ...] = ("the source's metastore cannot be asked from here",)
    if source is not None:
        try:
            report = replicate_privileges(source, target, replica, check)
            session.tally.privileges, problems = report.numbers, report.problems
        except (MetastoreError, Unreachable) as error:
            problems = (f"grants and roles are not replicated: {error}",)
    evid = session.reader.header.to_evid
    session.skipped += [Skipped(evid, f"privileges of {session.database}", problem) for problem in problems]
    session.tally.add_time("privileges", began)
