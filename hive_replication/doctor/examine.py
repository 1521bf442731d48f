"""Examining both sides of a policy."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from hive_replication.connect import Connection, Reachable, reach
from hive_replication.doctor.apart import apart
from hive_replication.doctor.databases import Shown, homes, replicas, shown, source_databases
from hive_replication.doctor.encryption import encryption
from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.doctor.hdfs import defaults
from hive_replication.doctor.kerberos import kerberos
from hive_replication.doctor.patterns import database_findings
from hive_replication.doctor.preserved import preserved
from hive_replication.doctor.quotas import quotas
from hive_replication.doctor.roots import down, roots
from hive_replication.doctor.settings import source_settings, target_settings
from hive_replication.doctor.versions import pair_findings, version_findings
from hive_replication.doctor.webhdfs import webhdfs
from hive_replication.doctor.writable import CLOCK, directories, listable, named_directories, warehouse_of, writable
from hive_replication.dump.source import Source
from hive_replication.errors import ReplicationError
from hive_replication.lag import MOST_EVENTS, LagReader
from hive_replication.load.operations.transactions import why_unable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.policy.warehouse import Warehouse
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

_CM_ROOT, _TRANSACTIONAL = "cmroot access", "transactional tables"
_FREE = 0.1  # part of a store that should be free
_GIB = 2**30


def examine(connection: Connection, reached: Reachable | None = None, *, dumps: bool = True) -> Iterator[Finding]:
    """Examines everything that replication needs: source, target and dump root at the same time, told in this order.

    Args:
        connection: both sides. A probe file is written to where target databases will be created, to what else the policy names
            on the target, and to the dump root, and removed again.
        reached: which metastores answer, where that is known already.
        dumps: whether the dump root is examined.
    """
    reached = reached or reach(connection.source.policy)
    with ThreadPoolExecutor(3, "doctor") as threads:
        parts = {
            "source": partial(_source_side, connection, reached),
            "target": partial(_target_side, connection, reached),
            **({"dump root": partial(_dump_root, connection)} if dumps else {}),
        }
        for found in threads.map(_all, parts, parts.values()):
            yield from found


def _all(side: str, part: Callable[[], Iterator[Finding]]) -> list[Finding]:
    return list(_caught(side, part()))


def _source_side(connection: Connection, reached: Reachable) -> Iterator[Finding]:
    source = connection.source
    other = None if source.policy.metadata_only else connection.target.storage
    yield from (found := [*_stores("source", source.policy.source, source.storage, other)])
    yield from (version := _metastore(source.metastore, "source", reached.source))
    if version[0].verdict == "ok":
        yield from _source(connection, down(found), target=not reached.target)


def _target_side(connection: Connection, reached: Reachable) -> Iterator[Finding]:
    target = connection.target
    other = None if target.policy.metadata_only else connection.source.storage
    yield from (found := [*_stores("target", target.policy.target, target.storage, other)])
    yield from (version := _metastore(target.metastore, "target", reached.target))
    if version[0].verdict == "ok":
        yield from _target(connection, down(found), source=not reached.source)


def _stores(side: str, warehouse: Warehouse, storage: Storage, other: Storage | None) -> Iterator[Finding]:
    """What is known of a side without its metastore."""
    yield from apart(side, "kerberos", kerberos(side, warehouse))
    yield from roots(storage, side)
    yield from apart(side, "WebHDFS", webhdfs(storage, side, other))
    yield from apart(side, "HDFS's defaults", defaults(storage, side))
    yield from apart(side, "encryption", encryption(side, warehouse))


def _dump_root(connection: Connection) -> Iterator[Finding]:
    storage = connection.store.storage
    found = [one for one in roots(storage, "dump root") if one.verdict == "error"]
    yield from found or writable(storage, connection.store.root, "dump root", "write")
    if not found:
        yield from quotas(storage, "dump root", [connection.store.root])


def _caught(side: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """What was found until a server stopped answering, and then that."""
    try:
        yield from findings
    except (ReplicationError, OSError) as problem:
        yield error(side, "stopped", str(problem), "what follows was not examined: correct it, and run hive-repl doctor again")


def _metastore(metastore: Metastore, side: str, problem: str) -> list[Finding]:
    """Its version, or that it does not answer."""
    advice = f"correct {side}.metastore in the policy, or start it"
    if problem:
        return [error(side, "metastore", problem, advice)]
    _LOG.debug("asks the metastore of the %s: %s", side, metastore.uri)
    try:
        version, uuid = metastore.version(), metastore.uuid()
    except ReplicationError as failure:
        return [error(side, "metastore", str(failure), advice)]
    found = [ok(side, "metastore", f"Hive {version} at {metastore.uri}"), *version_findings(side, version)]
    if not uuid:
        advice = "keep its address the same: without an id of its own the metastore is known by it"
        found.append(warning(side, "metastore id", "none (Hive 2)", advice))
    return found


def _source(connection: Connection, is_down: Callable[[str], bool], *, target: bool) -> Iterator[Finding]:
    """What a source that answers says; ``target`` is whether that does, too."""
    source = connection.source
    behind, gaps = _lags(connection) if target else (0.0, [])
    yield from apart("source", "settings", source_settings(source.metastore.config_value, behind))
    yield from gaps
    yield _log(source.metastore)
    yield from database_findings(connection.patterns)
    yield from source_databases(connection, is_down)
    yield from apart("source", _CM_ROOT, _cm_root(source, is_down))


def _cm_root(source: Source, is_down: Callable[[str], bool]) -> Iterator[Finding]:
    if (root := source.cm_root()) and not is_down(root):
        yield listable(source.storage, root, _CM_ROOT)


def _lags(connection: Connection) -> tuple[float, list[Finding]]:
    """Seconds that the slowest replica is behind, and what is wrong with the log's reach."""
    behind, findings = 0.0, list[Finding]()
    try:
        lags = LagReader(connection.source, connection.target, most_events=MOST_EVENTS).read_on()
    except ReplicationError as problem:
        advice = "correct what the message says; until then the lag of the replicas is not known"
        return behind, [warning("source", "lag", str(problem), advice)]
    for found in lags:
        behind = max(behind, found.seconds_behind or 0.0)
        if found.gap and not found.hidden:  # that is found where its databases are examined
            advice = "nothing to do: the next window compares the database and replicates the differences"
            if found.cure:
                findings.append(error("target", f"state of {found.database}", found.gap, found.cure))
                continue
            findings.append(warning("source", f"log reaches {found.database}", found.gap, advice))
    return behind, findings


