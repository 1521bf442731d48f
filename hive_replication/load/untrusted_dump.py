"""A dump directory is untrusted input: nothing in it may lead outside the policy's storage roots, or to odd names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hive_replication.dump.format.interface import DumpReader, DumpStore
from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.described_objects import images
from hive_replication.events.files import FileRef
from hive_replication.events.partition_filters import partitions_of
from hive_replication.events.transactions import CommitTransaction
from hive_replication.load.plan.lanes import FUNCTION, WindowEvent
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import paths
from hive_replication.storage.boundary import RESERVED

#: Why a load passes over a table of a dump that is none of the dump's scope.
NOT_OF_POLICY = "its table does not belong to the policy"

_NO_NAME = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def validate_event(target: Target, event: WindowEvent) -> None:
    """Checks every name, location and file in an event; one that fails holds the event's lane, and nothing else.

    Args:
        target: the target side.
        event: of a dump.

    Raises:
        Refused: it names what no metastore accepts, or leads outside the source's roots.
    """
    what = f"event {event.evid}"
    if r.is_function(event.row.table):
        raise Refused(f"a table named {event.row.table!r} cannot be told from a function: rename it at the source")
    if event.row.table:
        validate_name(event.row.table, what)
    if event.event is not None:
        _validate_message(event.event, what)
    for group in event.groups:
        if group.table:
            validate_name(group.table, what)
        if group.partition:
            validate_partition(group.partition)
        validate_files(target, group.files, what)
    if isinstance(event.event, CommitTransaction) and {one.table for one in event.groups} - set(event.event.tables):
        raise Refused(f"{what}: the dump could not read what the transaction wrote; repair its tables")


def _validate_message(event: r.Event, what: str) -> None:
    if isinstance(event, r.FunctionEvent):
        validate_function_name(event.function, what)
    for name in event.names:
        validate_name(name, what)
    for image in images(event):
        if isinstance(image, Table | Partition):
            validate_location(image.sd.location, what)
    for name in partitions_of(event):
        validate_partition(name)


def opened(store: DumpStore, directory: str) -> DumpReader:
    """A complete dump, verified, at the place of the database that it is of.

    Raises:
        BadRequest: there is no dump, or it is incomplete, damaged or unreadable.
        Refused: its header names another database than its place, or it is not signed as the policy asks.
    """
    reader = store.open(directory)
    place, database = paths.name(paths.parent(reader.directory)), reader.header.scope.database
    if place != database:
        raise Refused(
            f"the dump {reader.directory} lies among those of {place!r} and says that it is of {database!r}: dump again"
        )
    return reader


def validate_evid(header: DumpHeader, evid: int) -> None:
    """Checks the id of an event, which becomes the state id of its object: later events up to it would be skipped.

    Raises:
        Refused: it lies outside the dump's window.
    """
    if not header.from_evid < evid <= header.to_evid:
        window = f"{header.from_evid} to {header.to_evid}"
        raise Refused(f"the dump has the event {evid}, which lies outside its window from {window}: dump again")


def validate_files(target: Target, files: Iterable[FileRef], what: str) -> None:
    """Checks the paths of files.

    Raises:
        Refused: one leads outside the source's roots, or its subdirectory out of the replica's directory or into one that is
            replication's own; or one stands for a directory that may not be copied, or of which nobody knows what belongs to the
            event.
    """
    for file in files:
        if file.is_mixed_directory:
            raise Refused(
                f"{what} has rows of committed and of aborted transactions of a streaming batch: compact it at the source (ALTER "
                "TABLE ... COMPACT 'major'), then repair the table"
            )
        if file.is_renamed_directory:
            raise Refused(
                f"{what} has rows without ids, of when the table was insert-only, in a base that ends with an aborted write: "
                "write to it at the source, compact it (ALTER TABLE ... COMPACT 'major'), then repair the table"
            )
        if file.is_unnoted_directory:
            raise Refused(
                f"{what} commits what lies in {file.uri}, of which its writer told the source's metastore nothing (Trino tells "
                "nothing, nor does HiveServer2 without hive.metastore.dml.events): repair the table"
            )
        if file.is_barred:  # which is never read: the load holds what it stands for
            continue
        if not paths.is_text(file.uri):
            shown = file.uri.replace("\0", "\\x")
            raise Refused(f"{what}: the name of the file {shown} is no UTF-8; rename it at the source, then repair the table")
        for uri in filter(None, (file.uri, file.cm_uri and file.cm_root)):  # without a checksum it is never read
            _check(target, uri, what)
        if any(part in ("", ".", "..", RESERVED) for part in file.relative.split("/")):
            raise Refused(
                f"the dump names the file {file.relative!r} for {what}, which would lead out of its directory: dump again"
            )


def validate_name(name: str, what: str) -> None:
    """Checks a table's name. It becomes no path as it stands: see ``table_directory``.

    Raises:
        Refused: no metastore accepts it.
    """
    if not name.strip() or _NO_NAME.search(name):
        raise Refused(f"the dump has the name {name!r} for {what}, which is none of Hive's: dump again")


def validate_function_name(name: str, what: str) -> None:
    """Checks a function's name, which becomes a directory of its resources; metastores accept less than for tables.

    Raises:
        Refused: no metastore accepts it.
    """
    if not FUNCTION.fullmatch(name):
        raise Refused(f"the dump has the function {name!r} for {what}, which is none of Hive's: dump again")


def validate_location(location: str | None, what: str) -> None:
    """Checks the location of a table or partition, from which its place on the target follows.

    Raises:
        Refused: it has segments such as ``..``, with which that place could lie outside the target database's directory.
    """
    try:
        paths.split(location or "file:///")
    except Refused as error:
        raise Refused(f"the dump names a location for {what} that may lead anywhere: {error}") from error


def validate_partition(name: str) -> None:
    """Checks a partition's name, which becomes a path.

    Raises:
        Refused: it would lead out of its table's directory.
    """
    if any("=" not in part for part in name.split("/")):
        raise Refused(f"the dump has the partition name {name!r}, which is none of Hive's: dump again")


def _check(target: Target, uri: str, what: str) -> None:
    try:
        target.source_storage.check(uri)
    except Refused as error:
        raise Refused(f"the dump names {uri} for {what}, which lies outside the source's storage roots: {error}") from error
