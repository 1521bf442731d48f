"""W6: one insert, from its event to its rows on the target, through the running sensor, by part; and by the engine alone."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from bench.peers import Ours
from bench.report import Measurement
from bench.source import SourceDatabase
from hive_replication.connect import connect
from hive_replication.metastore.types import Table
from hive_replication.policy import Policy
from repl_assets.catalog.keys import ATTEMPT_TAG
from tests.dagster_dev import dagster_dev, wait_for

_SIZE = 64 << 10
_DAY = "1"
_LOOK = 0.05  # seconds
#: What a run logs at the end of each part of the way, in this order.
_PARTS = {
    "the sensor sees it": "PIPELINE_ENQUEUED",
    "the run is taken from the queue": "PIPELINE_STARTING",
    "its process starts": "Started process",
    "definitions and job": "PIPELINE_START",
    "dump": "ASSET_MATERIALIZATION",
}


class TinyWindow:
    """Single inserts.

    Args:
        policy: of the warehouses.
        source: the database that is inserted into, made already.
        inserts: how many, one after another, for each of the two figures.
    """

    def __init__(self, policy: Policy, source: SourceDatabase, inserts: int = 5) -> None:
        self._source, self._inserts, self._made = source, inserts, 0
        self._table: Table = source.table("t")
        source.partitions(self._table, [_DAY])
        self._policy = policy.model_copy(update={"databases": {source.name: source.name}})

    def measure(self) -> Measurement:
        """Measures medians; the goal is for the whole way."""
        engine = statistics.median(self._engine())
        ways = list(self._visible())
        whole = statistics.median(sum(way.values()) for way in ways)
        rows = {
            "DUMP and LOAD in a warm process": {"both, s": engine},
            "from the event to the target, by Dagster": {"both, s": whole},
            **{f"- {part}": {"both, s": statistics.median(way[part] for way in ways)} for part in ways[0]},
        }
        return Measurement(
            "W6", "tiny window: one insert", rows, whole, 5, "seconds", at_most=True, means="s until it is visible"
        )

    def _insert(self) -> None:
        self._made += 1
        name = f"part-{self._made}"
        self._source.files([f"{self._source.place(self._table, _DAY)}/.{name}"], _SIZE)
        self._source.insert(self._table, _DAY, name)

    def _engine(self) -> list[float]:
        ours = Ours(self._policy)
        replica = f"{self._source.name}_engine"
        ours.replicate(self._source.name, replica)
        times: list[float] = []
        for _ in range(self._inserts + 1):
            self._insert()
            times.append(ours.replicate(self._source.name, replica).whole)
        return times[1:]  # the first one makes connections

    def _visible(self) -> Iterator[dict[str, float]]:
        """The seconds of each part of the way, for each insert."""
        target = connect(self._policy).target
        with (
            tempfile.TemporaryDirectory() as folder,
            dagster_dev(self._policy, Path(folder)) as dagster,
            dg.DagsterInstance.from_config(str(dagster.home)) as instance,
        ):
            wait_for("the target has all", lambda: self._files(target) == self._made)
            for _ in range(self._inserts):
                wait_for("no run is in progress", lambda: all(run.is_finished for run in instance.get_runs()))
                before = time.time()
                self._insert()
                began = time.time()
                wait_for("the target has the insert", lambda: self._files(target) == self._made, every=_LOOK)
                ended = time.time()
                yield _parts(instance, _run_of(instance, before), began, ended)

    def _files(self, target) -> int:
        name = self._source.name
        if target.metastore.database(name) is None or "t" not in target.metastore.table_names(name):
            return 0
        parts = list(target.metastore.partitions(name, "t"))
        return len(target.storage.files(parts[0].sd.location)) if parts else 0


def _run_of(instance: dg.DagsterInstance, since: float) -> str:
    """The run that loaded the insert: the first window's since then; checks have runs of their own, and a next run may wait."""
    records = instance.get_run_records(limit=20)
    windows = [one for one in records if ATTEMPT_TAG in one.dagster_run.tags and one.create_timestamp.timestamp() >= since]
    return min(windows, key=lambda one: one.create_timestamp).dagster_run.run_id


def _parts(instance: dg.DagsterInstance, run: str, began: float, ended: float) -> dict[str, float]:
    """What the log of a run tells of the time in between."""
    told: dict[str, float] = {}
    for entry in instance.all_logs(run):
        kind = entry.dagster_event_type.value if entry.dagster_event_type else ""
        for part, mark in _PARTS.items():
            if kind == mark or (entry.message or "").startswith(mark):
                told.setdefault(part, entry.timestamp)
    ends = {part: told[part] for part in _PARTS} | {"load": ended}
    return {part: end - start for (part, end), start in zip(ends.items(), [began, *ends.values()], strict=False)}
