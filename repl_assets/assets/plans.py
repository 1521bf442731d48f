"""Assets of policies whose windows are approved: the plan of a window and its approval."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Iterator

import dagster as dg

from hive_replication import operate
from hive_replication.plans.approval import Approvals, PlannedWindow, steps
from hive_replication.process import acting_as
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.steps.engine import as_dagster_failure, connected_engine
from repl_assets.steps.plan import write_plan
from repl_assets.steps.windows import dump_of, window_of
from repl_assets.typed import MaterializeResult


def approval_assets(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetsDefinition]:
    """``<db>__plan`` and ``<db>__approval`` where the policy asks for approval; else none."""
    if specs.policy.approval:
        yield _plan_asset(specs, database)
        yield _approval_asset(specs, database)


def _plan_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "plan"),
        specs=[specs.database(database, "plan")],
        required_resource_keys=names.resources,
    )
    def plan(context: dg.AssetExecutionContext) -> MaterializeResult:
        window = str(window_of(context))
        dump = dump_of(context, names.database(database.name, "dump"), window)
        engine = connected_engine(context, names)
        directory, kind = (str(dump.metadata[name].value) for name in ("directory", "kind"))
        written = write_plan(engine, database.name, window, directory, kind)
        events = int(str(dump.metadata["events"].value))
        waits = PlannedWindow(window, directory, kind, events, time.time(), written.summary, steps(written.report.plan))
        with as_dagster_failure():
            Approvals.of(specs.policy).wait(engine.target_name(database.name), waits)
        return dg.MaterializeResult(metadata=written.metadata)

    return plan


def _approval_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "approval"),
        specs=[specs.database(database, "approval")],
        required_resource_keys=names.resources,
    )
    def approval(context: dg.AssetExecutionContext) -> MaterializeResult:
        window, engine = str(window_of(context)), connected_engine(context, names)
        with as_dagster_failure(), acting_as(engine.by):
            planned = operate.approve(engine.connection, database.name, window)
        return dg.MaterializeResult(metadata={"approved": planned.summary, "dump": dg.PathMetadataValue(planned.directory)})

    return approval
