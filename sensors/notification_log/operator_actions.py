"""What operators did on the command line, as observations in Dagster: undo, pauses, loads and repairs by hand, with who did it.

They are read from the records below the dump root when the mark there says that there is a new one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError
from hive_replication.load.records import Record, RecordStore
from repl_assets.catalog.keys import Names

_LOG = logging.getLogger(__name__)

_MOST = 20  # records of a database that are read
_MOST_TABLES = 20  # of one action that are observed
_OVERLAP = 60.0  # seconds by which clocks may differ; what was observed is not observed again
_LONGEST = 10.0  # seconds of a tick for this; Dagster ends one after 60 s, and drops its cursor and its runs


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
