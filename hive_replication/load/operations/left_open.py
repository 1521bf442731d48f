"""The end of what stands for a source's transactions, where no event of the source will ever end it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress

from hive_replication.acid.directories import AcidDirectory
from hive_replication.errors import LockLost, ReplicationError, Unreachable
from hive_replication.load.layout.directories import as_committed
from hive_replication.load.layout.move_to_retired import retire
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.advance_idle import open_replayed
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.open_writers import transactional_tables, writers, writers_of
from hive_replication.load.replica.state import ReplicaState, is_ours, object_id
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

    Files of theirs are deleted first. Hive does not know where they wrote (``TXN_COMPONENTS``): so it soon forgets that they were
    aborted (``AcidTxnCleanerService``), and takes their write ids for committed from then on. What shows a new table stays: its
    write id has files of others.

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
        feeds = target.feeds(database)
        whole = frozenset[int]() if feeds else metastore.snapshots()  # replicas of the database are told of no files of these
        for name in names & tables.keys():
            if own := {id_ for one, ids in written.items() if one not in whole for table, id_ in ids if table == name}:
                _delete_written(target, database, tables[name], own, check, _beside(tables, name))
        if feeds:
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


def retire_not_given_out(
    target: Target, database: str, source: str, evid: int, check: Callable[[], None], *, half_made: bool = True
) -> None:
    """Retires what was copied for write ids that were never given out: the next writers of the tables would get these.

    The files of all transactions of a lane are copied at once, before the write ids of each are given out, and those of a new
    table before it gets any. Nobody reads them, until somebody else's write has such an id: it shows them, or is hidden by their
    base. They are moved and not deleted: a metastore that was restored from a backup knows less than was given out.

    Args:
        target: the target side.
        database: target database.
        source: identity of the source, whose replicas alone are looked at.
        evid: event id that they are retired for.
        check: raises if the lock is lost; called before each removal of data.
        half_made: also of tables that an interrupted load of objects was making, which goes on with it.
    """
    metastore = target.metastore
    tables = transactional_tables(metastore, database) if metastore.features.major >= 4 else {}
    for name, table in tables.items():
        if not is_ours(table, source) or not (half_made or object_id(table)):
            continue
        highest, found = metastore.max_write_id(database, name), _written(target, table, _beside(tables, name))
        if above := [(uri, one) for uri, one in found if _first(one) > highest]:
            location = boundary_of(target, database).location
            highest = metastore.max_write_id(database, name)  # again: who wrote one of these was given his before
            for uri in (uri for uri, one in above if _first(one) > highest):
                check()
                _retire_or_tell(target, location, uri, evid)


def _retire_or_tell(target: Target, location: str, uri: str, evid: int) -> None:
    """Retires a directory; one that cannot be, as out of an encryption zone, keeps no database closed."""
    try:
        why = "" if retire(target.storage, location, uri, evid) else f"it lies outside {location}"
    except (LockLost, Unreachable):
        raise
    except ReplicationError as error:
        why = str(error)
    if why:
        _LOG.warning("%s shows what was not committed once its write id is given out: delete it by hand (%s)", uri, why)


def end_given_up(target: Target, database: str, source: str, check: Callable[[], None], before: ReplicaState, now: str) -> None:
    """Ends what stands for a source's transactions where a policy replicates none any more, so that no dump has their ends.

    Tables that stay are written by whom they are left to from then on.

    Args:
        target: the target side.
        database: target database.
        source: identity of the source.
        check: raises if the lock is lost; called before each end.
        before: state of the replica, which says with which tables it was made.
        now: with which it is made from here on.
    """
    had = before.scope
    if had != now and had and now and PolicyScope.parse(had).transactions and not PolicyScope.parse(now).transactions:
        end_replayed(target, database, policy_of(source, database), check)
        retire_not_given_out(target, database, source, before.applied or 0, check)


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


def _delete_written(
    target: Target,
    database: str,
    table: Table,
    write_ids: Collection[int],
    check: Callable[[], None],
    beside: tuple[str, ...] = (),
) -> None:
    """Deletes what attempts at a commit have put into place: readers of the committed write ids would see a part of it."""
    boundary = boundary_of(target, database)

    def delete(uri: str) -> None:
        boundary.require_within(uri, object_name(database, table.tableName))
        check()  # who took the lock may have committed it since
        target.storage.delete(uri, recursive=True)

    found = _written(target, table, beside)
    own = [uri for uri, one in found if one.last in write_ids and (one.kind == "base" or one.first == one.last)]
    list(target.storage.threads.map(delete, own))


def _written(target: Target, table: Table, beside: tuple[str, ...]) -> Iterator[tuple[str, AcidDirectory]]:
    """Directories of a table that its writers, or loads, have made, each with its URI; of none that is not there any more.

    What lies outside the storage roots, or among another table's files, is not looked at: no load has written there.
    """
    partitions = target.metastore.partitions(table.dbName, table.tableName) if table.partitionKeys else ()

    def listed(directory: str) -> list[tuple[str, AcidDirectory]]:
        names = ((one.uri, paths.name(as_committed(one.uri.rstrip("/")))) for one in target.storage.ls(directory) if one.is_dir)
        found = ((uri, AcidDirectory.parsed(name)) for uri, name in names)
        return [(uri, one) for uri, one in found if one is not None and not one.visibility]

    places = [
        one for one in map(directory_of, (table, *partitions)) if target.storage.holds(one) and not f"{one}/".startswith(beside)
    ]
    for found in target.storage.threads.map(listed, places):
        yield from found


def _beside(tables: Mapping[str, Table], name: str) -> tuple[str, ...]:
    """What the paths of other tables' files begin with."""
    return tuple(f"{directory_of(one)}/" for other, one in tables.items() if other != name)


def _first(one: AcidDirectory) -> int:
    """The first write id that shows a directory to readers."""
    return one.last if one.kind == "base" else one.first
