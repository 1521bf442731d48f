"""What loads left out, as the runs that did it observed: the tables, and which load it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import dagster as dg

from hive_replication.load.report import Commit
from repl_assets.catalog.keys import UNRECORDED_TAG, Names, database_of
from repl_assets.catalog.run_statuses import FINISHED_STATUSES
from repl_assets.recording.object_metadata import LoadName
from repl_assets.recording.recorder import COMMITS, UNRECORDED

_OF_A_TABLE = 3  # components of its assets' keys

#: The last commit to each object, by partition ("" for the table itself).
Commits = Mapping[str, Commit]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A table of which objects are to be recorded.

    Args:
        database: source database.
        table: one of its tables, "" for all of them.
        commits: that the load observed; of a database that was in overflow then, by table.
        load: the load; nothing is known of one that an earlier version observed.
    """

    database: str
    table: str
    commits: Commits = field(default_factory=dict[str, Commit])
    load: LoadName = field(default_factory=LoadName)


def left_out_runs(instance: dg.DagsterInstance, names: Names) -> list[str]:
    """Ids of finished runs whose loads left objects out, the newest first."""
    wanted = dg.RunsFilter(tags={UNRECORDED_TAG: names.policy}, statuses=FINISHED_STATUSES)
    return [record.dagster_run.run_id for record in instance.get_run_records(wanted)]


def left_out(instance: dg.DagsterInstance, run_id: str) -> Iterator[LeftOut]:
    """Tables of which a run observed that it left objects out; of a database that was in overflow then, all of them at once."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_OBSERVATION):
        seen = entry.asset_observation
        if seen and UNRECORDED in seen.metadata and seen.metadata[UNRECORDED].value:
            of_a_table = len(seen.asset_key.path) == _OF_A_TABLE
            database, table = Names.hive_table(seen.asset_key) if of_a_table else (database_of(seen.asset_key), "")
            stored = cast("Mapping[str, tuple[Any, ...]]", seen.metadata[COMMITS].value if COMMITS in seen.metadata else {})
            commits = {name: Commit(*fields) for name, fields in stored.items()}
            yield LeftOut(database, table, commits, LoadName.read(seen.metadata))


class Loads:
    """Loads that left objects out; each run's observations are read once.

    Args:
        instance: where they are.
    """

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance
        self._by_run: dict[str, list[tuple[str, LoadName]]] = {}

    def of(self, database: str, run_ids: Iterable[str]) -> Iterator[LoadName]:
        """Those of a source database in some runs whose reports were kept; of a run the last one first."""
        for run_id in run_ids:
            if run_id not in self._by_run:
                found = dict.fromkeys((one.database, one.load) for one in left_out(self._instance, run_id) if one.load.report)
                self._by_run[run_id] = list(reversed(found))
            yield from (load for own, load in self._by_run[run_id] if own == database)
