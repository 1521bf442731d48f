"""Handlers of partition events and of INSERT."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.events import event_records as r
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.conflicts import is_foreign
from hive_replication.load.plan.handlers import transactions
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.state import object_id
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition


def add_partition(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ADD_PARTITION: copy, add in one call those that pass the gate."""
    change = event.event
    assert isinstance(change, r.AddPartition)  # noqa: S101 - the decoder of this type
    new: list[op.NewPartition] = []
    for added in change.partitions:
        what = f"ADD_PARTITION {replica.name}/{added.name}"
        image = lane.mapping.new_partition(added.partition, change.table_object, replica.name, event.evid)
        incarnation = lane.partition_incarnations[event.evid, added.name]
        found = lane.found(replica, incarnation, added.name)
        foreign = lane.foreign_partition(replica, added.name)
        if foreign is not None and _kept_aside(lane, event, added, replica, foreign):
            foreign = found = None
        if reason := lane.applied(event.evid, event.names[0], replica, found or 0):
            lane.skip(event.evid, what, reason)
            continue
        _require_own_directories(event)
        if foreign is not None or found is not None:
            content, compare = lane.new_content(event, added.name, what), lane.conflicts.compares(foreign)
            lane.add(op.ReplaceData(event.evid, replica.name, added.name, image, content, compare=compare))
            replica.partitions[added.name] = True
        elif incarnation.dropped is not None and not replica.partitions.get(added.name):
            lane.skip(event.evid, what, f"dropped at event {incarnation.dropped} of this window")
        else:
            content = replace(lane.new_content(event, added.name, what), origin=added.partition.sd.location or "")
            new.append(op.NewPartition(added.name, image, content))
            replica.partitions[added.name] = True
    if new:
        lane.add(op.AddPartitions(event.evid, replica.name, tuple(new)))


def _require_own_directories(event: WindowEvent) -> None:
    """Makes sure that what an event brings or takes away is of concern for the partitions that it names alone.

    Raises:
        LaneStopped: it is not; the table is rebuilt, if the dump could get hold of it.
    """
    if event.shared:
        raise LaneStopped(event.why_shared)


def _kept_aside(lane: LanePlanning, event: WindowEvent, added: r.AddedPartition, replica: Replica, foreign: Partition) -> bool:
    """Whether a foreign partition of the name moves away, so that ours is a new one."""
    first = lane.resolve(lambda conflicts: conflicts.partition(event.evid, replica.name, added.name, foreign, added.partition))
    return first is not None


def alter_partition(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ALTER_PARTITION: a rename, a truncation, a new location (then the data is replaced), or metadata only."""
    change = event.event
    assert isinstance(change, r.AlterPartition)  # noqa: S101 - the decoder of this type
    passed: list[r.ChangedPartition] = []
    for one in change.changes:
        if lane.passes(event, one.before_name, replica):
            passed.append(one)
        elif one.rename:
            _drop_former(lane, event, one.before_name, replica)
    transactional = is_transactional(change.table_object)
    if passed:
        transactions.require_replayable(event)
        _require_own_directories(event)
    if transactional and change.truncate and passed:
        transactions.truncate(lane, event, replica, tuple(one.after_name for one in passed), change.write_id)
    for one in passed:
        if transactional and not one.rename:
            image = lane.mapping.new_partition(one.after, change.table_object, replica.name, event.evid)
            lane.add(op.AlterPartitions(event.evid, replica.name, ((one.after_name, image),)))
        else:
            _change(lane, event, one, change, replica)


def _make_room(lane: LanePlanning, event: WindowEvent, name: str, replica: Replica) -> None:
    """Settles a conflict about the new name of a partition, which comes with its data: a foreign one is dropped, if it may be."""
    foreign = lane.foreign_partition(replica, name)
    if foreign is None:
        return
    first = lane.resolve(lambda conflicts: conflicts.partition(event.evid, replica.name, name, foreign, None))
    if first is None:
        lane.add(op.DropPartitions(event.evid, replica.name, (name,)))


def _drop_former(lane: LanePlanning, event: WindowEvent, name: str, replica: Replica) -> None:
    """Drops what the target still has under the former name of a partition that an unfinished load has made under its new one."""
    part = lane.view.partitions.get((replica.found_as, name))
    if part is None or name in replica.partitions or is_foreign(part, lane.mapping.source):
        return
    if not lane.applied(event.evid, event.names[0], replica, object_id(part)):  # else it came later, or again
        lane.add(op.DropPartitions(event.evid, replica.name, (name,)))
        replica.partitions[name] = False


def _change(lane: LanePlanning, event: WindowEvent, change: r.ChangedPartition, of: r.AlterPartition, replica: Replica) -> None:
    image = lane.mapping.new_partition(change.after, of.table_object, replica.name, event.evid)
    name = change.after_name
    if change.rename:
        _make_room(lane, event, name, replica)
        lane.add(op.RenamePartition(event.evid, replica.name, change.before_name, name, image))
        replica.partitions |= {change.before_name: False, name: True}
    elif of.truncate or event.files(name).listed:  # not listed is also what a later event has replaced: until then it stays
        if not lane.superseded(event, name, f"ALTER_PARTITION {replica.name}/{name}"):
            content, compare = lane.content(event, name), change.before is None and not of.truncate
            lane.add(op.ReplaceData(event.evid, replica.name, name, image, content, compare=compare))
    else:
        lane.add(op.AlterPartitions(event.evid, replica.name, ((name, image),)))


def drop_partition(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_PARTITION: drop in one call those that pass the gate."""
    change = event.event
    assert isinstance(change, r.DropPartition)  # noqa: S101 - the decoder of this type
    names = tuple(name for name in change.partitions if lane.passes(event, name, replica, needed=False))
    if names:
        lane.add(op.DropPartitions(event.evid, replica.name, names))
    replica.partitions |= dict.fromkeys(names, False)


def insert(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """INSERT: append or replace; one without a file list is compared with the listing of the dump's time.

    Where there is no listing either, a later event replaces the content or drops the object: until then it stays.
    """
    change = event.event
    transactions.require_replayable(event)  # all of Hive 2 go no further
    assert isinstance(change, r.Insert)  # noqa: S101 - the decoder of this type
    name = change.partition_name
    if name and not lane.passes(event, name, replica):
        return
    _require_own_directories(event)
    if lane.superseded(event, name, f"INSERT {replica.name}/{name}".rstrip("/")):
        return
    if change.partition is not None:
        image = lane.mapping.new_partition(change.partition, change.table_object, replica.name, event.evid)
    else:
        image = lane.mapping.new_table(change.table_object, event.evid)
    group, content = event.files(name), lane.content(event, name)
    if group.listed or (change.replace and group.files):
        lane.add(op.ReplaceData(event.evid, replica.name, name, image, content, compare=group.listed))
    else:
        lane.add(op.AppendData(event.evid, replica.name, name, image, content))
