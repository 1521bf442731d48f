"""REPL DUMP and REPL LOAD in a run: a step connects here; errors become Dagster's failures, progress goes to the run's log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import dagster as dg

from hive_replication import DumpResult, progress
from hive_replication.connect import Connection
from hive_replication.copy.tasks import Copier
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import MadeWith
from hive_replication.dump.source import why_skipped
from hive_replication.errors import MissingEvents, ReplicationError
from hive_replication.lag import MOST_EVENTS, lag
from hive_replication.lag.compute_lag import start_of
from hive_replication.load.command import repl_load
from hive_replication.load.replica.policy_scope import made_with
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import state_of
from hive_replication.load.report import LoadReport
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.parallel import ThresholdCalls
from hive_replication.process import acting_as
from hive_replication.progress import LoggedProgress
from hive_replication.recover import UNFINISHED, Gap, Recovery, dump_recovery, find_gap
from hive_replication.repair import Repair, load_repair, to_dump
from hive_replication.statements import ReplDump, ReplLoad
from repl_assets.catalog.keys import DATABASE_TAG, TAG_LENGTH, Names, Window, database_of
from repl_assets.recording.metadata import lag_figures, so_far

if TYPE_CHECKING:
    from resources.connection import ReplicationConnection
    from resources.spark import Spark


StepContext = dg.AssetExecutionContext | dg.OpExecutionContext | dg.AssetCheckExecutionContext


class Log(progress.Log, Protocol):
    """A logger, such as Dagster's log manager."""

    def warning(self, msg: str, *args: object) -> object:
        """Writes a warning."""
        ...


@contextmanager
def as_dagster_failure() -> Generator[None]:
    """Raises errors of the engine as Dagster failures, which show one sentence instead of a stack trace."""
    try:
        yield
    except ReplicationError as error:
        raise dg.Failure(str(error), metadata={"error": type(error).__name__, "exit_code": error.exit_code}) from None


def connection_resource(context: StepContext | dg.SensorEvaluationContext, names: Names) -> ReplicationConnection:
    """The policy's resource, of a step or sensor that requires it."""
    return getattr(context.resources, names.connection)


def connected_engine(context: StepContext, names: Names) -> Engine:
    """The engine for a step that requires the policy's resource; the run is tagged with its databases."""
    run = context.run
    resource = connection_resource(context, names)
    databases = run.tags.get(DATABASE_TAG) or _databases(run, names, resource.settings().databases)
    if databases and run.tags.get(DATABASE_TAG) != databases:
        context.instance.add_run_tags(run.run_id, {DATABASE_TAG: databases})
    if (carried := _carried_policy(run.run_config, names)) and carried != getattr(resource, "policy", carried):
        context.log.warning("the policy in this run's configuration is not used, but the policy as it is loaded now")
    with as_dagster_failure():
        spark: Spark = getattr(context.resources, names.spark)
        connection = resource.connect_with(spark)
        return Engine(connection, resource.copier(connection, spark), context.log, f"Dagster run {context.run.run_id}")


def listed_by(context: StepContext, connection: Connection, names: Names) -> str:
    """By what a step has listed directories: threads, or an application of Spark; "" where none was to be listed."""
    calls = [side.storage.many for side in (connection.source, connection.target)]
    if any(isinstance(one, ThresholdCalls) and one.uses_spark for one in calls):
        spark: Spark = getattr(context.resources, names.spark)
        return f"Spark, application {spark.application()}"
    return "threads" if any(not isinstance(one, ThresholdCalls) or one.used for one in calls) else ""


def _carried_policy(run_config: Mapping[str, Any], names: Names) -> object:
    """The policy in a run's configuration, as runs of earlier versions have it; None without one."""
    found: object = run_config
    for key in ("resources", names.connection, "config", "policy"):
        found = cast("Mapping[str, object]", found).get(key) if isinstance(found, Mapping) else None
    return found


def _databases(run: dg.DagsterRun, names: Names, known: Collection[str]) -> str:
    """The databases of a run that an operator started on the pages of assets or checks."""
    keys = [*(run.asset_selection or ()), *(check.asset_key for check in run.asset_check_selection or ())]
    return ", ".join(sorted({*map(database_of, names.own(keys, known))}))[:TAG_LENGTH]


