"""Recording what the runs of large loads left out: it is looked up at the target and logged, a limited number per run.

A load that leaves objects out tags its run and observes each table that they belong to. The job goes through the tagged runs,
the newest first, and logs those objects of these tables whose ``repl.last.id``, or whose commit in the observation, is
later than what Dagster shows, with what the load's kept report says of each. A retried or interrupted run logs nothing twice,
because Dagster shows what is logged; each goes on where the last one ended (see :mod:`repl_assets.recording.reached`).

Of runs that ended before they recorded their loads (see :mod:`repl_assets.recording.interrupted`), nothing says what the loads
changed: the replica is compared, once for all of them, with what Dagster shows, in tables that changed since the first of the
loads began, and in all with partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import dagster as dg

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.load.records import RecordStore
from hive_replication.load.replica.state import object_id
from hive_replication.load.report import LoadReport, Touched
from hive_replication.metastore.table_kinds import is_partitioned
from repl_assets.catalog.keys import LOADING_TAG, UNRECORDED_TAG, Names, loading_tag, partition_name
from repl_assets.recording.interrupted import interrupted_loads, interrupted_runs
from repl_assets.recording.left_out import LeftOut, Loads, left_out, left_out_runs
from repl_assets.recording.metadata import commits_metadata
from repl_assets.recording.object_metadata import COLUMNS, Object, object_metadata
from repl_assets.recording.reached import START, Reached, keep_reached, read_reached
from repl_assets.recording.recorder import DROPPED, MOST_PARTITIONS, Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure
from repl_assets.steps.later_objects import Later, LaterObjects, data_version, last_entry
from repl_assets.steps.repair import Failures

MOST_OBJECTS = 1_000  # that one run logs, in 20 to 50 s
_LONGEST = 60.0  # seconds after which a run looks up no other table: runs of the queue wait for it, and for a comparison
_MOST_REPORTS = (
    10  # of a database that a run reads for what it is about to log: ten seconds for each million files, beside _LONGEST
)
_OF_A_TABLE = 3  # components of its assets' keys


def record_rest(context: dg.OpExecutionContext, engine: Engine, names: Names) -> None:
    """Logs what the tagged runs left out, at most :data:`MOST_OBJECTS` objects.

    Raises:
        Failure: a server does not answer, or all is done but what cannot be looked up.
    """
    instance, policy = context.instance, engine.connection.target.policy
    rest = _Rest(context, engine, names, read_reached(instance, names))
    interrupted = interrupted_runs(instance, names)
    failures = Failures(context)  # of a database that is hidden by now, say: its runs keep their marks
    for database, begun in interrupted_loads(instance, interrupted).items():
        with failures.of(database):
            if database in policy.databases and not rest.log_compared(database, begun):
                return
            for run_id in begun:
                instance.add_run_tags(run_id, {loading_tag(database): ""})
    left = {run_id for begun in interrupted_loads(instance, interrupted).values() for run_id in begun}
    for run_id in interrupted:
        if run_id not in left:
            instance.add_run_tags(run_id, {LOADING_TAG: ""})
    runs = left_out_runs(instance, names)
    for number, run_id in enumerate(runs):
        with failures.of(f"run {run_id[:8]}"):
            if not rest.log(run_id, left_out(instance, run_id), runs[number:]):
                return
            instance.add_run_tags(run_id, {UNRECORDED_TAG: ""})
    keep_reached(instance, names, {})
    failures.raise_any()
    context.log.info("%d objects are recorded; nothing is left", rest.done)


def unrecorded_runs(instance: dg.DagsterInstance, names: Names) -> list[str]:
    """Ids of finished runs whose loads left objects out, the newest first; before them those that did not record their loads."""
    return list(dict.fromkeys((*interrupted_runs(instance, names), *left_out_runs(instance, names))))


@dataclass
class _Rest:
    """What one run of the job logs.

    Args:
        context: the step's.
        engine: connected.
        names: of the policy.
        reached: how far earlier runs came.
        done: objects that are logged.
    """

    context: dg.OpExecutionContext
    engine: Engine
    names: Names
    reached: dict[str, Reached]
    done: int = 0

    def __post_init__(self) -> None:
        self._until = time.monotonic() + _LONGEST
        self._loads = Loads(self.context.instance)

    def log_compared(self, database: str, begun: Mapping[str, int]) -> bool:
        """Logs what loads changed of a database that their runs did not record: one comparison serves all of them.

        Args:
            database: source database.
            begun: the events after which the loads began, by run.

        Returns:
            Whether nothing is left.
        """
        reached, runs = self.reached.get(database), tuple(sorted(begun))
        if reached is None or reached.runs != runs:
            recorder = Recorder(self.context, self.names, database, ())
            tables = _compare(self.context.instance, self.engine, recorder, min(begun.values()))
            self.reached[database] = Reached(runs=runs, tables=tuple(tables))
        left = [LeftOut(database, table) for table in self.reached[database].tables]
        return self.log(database, left, left_out_runs(self.context.instance, self.names))

    def log(self, key: str, left: Iterable[LeftOut], runs: Sequence[str]) -> bool:
        """Logs objects of tables, from where an earlier run ended; returns whether nothing is left.

        Args:
            key: under which it is kept how far this run comes.
            left: the tables; the same ones in each run.
            runs: that left objects out, in whose loads these may have changed, the newest first.
        """
        found: dict[str, dict[Object, Later]] = {}
        try:
            reached = self._look_up(left, self.reached.get(key, Reached()), found)
        except dg.Failure:  # what was found before it, or the next run would not come further either
            self._log(found, runs)
            raise
        self._log(found, runs)
        if reached is None:
            self.reached.pop(key, None)
            return True
        keep_reached(self.context.instance, self.names, self.reached | {key: reached})
        self.context.log.info("%d objects are recorded; the next run continues", self.done)
        return False

    def _look_up(self, left: Iterable[LeftOut], reached: Reached, found: dict[str, dict[Object, Later]]) -> Reached | None:
        """Adds objects to those that were found, by database, as many as this run may log; None once there are no others.

        They are looked up before they are logged, so that a load's report is read once for all of them.
        """
        objects = LaterObjects(self.context.instance, self.engine, self.names)
        for number, one in islice(enumerate(left), reached.entries, None):
            if one.database not in self.engine.connection.target.policy.databases:
                continue
            overflow = one.database in self.names.overflow
            goes_on = number == reached.entries and overflow == reached.overflow
            reached = replace(reached, entries=number, place=reached.place if goes_on else START, overflow=overflow)
            for later in islice(objects.find(one, reached.place), MOST_OBJECTS - self.done):
                _add(found.setdefault(one.database, {}), later)
                self.done += 1
                reached = replace(reached, place=(later.table, later.partition or ""))
            if self.done >= MOST_OBJECTS or time.monotonic() > self._until:
                if self.done < MOST_OBJECTS:  # all of the table is looked up
                    reached = replace(reached, entries=number + 1, place=START)
                return reached
        return None

    def _log(self, found: Mapping[str, Mapping[Object, Later]], runs: Sequence[str]) -> None:
        for database, objects in found.items():
            recorder, metadata = Recorder(self.context, self.names, database, ()), self._metadata(database, objects, runs)
            for key, one in objects.items():
                own = commits_metadata([one.commit]) if one.commit and one.commit.evid == one.evid else {}
                of_a_source = one.partition is None and database not in self.names.overflow
                recorder.sources([(one.table, one.evid)] if of_a_source else ())
                recorder.materialize(one.table, one.partition, one.evid, metadata.get(key, {}) | own)

    def _metadata(self, database: str, objects: Mapping[Object, Later], runs: Sequence[str]) -> dict[Object, dict[str, Any]]:
        """Of objects that one of the last loads in these runs changed last: the metadata that its own run would have logged."""
        target, known = self.engine.connection.target, dict[Object, dict[str, Any]]()
        for load in islice(self._loads.of(database, runs), _MOST_REPORTS):
            wanted = {key: later.evid for key, later in objects.items() if key not in known}
            if not wanted:
                break
            store = RecordStore.of(target.policy, self.engine.connection.store, self.engine.target_name(database))
            try:
                known |= object_metadata(load, store.rows_at(load.report, COLUMNS), wanted)
            except Unreachable as error:
                raise dg.Failure(f"the report {load.report} is not read: {error}") from error
            except (ReplicationError, OSError) as error:  # retention removed it, say
                self.context.log.warning("entries of %s lack files and proofs: %s", database, error)
        return known


def _add(found: dict[Object, Later], later: Later) -> None:
    """Adds an object that may be among them: two loads of a run left objects of its table out."""
    known = found.get(key := (later.table, later.partition))
    if known is None or later.evid >= known.evid:
        found[key] = later


def _compare(instance: dg.DagsterInstance, engine: Engine, recorder: Recorder, after: int) -> list[str]:
    """Makes known which tables and partitions a replica has, and logs the drops of others.

    Returns:
        The tables that may have changed since an event, "" for all of a database in overflow.
    """
    names, database = recorder.names, recorder.database
    metastore, target = engine.connection.target.metastore, engine.target_name(database)
    with as_dagster_failure():
        present = set(metastore.table_names(target)) if metastore.database(target) else set[str]()
        tables = list(metastore.tables(target, sorted(filter(engine.connection.target.policy.includes, present))))
        evid = engine.state(database).applied or after
    touched = [Touched(name, name, evid, dropped=True) for name in sorted(_shown_tables(instance, names, database) - present)]
    ours = [table for table in tables if object_id(table)]  # a stranger's has none
    # What changes in a partition leaves the id of its table as it is.
    changed = [table.tableName for table in ours if is_partitioned(table) or object_id(table) > after]
    new: dict[str, list[str]] = {}
    for table in ours if database not in names.overflow else ():
        if is_partitioned(table):
            name = table.tableName
            known = set(map(partition_name, instance.get_dynamic_partitions(str(names.partitions(database, name).name))))
            found = engine.partition_names(database, name)
            if gone := known.difference(found):
                touched.append(Touched(name, name, evid, dropped_partitions=tuple(sorted(gone))))
            if not known.issuperset(newest := sorted(found)[-MOST_PARTITIONS:]):
                new[name] = newest
    recorder.record(LoadReport("", target, after, evid, touched=tuple(touched)), "")
    for name, partitions in new.items():
        recorder.sync(name, partitions)
    if database in names.overflow:
        recorder.sync_tables([table.tableName for table in tables])
        return [""]
    return sorted(changed)


def _shown_tables(instance: dg.DagsterInstance, names: Names, database: str) -> set[str]:
    """The tables of a database that Dagster shows as replicas, not as dropped ones."""
    if database in names.overflow:
        return set(map(partition_name, instance.get_dynamic_partitions(str(names.table_partitions(database).name))))
    keys = instance.get_asset_keys(prefix=names.table(database, "", "load").path[:2])
    replicas = [key for key in keys if len(key.path) == _OF_A_TABLE and not key.path[2].endswith(("__source", "__dump"))]
    shown = {Names.hive_table(key): last_entry(instance, key) for key in replicas}
    return {table for (own, table), last in shown.items() if own == database and last and not _is_drop(last)}


def _is_drop(made: dg.AssetMaterialization) -> bool:
    """Whether an asset's entry is the drop of its table; of a dropped partition there is such an entry, too."""
    return made.partition is None and data_version(made).startswith(DROPPED)
