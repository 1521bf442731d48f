"""The sensor on the catalog: reloads the code location when tables or databases appear on the source or disappear from it.

New tables are replicated without assets of their own, too; new databases only once they have assets.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator, Mapping

import dagster as dg

from hive_replication.connect.databases import resolved
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.dagster_private import DagsterGrpcClient, GrpcServerCodeLocationOrigin
from repl_assets.typed import running_sensor
from sensors.connections import ATTEMPTS, TIMEOUT

_INTERVAL = 60
_DELAY = 2.0  # seconds: the tick that requests the reload ends first
_RELOAD_TIMEOUT = 300  # seconds
_SHOWN = 3
_LOG = logging.getLogger("dagster")


def catalog_sensor(policy: Policy, known: Mapping[str, frozenset[str]]) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        policy: as written, with its database patterns.
        known: tables in the present definitions, by source database.
    """

    @running_sensor(
        name=Names.of(policy).local("catalog"),
        description="Reloads the definitions when tables or databases appear on the source or disappear from it",
        interval=_INTERVAL,
    )
    def catalog(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        with Metastore.of(policy.source, timeout=TIMEOUT, retries=ATTEMPTS) as metastore:
            found = sorted(changes(metastore, policy, known))
        return _answer(context, found)

    return catalog


def changes(metastore: Metastore, policy: Policy, known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Names of tables and databases that appeared or disappeared since the definitions were loaded."""
    present = set(metastore.databases())
    for database in sorted(present.intersection(resolved(policy, metastore).databases)):
        if database not in known:
            yield database
            continue
        tables = set(filter(policy.includes, metastore.table_names(database)))
        yield from (f"{database}.{table}" for table in tables ^ known[database])
    yield from known.keys() - present


def _answer(context: dg.SensorEvaluationContext, found: list[str]) -> dg.SkipReason:
    if not found:
        return dg.SkipReason("the definitions are up to date")
    shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    fingerprint = hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
    origin = context.code_location_origin
    if context.cursor == fingerprint or not isinstance(origin, GrpcServerCodeLocationOrigin):
        return dg.SkipReason(f"changed: {shown}; run dg utils refresh-defs-state, then Reload on Dagster's Deployment page")
    context.update_cursor(fingerprint)  # one reload for one change, even if it fails
    timer = threading.Timer(_DELAY, _reload, (origin,))
    timer.daemon = True
    timer.start()
    return dg.SkipReason(f"changed: {shown}; the definitions are being reloaded")


def _reload(origin: GrpcServerCodeLocationOrigin) -> None:
    """Makes the code server load its code in a new process; runs in progress finish in the old one."""
    try:
        client = DagsterGrpcClient(origin.port, origin.socket, origin.host, use_ssl=bool(origin.use_ssl))
        client.reload_code(timeout=_RELOAD_TIMEOUT)
    except Exception as error:  # noqa: BLE001 (gRPC raises its own; other kinds of servers cannot reload)
        _LOG.warning("the definitions could not be reloaded, choose Reload on Dagster's Deployment page: %s", error)
