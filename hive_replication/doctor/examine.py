"""Examining both sides of a policy."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from hive_replication.connect import Connection, Reachable, reach
from hive_replication.doctor.encryption import encryption
from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.doctor.hdfs import defaults, kinds
from hive_replication.doctor.kerberos import kerberos
from hive_replication.doctor.outside import outside
from hive_replication.doctor.patterns import database_findings, pattern_findings
from hive_replication.doctor.preserved import preserved
from hive_replication.doctor.quotas import quotas
from hive_replication.doctor.roots import any_down, roots
from hive_replication.doctor.settings import source_settings, target_settings
from hive_replication.doctor.snapshots import snapshots
from hive_replication.doctor.versions import pair_findings, version_findings
from hive_replication.doctor.webhdfs import webhdfs
from hive_replication.doctor.writable import CLOCK, directories, named_directories, warehouse_of, writable
from hive_replication.dump.source import SOURCE_FOR
from hive_replication.dump.source_boundary import not_its_own
from hive_replication.errors import ReplicationError
from hive_replication.lag import MOST_EVENTS, LagReader
from hive_replication.load.operations.transactions import why_unable
from hive_replication.load.replica.managed_location import elsewhere, without_external
from hive_replication.load.replica.own_location import own_location
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

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
    yield from _caught("source", kerberos("source", source.policy.source))
    yield from (found := roots(source.storage, "source"))
    yield from (version := _metastore(source.metastore, "source", reached.source))
    if version[0].verdict == "ok":
        yield from _caught("source", encryption("source", source.policy.source))
        yield from _caught("source", _source(connection, storage=not any_down(found), target=not reached.target))


def _target_side(connection: Connection, reached: Reachable) -> Iterator[Finding]:
    target = connection.target
    yield from _caught("target", kerberos("target", target.policy.target))
    yield from (found := roots(target.storage, "target"))
    yield from (version := _metastore(target.metastore, "target", reached.target))
    if version[0].verdict == "ok":
        yield from _caught("target", encryption("target", target.policy.target))
        yield from _caught("target", _target(connection, storage=not any_down(found), source=not reached.source))


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


def _source(connection: Connection, *, storage: bool, target: bool) -> Iterator[Finding]:
    """What a source that answers says; ``storage`` and ``target`` are whether these do, too."""
    source = connection.source
    behind, gaps = _lags(connection) if target else (0.0, [])
    yield from source_settings(source.metastore.config_value, behind)
    yield from gaps
    yield _log(source.metastore)
    yield from webhdfs(source.storage, "source", None if source.policy.metadata_only else connection.target.storage)
    yield from defaults(source.storage, "source")
    yield from database_findings(connection.patterns)
    for database in source.policy.databases:
        yield from _database(connection, database, storage=storage)
    yield from _patterns(connection)
    if storage and (root := source.cm_root()):
        yield _listable(source.storage, root, "cmroot access")


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
        if found.gap:
            advice = "nothing to do: the next window compares the database and replicates the differences"
            if found.cure:
                findings.append(error(found.hidden or "target", f"state of {found.database}", found.gap, found.cure))
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


def _database(connection: Connection, name: str, *, storage: bool) -> Iterator[Finding]:
    source, policy = connection.source, connection.target.policy
    check = f"database {name}"
    found = source.metastore.database(name)
    if found is None:
        yield warning("source", check, "absent", "create it, or take it out of the policy")
        return
    if (found.parameters or {}).get(SOURCE_FOR):
        yield ok("source", check, f"{SOURCE_FOR} is set")
    else:
        yield ok("source", check, f"the first REPL DUMP sets {SOURCE_FOR}, from when on deleted files are kept in cmroot")
    if (own := own_location(found, source.metastore)) and policy.target_of(name) not in policy.locations:
        advice = f"set locations in the policy, {policy.target_of(name)}: <directory>, if the replica is to have one of its own"
        yield warning("source", check, f"lies at {own}; the target's metastore chooses where its replica lies", advice)
    for reason in not_its_own(policy, found, source.metastore.config_value):
        advice = "name the directory in source.paths if the database's data is there, or give the database another location"
        yield error("source", check, f"its directory does not count as its own, objects in it are held: {reason}", advice)
    if storage and found.locationUri:
        yield (listed := _listable(source.storage, found.locationUri, f"read {name}"))
        if listed.verdict == "ok":
            yield from kinds(source.storage, "source", name, found.locationUri, source.policy.includes)
            yield from snapshots(connection, name)


def _patterns(connection: Connection) -> Iterator[Finding]:
    """Whether each pattern of tables matches one."""
    policy, metastore = connection.source.policy, connection.source.metastore
    there = [name for name in policy.databases if metastore.database(name) is not None]
    names = [table for name in there for table in metastore.table_names(name)]
    yield from pattern_findings({"tables": policy.tables, "exclude": policy.exclude}, names)


def _listable(storage: Storage, directory: str, check: str) -> Finding:
    try:
        storage.ls(directory)
    except ReplicationError as problem:
        advice = f"let this user read {directory}, and name its store under source.roots"
        return error("source", check, str(problem), advice)
    return ok("source", check, directory)


def _target(connection: Connection, *, storage: bool, source: bool) -> Iterator[Finding]:
    """What a target that answers says; ``storage`` and ``source`` are whether these do, too."""
    target = connection.target
    yield from target_settings(target.metastore.config_value, target.metastore.features.major)
    if source:
        yield from pair_findings(connection.source.metastore.features, target.metastore.features)
    yield _lock(target.metastore)
    acid = source and connection.source.acid
    if acid:
        yield _transactions(target.metastore)
    yield from _homes(target, acid=acid)
    if storage:
        yield from webhdfs(target.storage, "target", None if target.policy.metadata_only else connection.source.storage)
        yield from defaults(target.storage, "target")
        warehouse = warehouse_of(target)
        for what, directory in directories(target, more=bool(connection.patterns.databases)):
            yield from writable(target.storage, directory, "target", f"write to {what}")
        yield from preserved(target.storage, target.policy, warehouse)
        yield from _space(target.storage, warehouse)
        yield from _replicas(connection, warehouse)


def _homes(target: Target, *, acid: bool) -> Iterator[Finding]:
    """Whether the metastore takes tables in target databases' directories, transactional ones if they are replicated."""
    for name in map(target.policy.target_of, target.policy.databases):
        found = target.metastore.database(name)
        if acid and found and (reason := elsewhere(found)):
            yield error("target", f"directory of {name}", reason, "drop the database, so that the first load creates it")
        if found and (reason := without_external(found, target.metastore.config_value)):
            yield warning(
                "target", f"directory of {name}", reason, "create it elsewhere, if external tables are to be replicated"
            )


