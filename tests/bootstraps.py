"""Loads of dumps of objects without servers: what they plan, and the state that they leave behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from hive_replication.dump.format.record_types import DumpHeader, Scope, TableRecord
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.operations.kinds import DropTable
from hive_replication.load.plan.load_plan import LanePlan, SegmentPlan
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.load.report import Held
from hive_replication.load.session import Session
from hive_replication.metastore.types import Database, Function, Partition, Table
from hive_replication.progress import Silent
from tests import model
from tests.moving import POLICY
from tests.replica import MAPPING, TARGET

SOURCE = MAPPING.source  # of the replicas


def record(name: str) -> TableRecord:
    """A plain table of the source."""
    return TableRecord(model.table_image(name, model.Tab(7, f"{model.ROOT}/{name}", partitioned=False)))


def replica(name: str, evid: int, **parameters: str) -> Table:
    """The replica of a plain table."""
    made = MAPPING.new_table(record(name).table, evid)
    made.parameters |= parameters
    return made


def header(to_evid: int, table: str | None = None, **more: Any) -> DumpHeader:
    """Of a dump of the database, or of one table."""
    home = Database("db", locationUri=model.ROOT, parameters={})
    return DumpHeader("bootstrap", Scope("db", table), "uuid", home, to_evid, to_evid, 5, f"h{to_evid}", 0.0, **more)


@dataclass
class Loading(Session):
    """A load whose lanes do nothing but stop where they are planned to."""

    dropped: set[str] = field(default_factory=set[str])

    @property
    def lanes(self) -> dict[str, LanePlan]:
        """Those that do something, or stop, by their first name."""
        lanes = (lane for plan in self.planned for lane in plan.lanes)
        return {lane.names[0]: lane for lane in lanes if lane.operations or lane.stop}

    def carry_out(self, plan: SegmentPlan, *_: object) -> None:
        self.planned.append(plan)
        for lane in plan.lanes:
            self.dropped |= {one.table for one in lane.operations if isinstance(one, DropTable)}
            if lane.stop:
                stop = lane.stop
                self.held.append(Held(lane.names, lane.base, stop.evid, stop.reason, stop.refused))


@dataclass
class Tables:
    """A target's metastore with these tables."""

    kept: dict[str, Table]

    def table_names(self, _: str) -> list[str]:
        return list(self.kept)

    def table(self, _: str, name: str) -> Table | None:
        return self.kept.get(name)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        return iter([self.kept[name] for name in names if name in self.kept])

    def functions(self, _: str) -> list[Function]:
        return []

    def partitions(self, *_: object) -> Iterator[Partition]:
        return iter(())


def loading(
    state: ReplicaState, head: DumpHeader, tables: Iterable[Table], records: Iterable[TableRecord] = (), source: object = None
) -> Loading:
    """A load of a dump into a target that stands somewhere and has these tables; ``source`` is the source's metastore."""
    metastore, empty = Tables({one.tableName: one for one in tables}), SimpleNamespace(ls=lambda _: ())
    target = SimpleNamespace(policy=POLICY, metastore=metastore, identity="target", storage=empty, source_metastore=source)
    target.source_storage = SimpleNamespace(check=lambda _: None)
    image = database_with_state(Database("db", locationUri=TARGET, parameters={}), state)
    replica = SimpleNamespace(
        target=target, name="db", state=state, there=True, exists=True, location=TARGET, image=image, alter=lambda *_: False
    )
    replica.check = lambda: None
    replica.write_state = lambda found: setattr(replica, "state", found)
    records = list(records)
    reader = SimpleNamespace(
        header=head,
        number_of_objects=len(records),
        directory="hdfs://dst/dumps/db/1",
        tables=lambda: iter(records),
        partitions=lambda _: iter(()),
        functions=lambda: iter(()),
    )
    table = head.scope.table
    return Loading(cast("Any", replica), cast("Any", reader), table, None, Silent())


def loaded(
    state: ReplicaState,
    head: DumpHeader,
    tables: Iterable[Table],
    records: Iterable[TableRecord] = (),
    *,
    repair: bool = True,
    source: object = None,
) -> Loading:
    """The load, done."""
    session = loading(state, head, tables, records, source)
    load_objects(session, repair=repair)
    return session
