"""The public functions, on one connection; users import them from ``hive_replication`` (docs/library.md)."""

from __future__ import annotations

from hive_replication.connect import Connection, connect
from hive_replication.copy.tasks import Copier
from hive_replication.direction import (
    failover_finish,
    failover_open,
    failover_plan,
    failover_reverse,
    failover_rollback,
    failover_start,
    failover_status,
)
from hive_replication.doctor import Finding
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult, MadeWith
from hive_replication.errors import BadRequest, Refused
from hive_replication.failover import FailoverPlan, FailoverReverse, FailoverStart, FailoverStatus
from hive_replication.health import Alarm, DatabaseStatus, HistoryEntry, PolicyStatus
from hive_replication.lag import Lag
from hive_replication.load.command import plan_load, repl_load
from hive_replication.load.privileges.replicate import PrivilegeReport
from hive_replication.load.records import Record
from hive_replication.load.records.report_rows import ReportRow
from hive_replication.load.replica.policy_scope import made_with, require_made_with
from hive_replication.load.replica.repl_status import HeldTable, Status, repl_status
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.load.undo.undo import Undo
from hive_replication.observe import Report, alarms, doctor, history, lags, policy_status, reports
from hive_replication.operate import RepairResult, approve, pause, privileges, release, repair, resume, undo
from hive_replication.plans import PlanReport, plan_report
from hive_replication.policy import Policy, load_policy
from hive_replication.progress import Progress
from hive_replication.recover import require_history
from hive_replication.statements import ALL, ReplDump, ReplLoad, Tables, parse_name, parse_tables
from hive_replication.verify import TableComparison, compare_database

__all__ = [
    "Alarm",
    "Connection",
    "DatabaseStatus",
    "DumpResult",
    "FailoverPlan",
    "FailoverReverse",
    "FailoverStart",
    "FailoverStatus",
    "Finding",
    "HeldTable",
    "HistoryEntry",
    "Lag",
    "LoadReport",
    "PlanReport",
    "Policy",
    "PolicyStatus",
    "PrivilegeReport",
    "Progress",
    "Record",
    "RepairResult",
    "Report",
    "ReportRow",
    "Status",
    "TableComparison",
    "Undo",
    "alarms",
    "approve",
    "connect",
    "doctor",
    "dump",
    "failover_finish",
    "failover_open",
    "failover_plan",
    "failover_reverse",
    "failover_rollback",
    "failover_start",
    "failover_status",
    "history",
    "lags",
    "load",
    "load_policy",
    "pause",
    "plan",
    "policy_status",
    "privileges",
    "release",
    "repair",
    "reports",
    "resume",
    "status",
    "undo",
    "verify",
]


def dump(
    connection: Connection,
    name: str,
    *,
    from_evid: int | None = None,
    to_evid: int | None = None,
    batch: int = 0,
    replaces: str | None = None,
    progress: Progress | None = None,
) -> DumpResult:
    """``REPL DUMP``: a bootstrap of a database or table, or with ``from_evid`` the events after it.

    A dump that was interrupted is continued by an equal call.

    Args:
        connection: both sides.
        name: ``db`` or ``db.table`` on the source, or ``db.'include'.'exclude'``: regular expressions in place of the policy's
            ``tables`` and ``exclude``.
        from_evid: last event id that the replica has; None for a bootstrap.
        to_evid: last event id to dump; the source's newest where None.
        batch: most events to dump; no limit where 0.
        replaces: the same of the tables that the replica was made with, to make sure of that.
        progress: shows how far it is.

    Raises:
        BadRequest: unknown database or table, or none of the policy, event ids beyond the source's log, or a replica made with
            other tables.
        Refused: the database cannot be marked as a source of replication, or the replica follows another log than the source's.
        MissingEvents: the source's log no longer has all of these events.
        Unreachable: a metastore or a storage does not answer.
    """
    database, table, tables = _dumped(name)
    if from_evid is None and (to_evid is not None or batch or replaces):
        raise BadRequest("to_evid, batch and replaces need from_evid: a bootstrap is of the source as it is now")
    if table is not None and replaces is not None:
        raise BadRequest(f"replaces is about the tables of a database, the dump is of {name} alone")
    if from_evid is not None and to_evid is not None and to_evid < from_evid:
        raise BadRequest(f"to_evid {to_evid} lies before from_evid {from_evid}")
    _require_in_policy(connection.source.policy, database, table)
    if from_evid is not None:
        require_history(connection.source, connection.target, database, from_evid)
    statement = ReplDump(database, table, from_evid, to_evid, batch, tables)
    made = None if table is not None or from_evid is None else _made_with(connection, database, tables, replaces)
    return repl_dump(connection.source, statement, connection.store, made_with=made, progress=progress)


