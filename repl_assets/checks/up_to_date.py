"""The check ``up_to_date``: whether a replica is as fresh as its policy demands.

Dagster's own freshness policies look at the age of the last materialization, which grows while the source does not change.
This check looks at how long an event waits (design: Dagster, "seconds behind").
"""

# No postponed annotations here: Dagster compares those of contexts as types.
from typing import Any

import dagster as dg

from hive_replication.health import condition_by_lag, what_to_do
from hive_replication.lag import MOST_EVENTS, Lag, lag
from hive_replication.markdown import escaped
from hive_replication.units import duration
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import UP_TO_DATE, Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import WHAT_TO_DO
from repl_assets.checks.not_held import held_advice
from repl_assets.recording.metadata import lag_metadata
from repl_assets.steps.engine import as_dagster_failure, connected_engine


def up_to_date_check(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    """The check of a database; the sensor ``lag`` evaluates it, too."""
    names, target = specs.names, specs.policy.lag_target_seconds

    @dg.asset_check(
        asset=names.database(database.name, "load"),
        name=UP_TO_DATE,
        description=f"No event of the policy has waited for more than {duration(target)}, and no table is held.",
        required_resource_keys=names.resources,
    )
    def up_to_date(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        connection = connected_engine(context, names).connection
        with as_dagster_failure():
            found = lag(connection.source, connection.target, database.name, most_events=MOST_EVENTS)
        return dg.AssetCheckResult(**answer(found, names, target))

    return up_to_date


def answer(found: Lag, names: Names, target: float) -> dict[str, Any]:
    """The check's result. Whoever opens it sees first that an operator stopped the database: nothing else goes on then.

    Args:
        found: how far the database is behind.
        names: of the policy.
        target: seconds for which an event may wait.
    """
    passed, held = is_up_to_date(found, target), held_advice(names, found.database, found.target_database, dict(found.held))
    advice = "" if passed or not found.in_source else found.cure or what_to_do(condition_by_lag(found, target), found)
    lacks = "the target has no finished replica" if found.lacks_replica else ""
    return {
        "passed": passed,
        "severity": dg.AssetCheckSeverity.WARN,
        "description": escaped(found.stopped or found.gap or lacks) or None,
        "metadata": lag_metadata(found) | (held or ({WHAT_TO_DO: advice} if advice else {})),
    }


def is_up_to_date(found: Lag, target: float) -> bool:
    """Whether no event waits for more than ``target`` seconds, no table is held, and the replica is of the policy as it is."""
    behind = found.seconds_behind
    return behind is not None and behind <= target and not found.held and not found.changed
