"""The objects of a dump of objects as they are planned: with names that are Hive's, and nothing that may not be read.

What :mod:`hive_replication.load.window_events` is for events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.format.record_types import FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.load.hidden_tables import why_unshown
from hive_replication.load.missing_directories import without_missing
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.load.source_history import left_undone
from hive_replication.load.untrusted_dump import (
    NOT_OF_POLICY,
    validate_files,
    validate_function_name,
    validate_location,
    validate_name,
    validate_partition,
)
from hive_replication.metastore.types import Function, Partition, Table


def described_tables(session: Session) -> list[TableRecord]:
    """The tables of the dump without their files, of which there are too many to be in memory at once.

    Those that are none of the dump's own scope are left out, and told: somebody has changed it, or an earlier version wrote it
    before the policy left them out.

    Raises:
        Refused: no metastore accepts the name of one.
    """
    found = [replace(record, files=()) for record in _tables(session)]
    others = (record.name for record in found if not session.includes(record.name))
    session.skipped += [Skipped(session.reader.header.to_evid, name, NOT_OF_POLICY) for name in others]
    return [record for record in found if session.includes(record.name)]


def validated_tables(session: Session) -> Iterator[TableRecord]:
    """The same with their files, read once more, without missing directories that the policy replicates as empty."""
    for record in filter(lambda one: session.includes(one.name), _tables(session)):
        yield replace(record, files=_without_missing(session, record.files, record.name))


def _tables(session: Session) -> Iterator[TableRecord]:
    """Those of the dump, but what was undone by request."""
    undone = left_undone(session)
    for record in session.reader.tables():
        validate_name(record.name, "a table")
        if session.mapping.table(record.name) not in undone:
            yield record


def _without_missing(session: Session, files: tuple[FileRef, ...], name: str, partition: str = "") -> tuple[FileRef, ...]:
    shown = object_name(session.database, session.mapping.table(name), partition)
    return without_missing(session, files, session.reader.header.to_evid, shown)


def validated_partition(session: Session, record: PartitionRecord) -> PartitionRecord:
    """The same of a partition.

    Raises:
        Refused: its name is none of Hive's, or its data may not be read.
    """
    validate_partition(record.name)
    if reason := why_not_read(session, record.partition, record.files, f"{record.table}/{record.name}"):
        raise Refused(reason)  # the planner holds the table
    return replace(record, files=_without_missing(session, record.files, record.table, record.name))


def why_not_read(session: Session, thing: Table | Partition | Function, files: tuple[FileRef, ...], what: str) -> str:
    """Why data of an object may not be read, so that it alone is held, or ""."""
    try:
        if not isinstance(thing, Function):
            validate_location(thing.sd.location, what)
        validate_files(session.target, files, what)
    except Refused as error:
        return str(error)
    return session.boundary.why_outside(thing, files) or why_unshown(files, what)


def validated_function(record: FunctionRecord) -> FunctionRecord:
    """The same of a function.

    Raises:
        Refused: no metastore accepts its name.
    """
    validate_function_name(record.name, "a function")
    return record
