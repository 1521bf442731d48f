"""Whether snapshots can be made of external tables at the source, where the policy asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from hive_replication.connect import Connection
from hive_replication.doctor.finding import Finding, ok, warning
from hive_replication.drift.snapshots import NoSnapshots, snapshots_of
from hive_replication.drift.spared import is_deleted_with_its_table
from hive_replication.errors import Refused
from hive_replication.metastore.table_kinds import is_external
from hive_replication.process import account
from hive_replication.storage import paths

_SHOWN = 5  # directories that are named


def snapshots(connection: Connection, database: str) -> Iterator[Finding]:
    """Of which directories snapshots are made, and of which tables none can be.

    Args:
        connection: both sides.
        database: source database.
    """
    source, check = connection.source, f"snapshots of {database}"
    if not (source.policy.drift and source.policy.drift.snapshots):
        return
    names = filter(source.policy.includes, source.metastore.table_names(database))
    tables = [one for one in source.metastore.tables(database, names) if is_external(one) and one.sd.location]
    found, made, lacking, why = snapshots_of(source, connection.target, database, 0.0), set[str](), list[str](), ""
    for table in tables:
        try:
            location = paths.normalise(table.sd.location or "")
        except Refused:  # its location holds the table, whatever snapshots there are
            continue
        try:
            made.add(found.directory_of(location, deleted=is_deleted_with_its_table(table)))
        except NoSnapshots as problem:
            why = why or str(problem)
            lacking.append(location)
    if made:
        yield ok("source", check, f"of {_named(sorted(made))}; external tables there: {len(tables) - len(lacking)}")
    if lacking:
        advice = (
            f"hdfs dfsadmin -allowSnapshot {quote(paths.split(lacking[0])[2])}, or a directory above it, which the account "
            f"{account()} has to own; until then all their directories are listed"
        )
        yield warning("source", check, f"none of external tables ({len(lacking)}): {_named(lacking)}; {why}", advice)


def _named(uris: list[str]) -> str:
    more = f" and {len(uris) - _SHOWN} more" if len(uris) > _SHOWN else ""
    return ", ".join(paths.split(one)[2] for one in uris[:_SHOWN]) + more
