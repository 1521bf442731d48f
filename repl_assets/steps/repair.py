"""Repairing a table: it is dumped as it is at the source now, and what differs in the replica is replaced."""

from __future__ import annotations

import dagster as dg

from hive_replication.load.report import LoadReport
from hive_replication.statements import ReplDump
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import Names, partition_key
from repl_assets.recording.metadata import dump_materializations, held_table
from repl_assets.recording.recorder import Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure

#: What a failure says of a table that was not loaded, after its name: where it was held, its release mends it.
NOT_REPAIRED = "is not repaired:"


def repair_table(
    context: dg.OpExecutionContext,
    engine: Engine,
    names: Names,
    database: CatalogDatabase,
    table: str,
    partitions: tuple[str, ...] = (),
) -> LoadReport:
    """Dumps a table, or some of its partitions, as they are at the source now, loads the dump and records it.

    Raises:
        Failure: the policy leaves the table out, or the load of the table failed.
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

    _, events, report = engine.repair(database.name, table, dump(), dump)
    recorder = Recorder(context, names, database.name, engine.partitioned(database.name, [table]))
    for done in (*events, report):
        recorder.record(done, done.directory)
    if report.held:
        raise dg.Failure(f"{table} {NOT_REPAIRED} {report.held[0].reason}", metadata={"held": held_table(report)})
    return report
