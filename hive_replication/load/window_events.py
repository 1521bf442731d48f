"""The events of a dump as they are planned: decoded once, of this database and policy only, and with nothing to be wary of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.errors import Refused
from hive_replication.events.described_objects import elsewhere
from hive_replication.events.event_records import FunctionEvent
from hive_replication.events.partition_filters import Entered, Outside, within
from hive_replication.load.hidden_tables import why_unshown
from hive_replication.load.missing_directories import without_missing
from hive_replication.load.plan.lanes import Segment, WindowEvent, refused, window_event
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.load.untrusted_dump import NOT_OF_POLICY, validate_event, validate_evid


def decoded_events(session: Session) -> Iterator[WindowEvent]:
    """The events of a session's dump.

    One with something in it that must not be followed comes as one that cannot be read, so that its lane alone is held. One of
    another catalog, database or policy is skipped.

    Raises:
        Refused: the id of one lies outside the dump's window.
    """
    database = session.reader.header.scope.database
    for record in session.reader.events():
        validate_evid(session.reader.header, record.notification.evid)
        event = window_event(_in_scope(session, record))
        if event.row.database not in ("", database):
            yield replace(event, event=None, groups=(), error=f"event {event.evid} is of the database {event.row.database!r}")
        elif reason := _why_not_ours(session, event):
            session.skipped.append(Skipped(event.evid, f"{event.row.type} {event.row.table}", reason))
        else:
            yield _within(session, _checked(session, event))


def without_late(session: Session, segment: Segment) -> Segment:
    """A segment of a window, without what is logged between the database's drop and its creation.

    That is what ends then, transactions (the drop's own among them) and compactions: the target has ended its own with the drop.
    Of one table's load neither drop nor creation is carried out.
    """
    if session.table is not None or session.state.applied is not None:
        return segment
    late = (event for lane in segment.lanes for event in lane.events)
    reason = "the database was dropped before"
    session.skipped += [Skipped(event.evid, f"{event.row.type} {event.names[0]}", reason) for event in late]
    return replace(segment, lanes=())


def _in_scope(session: Session, record: EventRecord) -> EventRecord:
    """The event without what a transaction wrote to tables that the policy does not take in (any more)."""
    groups = tuple(one for one in record.groups if not one.table or session.includes(one.table))
    return replace(record, groups=groups, writes=tuple(one for one in record.writes if session.includes(one.table)))


def _within(session: Session, event: WindowEvent) -> WindowEvent:
    """What the event says of partitions inside the filter of its table; nothing else is in the dump without a reason."""
    found = session.reader.header.filters.of(event.row.table)
    if found is None or event.event is None:
        return event
    made = within(event.event, found)
    if isinstance(made, Entered):
        advice = "its table is rebuilt from a dump" if event.redump else "repair the table"
        return replace(event, outside=f"a partition was renamed into the partition filter {found.text}: {advice}")
    if isinstance(made, Outside):  # in whose directories partitions inside lie, too
        return replace(event, outside=event.why_shared or f"the partition filter {found.text} excludes it")
    return replace(event, event=made, row=replace(event.row, type=made.type))


def _why_not_ours(session: Session, event: WindowEvent) -> str:
    other = elsewhere(event.event) if event.event else ""
    if other:
        return f"it is of {other}"
    if isinstance(event.event, FunctionEvent) and not any(map(session.includes, event.names)):
        return "a load of one table brings no functions"
    left_out = event.event and event.row.table and not any(map(session.includes, event.names))
    return NOT_OF_POLICY if left_out else ""


def _checked(session: Session, event: WindowEvent) -> WindowEvent:
    try:
        validate_event(session.target, event)
    except Refused as error:
        return refused(event, str(error))
    made = session.boundary.bounded(replace(event, groups=tuple(_settled(session, event, one) for one in event.groups)))
    unshown = why_unshown((file for group in made.groups for file in group.files), f"event {event.evid}")
    return refused(made, unshown) if unshown and not made.outside else made


def _settled(session: Session, event: WindowEvent, group: FileGroup) -> FileGroup:
    """The group, without a missing directory that the policy replicates as empty."""
    files = group.files
    if any(file.is_missing_directory for file in files):
        shown = object_name(session.database, group.table or event.row.table, group.partition)
        files = without_missing(session, files, event.evid, shown)
    return group if files is group.files else replace(group, files=files)
