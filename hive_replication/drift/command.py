"""Drift of a database or a table as one call: it is looked for, and repaired where that is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.connect import Connection
from hive_replication.drift.findings import TableDrift
from hive_replication.drift.scan import DriftScan
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import state_of
from hive_replication.progress import Progress, Silent
from hive_replication.repair import repair as repair_objects
from hive_replication.statements import parse_name


@dataclass(frozen=True, slots=True)
class DriftReport:
    """What was found, and what a repair made of it.

    Args:
        tables: those that were scanned.
        repair: whether what has drifted was to be repaired.
        not_repaired: why something was not, in sentences.
        created: number of snapshots that were made.
        deleted: number of snapshots that were deleted.
        spared: what snapshots spared, and why not more, in sentences.
    """

    tables: tuple[TableDrift, ...]
    repair: bool
    not_repaired: tuple[str, ...]
    created: int
    deleted: int
    spared: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """1 if drift remains, or a table cannot be read; else 0."""
        remains = any(one.is_unread or (one.drifted and not self.repair) for one in self.tables)
        return 1 if self.not_repaired or remains else 0


def drift(
    connection: Connection, name: str, *, repair: bool = False, settle: float = 10.0, progress: Progress | None = None
) -> DriftReport:
    """Looks for files of the source that changed without an event.

    Args:
        connection: both sides.
        name: ``db`` or ``db.table`` on the source.
        repair: replicate what has drifted.
        settle: seconds between the two listings of a suspect.
        progress: shows the progress.

    Raises:
        BadRequest: the source does not have the object, or the target no replica of it.
        Unreachable: a metastore or a storage does not answer.
    """
    database, table = parse_name(name)
    stood = state_of(connection.target, database)  # repairs end no undo since
    scan = DriftScan(connection.source, connection.target, database, settle)
    names = [table] if table else scan.names()
    over = (progress or Silent()).over(names, f"drift of {database}")
    found = tuple(one for one in map(scan.table, over) if one is not None)
    if not table:
        scan.finish()
    elif not found:
        if connection.source.metastore.table(database, table) is None:
            raise BadRequest(f"the source {connection.source.metastore.uri} has no table {name}")
        raise BadRequest(f"{name} has no files, or no replica: nothing can drift")
    held = [reason for one in found if repair for reason in _held(connection, database, one, stood, progress)]
    snapshots = scan.snapshots
    return DriftReport(found, repair, tuple(held), snapshots.created, snapshots.deleted, tuple(scan.told(found)))


def _held(
    connection: Connection, database: str, drifted: TableDrift, stood: ReplicaState, progress: Progress | None
) -> list[str]:
    """Why a table is not repaired; what concerns one table does not stop the repair of others."""
    try:
        return repair_drift(connection, database, drifted, stood=stood, progress=progress)
    except Unreachable:
        raise
    except (ReplicationError, FileNotFoundError) as error:
        return [f"{drifted.table} is not repaired: {error}"]


def repair_drift(
    connection: Connection,
    database: str,
    drifted: TableDrift,
    *,
    stood: ReplicaState | None = None,
    progress: Progress | None = None,
) -> list[str]:
    """Repairs exactly the partitions of a table that have drifted, or the table if it has none.

    Args:
        connection: both sides.
        database: source database.
        drifted: the result of its scan.
        stood: where the target stood before the scan, if that is known: what is undone since then stays so.
        progress: shows the progress.

    Returns:
        Reasons for what could not be repaired; empty if everything was.
    """
    if not drifted.drifted:
        return []
    partitions = tuple(one.partition for one in drifted.drifted if one.partition) or None
    done = repair_objects(connection, database, drifted.table, partitions, stood=stood, progress=progress)
    return [f"{drifted.table} is not repaired: {held.reason}" for held in done.load.held]