def _require_in_policy(policy: Policy, database: str, table: str | None) -> None:
    """Makes sure that a policy replicates what is to be dumped: a dump marks its database, and no window goes on with others.

    Raises:
        BadRequest: it does not.
    """
    policy.require_database(database)
    if table is not None and not policy.includes(table):
        raise BadRequest(
            f"tables and exclude of the policy {policy.name!r} leave out {database}.{table}: a replica of it would become stale; "
            "take it into the policy, and it comes with the next window"
        )


def _dumped(name: str) -> tuple[str, str | None, Tables | None]:
    some = parse_tables(name)
    return (some[0], None, some[1]) if some else (*parse_name(name), None)


def _made_with(connection: Connection, database: str, tables: Tables | None, replaces: str | None) -> MadeWith | None:
    """What the replica of a source database was made with.

    Raises:
        BadRequest: it was made with other tables than ``replaces``.
    """
    metastore, source = connection.target.metastore, connection.source.of_tables(tables)
    name = source.policy.target_of(database)
    state = replica_state(metastore.database(name))
    if replaces is not None:
        of, table, before = _dumped(replaces)
        if of != database or table is not None:
            raise BadRequest(f"{replaces} is to be replaced, but the dump is of the database {database}")
        require_made_with(state, name, before or ALL)
    return made_with(state, source, database, lambda: metastore.table_names(name))


def load(
    connection: Connection,
    directory: str,
    name: str | None = None,
    *,
    to_evid: int | None = None,
    repair: bool = False,
    copier: Copier | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """``REPL LOAD``: copies the files of a dump and applies it. Repeating it changes nothing.

    Tables that fail are in the report's ``held``; all others are loaded.

    Args:
        connection: both sides.
        directory: of the dump.
        name: ``db`` or ``db.table`` on the target; as on the source where None.
        to_evid: last event id to apply; all of the dump where None.
        repair: of a bootstrap, compare also what has been loaded already, and replace what differs.
        copier: copies files; threads of this process where None.
        progress: shows how far it is.

    Raises:
        BadRequest: the dump is absent or incomplete, or the target is not ready for it.
        Refused: another load of the database runs, the target is no replica of this source, the policy leaves out the table that
            is loaded alone, or a path leads outside the roots.
        Unreachable: a metastore or a storage does not answer; an equal call continues.
    """
    return repl_load(
        connection.target,
        _load_statement(connection, directory, name, to_evid),
        connection.store,
        copier or connection.copier,
        repair=repair,
        source=connection.source.metastore,
        progress=progress,
    )


def plan(
    connection: Connection,
    directory: str,
    name: str | None = None,
    *,
    to_evid: int | None = None,
    repair: bool = False,
    progress: Progress | None = None,
) -> PlanReport:
    """What :func:`load` would do now; changes nothing. Takes its arguments, and raises what it raises."""
    statement = _load_statement(connection, directory, name, to_evid)
    planned = plan_load(connection.target, statement, connection.store, repair=repair, source=connection.source.metastore)
    return plan_report(connection.target, planned, progress=progress)


def status(connection: Connection, name: str) -> Status:
    """``REPL STATUS`` of a database or table.

    Args:
        connection: both sides; only the target's metastore is called.
        name: ``db`` or ``db.table`` on the target.

    Raises:
        BadRequest: it is no such name.
        Unreachable: the metastore does not answer.
    """
    database, table = parse_name(name)
    return repl_status(connection.target.metastore, database, table)


def verify(connection: Connection, name: str, *, progress: Progress | None = None) -> list[TableComparison]:
    """Compares source and target as they are now: partitions, files, checksums, schema, functions.

    Args:
        connection: both sides.
        name: ``db`` or ``db.table`` on the source.
        progress: shows how far it is.

    Returns:
        One result for each table and function; equal ones have no ``differences``.

    Raises:
        BadRequest: the source has no such database, the policy leaves the table out, or neither side has it.
        Unreachable: a metastore or a storage does not answer.
    """
    database, table = parse_name(name)
    return list(compare_database(connection.source, connection.target, database, table=table, progress=progress))


def _load_statement(connection: Connection, directory: str, name: str | None, to_evid: int | None) -> ReplLoad:
    """The statement; without a name the dump's own place chooses the target database, among those of the policy only."""
    if name is not None:
        return ReplLoad(directory, *parse_name(name), to_evid)
    policy, database = connection.target.policy, connection.store.header(directory).scope.database
    if not policy.has_database(database):
        raise Refused(
            f"the dump {directory} is of {database!r}, which is no database of the policy: name the target database to load it "
            f"under, as in REPL LOAD {database} FROM ..., or add it to databases"
        )
    return ReplLoad(directory, to_evid=to_evid)
