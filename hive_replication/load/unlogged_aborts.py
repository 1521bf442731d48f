"""The end of what stands for transactions that the source aborted without a word in its log.

Hive 4 aborts a transaction that loses a write conflict at its commit (``hive.txn.write.xlock=false``), and tells no listener of
it: no window has its end. So after each window the source is asked for what is open there. Nothing is ended of which the source
does not say that it is aborted, but where the replica has all ends up to an event and the log has no further one: the source is
asked first which transactions are open, then where its log ends, so that the log has the end of each one that was committed
before the first question.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.source import is_replica
from hive_replication.errors import LockLost, MissingEvents, ReplicationError
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.transactions import ENDS, TransactionEvent
from hive_replication.load.operations.transactions import ReplayAbort, replay_policy
from hive_replication.load.replica.advance_idle import open_replayed
from hive_replication.load.replica.covers import covers
from hive_replication.load.session import Session
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.replay_notes import SPREAD

_FAR = 10_000  # events after the window in which ends are looked for: a load that is nearer to the log's end looks again
_LOG = logging.getLogger(__name__)


def end_unlogged(session: Session, source: Metastore | None) -> None:
    """Ends them after a load of a window. Where the source does not answer, a later load does.

    Args:
        session: a load that is done.
        source: the source's metastore; that of the target's policy where None.

    Raises:
        LockLost: another load may run.
    """
    header, state = session.reader.header, session.state
    if header.kind != "incremental" or not header.acid or session.table is not None or state.applied is None:
        return
    target, source = session.target, source or session.target.source_metastore
    # In the log of a replica, ends have the ids of another source.
    if source is None or target.metastore.features.major < 4 or is_replica(header.source_database, header.from_evid):
        return
    try:
        opened = open_replayed(target)
        found = _found(session, source, opened) if opened else _Found()
        left = found.standing
        for one in found.aborted:
            session.replica.check()
            with suppress(TransactionGone):  # the target has aborted it
                ReplayAbort(state.applied, "", replay_policy(session.mapping), one).carry_out(target, session.database)
            if not (left := found.standing & open_replayed(target)):
                break
        if ended := sorted(found.standing - left):
            text = "the source aborted transactions without a word in its log; what stands for them is ended: %s"
            _LOG.info(text, ", ".join(map(str, ended)), extra=about(session.database))
    except LockLost:
        raise
    except ReplicationError as error:
        text = "whether the source aborted transactions without a word in its log is not known: %s"
        _LOG.warning(text, error, extra=about(session.database))


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be ended.

    Args:
        aborted: transactions of the source, those first of which it says so; nothing stands for some of them.
        standing: what stands for the others on the target.
    """

    aborted: tuple[int, ...] = ()
    standing: frozenset[int] = frozenset()


def _found(session: Session, source: Metastore, opened: Collection[int]) -> _Found:
    """Looks for write ids that are open on the target alone, and then for their transactions.

    The target does not tell for which of the source's each of its own stands, but of a range that has it.
    """
    metastore, database, state = session.target.metastore, session.database, session.state
    here = session.reader.header.scope.database
    if (source.uuid() or source.uri) != session.reader.header.source:
        return _Found()
    left = {one for one in metastore.open_writes(database, metastore.table_names(database)) if one[0] not in state.held}
    tables = sorted({table for table, _ in left})
    left -= source.open_writes(here, tables) if tables else frozenset()
    if not left:
        return _Found()
    ranges = {this: range(first, min(last, first + SPREAD) + 1) for this, _, first, last in metastore.notes() if this in opened}
    now = source.transactions_now()  # first: see above
    ended = _ended_after(source, state.applied or 0)
    for one in ended or ():  # most often the next window has these
        if any(one in sources for sources in ranges.values()):
            left -= set(source.write_ids_of(one, here, tables))
    standing = {this for this in ranges if left and left.intersection(metastore.write_ids_of(this, database, tables))}
    whole = not (session.held or state.held) and state.last_id == state.applied
    among = {one for this in standing for one in ranges[this]}
    found = aborted(among, now, ended if whole else None)
    found &= source.ended(found)
    return _Found(tuple(sorted(found, key=lambda one: (one not in now.aborted, one))), frozenset(standing))


def aborted(among: Iterable[int], now: WriteIds, ended: Collection[int] | None) -> set[int]:
    """The transactions among some that a source has aborted (pure).

    Args:
        among: ids of the source, without those whose ends the replica has.
        now: which ones are open or aborted there, and the greatest that there is.
        ended: those whose ends came later than where the replica stands; None where nobody knows, or where it lacks ends of
            earlier ones: the source forgets aborted ones when it has compacted their tables, and then they look like others.
    """
    return {one for one in among if one in now.aborted or (ended is not None and now.sees(one) and one not in ended)}


def _ended_after(source: Metastore, evid: int) -> frozenset[int] | None:
    """Transactions of which the log has an end after an event; None where it does not tell of all."""
    newest = source.current_event_id()
    if not (covers(newest, evid) and covers(evid + _FAR, newest)):
        return None
    found = set[int]()
    try:
        for event in source.events(evid, newest):
            if event.eventType in ENDS:
                said = decode(notification(event))
                found |= {said.transaction} if isinstance(said, TransactionEvent) else set()
    except (MissingEvents, UnreadableMessage):
        return None
    return frozenset(found)
