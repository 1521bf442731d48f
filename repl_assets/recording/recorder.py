"""Recording loads: materializations and partitions of what a load changed, so that Dagster's catalog shows the target.

Recording is bounded: an event costs 10 to 25 ms of storage (design: Dagster). Beyond the bound a table gets one observation,
and its run a tag: the job ``record`` logs the rest (see ``steps.record_rest``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import dagster as dg

from hive_replication.load.report import Commit, LoadReport, Touched
from repl_assets.catalog.keys import UNRECORDED_TAG, Names, partition_key, partition_name
from repl_assets.catalog.run_partitions import surplus
from repl_assets.dagster_private import DATA_VERSION_TAG, delete_dynamic_partitions
from repl_assets.recording.metadata import commits_metadata
from repl_assets.recording.object_metadata import LoadName, object_metadata

MOST_PARTITIONS = 10_000  # that Dagster knows of one table: the newest
MOST_EVENTS = 200  # objects of one load that its own run logs
UNRECORDED = "unrecorded"  # in an observation's metadata: whether objects of the table were left out
COMMITS = "commits"  # there, of such a table: the last commit to each object, which leaves no trace in the target's metadata
DROPPED = "dropped at "  # begins the data version of what was dropped, before the event id
_CHUNK = 5_000  # SQLite takes a limited number of values in one statement


@dataclass(frozen=True)
class Recorder:
    """Records what loads of one database changed.

    Args:
        context: the step's context.
        names: the policy's names.
        database: the source database.
        partitioned: source names of tables known to have partitions; a change of such a table that names no partition is
            no materialization.
    """

    context: dg.OpExecutionContext
    names: Names
    database: str
    partitioned: Collection[str]

    def record(self, report: LoadReport, directory: str) -> None:
        """Registers partitions, then logs dump and replica of each changed object, in this order: Dagster compares times."""
        from hive_replication.load.records.report_rows import report_rows  # takes 0.3 s, which definitions do not wait for

        gone: list[tuple[Touched, str | None]] = []
        for touched in report.touched:
            if not self._overflow:
                self.register(touched.source_table, touched.partitions)
            gone += self._forget(touched)
        tables = [(touched, key) for touched, key in gone if key is None][:MOST_EVENTS]
        partitions = [(touched, key) for touched, key in gone if key is not None][: MOST_EVENTS - len(tables)]
        for touched, key in (*partitions, *tables):  # tables last: retention reads in a table's last entry whether it was dropped
            self._log_dropped(touched, key)
        load = LoadName.of(report, directory)
        objects = [(touched, partition) for touched in report.touched for partition in self._objects(touched)]
        logged = {touched.source_table for touched, _ in objects[:MOST_EVENTS]}
        left = {touched.source_table for touched, _ in objects[MOST_EVENTS:]}
        if left:  # first: an interrupted run is recorded by the job, too
            self.context.instance.add_run_tags(self.context.run_id, {UNRECORDED_TAG: self.names.policy})
        if self._overflow and left:
            tables = self.names.tables(self.database)
            commits = {one.source_table: one.commits[-1] for one in report.touched if one.commits}
            metadata = {"tables": len(left), UNRECORDED: True, **load.metadata, **_commits(commits)}
            self.context.log_event(dg.AssetObservation(tables, metadata=metadata))
        read = {touched.source_table: touched.evid for touched in report.touched if touched.source_table in logged}
        self.sources(() if self._overflow else read.items())
        for touched in report.touched if not self._overflow else ():
            if touched.source_table in left or touched.source_table not in logged:
                self._observe(touched, load if touched.source_table in left else None)
        logged_now = {(touched.table, partition): touched.evid for touched, partition in objects[:MOST_EVENTS]}
        metadata = object_metadata(load, report_rows(report), logged_now)
        for touched, partition in objects[:MOST_EVENTS]:
            commits = [one for one in touched.commits if partition in (None, one.partition)]
            own = metadata[touched.table, partition] | commits_metadata(commits)
            self.materialize(touched.source_table, partition, touched.evid, own)

    def materialize(self, table: str, partition: str | None, evid: int, metadata: Mapping[str, Any]) -> None:
        """Logs dump and replica of a table without partitions or of a Hive partition, in this order.

        Of a database in overflow the table is logged, as a partition of the asset of all its tables.
        """
        replica, key = self.names.replica(self.database, table, partition)
        dumps = [] if self._overflow else [self.names.table(self.database, table, "dump")]
        for asset in (*dumps, replica):
            self.context.log_event(
                dg.AssetMaterialization(
                    asset,
                    partition=key,
                    metadata={**metadata, "evid": evid, **({"partition": partition} if partition else {})},
                    tags={DATA_VERSION_TAG: str(evid)},
                )
            )

    def sources(self, tables: Iterable[tuple[str, int]]) -> None:
        """Logs how far tables of the source are read, with an event id each; before their dumps: Dagster compares times."""
        for table, evid in tables:
            key, description = self.names.table(self.database, table, "source"), f"Read up to event {evid}"
            self.context.log_event(dg.AssetMaterialization(key, metadata={"evid": evid}, description=description))

    def register(self, table: str, partitions: Sequence[str]) -> None:
        """Makes Hive partitions known as Dagster partitions of the table."""
        if not partitions:
            return
        name = str(self.names.partitions(self.database, table).name)
        keys = [partition_key(partition) for partition in sorted(partitions)[-MOST_PARTITIONS:]]
        for start in range(0, len(keys), _CHUNK):
            self.context.instance.add_dynamic_partitions(name, keys[start : start + _CHUNK])
        self._delete(name, surplus(self.context.instance, name, MOST_PARTITIONS))

    def sync(self, table: str, partitions: Sequence[str]) -> None:
        """Makes exactly these Hive partitions known, also those that other programs replicated."""
        name = str(self.names.partitions(self.database, table).name)
        present = {partition_key(partition) for partition in partitions}
        known = self.context.instance.get_dynamic_partitions(name)
        self._delete(name, [key for key in known if key not in present])
        self.register(table, partitions)

    def sync_tables(self, tables: Collection[str]) -> None:
        """Makes exactly these tables of a database in overflow known."""
        name = str(self.names.table_partitions(self.database).name)
        keys = {partition_key(table) for table in tables}
        known = self.context.instance.get_dynamic_partitions(name)
        self._delete(name, [key for key in known if key not in keys])
        new = sorted(keys.difference(known))
        for start in range(0, len(new), _CHUNK):
            self.context.instance.add_dynamic_partitions(name, new[start : start + _CHUNK])

    @property
    def _overflow(self) -> bool:
        return self.database in self.names.overflow

    def _forget(self, touched: Touched) -> Iterator[tuple[Touched, str | None]]:
        """Makes dropped partitions unknown; yields their keys, and None for a dropped table."""
        if not self._overflow and (touched.dropped or touched.dropped_partitions):
            name = str(self.names.partitions(self.database, touched.source_table).name)
            dropped = {partition_key(partition) for partition in touched.dropped_partitions}
            known = self.context.instance.get_dynamic_partitions(name)
            gone = [key for key in known if touched.dropped or key in dropped]
            self._delete(name, gone)
            yield from ((touched, key) for key in gone)
        if touched.dropped:
            yield touched, None

    def _log_dropped(self, touched: Touched, key: str | None) -> None:
        """Logs a drop, so that an object created later under the same name does not show the state before the drop.

        Dagster cannot forget the events of a partition, and shows the last of them as its state.
        """
        asset, whole = self.names.replica(self.database, touched.source_table)
        self.context.log_event(
            dg.AssetMaterialization(
                asset,
                description=f"Dropped at event {touched.evid}",
                partition=key or whole,
                metadata={"evid": touched.evid, **_dropped(key)},
                tags={DATA_VERSION_TAG: f"{DROPPED}{touched.evid}"},
            )
        )

    def _delete(self, name: str, keys: Sequence[str]) -> None:
        delete_dynamic_partitions(self.context.instance, name, keys)

    def _objects(self, touched: Touched) -> Iterator[str | None]:
        """Names of changed partitions; None for a table without partitions."""
        if touched.dropped:
            return
        if self._overflow:
            yield None
        elif touched.partitions:
            yield from touched.partitions
        elif touched.source_table not in self.partitioned and not touched.dropped_partitions:
            yield None

    def _observe(self, touched: Touched, left_out_of: LoadName | None) -> None:
        metadata = {
            "evid": touched.evid,
            "partitions": len(touched.partitions),
            "dropped partitions": len(touched.dropped_partitions),
            "dropped": touched.dropped,
            UNRECORDED: left_out_of is not None,
            **(left_out_of.metadata | _commits({one.partition: one for one in touched.commits}) if left_out_of else {}),
        }
        self.context.log_event(
            dg.AssetObservation(self.names.table(self.database, touched.source_table, "load"), metadata=metadata)
        )


def _dropped(key: str | None) -> dict[str, str]:
    """What was dropped: the page of a table shows the last entry of any of its partitions."""
    return (
        {"partition": partition_name(key), "state": f"partition {partition_name(key)} dropped"} if key else {"state": "dropped"}
    )


def _commits(by_object: Mapping[str, Commit]) -> dict[str, dg.JsonMetadataValue]:
    stored = {name: astuple(commit) for name, commit in by_object.items()}
    return {COMMITS: dg.MetadataValue.json(stored)} if stored else {}
