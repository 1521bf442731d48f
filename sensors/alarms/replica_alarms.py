"""The alarms of replicas (``hive_replication.health``) with the pages of Dagster that they are about (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hive_replication import health
from hive_replication.doctor import Finding
from hive_replication.lag import Lag
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import asset_url
from sensors.alarms.alarm import Alarm


def conditions(lags: Sequence[Lag], short: Iterable[Finding], policy: Policy) -> Iterator[Alarm]:
    """The alarms of one observation.

    Args:
        lags: of all databases.
        short: the doctor's findings about retention at the source.
        policy: the policy.
    """
    names = Names.of(policy)
    for found in health.conditions(lags, short, policy):
        yield Alarm(found.kind, found.about, found.title, found.advice, _path(found, names), found.database)


def is_known(alarm_key: str, lags: Iterable[Lag]) -> bool:
    """Whether lags show if an alarm still holds: no lag is known in a gap, or while the log is not read to its end."""
    unknown = {f"lag: {one.database}" for one in lags if one.seconds_behind is None and one.applied is not None}
    return alarm_key not in unknown


def _path(found: health.Alarm, names: Names) -> str:
    """The page of the table or database; "" for a whole side."""
    if found.table:
        return asset_url(names.table(found.database, found.table, "load"))
    return asset_url(names.database(found.database, "load")) if found.database else ""
