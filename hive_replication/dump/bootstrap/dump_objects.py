"""A bootstrap dump: all objects of the scope, consolidated at the source to one event id."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from hive_replication.dump.bootstrap.acid_snapshot import Snapshot
from hive_replication.dump.bootstrap.fold import Fold
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.record_types import DumpHeader, DumpResult, Known, Scope
from hive_replication.dump.functions import function_record, why_left_out
from hive_replication.dump.outside_filters import OutsideFilters
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.dump.source_mark import mark
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.described_objects import elsewhere
from hive_replication.events.event_records import function_name
from hive_replication.events.events_of_policy import notifications
from hive_replication.logs import about
from hive_replication.metastore.types import Function
from hive_replication.progress import Progress

_LOG = logging.getLogger(__name__)

# Rounds in which tables are read again, and those in which directories are listed, each for what the one before took.
_ROUNDS = 20
_LISTINGS = 1000


def dump_objects(source: Source, scope: Scope, writer: DumpWriter, progress: Progress, known: Known | None = None) -> DumpResult:
    """Writes every object of the scope as of one event id, which the header's ``to_evid`` names.

    Args:
        source: the source side.
        scope: what to dump.
        writer: where to.
        progress: shows the numbers of tables and partitions read.
        known: tables to leave out as long as no event concerns them: the fold begins with the first event after they were
            compared, and what it meets is read like any other. So those that are left out stand at ``to_evid``, too.

    Raises:
        BadRequest: the database, table or a partition of the scope does not exist.
        ReplicationError: the source changes so fast that the dump does not come to an end.
    """
    begin = known.evid if known else writer.done.evid if writer.done else source.metastore.current_event_id()
    database = mark(source, source.database(scope.database))  # after it: of an ALTER DATABASE before, no event would be folded
    left = set(known.tables) if known else set[str]()
    boundary = source.boundary(scope.database, database)
    reader = ObjectReader(source, scope, writer, source.lister(boundary), progress=progress)
    _read_all(source, reader, begin, left, progress)
    metadata_only = source.policy.metadata_only
    fold = Fold(writer, scope.database, reader.reads, source.includes(scope), database, left, metadata_only, source.acid)
    fold.children, fold.filters, fold.absent = reader.children, source.policy.filters(scope.database), reader.absent
    with_functions = scope.table is None and not metadata_only
    if with_functions:
        fold.functions = _functions(source, scope.database)
    consolidate = partial(_consolidate, source, scope, reader, fold)
    end = consolidate(begin)
    if source.acid:
        end = Snapshot(source, reader, consolidate).take(end)
    if with_functions:
        _put_functions(source, reader, fold, boundary)
    reader.put_unshown()
    if scope.partitions is not None:
        _keep_partitions(scope, reader)
    outside = OutsideFilters(source.policy.filters(scope.database), scope.database, source.includes(scope))
    if scope.partitions is None:
        outside.count_tables(source, reader.reads)
    to_time, to_hash = source.reach(end)
    created = time.time()
    header = DumpHeader(
        "bootstrap",
        scope,
        source.identity,
        source.with_homes(fold.source_database),
        begin,
        end,
        to_time,
        to_hash,
        created,
        skipped=reader.skipped | dict(outside.left_out()),
        metadata_only=metadata_only,
        acid=source.acid,
        taken=source.policy.scope(scope.database, acid=source.acid).text if scope.table is None else "",
        read=source.policy.source.paths,
        filters=outside.filters,
        unshown=reader.unshown,
    )
    if known:
        header = replace(header, equal=tuple(sorted(left)), recovery=known.recovery)
    return writer.finish(header.made_for(source.policy))


def _read_all(source: Source, reader: ObjectReader, begin: int, left: set[str], progress: Progress) -> None:
    """Reads what an interrupted dump did not; what it had read counts as read then, and the fold does the rest."""
    if reader.writer.done is not None:
        reader.resume(reader.writer.done)
    reader.checkpoint = Checkpoint(begin, source.reach(begin)[1])
    names = [name for name in reader.names() if name not in {*reader.reads, *left}]
    for _ in progress.count(reader.read_all(names), "tables read", len(names)):
        pass
    reader.checkpoint = None
    reader.writer.seal()


def _functions(source: Source, database: str) -> dict[str, Function]:
    return {function.functionName.lower(): function for function in source.metastore.functions(database)}


def _put_functions(source: Source, reader: ObjectReader, fold: Fold, boundary: SourceBoundary) -> None:
    for function in fold.functions.values():
        record = function_record(source, function, reader.lister.cm_roots, boundary)
        reason = "" if boundary.why_outside(function) else why_left_out(function, record.files)
        if reason:
            reader.skipped[function_name(record.name)] = reason
        else:
            reader.writer.put_function(record)


def _consolidate(source: Source, scope: Scope, reader: ObjectReader, fold: Fold, begin: int) -> int:
    """Folds the events of the dump's time; what a rename left unknown is read, and the events of that time folded, too.

    Raises:
        ReplicationError: in each round there is something new to read, or to list.
    """
    folded = seen = begin
    reads = 0
    for _ in range(_LISTINGS):
        end = source.metastore.current_event_id()
        most = source.policy.max_message_bytes
        for row in notifications(source.metastore, folded, end, most, scope.database):
            if row.database == scope.database and source.policy.takes(row.type):
                try:
                    event = decode(row)
                    if not elsewhere(event):
                        fold.apply(event)
                except UnreadableMessage as error:
                    _LOG.info(
                        "what the event may concern is read again: %s", error, extra=about(row.database, row.table, row.evid)
                    )
                    _read_again(source, reader, fold, row.table)
                    seen = source.metastore.current_event_id()  # the names were read up to here: the fold has to get there, too
        folded = end
        unread, fold.unread = fold.unread, set()
        unlisted, fold.unlisted = fold.unlisted, set()
        if not unread and not unlisted and seen <= folded:
            return folded
        reads += bool(unread or seen > folded)
        if reads == _ROUNDS:
            raise ReplicationError(f"tables of {scope} are renamed faster than they can be read; dump again at a quieter time")
        for name in sorted(unread):
            reader.read(name)
        reader.relist(unlisted)
    raise ReplicationError(f"data of {scope} comes, without its files in the log, faster than it can be listed; dump again later")


def _read_again(source: Source, reader: ObjectReader, fold: Fold, table: str) -> None:
    """Whatever an unreadable message may say is in what is read after it: of its table and those that it may have made.

    Without a table it is about the database or its functions.

    Raises:
        BadRequest: the database was dropped meanwhile.
    """
    if table:
        changed = {*fold.reads, *fold.left} ^ set(reader.names())  # a rename is logged under one of its names
        fold.read_again({table} | (changed - reader.absent.keys()))
        return
    database = source.metastore.database(fold.database)
    if database is None:
        raise BadRequest(f"the source database {fold.database!r} was dropped while it was dumped")
    fold.source_database = database
    if reader.scope.table is None and not fold.metadata_only:
        fold.functions = _functions(source, fold.database)


def _keep_partitions(scope: Scope, reader: ObjectReader) -> None:
    """Leaves only the partitions of the scope in the dump. Those that the source does not have are passed over, and told.

    Raises:
        BadRequest: the source has none of them.
    """
    table, wanted = str(scope.table), set(scope.partitions or ())
    found = {record.name for record in reader.writer.partitions(table)}
    for name in found - wanted:
        reader.writer.drop_partition(table, name)
    missing = sorted(wanted - found)
    if missing and not wanted & found:
        raise BadRequest(f"the source table {scope} has no partition {', '.join(missing)}")
    for name in missing:
        _LOG.warning("the source table %s has no partition %s, which is passed over", scope, name)
        reader.skipped[f"{table}/{name}"] = (
            "the source has no such partition, or the policy's partition filter leaves it out: it is passed over; a repair of "
            "the whole table drops it where replication has brought it"
        )
