"""A load of objects over a replica that was killed: whatever is loaded next, it is done first.

Until then the replica looks like one that stands before the dump, with some tables ahead, and neither is true: a transactional
table is made anew in several steps, and constraints and statistics have no state ids that tell which of their events are applied.
The database's state names the dump (``checkpoint``) from before the first change to after the last one.
"""

from __future__ import annotations

from dataclasses import replace

from hive_replication.dump.format.interface import DumpReader, DumpStore
from hive_replication.errors import BadRequest, Outdated, Refused, ReplicationError
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.dump_prefix import interrupted_until
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import is_ours, object_id
from hive_replication.load.untrusted_dump import opened


def interrupted(replica: TargetDatabase, store: DumpStore, reader: DumpReader, *, repair: bool = False) -> DumpReader | None:
    """The dump of a load that was killed, and that is to be done before another one.

    Args:
        replica: the target database, whose lock is held.
        store: where dumps are.
        reader: what is to be loaded.
        repair: whether that compares what stands at its event, too.

    Returns:
        The dump; None where there is none, or where what is to be loaded brings all that it has, or is that load itself.

    Raises:
        Refused: the dump cannot be read any more; or it is of a first bootstrap, and what is to be loaded is older.
        Unreachable: the storage does not answer.
    """
    state, header = replica.state, reader.header
    if not state.checkpoint or state.checkpoint == reader.directory or header.recovery:
        return None
    if state.applied is None:
        _require_newer(replica, store, reader)
        return None
    if state.undone is not None or state.failed_over or state.policy not in ("", replica.target.policy.name):
        return None
    objects = header.kind == "bootstrap"
    whole = objects and header.scope.table is None
    if whole and not interrupted_until(replica.target.storage, replica.location, state, header.to_evid):
        return None
    try:
        found = opened(store, state.checkpoint)
    except (BadRequest, Refused) as error:
        replica.write_state(replace(state, obstacle=str(error)))
        raise Refused(_advice(replica.name, state.checkpoint, header.scope.database, error)) from error
    same, until = objects and header.scope.table is not None and header.scope == found.header.scope, found.header.to_evid
    return None if same and covers(header.to_evid, until if repair else until + 1) else found


def _require_newer(replica: TargetDatabase, store: DumpStore, reader: DumpReader) -> None:
    """A first bootstrap that was killed begins again with its dump or a newer one.

    Tables that it brought would stand ahead of an older one: what they lack of keys and statistics comes by no event.
    """
    state, header = replica.state, reader.header
    if header.kind != "bootstrap" or header.scope.table is not None:
        return
    try:
        until = opened(store, state.checkpoint).header.to_evid
    except (BadRequest, Refused):
        until = None
    if until is not None and covers(header.to_evid, until):
        return
    metastore = replica.target.metastore
    tables = metastore.tables(replica.name, metastore.table_names(replica.name))
    ids = [object_id(one) for one in tables if is_ours(one, state.source)]
    until = max(ids, default=0) if until is None else until  # where that dump is gone, its tables tell
    if ids and not covers(header.to_evid, until):
        raise Outdated(
            f"the bootstrap of {replica.name!r} with {state.checkpoint}, up to event {until}, was interrupted, and "
            f"{reader.directory} is older: load that one again, or a new dump of {header.scope.database}; if its source was "
            "restored from an older state since, drop the tables first that the interrupted load has made"
        )


def as_repair(replica: TargetDatabase, dump: DumpReader) -> bool:
    """Whether an interrupted load compared what stands at its event, too: one of a table, or of a replica that stood there."""
    header = dump.header
    return header.scope.table is not None or covers(replica.state.applied, header.to_evid)


def given_up(replica: TargetDatabase, dump: DumpReader, error: ReplicationError) -> None:
    """What follows where an interrupted load cannot be done any more. A table that it was of is lost until it is repaired.

    Args:
        replica: the target database, whose lock is held.
        dump: of that load.
        error: why not.

    Raises:
        Refused: it was of the whole database, which nothing but a recovery makes good: until then that is a gap.
        ReplicationError: the same, of which the metastore may think better.
    """
    table, lasts = dump.header.scope.table, isinstance(error, BadRequest | Refused)
    if isinstance(error, Outdated):
        return  # the replica has passed it
    if table is None:
        if lasts:
            replica.write_state(replace(replica.state, obstacle=str(error)))
        advice = _advice(replica.name, dump.directory, dump.header.scope.database, error)
        raise (Refused if lasts else ReplicationError)(advice) from error
    reason = f"a load of it was interrupted, and cannot be done again: {error}"
    replica.write_state(replica.state.quarantine(table, 0, reason))


def _advice(database: str, directory: str, source: str, error: ReplicationError) -> str:
    return (
        f"the load of {directory} into {database!r} was interrupted and has to be done first, which fails: {error}; "
        f"hive-repl recover {source} does without it"
    )
