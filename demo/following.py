"""Waits for Dagster's runs and shows the lag of the replica and the result of each run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import dagster as dg

from demo.screen import Screen
from demo.tables import DATABASE
from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError
from hive_replication.lag import Lag, lag
from hive_replication.units import count
from repl_assets.catalog.keys import Names
from repl_assets.catalog.run_statuses import FINISHED_STATUSES, NOT_FINISHED_STATUSES

_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 420.0
_COUNTED = ("files by spark", "files by threads", "files from source", "files from cmroot")


@dataclass(frozen=True, slots=True)
class Load:
    """A REPL LOAD by its materialization in Dagster.

    Args:
        window: its partition, e.g. ``170-230``.
        run_id: the run.
        counts: numbers of files by executor and by origin.
        operations: changes of the target's metastore.
        megabytes: copied.
    """

    window: str
    run_id: str
    counts: Counter[str]
    operations: int
    megabytes: float

    @property
    def bootstrap(self) -> bool:
        """Whether it loaded the whole database."""
        return self.window.startswith("bootstrap")


@dataclass
class Follower:
    """Waits for the replica to catch up and shows the runs.

    Args:
        connection: both sides.
        instance: the demo's Dagster instance.
        screen: shows the runs.
    """

    connection: Connection
    instance: dg.DagsterInstance
    screen: Screen
    _shown: set[str] = field(default_factory=set[str], init=False)

    def __post_init__(self) -> None:
        self._shown = {run.run_id for run in self.instance.get_runs()}

    def lag(self) -> Lag:
        """How far the replica is behind now."""
        return lag(self.connection.source, self.connection.target, DATABASE)

    def wait(self) -> Lag:
        """Waits until nothing waits and no run is under way.

        Raises:
            ReplicationError: it takes too long; the message says what is held or failed.
        """
        began = time.monotonic()
        with self.screen.console.status("waiting for the sensor") as status:
            while True:
                found = self.lag()
                running = self.instance.get_runs(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES))
                self._show_finished()
                if found.waiting == 0 and not running:
                    return found
                if time.monotonic() - began > _PATIENCE_SECONDS:
                    held = "; ".join(f"{table}: {reason}" for table, reason in found.held)
                    raise ReplicationError(
                        f"the replica has not caught up in {_PATIENCE_SECONDS:.0f} s; {held or 'see the runs in Dagster'}"
                    )
                doing = "a run is under way" if running else "the sensor looks every 10 s"
                status.update(f"{_position(found)}; {doing}")
                time.sleep(_POLL_SECONDS)

    def loads(self) -> Iterator[Load]:
        """All loads that Dagster knows of, the oldest first."""
        key = Names.of(self.connection.source.policy).database(DATABASE, "load")
        for record in reversed(self.instance.fetch_materializations(key, limit=5_000).records):
            made = record.asset_materialization
            if made is not None:
                values = {name: value.value for name, value in made.metadata.items()}
                counts = Counter({name: int(str(values.get(name, 0))) for name in _COUNTED})
                done, megabytes = int(str(values.get("operations", 0))), float(str(values.get("copied (MB)", 0)))
                yield Load(record.partition_key or "", record.run_id, counts, done, megabytes)

    def _show_finished(self) -> None:
        finished = [
            run for run in self.instance.get_runs(dg.RunsFilter(statuses=FINISHED_STATUSES)) if run.run_id not in self._shown
        ]
        if not finished:
            return
        loads = {load.run_id: load for load in self.loads()}
        for run in reversed(finished):
            self._shown.add(run.run_id)
            load = loads.get(run.run_id)
            if run.is_success and load:
                self.screen.say(f"[green]✓[/] run {run.run_id[:8]}, window {load.window}: {_summary(load)}")
            else:
                self.screen.say(f"[red]✗[/] run {run.run_id[:8]}: {run.status.value.lower()}")


def _position(found: Lag) -> str:
    if found.applied is None:
        return f"no replica yet, the source is at event {found.current}"
    behind = f", {found.seconds_behind:.0f} s behind" if found.seconds_behind else ""
    return f"replica at event {found.applied} of {found.current}, {found.waiting} events wait{behind}"


def _summary(load: Load) -> str:
    files = [f"{load.counts[name]} {name.removeprefix('files ')}" for name in _COUNTED if load.counts[name]]
    return f"{count(load.operations, 'operation')}, {load.megabytes:.1f} MB, files: {', '.join(files) or 'none to copy'}"
