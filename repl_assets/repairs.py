"""The job that repairs a table or some of its partitions, for sensors and for tables without assets of their own."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from hive_replication.load.report import LoadReport
from hive_replication.statements import ReplDump, ReplLoad
from repl_assets.catalog import CatalogDatabase
from repl_assets.checks import last_failure, with_failed
from repl_assets.databases import load_pool
from repl_assets.keys import DATABASE_TAG, POLICY_TAG, Names, partition_key
from repl_assets.record import Recorder
from repl_assets.reporting import dump_materializations, held_table
from repl_assets.specs import Specs
from repl_assets.table_checks import Examiner, Place, checks_of
from repl_assets.work import Work, failures
from repl_assets.worker import tag_run


def repair_job_name(names: Names, database: str) -> str:
    """Name of a database's repair job."""
    return names.local(f"repair_{database}")


def repair_op_name(names: Names, database: str) -> str:
    """Name of its only op, under which its configuration goes."""
    return names.local(f"repair_{database}__partitions")


def repair_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``repair_<db>``: dumps partitions of a table (all where none is named) as they are now, and replaces what differs."""
    names = specs.names

    @dg.op(
        name=repair_op_name(names, database.name),
        config_schema={
            "table": str,
            "partitions": dg.Field([str], default_value=[]),
            "checks": dg.Field([str], default_value=[], description="Checks of the table that the repair answers anew"),
        },
        required_resource_keys={names.connection},
        pool=load_pool(names, database.name),
        out=dg.Out(dg.Nothing),
    )
    def repair(context: dg.OpExecutionContext) -> None:
        tag_run(context)
        work = Work.of(getattr(context.resources, names.connection), context.log)
        table, partitions = str(context.op_config["table"]), tuple(context.op_config["partitions"])
        repair_table(context, work, names, database, table, partitions)
        examiner = Examiner(work.connection, specs.policy, database.name)
        for check in checks_of(specs.policy):
            if check.name in context.op_config["checks"]:
                place = Place.of(names, database.name, table, check)
                again = with_failed(partitions or None, last_failure(context.instance, place))
                with failures():
                    answer = check.answer(examiner, table, again).evaluation(place, again)
                context.log_event(answer)  # type: ignore[arg-type] (it takes more than it says)

    @dg.job(
        name=repair_job_name(names, database.name),
        description=f"Dumps partitions of one table of {database.name} as they are now and replaces in the replica what differs.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )
    def job() -> None:
        repair()

    return job


def repair_table(
    context: dg.OpExecutionContext,
    work: Work,
    names: Names,
    database: CatalogDatabase,
    table: str,
    partitions: tuple[str, ...] = (),
) -> LoadReport:
    """Dumps a table, or partitions of it, as the source is now, loads that and records it.

    Raises:
        Failure: the table is not repaired.
    """
    with failures():
        dump = work.dump(ReplDump(database.name, table), partitions or None)
    if table in {known.name for known in database.tables}:
        keys = map(partition_key, partitions) if partitions else (None,)
        for made in dump_materializations(names.table(database.name, table, "dump"), dump, keys):
            context.log_event(made)
    events = work.bring_up(database.name, table, dump.directory)
    report = work.load(ReplLoad(dump.directory, work.target_name(database.name), table), repair=True)
    recorder = Recorder(context, names, database.name, work.partitioned(database.name, [table]))
    for done in filter(None, (events, report)):
        recorder.record(done, done.directory)
    if report.held:
        raise dg.Failure(f"{table} is not repaired: {report.held[0].reason}", metadata={"held": held_table(report)})
    return report
