"""Loading the dump of a whole database and recording what the load touched: for windows, and for rebuilds."""

from __future__ import annotations

import dagster as dg

from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import LoadReport
from hive_replication.statements import ReplLoad
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import Names
from repl_assets.recording.interrupted import until_recorded
from repl_assets.recording.metadata import text_of
from repl_assets.recording.recorder import Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure


def load_dump(
    context: dg.OpExecutionContext,
    engine: Engine,
    names: Names,
    database: CatalogDatabase,
    dump: dg.AssetMaterialization,
    stood: ReplicaState | None = None,
) -> LoadReport:
    """Loads a dump by its materialization and records what was touched.

    A bootstrap dump over a finished replica compares and replaces what differs; it ends no undo since that stood as given.
    """
    directory, kind = text_of(dump.metadata, "directory"), text_of(dump.metadata, "kind")
    repair = engine.repairs(database.name, kind)
    begin = dump.metadata.get("from_evid") if kind == "incremental" else None
    with until_recorded(context, names, database.name, begin.value if isinstance(begin, dg.IntMetadataValue) else None):
        report = engine.load(ReplLoad(directory, engine.target_name(database.name)), repair=repair, stood=stood)
        new = {touched.source_table for touched in report.touched} - {table.name for table in database.tables}
        partitioned = database.partitioned_tables
        recorder = Recorder(context, names, database.name, partitioned | engine.partitioned(database.name, new))
        source, read = names.database(database.name, "source"), report.to_evid
        context.log_event(dg.AssetMaterialization(source, metadata={"evid": read}, description=f"Read up to event {read}"))
        recorder.record(report, directory)
        if database.overflow:
            with as_dagster_failure():
                recorder.sync_tables(engine.tables(database.name))
        if kind == "bootstrap" and not report.held:
            for table in sorted(partitioned):
                recorder.sync(table, engine.partition_names(database.name, table))
    return report
