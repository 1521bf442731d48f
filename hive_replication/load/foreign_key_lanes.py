"""Foreign keys in a load of objects: they come after the tables of both their ends."""

from __future__ import annotations

import logging

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.load.operations.constraints import FOREIGN, SetConstraints, on_target
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import object_id
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session
from hive_replication.logs import about
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.faults import MetastoreError

_LOG = logging.getLogger(__name__)


def foreign_key_lanes(session: Session, records: list[TableRecord]) -> list[LanePlan]:
    """Lanes that set the foreign keys of tables that stand where the dump does.

    Args:
        session: the load, after the lanes of the tables.
        records: the dump's tables.
    """
    evid, scope, mapping = session.reader.header.to_evid, session.reader.header.scope, session.mapping
    dumped = {record.name for record in records}.union(session.reader.header.equal)
    held = {name for one in session.held for name in one.tables}
    names = [mapping.table(record.name) for record in records]
    stand = {} if session.dry else {t.tableName: object_id(t) for t in session.target.metastore.tables(session.database, names)}
    others = session.target.metastore.table_names(session.database) if scope.table and session.replica.there else []
    lanes: list[LanePlan] = []
    for name, record in zip(names, records, strict=True):
        wanted = [one for one in record.constraints if one.kind in FOREIGN]
        old = session.state.applied is not None  # then the table may have foreign keys that the source has no longer
        if name in held or not (wanted or old) or not (session.dry or stand.get(name) == evid) or scope.partitions is not None:
            continue
        kept, left = on_target(wanted, mapping, name, lambda parent: parent in dumped or mapping.table(parent) in others)
        session.skipped += [Skipped(evid, object_name(session.database, name), reason) for reason in left]
        lanes.append(LanePlan((name,), session.state.position(name), (SetConstraints(evid, name, kept, whole=FOREIGN),)))
    return lanes


def add_late_key(session: Session, evid: int, key: Constraint) -> None:
    """Adds a foreign key after the table that it points at came, or came anew; where it is refused, the report tells.

    Args:
        session: the load, which holds nothing for it.
        evid: event id that it is of.
        key: under the target's names.
    """
    try:
        SetConstraints(evid, key.table, (key,)).carry_out(session.target, key.database)
    except MetastoreError as error:
        child, parent = object_name(key.database, key.table), object_name(*(key.parent or ("", "")))
        _LOG.warning("the foreign key %s is left out: %s", key.name, error, extra=about(key.database, key.table, evid))
        reason = f"its foreign key {key.name} could not be added after {parent} came; repair {child}: {error}"
        session.skipped.append(Skipped(evid, child, reason))
