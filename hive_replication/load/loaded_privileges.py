"""Grants and roles after a load (policy ``privileges``): nothing that goes wrong with them holds anything else back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from hive_replication.errors import Unreachable
from hive_replication.load.privileges.pace import Compared, all_due, note
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
    target, replica = session.target, session.replica
    if not (target.policy.privileges.replicate and replica.there):
        return
    began, source, tables = time.monotonic(), source or target.source_metastore, _tables(session)
    if tables is not None and not tables:
        return
    header, state = session.reader.header, session.state
    stands = header.to_evid if header.scope.table is not None else state.applied
    compared = Replica(header.scope.database, session.database, session.identity, state, session.includes, tables, stands)
    problems: tuple[str, ...] = ("the source's metastore cannot be asked from here",)
    if source is not None:
        try:
            report = replicate_privileges(source, target, compared, check)
            session.tally.privileges, problems = report.numbers, report.problems
        except (MetastoreError, Unreachable) as error:
            problems = (f"grants and roles are not replicated: {error}",)
    if tables is None:
        note(target.storage, replica.location, Compared(time.time(), time.monotonic() - began), session.database)
    session.skipped += [Skipped(header.to_evid, f"privileges of {session.database}", problem) for problem in problems]
    session.tally.add_time("privileges", began)


def _tables(session: Session) -> Mapping[str, str] | None:
    """The tables whose grants are compared, by their names at the source: that of the load, or those that it changed; or all."""
    scope = session.reader.header.scope
    if scope.table is not None:
        return {scope.table: session.mapping.table(scope.table)}
    if all_due(session.target.storage, session.replica.location, time.time()):
        return None
    touched = (one.table for one in session.tally.touched.sums(None, None) if not one.dropped)
    return {name: name for name in touched if session.includes(name)}