@dataclass(frozen=True)
class Engine:
    """The engine, connected for one step of a run.

    Args:
        connection: both sides.
        copier: copies files, in threads or with Spark.
        log: the run's log.
        by: who acts, for the records of loads.
    """

    connection: Connection
    copier: Copier
    log: Log
    by: str = ""

    def target_name(self, database: str) -> str:
        """The target database of a source database."""
        return self.connection.target.policy.target_of(database)

    def state(self, database: str) -> ReplicaState:
        """The state of the replica of a source database."""
        return state_of(self.connection.target, database)

    def repairs(self, database: str, kind: str) -> bool:
        """Whether the load of a dump of this kind is a repair: a bootstrap over a finished replica replaces what differs."""
        with as_dagster_failure():
            return kind == "bootstrap" and self.state(database).applied is not None

    def dump_window(self, database: str, window: Window) -> tuple[DumpResult, Recovery | None]:
        """Dumps what brings a replica to the end of a window; after a gap also returns the comparison with the source.

        The dump starts at the event that the replica has applied. A window that is applied already is dumped as it is: it
        catches up a held lane, or an operator repeats it; loads skip what is applied. After a gap the replica is compared
        with its source, and what differs is dumped (design: conflicts and gaps).
        """
        with as_dagster_failure():
            found = self.dump_events(database, window)
            return self._recover(database, found) if isinstance(found, Gap) else (found, None)

    def dump_events(self, database: str, window: Window) -> DumpResult | Gap:
        """The dump of a window, or the gap after which only a comparison with the source brings the replica to its end.

        Raises:
            ReplicationError: the window cannot be dumped.
        """
        state = self.state(database)
        if state.applied is None:
            return self.dump(ReplDump(database))
        behind = state.applied < window.end
        # A catch-up recovers unfinished tables, others are not delayed.
        recovers = window.start is None or not behind
        gap = find_gap(self.connection.source, self.connection.target, database, read_log=False, unfinished=recovers)
        if gap is not None:
            return gap
        if window.start is None:
            return self.dump(ReplDump(database))
        start = state.applied if behind else window.start
        if state.lost and not start:  # what the source hides stands nowhere, and has no events to bring
            start = min(start_of(state) or 0, window.end)
        target, name = self.connection.target, self.target_name(database)
        made = made_with(state, self.connection.source, database, lambda: target.metastore.table_names(name))
        try:
            return self.dump(ReplDump(database, None, start, window.end), made=made)
        except MissingEvents as error:
            if not behind and not state.held:
                raise
            return Gap("missing events", state.applied, str(error))

    def _recover(self, database: str, gap: Gap) -> tuple[DumpResult, Recovery]:
        what = "what is missing is dumped" if gap.kind == UNFINISHED else "the database is compared, and what differs is dumped"
        self.log.warning("%s: %s", what, gap.reason)
        found, dump = dump_recovery(self.connection, database, gap, progress=LoggedProgress(self.log))
        return dump, found

    def dump(self, statement: ReplDump, partitions: tuple[str, ...] | None = None, *, made: MadeWith | None = None) -> DumpResult:
        """``REPL DUMP``."""
        connection, progress = self.connection, LoggedProgress(self.log)
        if partitions is not None:
            partitions = to_dump(connection, statement.database, statement.table, partitions)
        return repl_dump(connection.source, statement, connection.store, partitions=partitions, made_with=made, progress=progress)

    def load(self, statement: ReplLoad, *, repair: bool, stood: ReplicaState | None = None) -> LoadReport:
        """``REPL LOAD``; ``stood`` is, of a repair, where the target stood when it was asked for.

        Raises:
            Failure: the load failed as a whole; lanes that failed are in the report.
        """
        connection = self.connection
        with as_dagster_failure(), acting_as(self.by):
            return repl_load(
                connection.target,
                statement,
                connection.store,
                self.copier,
                repair=repair,
                source=connection.source.metastore,
                stood=stood,
                progress=LoggedProgress(self.log),
            )

    def repair(self, database: str, table: str, directory: str, again: Callable[[], str], stood: ReplicaState) -> Repair:
        """Loads a dump of a table, after the events before it.

        Args:
            database: source database.
            table: its table.
            directory: of the dump.
            again: makes another dump, where a window was loaded since that one; returns its directory.
            stood: where the target stood when the repair was asked for: what is undone since then stays so.

        Raises:
            Failure: the load failed as a whole.
        """
        progress = LoggedProgress(self.log)
        with as_dagster_failure(), acting_as(self.by):
            return load_repair(self.connection, database, table, directory, again, stood, copier=self.copier, progress=progress)

    def is_whole(self, directory: str) -> bool:
        """Whether a dump of a table is of all its partitions, as also one may be that was asked for some of them."""
        with as_dagster_failure():
            return self.connection.store.header(directory).scope.partitions is None

    def tables(self, database: str) -> list[str]:
        """Tables and views of a replica that the policy includes.

        Raises:
            ReplicationError: the metastore does not answer, or does not show the database.
        """
        target = self.connection.target
        return sorted(filter(target.policy.includes, target.metastore.table_names(self.target_name(database))))

    def lacking(self, database: str) -> list[str]:
        """Tables and views that the source has, that are replicated, and of which the replica has none.

        Raises:
            ReplicationError: a metastore does not answer, or does not show the database.
        """
        source = self.connection.source
        if source.metastore.database(database) is None:
            return []
        names = sorted({*filter(source.policy.includes, source.metastore.table_names(database))} - {*self.tables(database)})
        kinds = {"metadata_only": source.policy.metadata_only, "acid": source.acid}
        found = source.metastore.tables(database, names) if names else ()
        return [table.tableName for table in found if not why_skipped(table, **kinds)]

    def partitioned(self, database: str, tables: Iterable[str]) -> set[str]:
        """Those of the named tables of a replica that have partition keys."""
        with as_dagster_failure():
            found = self.connection.target.metastore.tables(self.target_name(database), sorted(tables))
            return {table.tableName for table in found if is_partitioned(table)}

    def partition_names(self, database: str, table: str) -> list[str]:
        """Names of a replica's partitions; empty if there is no such table."""
        with as_dagster_failure():
            try:
                return self.connection.target.metastore.partition_names(self.target_name(database), table)
            except NotFound:
                return []

    def lag(self, database: str) -> dict[str, float | int | str]:
        """The current lag of the replica as metadata; empty, with a warning, if it cannot be determined."""
        try:
            found = lag(self.connection.source, self.connection.target, database, most_events=MOST_EVENTS)
        except ReplicationError as error:
            self.log.warning("the lag of %s is not recorded: %s", database, error)
            return {}
        return lag_figures(found) | so_far(found)
