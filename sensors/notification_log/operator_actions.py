"""What operators did on the command line, as observations in Dagster: undo, pauses, loads and repairs by hand, with who did it.

They are read from the records below the dump root when the mark there says that there is a new one. The checks that they mend are
answered, too: no run does it, and where the source is quiet no window.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.target import state_of
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.not_held import held_answers

_LOG = logging.getLogger(__name__)

_MOST = 20  # records of a database that are read
_MOST_TABLES = 20  # of one action that are observed
_OVERLAP = 60.0  # seconds by which clocks may differ; what was observed is not observed again
_LONGEST = 10.0  # seconds of a tick for this; Dagster ends one after 60 s, and drops its cursor and its runs
#: What may end that tables are held.
_MENDS = frozenset({"window", "bootstrap", "table", "repair", "recovery", "catch-up", "release"})

#: Is told what operators did, each with its source database.
Mended = Callable[[Sequence[tuple[str, Record]]], None]


@dataclass(frozen=True, slots=True)
class OfHeldTables:
    """The checks about held tables, answered again after what operators did.

    Args:
        instance: Dagster's.
        connection: both sides.
        specs: of the policy.
        databases: its databases, with the tables that have assets.
    """

    instance: dg.DagsterInstance
    connection: Connection
    specs: Specs
    databases: Sequence[CatalogDatabase]

    def answer(self, new: Sequence[tuple[str, Record]]) -> None:
        """Answers those of the databases concerned by what the replicas hold now: the states of the tick are from before.

        Not those of tables that are partitions of one asset, of which Dagster takes no second answer outside of a run.
        """
        mended = {name for name, record in new if record.action in _MENDS}
        for database in self.databases:
            if database.name not in mended:
                continue
            try:
                state = state_of(self.connection.target, database.name)
            except Unreachable:
                raise  # the tick ends before the records count as observed
            except ReplicationError as error:
                _LOG.warning("the checks about held tables of %s are not answered: %s", database.name, error)
                continue
            for answer in held_answers(self.instance, self.specs, database, state, repaired=True):
                if answer.partition is None:
                    self.instance.report_runless_asset_event(answer)


def unobserved(
    connection: Connection, marks: Mapping[str, float], since: float, asked: float, seen: Collection[str]
) -> list[tuple[str, Record]]:
    """What operators did since a time, oldest first, each with its source database; nothing where the records cannot be read.

    Records are listed of databases with a new mark only, and for a few seconds at most: they are only shown, and replication
    waits for it.

    Args:
        connection: both sides.
        marks: by target database, when something was last done by hand to it.
        since: seconds since the epoch.
        asked: the newest mark that was seen before.
        seen: ids of records that were observed before.
    """
    found: list[tuple[str, Record]] = []
    end = time.monotonic() + _LONGEST
    for database, target in connection.target.policy.databases.items():
        if marks.get(target, 0.0) <= max(asked, since - _OVERLAP):
            continue
        if time.monotonic() > end:
            _LOG.warning("what was done by hand to %s is not shown: the storage of dumps lists slowly", database)
            continue
        store = RecordStore.of(connection.target.policy, connection.store, target)
        try:
            records = store.newest(_MOST, since - _OVERLAP)
        except (ReplicationError, OSError) as error:
            _LOG.warning("what was done by hand to %s is not shown: %s", database, error)
            continue
        found += [(database, record) for record in records if record.time > since - _OVERLAP and record.id not in seen]
    by_hand = [(database, record) for database, record in found if record.by_hand]
    return sorted(by_hand, key=lambda one: one[1].time)


def observations(names: Names, database: str, record: Record) -> Iterator[dg.AssetObservation]:
    """A record on the page of its database, and on those of the tables that it names (pure)."""
    metadata: dict[str, Any] = {
        "action": record.action,
        "by": record.by,
        "time": dg.MetadataValue.timestamp(record.time),
        "outcome": record.outcome,
    }
    metadata |= {"window": record.window} if record.window else {}
    metadata |= {"evid": record.to_evid} if record.to_evid is not None else {}
    metadata |= {"details": record.text} if record.text else {}
    metadata |= {"report": dg.PathMetadataValue(record.report)} if record.report else {}
    description = f"{record.action} by {record.by}"
    yield dg.AssetObservation(names.database(database, "load"), metadata=metadata, description=description)
    for table in record.tables[:_MOST_TABLES]:
        yield dg.AssetObservation(names.table(database, table, "load"), metadata=metadata, description=description)
