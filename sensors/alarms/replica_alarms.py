"""The alarms of replicas (``hive_replication.health``) with the pages of Dagster that they are about (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from hive_replication import health
from hive_replication.doctor import Finding
from hive_replication.lag import Lag
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import asset_url
from sensors.alarms.alarm import Alarm


def conditions(
    lags: Sequence[Lag],
    short: Iterable[Finding],
    policy: Policy,
    replicas: Collection[str] = (),
    no_dumps: str = "",
    overflow: frozenset[str] = frozenset(),
) -> Iterator[Alarm]:
    """The alarms of one observation.

    Args:
        lags: of all databases.
        short: the doctor's findings about retention at the source.
        policy: the policy.
        replicas: those that were there at an earlier observation (:func:`with_replicas`).
        no_dumps: why the dump root does not answer, or "".
        overflow: databases whose tables are partitions of one asset.
    """
    names = Names(policy.name, overflow)
    known = {one.database for one in lags if _was_there(one, policy, replicas)}
    for found in (*health.conditions(lags, short, policy, known), *health.without_dumps(no_dumps)):
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


def with_replicas(known: Collection[str], lags: Iterable[Lag], policy: Policy) -> tuple[str, ...]:
    """The replicas that have been there, after another observation; without those of databases that the source no longer has.

    Each is named with its place: under another name, or on another target, a database has none before its bootstrap.
    """
    found = (one for one in lags if one.applied is not None or (one.in_source and _was_there(one, policy, known)))
    return tuple(sorted(_replica(one, policy) for one in found))


def _was_there(one: Lag, policy: Policy, known: Collection[str]) -> bool:
    return _replica(one, policy) in known or one.database in known  # the latter of an earlier version, for one tick


def _replica(one: Lag, policy: Policy) -> str:
    return f"{one.database} {one.target_database} {pair_hash(policy.pair)}"


def _shown(found: health.Alarm, names: Names) -> Alarm:
    return Alarm(found.kind, found.about, found.title, found.advice, _path(found, names), found.database)


def _path(found: health.Alarm, names: Names) -> str:
    """The page of the table or database; "" for a whole side."""
    if found.table:
        return asset_url(*names.replica(found.database, found.table))
    return asset_url(names.database(found.database, "load")) if found.database else ""
