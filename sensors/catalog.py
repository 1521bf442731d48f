"""The sensor on the catalog: has the code location loaded again where the source has tables or databases without assets.

They are replicated all the same; tables by the sensor on the notification log, databases once their assets are there.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping

import dagster as dg
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin
from dagster._grpc.client import DagsterGrpcClient

from hive_replication.databases import resolved
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from repl_assets.keys import Names

_INTERVAL = 60
_DELAY = 2.0  # seconds in which the tick that asks for the reload ends
_RELOAD_TIMEOUT = 300  # seconds
_SHOWN = 3
_LOG = logging.getLogger("dagster")


def catalog_sensor(policy: Policy, known: Mapping[str, frozenset[str]]) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        policy: as it was written, with its patterns of databases.
        known: by source database the tables that the definitions know.
    """

    @dg.sensor(
        name=Names.of(policy).local("catalog"),
        description="Loads the definitions again where the source has tables or databases that they do not know",
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def catalog(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        with Metastore(policy.source.metastore, timeout=60, retries=1) as metastore:
            found = sorted(changes(metastore, policy, known))
        return _answer(context, found)

    return catalog


def changes(metastore: Metastore, policy: Policy, known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Tables and databases that came or went since the definitions were loaded, by their names."""
    there = set(metastore.databases())
    for database in sorted(there.intersection(resolved(policy, metastore).databases)):
        if database not in known:
            yield database
            continue
        tables = set(filter(policy.includes, metastore.table_names(database)))
        yield from (f"{database}.{table}" for table in tables ^ known[database])
    yield from known.keys() - there


def _answer(context: dg.SensorEvaluationContext, found: list[str]) -> dg.SkipReason:
    if not found:
        return dg.SkipReason("the definitions have all tables")
    shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    asked = hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
    origin = context.code_location_origin
    if context.cursor == asked or not isinstance(origin, GrpcServerCodeLocationOrigin):
        return dg.SkipReason(f"came or went: {shown}; dg utils refresh-defs-state, then Reload in Dagster's Deployment page")
    context.update_cursor(asked)  # a reload that reads no new catalog is not asked for again and again
    timer = threading.Timer(_DELAY, _reload, (origin,))
    timer.daemon = True
    timer.start()
    return dg.SkipReason(f"came or went: {shown}; the definitions are loaded again")


def _reload(origin: GrpcServerCodeLocationOrigin) -> None:
    """Has the code server load its code in a new process; runs under way end in the old one."""
    try:
        client = DagsterGrpcClient(origin.port, origin.socket, origin.host, use_ssl=bool(origin.use_ssl))
        client.reload_code(timeout=_RELOAD_TIMEOUT)
    except Exception as error:  # noqa: BLE001 (of gRPC; a server of another kind cannot reload)
        _LOG.warning("the definitions could not be loaded again, choose Reload in Dagster's Deployment page: %s", error)
