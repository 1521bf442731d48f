"""Handlers of table events."""

from __future__ import annotations

from hive_replication.events import event_records as r
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.operations.conflict_resolutions import Adopt
from hive_replication.load.plan.handlers import transactions
from hive_replication.load.plan.lane_context import LanePlanning, LaneStopped, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.metastore.table_kinds import has_files, is_transactional, is_view
from hive_replication.metastore.types import Table


def create_table(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """CREATE_TABLE: copy, create; also views."""
    created = event.event
    assert isinstance(created, r.CreateTable)  # noqa: S101 - the decoder of this type
    lane.require_readable(created.after)
    adopted = lane.conflicts.policy == "adopt" and lane.adopted(replica, event.evid)
    if replica.present and not adopted:
        shown = object_name(lane.mapping.target_database, replica.name)
        raise LaneStopped(f"the target has an older {shown} in the way: rebuild it from the source")
    if not adopted:
        adopted = isinstance(lane.require_free(replica.name, event.evid, created.after), Adopt)
    if adopted and is_transactional(created.after):
        lane.add(op.DropTable(event.evid, replica.name))  # its write ids are not the source's
    elif adopted:
        _adopt(lane, event, created.after, replica)
        return
    plain = lane.mapping.table_location(created.after) if created.after.sd.location else ""
    image = lane.mapping.new_table(created.after, event.evid)
    content = lane.new_content(event, "", f"CREATE_TABLE {replica.name}")
    lane.add(op.CreateTable(event.evid, replica.name, image, content, plain))
    replica.present, replica.view = True, is_view(created.after)
    lane.take(replica.name)


def _adopt(lane: LanePlanning, event: WindowEvent, created: Table, replica: Replica) -> None:
    """Makes a foreign table that is ours now as the source's: partitions that no event of the window brings go."""
    image = lane.mapping.new_table(created, event.evid)
    replica.found_as, replica.present, replica.view = replica.name, True, is_view(created)
    lane.take(replica.name)
    brought = lane.brought(event.evid)
    surplus = tuple(sorted(name for table, name in lane.view.partitions if table == replica.name and name not in brought))
    if surplus:
        lane.add(op.DropPartitions(event.evid, replica.name, surplus))
        replica.partitions |= dict.fromkeys(surplus, False)
    if has_files(created):
        lane.add(op.ReplaceData(event.evid, replica.name, "", image, lane.content(event), compare=True))
    else:
        lane.add(op.AlterTable(event.evid, replica.name, image))


def alter_table(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ALTER_TABLE: a rename, a truncation, a new location (then the data is replaced), or metadata only.

    What lay at a new location is not known where a later event has replaced it: until that, the table keeps what it has.
    """
    change = event.event
    assert isinstance(change, r.AlterTable)  # noqa: S101 - the decoder of this type
    lane.require_readable(change.after)
    transactions.require_replayable(event)
    image = lane.mapping.new_table(change.after, event.evid)
    cascaded = tuple(group.partition for group in event.groups if group.partition)
    if cascaded and not lane.metadata_only:
        lane.add(SetColumns(event.evid, replica.name, cascaded, tuple(change.after.sd.cols)))
    if change.rename:
        lane.require_free(image.tableName, event.evid)
        lane.add(op.RenameTable(event.evid, replica.name, image))
        lane.leave(replica.name)
        lane.take(image.tableName)
        replica.name = image.tableName
    elif is_transactional(change.after):
        _alter_transactional(lane, event, change, replica)
    elif (change.truncate or event.files().listed) and has_files(change.after) and not lane.metadata_only:
        if not lane.superseded(event, "", f"ALTER_TABLE {replica.name}"):
            lane.add(op.ReplaceData(event.evid, replica.name, "", image, lane.content(event)))
    else:
        lane.add(op.AlterTable(event.evid, replica.name, image))


def _alter_transactional(lane: LanePlanning, event: WindowEvent, change: r.AlterTable, replica: Replica) -> None:
    """Data of a transactional table comes with commits; here what a truncation hides, then its metadata, whose id says both."""
    if change.truncate:
        transactions.truncate(lane, event, replica, ("",), change.write_id)
    lane.add(op.AlterTable(event.evid, replica.name, lane.mapping.new_table(change.after, event.evid)))


def drop_table(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_TABLE, and a rename out of the policy."""
    lane.add(op.DropTable(event.evid, replica.name))
    replica.present = False
    lane.leave(replica.name)
