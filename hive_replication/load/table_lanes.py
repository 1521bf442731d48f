"""The lanes of one table of a dump of objects, planned as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.errors import MetastoreError
from hive_replication.load.checked_objects import validated_partition
from hive_replication.load.parts_of_load import PartsOfLoad
from hive_replication.load.plan.bootstrap_objects import ObjectPlanner
from hive_replication.load.plan.load_plan import LanePlan, Stop, planned_stop
from hive_replication.load.replica.fingerprint import changed_on_target
from hive_replication.load.replica.target_partitions import TargetPartitions
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import at_once
from hive_replication.metastore.types import Partition, Table


def table_lanes(
    session: Session,
    record: TableRecord,
    view: TargetView,
    parts: PartsOfLoad,
    *,
    repair: bool,
    other_history: bool,
    most: int | None,
) -> Iterator[tuple[LanePlan, list[Skipped]]]:
    """The lanes of a table, with what is left alone; what the metastore refuses of it alone holds it alone.

    Args:
        session: the load.
        record: the table.
        view: what the target has of it.
        parts: where what is read is counted.
        repair: compare and replace also what stands at the dump's event already.
        other_history: whether the target's state ids say nothing.
        most: partitions and files of a part; None for one part.

    Raises:
        MetastoreError: the metastore refuses what is asked of the database, too.
    """
    header, name = session.reader.header, session.mapping.table(record.name)
    try:
        planner = ObjectPlanner(
            session.mapping,
            view,
            header.to_evid,
            session.reader.directory,
            repair=repair,
            whole=header.scope.partitions is None,
            other_history=other_history,
            conflicts=session.conflicts.policy,
            metadata_only=header.metadata_only,
            present=_present(session, view.tables.get(name)),
            filters=header.filters,
            excluded=session.target.policy.excluded,
        )
        partitions = (validated_partition(session, part) for part in parts.reading(session.reader.partitions(record.name)))
        yield from planner.plan(record, partitions, most)
    except MetastoreError as error:
        session.target.metastore.database(session.database)  # an outage, which passes, holds nothing
        yield LanePlan((name,), session.state.position(name), (), Stop.of(header.to_evid, error)), []
    except Exception as error:  # noqa: BLE001 - raised again, or told as the reason of the lane
        yield LanePlan((name,), session.state.position(name), (), planned_stop(header.to_evid, error)), []


def _present(session: Session, table: Table | None) -> TargetPartitions:
    """Those partitions of a table of the target that the dump may be about."""
    if table is None or not is_partitioned(table):
        return TargetPartitions()
    metastore, database, name = session.target.metastore, session.database, table.tableName.lower()

    def read(names: list[str]) -> dict[str, Partition]:
        found = by_name(table, metastore.partitions(database, name, names))
        view = TargetView(session.state, partitions={(name, partition): one for partition, one in found.items()})
        session.tally.found_changed(changed_on_target(view, database))
        return found

    names = session.reader.header.scope.partitions or metastore.partition_names(database, name)
    return TargetPartitions(names, read, at_once(table.sd.cols))
