"""Which servers of a policy answer, asked side by side and within seconds: before reports that are to come whatever is down.

Ordinary calls are repeated for half a minute, which is right for work and too long for somebody who asks what is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hive_replication.connect.connection import Connection, connect, connected
from hive_replication.connect.databases import PatternMatches, matched, matched_before, with_databases
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from hive_replication.policy.database_names import is_pattern
from hive_replication.policy.warehouse import Warehouse
from hive_replication.storage import Denied

_LOG = logging.getLogger(__name__)

_TIMEOUT, _ATTEMPTS = 5.0, 2  # seconds for one attempt, and how many


@dataclass(frozen=True, slots=True)
class Reachable:
    """Which metastores answer.

    Args:
        source: why the source's does not, "" if it does.
        target: the same of the target's.
    """

    source: str = ""
    target: str = ""

    @property
    def complete(self) -> bool:
        """Whether both answer."""
        return not (self.source or self.target)

    def problems(self) -> Mapping[str, str]:
        """Why they do not answer, by side."""
        return {side: why for side, why in (("source", self.source), ("target", self.target)) if why}


def reach(policy: Policy) -> Reachable:
    """Asks both metastores at the same time; takes at most some ten seconds."""
    with ThreadPoolExecutor(2, "reach") as threads:
        return Reachable(*threads.map(_problem, (policy.source, policy.target)))


def connect_reachable(policy: Policy, name: str | None = None) -> tuple[Connection, Reachable]:
    """Connects the sides of a policy where a side, or the storage of dumps, may be down. Nothing is recorded.

    Without the source its patterns have the databases that they had last; where none are known of, or the storage of dumps is
    down, too, the one asked for.

    Args:
        policy: the policy.
        name: the source database that is asked for, in small letters; all of the policy where None.

    Raises:
        BadRequest: see :func:`~hive_replication.connect.connect`.
    """
    found = reach(policy)
    if not found.source:
        metastore = Metastore.of(policy.source, connections=policy.metastore_connections)
        policy, patterns = matched(policy, metastore, _TIMEOUT, record=False)
        return connected(policy, metastore, patterns), found
    written, patterns = policy, PatternMatches()
    try:
        policy, patterns = matched_before(policy, _TIMEOUT)
    except (Unreachable, Denied) as error:
        _LOG.info("the databases of patterns are left out: %s", error)
    if not any(patterns.databases.values()):
        policy = with_databases(written, (name,) if name and written.has_database(name) else ())
    return connected(policy, Metastore.of(policy.source, timeout=_TIMEOUT, retries=_ATTEMPTS), patterns), found


def connect_target(policy: Policy, name: str | None = None, *, every: bool = False) -> Connection:
    """Connects the sides of a policy for what needs only the target and the dumps: the source may be down.

    Only patterns ask the source; without it they have the databases that they had last.

    Args:
        policy: the policy.
        name: the source database that is asked for, in any case; None where that is all of the policy, or a name on the target.
        every: whether all databases of the policy are asked for, so that they must be known.

    Raises:
        BadRequest: see :func:`~hive_replication.connect.connect`.
        Unreachable: all databases are asked for, and neither the source nor the storage of dumps tells which these are.
        Denied: they must not be read there.
    """
    if not any(map(is_pattern, policy.databases)):
        return connect(policy)
    if not every:
        return connect_reachable(policy, name.lower() if name else None)[0]
    if not reach(policy).source:
        return connect(policy)
    policy, patterns = matched_before(policy, _TIMEOUT)
    return connected(policy, Metastore.of(policy.source, timeout=_TIMEOUT, retries=_ATTEMPTS), patterns)


def _problem(side: Warehouse) -> str:
    try:
        with Metastore.of(side, timeout=_TIMEOUT, retries=_ATTEMPTS) as metastore:
            metastore.database("default")  # the metastore asks its own database for it
    except Unreachable as error:
        return str(error)
    except ReplicationError as error:  # it does answer
        _LOG.debug("%s answers: %s", side.metastore, error)
    return ""
