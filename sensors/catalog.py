"""The sensor on the catalog: reloads the code location when tables or databases appear on the source or disappear from it.

New tables are replicated without assets of their own, too; new databases only once they have assets. A reload reads the policies
again: one that cannot be loaded would leave the location without definitions, and so without sensors.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect.databases import resolved
from hive_replication.errors import BadRequest, MetastoreError, Refused, Unreachable
from hive_replication.load.replica.held_retries import delay, wait_left
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.dagster_private import DagsterGrpcClient, GrpcServerCodeLocationOrigin
from repl_assets.typed import running_sensor
from sensors.connections import ATTEMPTS, TIMEOUT

_INTERVAL = 60
_DELAY = 2.0  # seconds: the tick that requests the reload ends first
_RELOAD_TIMEOUT = 300  # seconds
_RETRY_DELAY = (60.0, 3600.0)  # seconds after a reload that left the same change
_SHOWN = 3
_GIVEN = 3  # reloads after which a database that has no assets yet is an error
_BY_HAND = "restart Dagster's code server (its webserver and daemon where those start it), which reads the source again"
_LOG = logging.getLogger("dagster")


@dataclass(frozen=True, slots=True)
class Asked:
    """The cursor: the reload that was asked for last.

    Args:
        change: fingerprint of the names that had appeared or disappeared; "" where nothing was asked since all was known.
        time: when, seconds since the epoch.
        attempts: reloads for this change; a metastore that did not answer during one leaves the definitions as they were.
    """

    change: str = ""
    time: float = 0.0
    attempts: int = 0


_ASKED = TypeAdapter(Asked)


def catalog_sensor(
    policy: Policy,
    known: Mapping[str, frozenset[str]],
    why_not: Callable[[], str],
    read_again: Callable[[], None] = lambda: None,
) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        policy: as written, with its database patterns.
        known: tables in the present definitions, by source database.
        why_not: why the definitions are not to be loaded again now, "" where they may be.
        read_again: lets the reload read the source, though that was done a short while ago.
    """

    @running_sensor(
        name=Names.of(policy).local("catalog"),
        description="Reloads the definitions when tables or databases appear on the source or disappear from it",
        interval=_INTERVAL,
    )
    def catalog(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        try:
            with Metastore.of(policy.source, timeout=TIMEOUT, retries=ATTEMPTS) as metastore:
                found = sorted(changes(metastore, policy, known))
        except (Unreachable, Refused) as error:  # an outage has an alarm of its own
            return dg.SkipReason(f"it is not known what has changed: {error}")
        return tick(context, found, why_not, time.time(), read_again)

    return catalog


def changes(metastore: Metastore, policy: Policy, known: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Names of tables and databases that appeared (``+``) or disappeared (``-``) since the definitions were loaded."""
    present = set(metastore.databases())
    for database in sorted(present.intersection(resolved(policy, metastore, TIMEOUT).databases)):
        if database not in known:
            yield f"+{database}"
            continue
        try:
            tables = set(filter(policy.includes, metastore.table_names(database)))
        except MetastoreError as error:
            _LOG.warning("tables of %s are not known: %s", database, error)
            continue
        yield from (f"+{database}.{table}" for table in tables - known[database])
        yield from (f"-{database}.{table}" for table in known[database] - tables)
    yield from (f"-{database}" for database in known.keys() - present)


def tick(
    context: dg.SensorEvaluationContext,
    found: Sequence[str],
    why_not: Callable[[], str],
    now: float,
    read_again: Callable[[], None] = lambda: None,
) -> dg.SkipReason:
    """One tick at a given time.

    Args:
        context: Dagster's.
        found: what has changed.
        why_not: as for :func:`catalog_sensor`.
        now: seconds since the epoch.
        read_again: as for :func:`catalog_sensor`.

    Raises:
        BadRequest: a new database has no assets, so nothing replicates it, and no reload gives it any.
    """
    if not found:
        context.update_cursor(_ASKED.dump_json(Asked()).decode())
        return dg.SkipReason("the definitions are up to date")
    shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    origin = context.code_location_origin
    change = hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]
    asked = _read(context.cursor)
    asked = asked if asked.change == change else Asked(change)
    rest = wait_left(asked.time + delay(asked.attempts, _RETRY_DELAY), _RETRY_DELAY, now) if asked.attempts else 0.0
    if not isinstance(origin, GrpcServerCodeLocationOrigin):
        if not rest:  # for the next code server that is started
            context.update_cursor(_ASKED.dump_json(Asked(change, now, asked.attempts + 1)).decode())
            read_again()
        return _not_reloaded(found, f"changed: {shown}; Dagster cannot reload the definitions from here: {_BY_HAND}")
    if rest:
        again = f"the code server was asked to reload the definitions, the next time is in {rest:.0f} s"
        text = f"changed: {shown}; {again}; or {_BY_HAND}"
        return _not_reloaded(found, text) if asked.attempts >= _GIVEN else dg.SkipReason(text)
    if reason := why_not():
        return _not_reloaded(found, f"changed: {shown}; the definitions are not reloaded: {reason}")
    context.update_cursor(_ASKED.dump_json(Asked(change, now, asked.attempts + 1)).decode())
    read_again()
    _reload_soon(origin)
    return dg.SkipReason(f"changed: {shown}; the code server is asked to reload the definitions")


def _not_reloaded(found: Sequence[str], text: str) -> dg.SkipReason:
    """What a tick says that helps nothing: tables are replicated all the same, new databases are not."""
    new = [name[1:] for name in found if name.startswith("+") and "." not in name]
    if new:
        raise BadRequest(f"{', '.join(new[:_SHOWN])}: not replicated, as the definitions do not have it; {text}")
    return dg.SkipReason(text)


def _read(cursor: str | None) -> Asked:
    try:
        return _ASKED.validate_json(cursor or "")
    except ValidationError:
        return Asked()


def _reload_soon(origin: GrpcServerCodeLocationOrigin) -> None:
    timer = threading.Timer(_DELAY, _reload, (origin,))
    timer.daemon = True
    timer.start()


def _reload(origin: GrpcServerCodeLocationOrigin) -> None:
    """Makes the code server load its code in a new process; runs in progress finish in the old one."""
    try:
        client = DagsterGrpcClient(origin.port, origin.socket, origin.host, use_ssl=bool(origin.use_ssl))
        before = client.get_server_id()
        client.reload_code(timeout=_RELOAD_TIMEOUT)
        if client.get_server_id() == before:
            _LOG.warning("the definitions were not reloaded, as a server of dagster api grpc cannot: %s", _BY_HAND)
    except Exception as error:  # noqa: BLE001 (gRPC raises its own; other kinds of servers cannot reload)
        _LOG.warning("the definitions could not be reloaded, choose Reload on Dagster's Deployment page: %s", error)
