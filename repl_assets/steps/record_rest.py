"""Recording what the runs of large loads left out: it is looked up at the target and logged, a limited number per run.

A load that leaves objects out tags its run and observes each table that they belong to. The job goes through the tagged runs,
the newest first, and logs those objects of these tables whose ``repl.last.id``, or whose commit in the observation, is
later than what Dagster shows. A retried or interrupted run logs nothing twice, because Dagster shows what is logged; each goes
on where the last one ended (see :mod:`repl_assets.recording.reached`).

Of runs that ended before they recorded their loads (see :mod:`repl_assets.recording.interrupted`), nothing says what the loads
changed: the replica is compared, once for all of them, with what Dagster shows, in tables that changed since the first of the
loads began, and in all with partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, cast

import dagster as dg

from hive_replication.load.replica.state import object_id
from hive_replication.load.report import Commit, LoadReport, Touched
from hive_replication.metastore.names import partition_name as hive_partition_name
from hive_replication.metastore.table_kinds import is_partitioned
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Partition, Table
from repl_assets.catalog.keys import LOADING_TAG, UNRECORDED_TAG, Names, database_of, loading_tag, partition_key, partition_name
from repl_assets.catalog.run_statuses import FINISHED_STATUSES
from repl_assets.dagster_private import DATA_VERSION_TAG
from repl_assets.recording.interrupted import interrupted_loads, interrupted_runs
from repl_assets.recording.metadata import commits_metadata
from repl_assets.recording.reached import START, Place, Reached, keep_reached, read_reached
from repl_assets.recording.recorder import COMMITS, DROPPED, MOST_PARTITIONS, UNRECORDED, Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure
from repl_assets.steps.repair import Failures

MOST_OBJECTS = 1_000  # that one run logs, in 20 to 50 s
_LONGEST = 60.0  # seconds after which a run looks up no other table: runs of the queue wait for it, and for a comparison
_OF_A_TABLE = 3  # components of its assets' keys

Commits = Mapping[str, Commit]
#: Table, its Hive partition or None for itself, the last event that changed it, and the last commit if the load observed one.
Later = tuple[str, str | None, int, Commit | None]
#: A database, one of its tables or "" for all, and the commits that a load observed.
Entry = tuple[str, str, Commits]


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
    for run_id in _left_out(instance, names):
        with failures.of(f"run {run_id[:8]}"):
            if not rest.log(run_id, _tables(instance, run_id)):
                return
            instance.add_run_tags(run_id, {UNRECORDED_TAG: ""})
    keep_reached(instance, names, {})
    failures.raise_any()
    context.log.info("%d objects are recorded; nothing is left", rest.done)


def unrecorded_runs(instance: dg.DagsterInstance, names: Names) -> list[str]:
    """Ids of finished runs whose loads left objects out, the newest first; before them those that did not record their loads."""
    return list(dict.fromkeys((*interrupted_runs(instance, names), *_left_out(instance, names))))


def _left_out(instance: dg.DagsterInstance, names: Names) -> list[str]:
    wanted = dg.RunsFilter(tags={UNRECORDED_TAG: names.policy}, statuses=FINISHED_STATUSES)
    return [record.dagster_run.run_id for record in instance.get_run_records(wanted)]


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
        return self.log(database, [(database, table, {}) for table in self.reached[database].tables])

    def log(self, key: str, entries: Iterable[Entry]) -> bool:
        """Logs objects of tables, from where an earlier run ended; returns whether nothing is left.

        Args:
            key: under which it is kept how far this run comes.
            entries: the tables; the same ones in each run.
        """
        reached = self.reached.get(key, Reached())
        for number, (database, table, commits) in islice(enumerate(entries), reached.entries, None):
            if database not in self.engine.connection.target.policy.databases:
                continue
            overflow = database in self.names.overflow
            goes_on = number == reached.entries and overflow == reached.overflow
            reached = replace(reached, entries=number, place=reached.place if goes_on else START, overflow=overflow)
            recorder = Recorder(self.context, self.names, database, ())
            later = _later(self.context.instance, self.engine, self.names, database, table, commits, reached.place)
            for found in islice(later, MOST_OBJECTS - self.done):
                _log(recorder, found)
                self.done += 1
                reached = replace(reached, place=(found[0], found[1] or ""))
            if self.done >= MOST_OBJECTS or time.monotonic() > self._until:
                if self.done < MOST_OBJECTS:  # all of the table is looked up
                    reached = replace(reached, entries=number + 1, place=START)
                keep_reached(self.context.instance, self.names, self.reached | {key: reached})
                self.context.log.info("%d objects are recorded; the next run continues", self.done)
                return False
        self.reached.pop(key, None)
        return True


def _log(recorder: Recorder, found: Later) -> None:
    name, partition, evid, commit = found
    metadata = commits_metadata([commit]) if commit and commit.evid == evid else {}
    recorder.sources([(name, evid)] if partition is None and recorder.database not in recorder.names.overflow else ())
    recorder.materialize(name, partition, evid, metadata)


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
    shown = {Names.hive_table(key): _last(instance, key) for key in replicas}
    return {table for (own, table), last in shown.items() if own == database and last and not _is_drop(last)}


def _is_drop(made: dg.AssetMaterialization) -> bool:
    """Whether an asset's entry is the drop of its table; of a dropped partition there is such an entry, too."""
    return made.partition is None and (made.tags or {}).get(DATA_VERSION_TAG, "").startswith(DROPPED)


