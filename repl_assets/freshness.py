"""Is a replica as fresh as its policy wants: the check ``up_to_date``.

Dagster's own freshness policies go by the age of the last materialization, so that a replica of a source at rest would count as
stale. The check goes by how long an event waits (design: Dagster, "seconds behind").
"""

# No postponed annotations here: Dagster compares those of contexts as types.

import dagster as dg

from hive_replication.lag import Lag, lag
from hive_replication.units import duration
from repl_assets.catalog import CatalogDatabase
from repl_assets.lag_metadata import database_metadata
from repl_assets.specs import Specs
from repl_assets.work import failures
from resources.connection import ReplicationConnection

UP_TO_DATE = "up_to_date"


def up_to_date_check(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    """The check of a database; the sensor ``lag`` answers it too."""
    names, target = specs.names, specs.policy.lag_target_seconds

    @dg.asset_check(
        asset=names.database(database.name, "load"),
        name=UP_TO_DATE,
        description=f"No event of the policy has waited for more than {duration(target)}, and no table is held.",
        required_resource_keys={names.connection},
    )
    def up_to_date(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        with failures():
            connection = resource.connect()
            found = lag(connection.source, connection.target, database.name)
        return dg.AssetCheckResult(
            passed=is_up_to_date(found, target), severity=dg.AssetCheckSeverity.WARN, metadata=database_metadata(found)
        )

    return up_to_date


def is_up_to_date(found: Lag, target: float) -> bool:
    """Whether a database is as fresh as ``target`` seconds ask for, and whole."""
    behind = found.seconds_behind
    return behind is not None and behind <= target and not found.held
