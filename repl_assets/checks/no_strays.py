"""The check ``no_strays``: a replica has nothing that the source does not have."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator

import dagster as dg

from hive_replication.verify import strays
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import NO_STRAYS
from repl_assets.catalog.specs import Specs
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import EvaluationKey, Finding, last_failure
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import as_dagster_failure, connected_engine

#: What to do about strays: no repair removes them.
ADVICE = "look at the list in the check: what waits to be dropped or is being loaded goes by itself; delete the rest by hand"


def no_strays_check(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    """The check as a definition of Dagster."""
    names = specs.names
    spec = dg.AssetCheckSpec(
        NO_STRAYS,
        asset=names.database(database.name, "load"),
        description="The target has no table or partition that the source lacks, and no directory that nothing points at.",
        blocking=NO_STRAYS in specs.policy.checks.blocking,
    )

    @dg.multi_asset_check(
        name=names.of_database(database.name, NO_STRAYS),
        specs=[spec],
        can_subset=True,
        required_resource_keys=names.resources,
    )
    def no_strays(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        key = EvaluationKey(spec.key)
        if context.run.asset_selection and last_failure(context.instance, key) is None:
            return  # a window does not wait until all partitions and directories are listed
        examiner = Examiner(connected_engine(context, names).connection, specs.policy, database.name)
        with as_dagster_failure():
            yield find_no_strays(examiner).result(key)

    return no_strays


def find_no_strays(examiner: Examiner) -> Finding:
    """Tables, partitions and directories that the source does not have. No repair removes them."""
    found = list(strays(examiner.connection.source, examiner.connection.target, examiner.database))
    rows = ((stray.kind, stray.name, stray.location) for stray in found)
    table = {"found": markdown_table(("kind", "name", "location"), rows, len(found))} if found else {}
    return Finding({"strays": len(found), **table}, passed=not found, advice=ADVICE if found else "")
