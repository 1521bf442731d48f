"""One load under way: what is known of it, and the order in which its parts are carried out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from hive_replication.copy.tasks import Copier
from hive_replication.dump.format.interface import DumpReader
from hive_replication.dump.source_boundary import has_our_state
from hive_replication.events.event_records import is_function
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.directory_access import DirectoryAccess
from hive_replication.load.apply.executor import Executor, Replan
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.journal.journal_writer import JournalWriter, Repairs
from hive_replication.load.load_boundary import LoadBoundary
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.left_open import end_given_up
from hive_replication.load.plan.collapse_savings import saved
from hive_replication.load.plan.conflicts import Conflicts, refuse_other_writers
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.plan.superseded import Lookahead, NoLookahead
from hive_replication.load.replica import ownership
from hive_replication.load.replica.hive4_translation import is_translated
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.own_location import own_location
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.load.replica.view_rewriting import renamed_databases
from hive_replication.load.report import Held, LoadReport, Skipped
from hive_replication.metastore.types import Database
from hive_replication.policy import PolicyScope
from hive_replication.progress import Progress


@dataclass
class Session:
    """A load of one dump into one target database.

    Args:
        replica: the target database.
        reader: the dump.
        table: target table name of a table-level load, or None.
        copier: copies files; None for a plan only, which changes nothing.
        progress: who is told.
        lookahead: what becomes of objects after the dump.
        repairs: what it repairs, so that what was there before may be damaged.
        rebuilt: target tables that this load has rebuilt, so that they stand ahead of the dump.
        boundary: what may be read of the source.
        tally: where what is done is added up.
        begun: tables that transactions wrote to, by transaction, as far as the parts of the window that were read say.
        skipped: events and objects left alone.
        held: lanes that failed.
        planned: what is to be done, of a plan only.
    """

    replica: TargetDatabase
    reader: DumpReader
    table: str | None
    copier: Copier | None
    progress: Progress
    lookahead: Lookahead = field(default_factory=NoLookahead)
    repairs: Repairs = ""
    rebuilt: frozenset[str] = frozenset()
    boundary: LoadBoundary = field(default_factory=LoadBoundary)
    tally: Tally = field(default_factory=Tally)
    begun: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    held: list[Held] = field(default_factory=list[Held])
    planned: list[SegmentPlan] = field(default_factory=list[SegmentPlan])

    def __post_init__(self) -> None:
        self._bootstrapped = self.state.applied is not None or self.table is not None
        self._journal: JournalWriter | None = None

    @property
    def target(self) -> Target:
        """The target side."""
        return self.replica.target

    @property
    def database(self) -> str:
        """The target database's name."""
        return self.replica.name

    @property
    def state(self) -> ReplicaState:
        """Where the target database stands."""
        return self.replica.state

    @property
    def exists(self) -> bool:
        """Whether there is a target database after what was carried out, or planned."""
        return self.replica.exists

    @property
    def identity(self) -> str:
        """What the replicas of this dump are stamped with."""
        return f"{self.reader.header.source}/{self.reader.header.scope.database}"

    @property
    def _lineage(self) -> tuple[str, ...]:
        """Where the dump's data comes from; see :func:`hive_replication.load.replica.ownership.lineage`."""
        return ownership.lineage(self.reader.header.source_database.parameters, self.identity)

    @property
    def dry(self) -> bool:
        """Whether this is a plan only."""
        return self.copier is None

    @property
    def conflicts(self) -> Conflicts:
        """How conflicts are settled."""
        return Conflicts(self.target.policy.conflicts, self.identity, self.database)

    @property
    def mapping(self) -> NameMapping:
        """Names and paths of this load."""
        header, policy = self.reader.header, self.target.policy
        return NameMapping(
            source=self.identity,
            source_database=header.scope.database,
            target_database=self.database,
            source_location=(header.source_database.locationUri or "").rstrip("/"),
            target_location=self.replica.location,
            source_roots=tuple(root.uri for root in policy.source.roots),
            external_root=policy.external_root or "",
            functions_root=policy.functions_root or "",
            source_table=header.scope.table,
            target_table=self.table,
            renamed_views=policy.renamed_views,
            databases=renamed_databases(policy.databases, header.scope.database, self.database),
            owners=policy.owners,
            metadata_only=header.metadata_only,
            source_managed=(header.source_database.managedLocationUri or "").rstrip("/"),
            of_replica=has_our_state(header.source_database),
        )

    def includes(self, table: str) -> bool:
        """Whether a source table, or a function by its name of lanes, belongs to the dump's scope."""
        scope = self.reader.header.scope
        if is_function(table):
            return scope.table is None
        return self._taken(table) if scope.table is None else table.lower() == scope.table.lower()

    @cached_property
    def _taken(self) -> Callable[[str], bool]:
        """What the dump's policy includes; that of the load where the dump does not say."""
        taken = self.reader.header.taken
        return PolicyScope.parse(taken).includes if taken else self.target.policy.includes

    def require_ours(self) -> None:
        """Makes sure that the target database is a replica of this source, or holds nothing that is not.

        Raises:
            Refused: it is another source's replica, a failover ended this direction, it is marked as changed so that nothing may
                be loaded, or it holds a table that is not our replica.
        """
        own, header, found = f"{self.target.identity}/{self.database}", self.reader.header, self.replica.image
        there = found is not None or header.scope.table is not None  # a table alone makes no replica of its database
        ownership.refuse_incompatible(found)
        ownership.refuse_failed_over(self.state, self.database, header.source_database, own, there=there)
        ownership.refuse_loop(self._lineage, own)
        ownership.refuse_second_writer(self.state, self.database, self.identity, self.target.policy.name)
        if self.state.source:
            self.replica.state = replace(self.state, policy=self.target.policy.name, origins=self._lineage[1:])
        if self.state.source or found is None or header.scope.table is not None:
            return
        names = self.target.metastore.table_names(self.database)
        refuse_other_writers(found, self.target.metastore.tables(self.database, names), self.conflicts)

    def taken_over(self, state: ReplicaState, checkpoint: str) -> ReplicaState:
        """The state of a database that becomes a replica now, with a bootstrap under way."""
        policy, origins = self.target.policy.name, self._lineage[1:]
        fresh = bool(checkpoint)
        return replace(state, source=self.identity, checkpoint=checkpoint, fresh=fresh, policy=policy, origins=origins)

    def require_released(self) -> None:
        """Makes sure that nobody took the database back on purpose; see :func:`.ownership.refuse_undone`."""
        ownership.refuse_undone(self.state, self.database, self.reader.header.to_evid)

    def carry_out(self, plan: SegmentPlan, replan: Replan, known: KnownObjects) -> None:
        """Carries out a segment, or only notes it where this is a plan.

        Args:
            plan: the segment.
            replan: plans a lane again without what later events supersede; see :class:`Executor`.
            known: what the target has of its objects.
        """
        lanes = [lane for lane in plan.lanes if lane.operations or lane.stop]
        self.tally.changing |= bool(lanes or plan.barrier)
        if self.copier is None:
            self.planned.append(plan)
        elif lanes:
            journal = self.journal() if self._bootstrapped else None
            executor = Executor(self.replica, self.identity, self.copier, self.progress, self.tally, known, journal)
            carried = executor.run(lanes, replan)
            self.held.extend(carried.held)
            self.tally.saved(saved(self.target, carried.collapsed))
        for alter in plan.alters if self.copier is not None else ():
            self._count(alter.kind, done=self.replica.alter(alter.image, lambda before: self.journal().database(before)))
        if isinstance(plan.barrier, op.DropDatabase):
            self._count(plan.barrier.kind, done=self.replica.drop(plan.barrier.evid, self.conflicts))
            self.skipped.extend(Skipped(plan.barrier.evid, self.database, why) for why in self.replica.left)
            self.held.clear()
        elif plan.barrier is not None:
            self.create_database(plan.barrier.image, plan.barrier.evid)

    def create_database(self, image: Database, evid: int | None, checkpoint: str = "") -> None:
        """Creates the target database; its state is set in the creating call, but in a load of one table: then it is no replica.

        Args:
            image: its properties.
            evid: event id that it stands at, or None while a bootstrap is under way.
            checkpoint: the bootstrap's dump directory.
        """
        state = replace(self.taken_over(ReplicaState(), checkpoint), applied=evid) if self.table is None else None
        self._tell_location()
        self._count("CreateDatabase", done=self._created(image, state))

    def _created(self, image: Database, state: ReplicaState | None) -> bool:
        """Creates it, with the access of the source's directory."""
        created = self.replica.create(image, state, self.identity)
        if created and (origin := self.mapping.source_location):
            DirectoryAccess(self.target, self.database, self.replica.location, self.tally.access).database_directory(origin)
        return created

    def _tell_location(self) -> None:
        """Says so where the source's users chose the database's directory: that of the replica is not theirs to choose."""
        own = own_location(self.reader.header.source_database, self.target.source_metastore)
        if own and self.database not in self.target.policy.locations:
            reason = f"its location {own} is not replicated: the target's metastore chooses one, or locations in the policy"
            self.skipped.append(Skipped(self.reader.header.to_evid, self.database, reason))

    def _count(self, kind: str, *, done: bool) -> None:
        self.tally.applied[kind] += done

    def journal(self) -> JournalWriter:
        """Where this load writes down what it is about to change."""
        if self._journal is None:
            header = self.reader.header
            DirectoryAccess(self.target, self.database, self.replica.location, self.tally.access).hide_notes()
            self._journal = self.replica.journal.begin(header.from_evid, header.to_evid, repairs=self.repairs)
        return self._journal

    @property
    def journal_token(self) -> str:
        """What names this load's journal; "" where it has changed nothing."""
        return self._journal.token if self._journal else ""

    def finish(self, state: ReplicaState, *, whole: bool) -> None:
        """Writes the database's state after a load, and marks the load's journal as done.

        Args:
            state: of the database.
            whole: whether the load was of the whole database.
        """
        changed = self.tally.applied or self.reader.header.recovery  # the last entry tells a restored target
        noted = not self.dry and self.exists and bool(changed)
        if noted:
            self.journal().state(state)
        if not self.dry:
            end_given_up(self.target, self.database, self.identity, self.replica.check, self.state, state.scope)
        self.replica.write_state(state)
        if noted:
            self.journal().done(state.applied if whole else None)

    def report(self, began: float) -> LoadReport:
        """What was done; ``began`` is the monotonic time of the load's begin."""
        header, tally, spent = self.reader.header, self.tally, dict(self.tally.seconds)
        spent["plan"] = round(max(time.monotonic() - began - sum(spent.values()), 0.0), 3)
        touched = tally.touched.sums(header.scope.table, self.table)
        translated, broken_views = self._peculiar([one.table for one in touched if not one.dropped])
        return LoadReport(
            directory=self.reader.directory,
            database=self.database,
            from_evid=header.from_evid,
            to_evid=self._stands(),
            applied=dict(tally.applied),
            copies=tally.copies,
            skipped=(*self.skipped, *self._not_preserved()),
            held=tuple(self.held),
            touched=touched,
            unexpected=tuple(tally.unexpected),
            changed_on_target=tuple(tally.changed),
            translated=translated,
            seconds=spent,
            slowest=tally.slowest(),
            collapsed=tally.collapsed,
            broken_views=broken_views,
            privileges=tally.privileges,
        )

    def _not_preserved(self) -> Iterator[Skipped]:
        """What of the database itself, and of owners, groups, modes and ACLs is not as at the source."""
        if self.replica.refused:
            yield Skipped(self.reader.header.to_evid, f"properties of {self.database}", self.replica.refused)
        for what, reason in self.tally.access.items():
            shown = what if what.startswith(self.database) else self.database
            yield Skipped(self.reader.header.to_evid, f"access to {shown}", reason)

    def _peculiar(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Tables that the target's metastore (of Hive 4) translated, and views that read databases by their sources' names."""
        metastore, mapping = self.target.metastore, self.mapping
        if metastore.features.major < 4 and not mapping.databases:
            return (), ()
        found = sorted(metastore.tables(self.database, names), key=lambda table: table.tableName)
        broken = [table.tableName for table in found if mapping.reads_source(table)]
        return tuple(table.tableName for table in found if is_translated(table)), tuple(broken)

    def _stands(self) -> int:
        """Where the database stands, or the table that the load is of; a repair brings one ahead of the others."""
        state, end = self.state, self.reader.header.to_evid
        if self.table is not None:
            return max(end, state.position(self.table))
        return end if state.applied is None else state.applied
