"""Handlers of events of transactions and write ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hive_replication.acid.directories import of_several_transactions
from hive_replication.events import transactions as tx
from hive_replication.events.files import FileRef
from hive_replication.events.redumps import why_redump
from hive_replication.load.operations.kinds import Content
from hive_replication.load.operations.transactions import (
    AllocateTargetWriteIds,
    ReplayAbort,
    ReplayCommit,
    TruncateTransactional,
    Written,
    key_of,
    replay_policy,
)
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.name_mapping import object_name


def allocate_write_ids(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ALLOC_WRITE_ID_EVENT: the transaction is opened with its first write id of a table of the database."""
    change = event.event
    assert isinstance(change, tx.AllocateWriteIds)  # noqa: S101 - the decoder of this type
    lane.add(AllocateTargetWriteIds(event.evid, replica.name, replay_policy(lane.mapping), change.write_ids))


def commit_transaction(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """COMMIT_TXN: copy what it wrote, straight to its place, then commit."""
    change = event.event
    assert isinstance(change, tx.CommitTransaction)  # noqa: S101 - the decoder of this type
    written = tuple(_written(lane, event, change))
    lane.add(ReplayCommit(event.evid, replica.name, replay_policy(lane.mapping), change.transaction, written))


def _written(lane: LanePlanning, event: WindowEvent, change: tx.CommitTransaction) -> Iterator[Written]:
    for one in change.writes:
        replica = lane.written.get((event.evid, one.table))
        if replica is None:
            continue  # not due: the planner told why
        what = f"COMMIT_TXN {replica.name}/{one.partition}".rstrip("/")
        if one.partition and not _has_partition(lane, event, replica, one):
            continue
        gone = lane.superseded(event, key_of(one.table, one.partition), what)
        files = () if gone else event.files(one.partition, one.table).files
        if _goes(lane, event, one) and _shared(files):
            lane.skip(event.evid, what, "files that later transactions go on writing are not copied to what is dropped later")
            files = ()
        _require_whole(event, files)
        yield Written(one.table, replica.name, one.partition, one.write_id, Content(files, f"{event.evid}-0"), one.truncates)


def _goes(lane: LanePlanning, event: WindowEvent, write: tx.TransactionWrite) -> bool:
    """Whether the table or partition is dropped later in the window."""
    part = lane.partition_incarnations[event.evid, f"{write.table}/{write.partition}"] if write.partition else None
    return (event.evid, write.table) in lane.going or (part is not None and part.dropped is not None)


def _shared(files: Iterable[FileRef]) -> str:
    """A directory of several transactions that files are in, or ""."""
    return next((file.subdir for file in files if of_several_transactions(file.subdir.partition("/")[0])), "")


def _require_whole(event: WindowEvent, files: Iterable[FileRef]) -> None:
    """Makes sure that no later transaction goes on writing the files of a commit.

    Raises:
        LaneStopped: one may.
    """
    if shared := _shared(files):
        raise LaneStopped(
            f"event {event.evid} commits one of several transactions of a streaming batch, which share the files of {shared}: "
            "repair the table when the batch is over, and stream with one transaction a batch"
        )


def _has_partition(lane: LanePlanning, event: WindowEvent, replica: Replica, write: tx.TransactionWrite) -> bool:
    incarnation = lane.partition_incarnations[event.evid, f"{write.table}/{write.partition}"]
    shown = object_name(lane.mapping.target_database, replica.name, write.partition)
    if (found := lane.found(replica, incarnation, write.partition)) is not None:
        # A window that is loaded again finds the partition renamed, maybe, and its former name another one's by now.
        if reason := lane.applied(event.evid, write.table, replica, found):
            lane.skip(event.evid, f"COMMIT_TXN {shown}", reason)
        return not reason
    if incarnation.dropped is None:
        lane.lacking(event, replica, write.table, write.partition)
    else:
        lane.skip(event.evid, f"COMMIT_TXN {shown}", "the target does not have the partition any more")
    return False


def abort_transaction(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ABORT_TXN: nothing was copied."""
    change = event.event
    assert isinstance(change, tx.AbortTransaction)  # noqa: S101 - the decoder of this type
    lane.add(ReplayAbort(event.evid, replica.name, replay_policy(lane.mapping), change.transaction))


def compaction(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """COMMIT_COMPACTION_EVENT: each side compacts for itself, but rows of other ids come from a dump."""
    require_replayable(event)
    lane.skip(event.evid, f"{event.row.type} {replica.name}", "each side compacts for itself")


def truncate(lane: LanePlanning, event: WindowEvent, replica: Replica, partitions: tuple[str, ...], write_id: int) -> None:
    """A truncation of a transactional table ("" for the table itself) or of partitions of it; it comes before what raises ids."""
    lane.add(TruncateTransactional(event.evid, replica.name, partitions, write_id))


def require_replayable(event: WindowEvent) -> None:
    """Makes sure that transactions tell of all that an event did to a transactional table.

    Raises:
        LaneStopped: they do not; the table is rebuilt, if the dump could get hold of it.
    """
    how = why_redump(event.event) if event.event else ""
    if how:
        advice = "it is rebuilt from a dump" if event.redump else "repair it, or let its open transactions end"
        raise LaneStopped(f"the source table {how} at event {event.evid}: {advice}")
