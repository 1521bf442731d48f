"""REPL DUMP and REPL LOAD as runs do them: what to dump for a window, errors as Dagster failures, progress in the run's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import dagster as dg

from hive_replication import progress
from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.dump.records import DumpResult
from hive_replication.errors import MissingEvents, ReplicationError
from hive_replication.lag import lag
from hive_replication.load.command import repl_load
from hive_replication.load.report import LoadReport
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.metastore.faults import NotFound
from hive_replication.progress import LoggedProgress
from hive_replication.recover import UNFINISHED, Gap, Recovery, dump_recovery, find_gap
from hive_replication.repair import bring_up
from hive_replication.statements import ReplDump, ReplLoad
from repl_assets.keys import Window
from repl_assets.lag_metadata import figures

if TYPE_CHECKING:
    from resources.connection import ReplicationConnection


class Log(progress.Log, Protocol):
    """Where lines go; Dagster's log manager is one."""

    def warning(self, msg: str, *args: object) -> object:
        """Writes a warning."""
        ...


@contextmanager
def failures() -> Iterator[None]:
    """Turns errors of the engine into Dagster's: one sentence on top of the run, no stack of ours above it."""
    try:
        yield
    except ReplicationError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__, "exit_code": error.exit_code}) from error


@dataclass(frozen=True)
class Work:
    """The engine, connected for one step of a run.

    Args:
        connection: both sides.
        copier: chooses threads or Spark.
        log: the run's log.
    """

    connection: Connection
    copier: Copier
    log: Log

    @classmethod
    def of(cls, resource: ReplicationConnection, log: Log) -> Work:
        """The work of a step that has the policy's resource."""
        with failures():
            connection = resource.connect()
            return cls(connection, resource.copier(connection), log)

    def target_name(self, database: str) -> str:
        """The target database of a source database."""
        return self.connection.target.policy.target_of(database)

    def state(self, database: str) -> ReplicaState:
        """Where the replica of a source database stands."""
        return replica_state(self.connection.target.metastore.database(self.target_name(database)))

    def dump_window(self, database: str, window: Window) -> tuple[DumpResult, Recovery | None]:
        """The dump that brings a database to the end of a window, and what was found if it is one over a gap.

        It begins where the database stands. A window that lies behind it is dumped as its name says: it catches up a held
        lane, or is repeated by hand; loads pass over what is applied already. Over a gap the database is compared with its
        source, and what differs is dumped (design: conflicts and gaps).
        """
        with failures():
            state = self.state(database)
            if state.applied is None:
                return self.dump(ReplDump(database)), None
            gap = find_gap(self.connection.source, self.connection.target, database, read_log=False)
            if gap is not None and gap.kind == UNFINISHED and window.start is not None and state.applied < window.end:
                gap = None  # of single tables, which a catch-up recovers: the others go on
            if gap is None and window.start is None:
                return self.dump(ReplDump(database)), None
            if gap is None:
                behind = state.applied < window.end
                start = state.applied if behind else window.start
                try:
                    return self.dump(ReplDump(database, None, start, window.end)), None
                except MissingEvents as error:
                    if not behind and not state.held:
                        raise
                    gap = Gap("missing events", state.applied, str(error))
            return self._recover(database, gap)

    def _recover(self, database: str, gap: Gap) -> tuple[DumpResult, Recovery]:
        self.log.warning("the database is compared with its source, and dumped where it differs: %s", gap.reason)
        connection = self.connection
        found, dump = dump_recovery(
            connection.source, connection.target, connection.store, database, gap, progress=LoggedProgress(self.log)
        )
        return dump, found

    def dump(self, statement: ReplDump, partitions: tuple[str, ...] | None = None) -> DumpResult:
        """``REPL DUMP``."""
        connection = self.connection
        return repl_dump(connection.source, statement, connection.store, partitions=partitions, progress=LoggedProgress(self.log))

    def load(self, statement: ReplLoad, *, repair: bool) -> LoadReport:
        """``REPL LOAD``.

        Raises:
            Failure: the load failed as a whole; lanes that failed are in the report.
        """
        connection = self.connection
        with failures():
            return repl_load(
                connection.target,
                statement,
                connection.store,
                self.copier,
                repair=repair,
                source=connection.source.metastore,
                progress=LoggedProgress(self.log),
            )

    def bring_up(self, database: str, table: str, directory: str) -> LoadReport | None:
        """Brings a table's lane up to a dump of it before the dump is loaded; the load ends a hold of it.

        Returns:
            What the events before the dump changed; None where the lane stood there already.
        """
        connection = self.connection
        progress = LoggedProgress(self.log)
        with failures():
            evid = connection.store.open(directory).header.to_evid
            report = bring_up(
                connection.source, connection.target, connection.store, self.copier, database, table, evid, progress=progress
            )
        if report is not None and report.held:
            self.log.warning("events before the repair are held: %s", report.held[0].reason)
        return report

    def tables(self, database: str) -> list[str]:
        """Tables and views of a replica that belong to the policy."""
        target = self.connection.target
        with failures():
            return sorted(filter(target.policy.includes, target.metastore.table_names(self.target_name(database))))

    def partitioned(self, database: str, tables: Iterable[str]) -> set[str]:
        """Those of the named tables of a replica that have partition keys."""
        with failures():
            found = self.connection.target.metastore.tables(self.target_name(database), sorted(tables))
            return {table.tableName for table in found if table.partitionKeys}

    def partition_names(self, database: str, table: str) -> list[str]:
        """Partitions of a replica; none where there is no such table."""
        with failures():
            try:
                return self.connection.target.metastore.partition_names(self.target_name(database), table)
            except NotFound:
                return []

    def lag(self, database: str) -> dict[str, float | int]:
        """How far the replica is behind now, as metadata; empty where that cannot be told."""
        try:
            found = lag(self.connection.source, self.connection.target, database)
        except ReplicationError:
            return {}
        return figures(found)