def _log(metastore: Metastore) -> Finding:
    """The log can be read, and its newest event is not of the future."""
    try:
        current = metastore.current_event_id()
        rows = list(metastore.events(current - 1, current)) if current else []
    except ReplicationError as problem:
        return error("source", "read the log", str(problem), "change what the message says, and restart the metastore")
    ahead = rows[0].eventTime - time.time() if rows else 0.0
    if ahead > CLOCK:
        return warning(
            "source", "clock", f"the newest event is {ahead:.0f} s in the future", "set the clocks by NTP: lags are wrong"
        )
    return ok("source", "read the log", f"newest event {current}")


def _target(connection: Connection, is_down: Callable[[str], bool], *, source: bool) -> Iterator[Finding]:
    """What a target that answers says; ``source`` is whether that does, too."""
    target, acid = connection.target, False
    major = target.metastore.features.major
    yield from apart("target", "settings", target_settings(target.metastore.config_value, major))
    if source:
        with suppress(ReplicationError):  # that it has stopped answering is found where it is examined
            yield from pair_findings(connection.source.metastore.features, target.metastore.features)
            acid = connection.source.acid
    yield _lock(target.metastore)
    if acid:
        yield from apart("target", _TRANSACTIONAL, _transactions(target.metastore))
    there, hidden = shown(target.metastore, "target", map(target.policy.target_of, target.policy.databases))
    yield from hidden
    yield from homes(target, there, acid=acid)
    yield from apart("target", "write", _written(connection, there, is_down))
    yield from replicas(target, there, is_down)


def _written(connection: Connection, there: Shown, is_down: Callable[[str], bool]) -> Iterator[Finding]:
    """Where databases are created, and what else loads write to."""
    target, warehouse = connection.target, warehouse_of(connection.target)
    named = [*named_directories(target.policy)]
    written = [*directories(target, there, more=bool(connection.patterns.databases))]
    for what, directory in written:
        if not is_down(directory):
            yield from writable(target.storage, directory, "target", f"write to {what}")
    homes_to_be = [directory for what, directory in written if (what, directory) not in named]
    home = [*homes_to_be, *target.policy.locations.values(), warehouse][0]  # what else the policy names may be another store
    if not is_down(home):
        yield from preserved(target.storage, target.policy, home)
        yield from _space(target.storage, home)
    beside = (warehouse, *(directory for _, directory in named))
    yield from quotas(target.storage, "target", (one for one in beside if not is_down(one)))


def _lock(metastore: Metastore) -> Finding:
    try:
        with MetastoreLock(metastore, f"doctor_{secrets.token_hex(4)}"):
            return ok("target", "locks", "the metastore grants and releases locks")
    except ReplicationError as problem:
        return error("target", "locks", str(problem), "start the metastore with its transaction tables (schematool -initSchema)")


def _transactions(metastore: Metastore) -> Iterator[Finding]:
    """Whether the target can hold transactional tables, and its readers see whole transactions as far as the metastore knows."""
    if unable := why_unable(metastore):
        advice = "set acid: {replicate: false} in the policy, or let the target be of Hive 4"
        yield error("target", _TRANSACTIONAL, unable, advice)
        return
    manager = metastore.config_value("hive.txn.manager", "")
    told = f"hive.txn.manager={manager} at the metastore"
    if manager.endswith("DbTxnManager"):
        yield ok("target", _TRANSACTIONAL, told)
        return
    advice = (
        "set hive.txn.manager=org.apache.hadoop.hive.ql.lockmgr.DbTxnManager and hive.support.concurrency=true for the target's "
        "HiveServer2, which without them reads no transactional table; what is set there the metastore does not know"
    )
    yield warning("target", _TRANSACTIONAL, told, advice)


def _space(storage: Storage, directory: str) -> Iterator[Finding]:
    check = "free space"
    try:
        space = storage.space(directory)
    except (ReplicationError, OSError) as problem:  # that its store does not answer, or is not named, is a finding of its own
        yield ok("target", check, f"not told: {problem}")
        return
    if space is None:
        return
    told = f"{space.free / _GIB:,.1f} of {space.total / _GIB:,.1f} GiB free"
    if space.free < _FREE * space.total:
        yield warning("target", check, told, "make room: an overwrite needs the room of old and new data")
    else:
        yield ok("target", check, told)
