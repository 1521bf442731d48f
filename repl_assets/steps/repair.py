"""Repairing a table: it is dumped as it is at the source now, and what differs in the replica is replaced."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import dagster as dg

from hive_replication.errors import Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import LoadReport
from hive_replication.statements import ReplDump
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import Names, partition_key
from repl_assets.recording.metadata import dump_materializations, held_table
from repl_assets.recording.recorder import Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure

#: What a failure says of a table that was not loaded, after its name: where it was held, its release mends it.
NOT_REPAIRED = "is not repaired:"


class Failures:
    """What fails of single tables in a step: the others have their turn all the same, then the step fails.

    Args:
        context: the step's.
    """

    def __init__(self, context: dg.OpExecutionContext) -> None:
        self._log, self._reasons = context.log, list[str]()

    @contextmanager
    def of(self, table: str) -> Generator[None]:
        """Around the work on a table; servers that do not answer fail the step at once."""
        try:
            yield
        except dg.Failure as failure:
            if isinstance(failure.__context__, Unreachable):
                raise
            reason = str(failure.description)
            self._reasons.append(reason if reason.startswith(f"{table} ") else f"{table}: {reason}")
            self._log.error(self._reasons[-1])

    def raise_any(self) -> None:
        """Fails the step where a table failed."""
        if not self._reasons:
            return
        if all(NOT_REPAIRED in one for one in self._reasons):
            raise dg.Failure("; ".join(self._reasons))
        raise dg.Failure("; ".join(one.replace(NOT_REPAIRED, "is held:") for one in self._reasons))


def repair_table(
    context: dg.OpExecutionContext,
    engine: Engine,
    names: Names,
    database: CatalogDatabase,
    stood: ReplicaState,
    table: str,
    partitions: tuple[str, ...] = (),
) -> LoadReport:
    """Dumps a table, or some of its partitions, as they are at the source now, loads the dump and records it.

    Raises:
        Failure: the policy leaves the table out, the load of the table failed, or it was undone since the target stood as given.
    """
    with as_dagster_failure():
        engine.connection.source.require_included(database.name, table)

    def dump() -> str:
        with as_dagster_failure():
            result = engine.dump(ReplDump(database.name, table), partitions or None)
        if table in {known.name for known in database.tables}:
            keys = map(partition_key, partitions) if partitions else (None,)
            for made in dump_materializations(names.table(database.name, table, "dump"), result, keys):
                context.log_event(made)
        return result.directory

    repaired = engine.repair(database.name, table, dump(), dump, stood)
    report = repaired.load
    recorder = Recorder(context, names, database.name, engine.partitioned(database.name, [table]))
    for done in (*repaired.events, report):
        recorder.record(done, done.directory)
    if report.held:
        raise dg.Failure(f"{table} {NOT_REPAIRED} {report.held[0].reason}", metadata={"held": held_table(report)})
    return report
