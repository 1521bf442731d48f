"""Assets of whole databases: the dump of a window of the notification log and its load."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Iterator

import dagster as dg

from hive_replication.load.report import LoadReport
from hive_replication.policy import CheckName, Checks
from hive_replication.statements import ReplDump, ReplLoad
from repl_assets.catalog import CatalogDatabase
from repl_assets.freshness import UP_TO_DATE
from repl_assets.keys import DATABASE_TAG, POLICY_TAG, Names, Window
from repl_assets.planning import approved_dump
from repl_assets.record import Recorder
from repl_assets.reporting import dump_metadata, held_table, markdown_table, recovery_metadata, text_of, window_metadata
from repl_assets.specs import Specs
from repl_assets.windows import dump_of, window_of, work_of
from repl_assets.work import Work, failures


def dump_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__dump``: REPL DUMP of a window."""
    names = specs.names

    @dg.multi_asset(
        name=names.local(f"{database.name}__dump"),
        specs=[specs.database(database, "dump")],
        required_resource_keys={names.connection},
    )
    def dump(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        window = window_of(context)
        began = time.monotonic()
        result, recovery = work_of(context, names).dump_window(database.name, window)
        metadata = (
            dump_metadata(result)
            | {"duration (s)": round(time.monotonic() - began, 3)}
            | (recovery_metadata(recovery) if recovery else {})
        )
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(result.last_evid)))

    return dump


def load_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__load``: REPL LOAD of the window's dump; then the touched tables and partitions are recorded."""
    names = specs.names
    key = names.database(database.name, "load")

    @dg.multi_asset(
        name=names.local(f"{database.name}__load"),
        specs=[specs.database(database, "load")],
        check_specs=load_checks(specs.policy.checks, key),
        required_resource_keys={names.connection},
        pool=load_pool(names, database.name),
    )
    def load(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        window, work = window_of(context), work_of(context, names)
        approved = approved_dump(specs, work, database.name, window)
        dump = approved or dump_of(context, names.database(database.name, "dump"), str(window))
        report = load_dump(context.op_execution_context, work, names, database, dump)
        return dg.MaterializeResult(
            metadata=window_metadata(report, names, database.name, dump) | work.lag(database.name),
            check_results=[found for found in check_results(report, key) if found.check_name in specs.policy.checks.run],
            data_version=dg.DataVersion(str(report.to_evid)),
        )

    return load


def rebuild_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``rebuild_<db>``: a bootstrap of the whole database; what is equal already stays."""
    names = specs.names
    dump_key, load_key = (names.database(database.name, stage) for stage in ("dump", "load"))

    @dg.op(
        name=names.local(f"rebuild_{database.name}__dump_and_load"),
        required_resource_keys={names.connection},
        pool=load_pool(names, database.name),
        out=dg.Out(dg.Nothing),
    )
    def rebuild(context: dg.OpExecutionContext) -> None:
        work = work_of(context, names)
        with failures():
            current = work.connection.source.metastore.current_event_id()
            window = str(Window(None, current))
            context.instance.add_dynamic_partitions(str(names.windows.name), [window])
            result = work.dump(ReplDump(database.name))
        made = dg.AssetMaterialization(dump_key, metadata=dump_metadata(result), partition=window)
        context.log_event(made)
        report = load_dump(context, work, names, database, made)
        metadata = window_metadata(report, names, database.name, made)
        context.log_event(dg.AssetMaterialization(load_key, metadata=metadata, partition=window))
        if report.held:
            raise dg.Failure(f"{len(report.held)} lanes failed: {report.held[0].reason}", metadata={"held": held_table(report)})

    @dg.job(
        name=names.local(f"rebuild_{database.name}"),
        description=f"Dumps the whole database {database.name} and replaces in the replica what differs.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )
    def job() -> None:
        rebuild()

    return job


def load_pool(names: Names, database: str) -> str:
    """The pool of a target database: one load at a time, the next waits."""
    return names.local(f"{database}__load")


def load_checks(settings: Checks, key: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks that each load answers."""
    descriptions: dict[CheckName, str] = {
        "files_proven": "Each file of the replica is proven equal to its source by checksums.",
        "nothing_held": "No table or group of tables failed in this window.",
    }
    return [
        dg.AssetCheckSpec(name, asset=key, description=description, blocking=name in settings.blocking)
        for name, description in descriptions.items()
        if name in settings.run
    ]


def window_checks(settings: Checks, key: dg.AssetKey) -> list[dg.AssetCheckKey]:
    """The checks that the run of a window answers; others of a database take longer than many windows do."""
    return [*(spec.key for spec in load_checks(settings, key)), dg.AssetCheckKey(key, UP_TO_DATE)]


def check_results(report: LoadReport, key: dg.AssetKey) -> Iterator[dg.AssetCheckResult]:
    """The answers to :func:`load_checks`."""
    unproven = [copy.task.target for copy in report.copies if not (copy.proof.algorithm and copy.proof.value)]
    unrecorded = sum(1 for copy in report.copies if not copy.proof.recorded)
    yield dg.AssetCheckResult(
        passed=not unproven,
        asset_key=key,
        check_name="files_proven",
        metadata={"files": len(report.copies), "without recorded checksum": unrecorded}
        | ({"unproven": markdown_table(("file",), ([file] for file in unproven), len(unproven))} if unproven else {}),
    )
    yield dg.AssetCheckResult(
        passed=not report.held,
        asset_key=key,
        check_name="nothing_held",
        metadata={"held": held_table(report)} if report.held else {},
    )


def partitioned_tables(database: CatalogDatabase) -> set[str]:
    """Tables that are known to have partitions."""
    return {table.name for table in database.tables if table.partition_keys}


def load_dump(
    context: dg.OpExecutionContext, work: Work, names: Names, database: CatalogDatabase, dump: dg.AssetMaterialization
) -> LoadReport:
    """Loads a dump by its materialization and records what was touched.

    A bootstrap dump over a finished replica compares and replaces what differs.
    """
    directory = text_of(dump.metadata, "directory")
    with failures():
        replicated = work.state(database.name).applied is not None
    repair = replicated and text_of(dump.metadata, "kind") == "bootstrap"
    report = work.load(ReplLoad(directory, work.target_name(database.name)), repair=repair)
    new = {touched.source_table for touched in report.touched} - {table.name for table in database.tables}
    partitioned = partitioned_tables(database)
    recorder = Recorder(context, names, database.name, partitioned | work.partitioned(database.name, new))
    recorder.record(report, directory)
    if database.overflow:
        recorder.sync_tables(work.tables(database.name))
    if text_of(dump.metadata, "kind") == "bootstrap" and not report.held:
        for table in sorted(partitioned):
            recorder.sync(table, work.partition_names(database.name, table))
    return report
