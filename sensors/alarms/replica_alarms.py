"""The alarms of replicas (``hive_replication.health``) with the pages of Dagster that they are about (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hive_replication import health
from hive_replication.doctor import Finding
from hive_replication.lag import Lag
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import asset_url
from sensors.alarms.alarm import Alarm


def conditions(
    lags: Sequence[Lag], short: Iterable[Finding], policy: Policy, replicas: Collection[str] = (), no_dumps: str = ""
) -> Iterator[Alarm]:
    """The alarms of one observation.

    Args:
        lags: of all databases.
        short: the doctor's findings about retention at the source.
        policy: the policy.
        replicas: databases that had a replica at an earlier observation.
        no_dumps: why the dump root does not answer, or "".
    """
    names = Names.of(policy)
    for found in (*health.conditions(lags, short, policy, replicas), *health.without_dumps(no_dumps)):
        yield _shown(found, names)


def unreachable(error: Exception, policy: Policy) -> Alarm:
    """The alarm of an observation that a server ended."""
    return _shown(health.unreachable("source or target", str(error)), Names.of(policy))


def is_known(alarm_key: str, lags: Iterable[Lag]) -> bool:
    """Whether lags show if an alarm still holds.

    No lag is known in a gap, and while the log is not read to its end; nor are held tables where the replica is gone or its state
    cannot be read. Of a database that the source no longer has, nothing holds.
    """
    here = [one for one in lags if one.in_source]
    lag = {f"lag: {one.database}" for one in here if one.seconds_behind is None}
    held = [f"held table: {one.database}" for one in here if one.applied is None]
    return alarm_key not in lag and not any(alarm_key == key or alarm_key.startswith(f"{key}.") for key in held)


def with_replicas(known: Collection[str], lags: Iterable[Lag]) -> tuple[str, ...]:
    """The databases that have had a replica, after another observation; without those that the source no longer has."""
    return tuple(sorted(one.database for one in lags if one.applied is not None or (one.in_source and one.database in known)))


def _shown(found: health.Alarm, names: Names) -> Alarm:
    return Alarm(found.kind, found.about, found.title, found.advice, _path(found, names), found.database)


def _path(found: health.Alarm, names: Names) -> str:
    """The page of the table or database; "" for a whole side."""
    if found.table:
        return asset_url(names.table(found.database, found.table, "load"))
    return asset_url(names.database(found.database, "load")) if found.database else ""
