"""What operators ask for, answered as far as the servers do: status, alarms, lag, doctor; and what is kept: history, reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hive_replication import health
from hive_replication.connect import Connection, connect_reachable
from hive_replication.connect.hanging_storage import PATIENCE, require_answers
from hive_replication.doctor import Finding, examine_policy
from hive_replication.errors import BadRequest
from hive_replication.health import Alarm, HistoryEntry, PolicyStatus
from hive_replication.lag import Lag, lags_reachable
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.records.report_rows import ReportRow
from hive_replication.policy import Policy


@dataclass(frozen=True)
class Report:
    """The whole report of a load, as it is kept below the dump root.

    Args:
        record: the load.
        store: where it is kept.
    """

    record: Record
    store: RecordStore

    def rows(self) -> Iterator[ReportRow]:
        """Tables, files with their proofs, and what was held or skipped; read in batches.

        Raises:
            BadRequest: the load failed as a whole and left no report, or it is not kept any more.
            ReplicationError: the report is damaged.
        """
        return self.store.rows(self.record)


def policy_status(policy: Policy, name: str | None = None) -> PolicyStatus:
    """One page: for each replica its state, last load, lag, held tables and what to do.

    Both sides are asked side by side, within seconds; without one of them the answer has what the other one says.

    Args:
        policy: the policy.
        name: one source database; all of the policy where None.

    Raises:
        BadRequest: the policy has no such database.
    """
    database = name.lower() if name else None
    return health.policy_status(*connect_reachable(policy, database), database)


def alarms(policy: Policy) -> tuple[Alarm, ...]:
    """What needs somebody's attention now: servers that do not answer, lag, held tables, gaps, lost replicas, short retention.

    Args:
        policy: the policy.
    """
    return health.open_alarms(*connect_reachable(policy))


def lags(policy: Policy) -> tuple[Lag, ...]:
    """How far the replicas are behind; of a side that does not answer within seconds the figures are None.

    Args:
        policy: the policy.
    """
    return lags_reachable(*connect_reachable(policy))


def doctor(policy: Policy) -> Iterator[Finding]:
    """Whether replication can work, and what to change: settings, permissions, clocks and space of both sides.

    Each side is examined on its own, so that one that is down hides nothing of the other; nor does a part of the policy that
    cannot be used, such as a signing key that is not there.

    Args:
        policy: the policy.
    """
    return examine_policy(policy)


def history(connection: Connection, name: str, *, last: int | None = None) -> tuple[HistoryEntry, ...]:
    """What happened to a replica, the newest first: loads, repairs, undo, pauses, each with who did it.

    Args:
        connection: both sides; the target and the dump root are called.
        name: source database.
        last: how many entries; all that are kept where None.

    Raises:
        BadRequest: no such replica is known.
        Unreachable: the target or the dump root does not answer.
    """
    return health.history(connection, connection.target.policy.target_of(name.lower()), last)


def reports(connection: Connection, window: str, name: str | None = None) -> tuple[Report, ...]:
    """The loads of a window, the newest of each database first.

    Args:
        connection: both sides; only the dump root is called.
        window: e.g. ``170-1400``, ``bootstrap-170`` or ``repair-1400``.
        name: one source database; all of the policy where None.

    Raises:
        BadRequest: it is no window, or no load of it is kept.
        Unreachable: the dump root does not answer.
    """
    policy, store = connection.target.policy, connection.store
    databases = list(policy.databases.values()) if name is None else [policy.target_of(name.lower())]
    require_answers(store.storage, PATIENCE)
    found: list[Report] = []
    closed: dict[str, str] = {}
    for database in databases:
        records = RecordStore.of(policy, store, database)
        found += [Report(record, records) for record in records.find(window)]
        closed |= records.closed
    if not found:
        unread = f", unless in what this account may not read, such as {next(iter(closed))}" if closed else ""
        raise BadRequest(f"no load of the window {window} is kept{unread}; hive-repl history shows the loads of a database")
    return tuple(found)
