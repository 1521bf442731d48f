"""One load under way: the dump, the target's state, the plan step by step, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hive_replication.copy.tasks import Copier
from hive_replication.dump.store import DumpReader
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.records import is_function
from hive_replication.load import operations as op
from hive_replication.load.conflicts import Conflicts, refuse_other_writers
from hive_replication.load.execute import Executor, Replan, Work
from hive_replication.load.journal import Journal, JournalWriter
from hive_replication.load.lookahead import Lookahead, NoLookahead
from hive_replication.load.mapping import NameMapping
from hive_replication.load.plan import SegmentPlan
from hive_replication.load.report import Held, LoadReport, Skipped
from hive_replication.load.resolutions import resolved
from hive_replication.load.retired import retire, retire_database
from hive_replication.load.savings import saved
from hive_replication.load.state import ReplicaState, replica_state, stated
from hive_replication.load.target import Target
from hive_replication.load.touched import touched_tables
from hive_replication.load.translation import translated_tables
from hive_replication.load.writers import lineage, refuse_loop, refuse_second_writer
from hive_replication.metastore.types import Database
from hive_replication.progress import Progress


@dataclass
class Session:
    """A load of one dump into one target database, under its lock.

    Args:
        target: the target side.
        reader: the dump.
        database: target database name.
        table: target table name of a table-level load, or None.
        copier: copies files; None for a plan only, which changes nothing.
        check: raises where the lock is lost.
        progress: who is told.
        lookahead: what becomes of objects after the dump.
        anew: target tables that this load made anew, so that they stand ahead of the dump.
    """

    target: Target
    reader: DumpReader
    database: str
    table: str | None
    copier: Copier | None
    check: Callable[[], None]
    progress: Progress
    lookahead: Lookahead = field(default_factory=NoLookahead)
    anew: frozenset[str] = frozenset()
    state: ReplicaState = field(init=False)
    exists: bool = field(init=False)
    work: Work = field(default_factory=Work)
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    held: list[Held] = field(default_factory=list[Held])
    planned: list[SegmentPlan] = field(default_factory=list[SegmentPlan])

    def __post_init__(self) -> None:
        found = self.target.metastore.database(self.database)
        self.exists = found is not None
        self.state = self._written = replica_state(found)
        self._bootstrapped = self.state.applied is not None or self.table is not None
        self._journal: JournalWriter | None = None

    @property
    def identity(self) -> str:
        """What the replicas of this dump are stamped with."""
        return f"{self.reader.header.source}/{self.reader.header.scope.database}"

    @property
    def _lineage(self) -> tuple[str, ...]:
        """Where the dump's data comes from; see :func:`hive_replication.load.writers.lineage`."""
        return lineage(self.reader.header.source_database.parameters, self.identity)

    @property
    def dry(self) -> bool:
        """Whether this is a plan only."""
        return self.copier is None

    @property
    def conflicts(self) -> Conflicts:
        """How conflicts are settled."""
        return Conflicts(self.target.policy.conflicts, self.identity, self.database)

    def location(self) -> str:
        """The target database's directory: its own, or where the metastore would make it."""
        found = self.target.metastore.database(self.database)
        if found is not None and found.locationUri:
            return found.locationUri.rstrip("/")
        warehouse = self.target.metastore.config_value("hive.metastore.warehouse.dir", "/user/hive/warehouse")
        return f"{warehouse.rstrip('/')}/{self.database}.db"

    def journal(self) -> JournalWriter:
        """Where this load writes down what it is about to change."""
        if self._journal is None:
            header = self.reader.header
            self._journal = Journal(self.target.storage, self.location()).begin(header.from_evid, header.to_evid)
        return self._journal

    def mapping(self) -> NameMapping:
        """Names and paths of this load."""
        header, policy = self.reader.header, self.target.policy
        return NameMapping(
            source=self.identity,
            source_database=header.scope.database,
            target_database=self.database,
            source_location=(header.source_database.locationUri or "").rstrip("/"),
            target_location=self.location(),
            source_roots=tuple(root.uri for root in policy.source.roots),
            external_root=policy.external_root or "",
            functions_root=policy.functions_root or "",
            source_table=header.scope.table,
            target_table=self.table,
        )

    def includes(self, table: str) -> bool:
        """Whether a source table, or a function by its name of lanes, belongs to the dump's scope."""
        scope = self.reader.header.scope
        if is_function(table):
            return scope.table is None
        return self.target.policy.includes(table) if scope.table is None else table == scope.table

    def require_ours(self) -> None:
        """Makes sure that the target database is a replica of this source, or holds nothing that is not.

        Raises:
            Refused: it is another source's replica, or holds a table that is not our replica.
        """
        refuse_loop(self._lineage, f"{self.target.identity}/{self.database}")
        refuse_second_writer(self.state, self.database, self.identity, self.target.policy.name)
        if self.state.source:
            self.state = replace(self.state, policy=self.target.policy.name, origins=self._lineage[1:])
        found = self.target.metastore.database(self.database)
        if self.state.source or found is None or self.reader.header.scope.table is not None:
            return
        names = self.target.metastore.table_names(self.database)
        refuse_other_writers(found, self.target.metastore.tables(self.database, names), self.conflicts)

    def taken_over(self, checkpoint: str) -> ReplicaState:
        """The state of a database that becomes a replica now, with a bootstrap under way."""
        policy, origins = self.target.policy.name, self._lineage[1:]
        fresh = bool(checkpoint)
        return replace(self.state, source=self.identity, checkpoint=checkpoint, fresh=fresh, policy=policy, origins=origins)

    def require_released(self) -> None:
        """Makes sure that nobody took the database back on purpose.

        Raises:
            Refused: somebody did, and the dump goes beyond.
        """
        undone = self.state.undone
        if undone is not None and self.reader.header.to_evid > undone:
            raise Refused(
                f"the target database {self.database!r} was undone to event {undone} by request and loads nothing later: "
                f"hive-repl undo {self.database} --release"
            )

    def carry_out(self, plan: SegmentPlan, replan: Replan) -> None:
        """Carries out a segment, or only notes it where this is a plan.

        Args:
            plan: the segment.
            replan: plans a lane anew without what later events supersede; see :class:`Executor`.
        """
        self.planned.append(plan)
        lanes = [lane for lane in plan.lanes if lane.operations or lane.obstacle]
        if self.copier is not None and lanes:
            location = self.location()
            executor = Executor(
                self.target,
                self.database,
                location,
                self.identity,
                self.copier,
                self.check,
                self.progress,
                self.work,
                self.journal() if self._bootstrapped else None,
            )
            self.held.extend(executor.run(lanes, replan))
        for alter in plan.alters if self.copier is not None else ():
            self._alter_database(alter)
        if isinstance(plan.barrier, op.DropDatabase):
            self._drop_database(plan.barrier)
        elif plan.barrier is not None:
            self.create_database(plan.barrier.image, plan.barrier.evid)

    def create_database(self, image: Database, evid: int | None, checkpoint: str = "") -> None:
        """Creates the target database; its state is set in the creating call.

        Args:
            image: its properties.
            evid: event id that it stands at, or None while a bootstrap is under way.
            checkpoint: the bootstrap's dump directory.
        """
        self.state = ReplicaState()
        self.state, self.exists = replace(self.taken_over(checkpoint), applied=evid), True
        if self.dry:
            return
        self.check()
        self.target.metastore.create_database(stated(image, self.state))
        self._written = self.state
        self.work.applied["CreateDatabase"] += 1

    def create_plain_database(self, image: Database) -> None:
        """Creates the target database for a table-level load: it is no replica itself."""
        self.exists = True
        if not self.dry:
            self.check()
            self.target.metastore.create_database(image)
            self.work.applied["CreateDatabase"] += 1

    def _alter_database(self, operation: op.AlterDatabase) -> None:
        current = self.target.metastore.database(self.database)
        if current is None:
            raise ReplicationError(f"the target database {self.database!r} went away during the load")
        altered = stated(current, self._written, operation.image)
        if altered != current:
            self.check()
            self.journal().database(current)
            self.target.metastore.alter_database(self.database, altered)
            self.work.applied["AlterDatabase"] += 1

    def _drop_database(self, operation: op.DropDatabase) -> None:
        metastore = self.target.metastore
        if self.exists and not self.dry:
            location, names = self.location(), metastore.table_names(self.database)
            kept = self.conflicts.dropped_with(metastore.tables(self.database, names))
            self.check()
            if kept:
                self._leave_database(operation.evid, [name for name in names if name not in kept])
                return
            for name in names:
                metastore.drop_table(self.database, name, delete_data=False)
            metastore.drop_database(self.database, delete_data=False, cascade=True)
            retire_database(self.target.storage, location, operation.evid)
            self.work.applied["DropDatabase"] += 1
        self.held.clear()
        self.exists = False
        self.state = self._written = ReplicaState()

    def _leave_database(self, evid: int, names: list[str]) -> None:
        """Drops our replicas; the database stays for what a stranger has in it."""
        metastore, location = self.target.metastore, self.location()
        for table in list(metastore.tables(self.database, names)):
            metastore.drop_table(self.database, table.tableName, delete_data=False)
            retire(self.target.storage, location, table.sd.location, evid)
        self.held.clear()
        self.write_state(ReplicaState())

    def write_state(self, state: ReplicaState) -> None:
        """Writes the database's state, if it changed."""
        self.state = state
        if self.dry or state == self._written:
            return
        current = self.target.metastore.database(self.database)
        if current is None:
            return
        self.check()
        altered = stated(current, state)
        if altered.parameters != current.parameters:
            self.target.metastore.alter_database(self.database, altered)
        self._written = state

    def finish(self, state: ReplicaState, *, whole: bool) -> None:
        """Writes the database's state after a load, and marks the load's journal as done.

        Args:
            state: of the database.
            whole: whether the load was of the whole database.
        """
        changed = bool(self.work.applied) or bool(self.reader.header.recovery)  # the last entry tells a restored target
        noted = not self.dry and self.exists and changed
        if noted:
            self.journal().ending(state)
        self.write_state(state)
        if noted:
            self.journal().done(state.applied if whole else None)

    def _stands(self) -> int:
        """Where the database stands, or the table that the load is of; a repair brings one ahead of the others."""
        state, end = self.state, self.reader.header.to_evid
        if self.table is not None:
            return max(end, state.position(self.table))
        return end if state.applied is None else state.applied

    def report(self, began: float) -> LoadReport:
        """What was done; ``began`` is the monotonic time of the load's begin."""
        header = self.reader.header
        spent = dict(self.work.seconds)
        spent["plan"] = round(max(time.monotonic() - began - sum(spent.values()), 0.0), 3)
        touched = touched_tables(self.work.operations, header.scope.table, self.table)
        there = [one.table for one in touched if not one.dropped]
        return LoadReport(
            directory=self.reader.directory,
            database=self.database,
            from_evid=header.from_evid,
            to_evid=self._stands(),
            applied=dict(self.work.applied),
            copies=tuple(self.work.copies),
            skipped=tuple(self.skipped),
            held=tuple(self.held),
            touched=touched,
            strangers=resolved(self.work.operations, self.database),
            changed_on_target=tuple(dict.fromkeys(self.work.changed)),
            translated=translated_tables(self.target.metastore, self.database, there),
            seconds=spent,
            collapsed=saved(self.target, self.work.collapsed),
        )
