"""The end of what stands for a source's transactions, where no event of the source will ever end it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from contextlib import suppress

from hive_replication.acid.directories import AcidDirectory
from hive_replication.load.layout.directories import as_committed
from hive_replication.load.replica.advance_idle import open_replayed
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.open_writers import transactional_tables, writers, writers_of
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.types import Table, directory_of
from hive_replication.policy import PolicyScope
from hive_replication.storage import paths

_LOG = logging.getLogger(__name__)


def end_replayed(
    target: Target,
    database: str,
    policy: str,
    check: Callable[[], None],
    note: Callable[[Collection[str]], None] = lambda _: None,
    *,
    only: str | None = None,
) -> None:
    """Ends what stands for a source's transactions: aborts it, or commits it with no data in a database that is a source itself.

    Readers see the same, but of an abort Hive's log names the source's transaction, so that a replica of the database would keep
    its own one open. It comes before any table is dropped, by which it would no longer be found after a crash. What wrote only to
    tables that are gone is ended, too (:func:`end_left`).

    Args:
        target: the target side.
        database: target database.
        policy: whose transactions they are (:func:`hive_replication.load.operations.transactions.policy_of`).
        check: raises if the lock is lost; called before each end, and each removal of data.
        note: called before with the tables that they write to, of which the ends never come any more.
        only: a table, which may be gone: those that write to others, too, stay open.

    Raises:
        Refused: data of theirs lies outside the directories that the policy allows.
    """
    metastore, named = target.metastore, () if only is None else (only,)
    # Of one table that alone is asked first: this comes before each drop, and nearly always nothing is open.
    writing = writers(metastore, database) if only is None else writers_of(metastore, database, named)
    found = metastore.replayed_among(writing) if writing else []  # others are of whoever writes to tables of their own
    tables = transactional_tables(metastore, database) if found else {}
    written = {one: set(metastore.write_ids_of(one, database, {*tables, *named})) for one in found}
    if only is not None:
        written = {one: ids for one, ids in written.items() if {name for name, _ in ids} == {only}}
    if written:
        stay = () if only is None else _staying(metastore, database, {*tables, *named}, written)
        names = {name for ids in written.values() for name, _ in ids}
        note(names)
        shown = ", ".join(map(str, written))
        _LOG.warning("what stands for open transactions of the source is ended: %s", shown, extra=about(database, only))
        if target.feeds(database):
            for name in names & tables.keys():
                own = {write_id for ids in written.values() for table, write_id in ids if table == name}
                _delete_written(target, database, tables[name], own, check)
            _commit_without_data(target, database, policy, written, check, stay)
        else:
            metastore.abort_replayed(policy, list(written), check, stay)
    if only is not None:
        return
    end_left(target, database, policy, check)
    if left := writers(metastore, database):
        _LOG.warning("transactions of %s stay open: %s", database, ", ".join(map(str, left)), extra=about(database))


def end_left(target: Target, database: str, policy: str, check: Callable[[], None]) -> None:
    """Ends what stands for a source's transactions whose tables go, or are gone already: by these it is not found.

    No end of the source's is loaded any more. Were it left open, Hive would mark the database as incompatible days later, or,
    where there is none of the name, time out no transaction at all.

    Args:
        target: the target side.
        database: target database, which need not exist.
        policy: whose transactions they are; those of other policies are of other names.
        check: raises if the lock is lost; called before each end.
    """
    metastore = target.metastore
    found = open_replayed(target) if metastore.features.major >= 4 else frozenset[int]()
    if not found:
        return
    if target.feeds(database):
        _commit_without_data(target, database, policy, found, check)
    else:
        metastore.abort_replayed(policy, found, check)
    if ended := sorted(found - open_replayed(target)):
        shown = ", ".join(map(str, ended))
        _LOG.warning(
            "what stands for transactions of the source, which nothing else ends, is ended: %s", shown, extra=about(database)
        )


def end_snapshots(target: Target, database: str, policy: str, check: Callable[[], None]) -> None:
    """Ends what shows new tables, which a load that was killed has left open: all that they show is in place by then.

    Args:
        target: the target side.
        database: target database.
        policy: whose transactions they are; those of other policies are of other names.
        check: raises if the lock is lost; called before each end.
    """
    if target.metastore.features.major >= 4 and (found := open_replayed(target)):
        _commit_without_data(target, database, policy, target.metastore.snapshots() & found, check)


def end_given_up(target: Target, database: str, policy: str, check: Callable[[], None], before: str, now: str) -> None:
    """Ends what stands for a source's transactions where a policy replicates none any more, so that no dump has their ends.

    Args:
        target: the target side.
        database: target database.
        policy: whose transactions they are.
        check: raises if the lock is lost; called before each end.
        before: with which tables the replica was made, "" where that is not known.
        now: with which it is made from here on.
    """
    if before != now and before and now and PolicyScope.parse(before).transactions and not PolicyScope.parse(now).transactions:
        end_replayed(target, database, policy, check)


def _staying(metastore: Metastore, database: str, names: Collection[str], ended: Collection[int]) -> list[int]:
    """Open transactions that stand for a source's and write to tables of a database, without those that are ended."""
    others = metastore.replayed_among(metastore.open_transactions().difference(ended))
    return [one for one in others if any(metastore.write_ids_of(one, database, names))]


def _commit_without_data(
    target: Target,
    database: str,
    policy: str,
    transactions: Collection[int],
    check: Callable[[], None],
    stay: Collection[int] = (),
) -> None:
    for one in target.metastore.sources_of(policy, transactions, check, stay):
        with suppress(TransactionGone):  # it was aborted
            target.metastore.replay_commit(policy, one, database, ())


def _delete_written(target: Target, database: str, table: Table, write_ids: Collection[int], check: Callable[[], None]) -> None:
    """Deletes what attempts at a commit have put into place: readers of the committed write ids would see a part of it."""
    partitions = target.metastore.partitions(database, table.tableName) if table.partitionKeys else ()
    boundary = boundary_of(target, database)

    def delete(directory: str) -> None:
        for status in target.storage.ls(directory):
            name = paths.name(as_committed(status.uri.rstrip("/")))
            found = AcidDirectory.parsed(name) if status.is_dir else None
            if found and not found.visibility and found.last in write_ids and (found.kind == "base" or found.first == found.last):
                boundary.require_within(status.uri, object_name(database, table.tableName))
                check()  # who took the lock may have committed it since
                target.storage.delete(status.uri, recursive=True)

    list(target.storage.threads.map(delete, [directory_of(one) for one in (table, *partitions)]))