def _tables(instance: dg.DagsterInstance, run_id: str) -> Iterator[Entry]:
    """Databases and tables of which a run observed that it left objects out, and commits by partition ("" for the table itself).

    Of a database that was in overflow then it is "" for all of them, and commits by table.
    """
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_OBSERVATION):
        seen = entry.asset_observation
        if seen and UNRECORDED in seen.metadata and seen.metadata[UNRECORDED].value:
            of_a_table = len(seen.asset_key.path) == _OF_A_TABLE
            database, table = Names.hive_table(seen.asset_key) if of_a_table else (database_of(seen.asset_key), "")
            stored = cast("Mapping[str, tuple[Any, ...]]", seen.metadata[COMMITS].value if COMMITS in seen.metadata else {})
            yield database, table, {name: Commit(*fields) for name, fields in stored.items()}


def _later(
    instance: dg.DagsterInstance, engine: Engine, names: Names, database: str, table: str, commits: Commits, after: Place
) -> Iterator[Later]:
    """What of the left tables ("" for all of the database) is later than Dagster shows where it is recorded today, in order.

    Since the load its database may have gone into overflow or out of it.
    """
    with as_dagster_failure():
        tables = [name for name in ([table] if table else engine.tables(database)) if name >= after[0]]
    if database in names.overflow:
        newest = {table: max(commits.values(), key=lambda one: one.evid)} if table and commits else commits
        left = (name for name in tables if (name, "") > after)
        yield from _later_tables(instance, engine, names, database, left, newest)
        return
    for name in tables:
        own = commits if table else {"": commits[name]} if name in commits else {}
        yield from _later_objects(instance, engine, names, database, name, own, after)


def _later_objects(
    instance: dg.DagsterInstance, engine: Engine, names: Names, database: str, table: str, commits: Commits, after: Place
) -> Iterator[Later]:
    """A table's known Hive partitions, or the table itself, whose last event is later than Dagster shows."""
    metastore, target, key = (
        engine.connection.target.metastore,
        engine.target_name(database),
        names.table(database, table, "load"),
    )
    with as_dagster_failure():
        found = metastore.table(target, table)
        if found is None:
            return
        if not is_partitioned(found):
            evid = _newest(found, commits.get(""))
            if (table, "") > after and evid > _evid(_data_version(instance, key)):
                yield table, None, evid, commits.get("")
            return
        known = map(partition_name, instance.get_dynamic_partitions(str(names.partitions(database, table).name)))
        left = sorted(name for name in known if (table, name) > after)
        shown = instance.event_log_storage.get_latest_tags_by_partition(
            key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
        )
        columns = [column.name for column in found.partitionKeys]
        for some in batches(left, at_once(found.sd.cols if found.sd else ())):
            parts = {hive_partition_name(columns, part.values): part for part in metastore.partitions(target, table, some)}
            for name, part in sorted(parts.items()):
                evid = _newest(part, commits.get(name))
                if evid > _evid(shown.get(partition_key(name), {}).get(DATA_VERSION_TAG)):
                    yield table, name, evid, commits.get(name)


def _later_tables(
    instance: dg.DagsterInstance, engine: Engine, names: Names, database: str, tables: Iterable[str], commits: Commits
) -> Iterator[Later]:
    """Those of some tables of a database in overflow whose last event is later than Dagster shows."""
    metastore, target = engine.connection.target.metastore, engine.target_name(database)
    shown = instance.event_log_storage.get_latest_tags_by_partition(
        names.tables(database), dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
    )
    with as_dagster_failure():
        for some in batches(tables, at_once(())):
            for table in sorted(metastore.tables(target, some), key=lambda one: one.tableName):
                name = table.tableName
                if (evid := _newest(table, commits.get(name))) > _evid(shown.get(partition_key(name), {}).get(DATA_VERSION_TAG)):
                    yield name, None, evid, commits.get(name)


def _newest(thing: Table | Partition, commit: Commit | None) -> int:
    """The last event that changed a table or partition."""
    return max(object_id(thing), commit.evid if commit else -1)


def _last(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization | None:
    """The newest entry of an asset that says what it holds; None without one."""
    entry = instance.get_latest_materialization_event(key)
    made = entry.asset_materialization if entry else None
    return made if made and DATA_VERSION_TAG in (made.tags or {}) else None


def _data_version(instance: dg.DagsterInstance, key: dg.AssetKey) -> str | None:
    """The data version that Dagster shows of an asset; None without one."""
    made = _last(instance, key)
    return (made.tags or {}).get(DATA_VERSION_TAG) if made else None


def _evid(data_version: str | None) -> int:
    """The event of a data version; -1 if there is none, or if it is no event id."""
    return int(data_version) if data_version and data_version.isdigit() else -1