def _replicas(connection: Connection, warehouse: str) -> Iterator[Finding]:
    """The directories that loads write to, and what lies in others."""
    target, locations = connection.target, [warehouse, *(one for _, one in named_directories(connection.target.policy))]
    for name in map(target.policy.target_of, target.policy.databases):
        found = target.metastore.database(name)
        if found and found.locationUri and target.storage.holds(found.locationUri):
            locations.append(found.locationUri)
            yield from kinds(target.storage, "target", name, found.locationUri, target.policy.includes)
            yield from _caught("target", outside(target, found))
    yield from quotas(target.storage, "target", locations)


def _lock(metastore: Metastore) -> Finding:
    try:
        with MetastoreLock(metastore, f"doctor_{secrets.token_hex(4)}"):
            return ok("target", "locks", "the metastore grants and releases locks")
    except ReplicationError as problem:
        return error("target", "locks", str(problem), "start the metastore with its transaction tables (schematool -initSchema)")


def _transactions(metastore: Metastore) -> Finding:
    """Whether the target can hold transactional tables, and its readers see whole transactions as far as the metastore knows."""
    check = "transactional tables"
    if unable := why_unable(metastore):
        return error("target", check, unable, "set acid: {replicate: false} in the policy, or let the target be of Hive 4")
    manager = metastore.config_value("hive.txn.manager", "")
    shown = f"hive.txn.manager={manager} at the metastore"
    if manager.endswith("DbTxnManager"):
        return ok("target", check, shown)
    advice = (
        "set hive.txn.manager=org.apache.hadoop.hive.ql.lockmgr.DbTxnManager and hive.support.concurrency=true for the target's "
        "HiveServer2, which without them reads no transactional table; what is set there the metastore does not know"
    )
    return warning("target", check, shown, advice)


def _space(storage: Storage, directory: str) -> Iterator[Finding]:
    space = storage.space(directory)
    if space is None:
        return
    shown = f"{space.free / _GIB:,.1f} of {space.total / _GIB:,.1f} GiB free"
    if space.free < _FREE * space.total:
        yield warning("target", "free space", shown, "make room: an overwrite needs the room of old and new data")
    else:
        yield ok("target", "free space", shown)
