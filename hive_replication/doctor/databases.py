"""Databases of a policy on both sides; one that a metastore refuses to show keeps no other from being examined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from hive_replication.connect import Connection
from hive_replication.doctor.apart import apart
from hive_replication.doctor.finding import Finding, error, ok, warning
from hive_replication.doctor.hdfs import kinds
from hive_replication.doctor.outside import outside, shared_root
from hive_replication.doctor.patterns import pattern_findings
from hive_replication.doctor.quotas import quotas
from hive_replication.doctor.snapshots import snapshots
from hive_replication.doctor.writable import listable
from hive_replication.dump.source import SOURCE_FOR
from hive_replication.dump.source_boundary import not_its_own
from hive_replication.errors import MetastoreError
from hive_replication.lag import HIDDEN
from hive_replication.load.replica.managed_location import elsewhere, without_external
from hive_replication.load.replica.own_location import own_location
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database

#: Databases by name as a metastore shows them, None where there is none; those that it refuses to show are not among them.
Shown = Mapping[str, Database | None]


def shown(metastore: Metastore, side: str, names: Iterable[str]) -> tuple[Shown, list[Finding]]:
    """Databases, and a finding for each that the metastore refuses to show.

    Args:
        metastore: of the side.
        side: of the findings.
        names: of the databases.

    Raises:
        Unreachable: it has stopped answering.
    """
    there, hidden = dict[str, Database | None](), list[Finding]()
    for name in names:
        try:
            there[name] = metastore.database(name)
        except MetastoreError as problem:
            hidden.append(error(side, f"database {name}", str(problem), HIDDEN.format(side=side)))
    return there, hidden


def source_databases(connection: Connection, is_down: Callable[[str], bool]) -> Iterator[Finding]:
    """The databases of the source, and whether each pattern of tables matches one.

    Args:
        connection: both sides.
        is_down: whether a URI lies under a root that does not answer.

    Raises:
        Unreachable: the metastore has stopped answering.
    """
    metastore, databases = connection.source.metastore, connection.source.policy.databases
    there, hidden = shown(metastore, "source", databases)
    yield from hidden
    for name, found in there.items():
        check = f"database {name}"
        yield from apart("source", check, _source_database(connection, name, found, check, is_down))
    yield from _patterns(connection, there)


def homes(target: Target, there: Shown, *, acid: bool) -> Iterator[Finding]:
    """Whether the metastore takes tables in target databases' directories, transactional ones if they are replicated.

    Args:
        target: the target side.
        there: its databases.
        acid: whether transactional tables are replicated.

    Raises:
        Unreachable: the metastore has stopped answering.
    """
    for name, found in there.items():
        if found:
            check = f"directory of {name}"
            yield from apart("target", check, _home(target, found, check, acid=acid))


def replicas(target: Target, there: Shown, is_down: Callable[[str], bool]) -> Iterator[Finding]:
    """The directories of target databases, and what lies in others.

    Args:
        target: the target side.
        there: its databases.
        is_down: whether a URI lies under a root that does not answer.

    Raises:
        Unreachable: the metastore has stopped answering.
    """
    locations = list[str]()

    def replica(name: str, found: Database) -> Iterator[Finding]:
        location = found.locationUri or ""
        if location and target.storage.holds(location):
            if not is_down(location):
                locations.append(location)
                yield from kinds(target.storage, "target", name, location, target.policy.includes)
            yield from outside(target, found)

    yield from shared_root(target.policy, there)
    for name, found in there.items():
        if found:
            yield from apart("target", f"places of {name}", replica(name, found))
    yield from quotas(target.storage, "target", locations)


def _source_database(
    connection: Connection, name: str, found: Database | None, check: str, is_down: Callable[[str], bool]
) -> Iterator[Finding]:
    source, policy = connection.source, connection.target.policy
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
    if found.locationUri and not is_down(found.locationUri):
        yield (listed := listable(source.storage, found.locationUri, f"read {name}"))
        if listed.verdict == "ok":
            yield from kinds(source.storage, "source", name, found.locationUri, source.policy.includes)
            yield from apart("source", f"snapshots of {name}", snapshots(connection, name))


def _patterns(connection: Connection, there: Shown) -> Iterator[Finding]:
    policy, metastore = connection.source.policy, connection.source.metastore
    tables, unknown = list[str](), [name for name in policy.databases if name not in there]
    for name in (name for name, found in there.items() if found is not None):
        try:
            tables += metastore.table_names(name)
        except MetastoreError as problem:
            unknown.append(name)
            yield error("source", f"tables of {name}", str(problem), HIDDEN.format(side="source"))
    yield from pattern_findings({"tables": policy.tables, "exclude": policy.exclude}, tables, unknown)


def _home(target: Target, found: Database, check: str, *, acid: bool) -> Iterator[Finding]:
    if acid and (reason := elsewhere(found)):
        yield error("target", check, reason, "drop the database, so that the first load creates it")
    if reason := without_external(found, target.metastore.config_value):
        yield warning("target", check, reason, "create it elsewhere, if external tables are to be replicated")
