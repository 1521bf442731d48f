"""Drift that a run has found, kept in Dagster's storage until the drift sensor has requested its repair."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.drift import TableDrift
from hive_replication.metastore.tables import batches
from repl_assets.catalog.keys import Names
from repl_assets.jobs.repair import repair_request

_MOST_PARTITIONS = 500  # in one run
MOST_HANDED = 50_000  # partitions of a table that are kept, some 3 MB; the next round finds the rest


@dataclass(frozen=True, slots=True)
class FoundDrift:
    """A table to repair.

    Args:
        table: source name.
        begun: when the scan of all tables began that found it, seconds since the epoch.
        drifted: partitions, "" for the table itself, each with the digest of its listing.
    """

    table: str
    begun: float
    drifted: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, drift: TableDrift, begun: float) -> Self:
        """A table's partitions, as far as they are kept."""
        return cls(drift.table, begun, tuple((one.partition, one.digest) for one in drift.drifted[:MOST_HANDED]))

    def requests(self, names: Names, database: str) -> list[dg.RunRequest]:
        """Runs for the table, each for as many partitions as one repairs.

        A run key holds the round, so that a failed repair is requested again in the next one.
        """
        return [self._request(names, database, some) for some in batches(self.drifted, _MOST_PARTITIONS)]

    def _request(self, names: Names, database: str, drifted: Sequence[tuple[str, str]]) -> dg.RunRequest:
        what = hashlib.sha256(repr(list(drifted)).encode()).hexdigest()[:16]
        run_key = f"{names.policy}:drift:{database}.{self.table}:{what}:{self.begun:.0f}"
        partitions = (partition for partition, _ in drifted if partition)
        return repair_request(names, database, self.table, partitions, run_key=run_key)


_STORED = TypeAdapter(tuple[FoundDrift, ...])


class Handover:
    """What runs have found in a database, one entry a table: they add to it, and the sensor clears it.

    Args:
        instance: whose storage keeps it.
        names: of the policy.
        database: source name.
    """

    def __init__(self, instance: dg.DagsterInstance, names: Names, database: str) -> None:
        self._cursors, self._key = instance.daemon_cursor_storage, f"hive_replication/drift/found/{names.policy}/{database}"

    def read(self) -> Sequence[FoundDrift]:
        """By table; nothing if what is kept is unreadable, since the next round finds it again."""
        try:
            return _STORED.validate_json(self._cursors.get_cursor_values({self._key}).get(self._key) or "[]")
        except ValidationError:
            return ()

    def add(self, found: FoundDrift) -> None:
        """Keeps what was found of a table, in place of what was found of it before."""
        self._write([*(one for one in self.read() if one.table != found.table), found])

    def clear(self) -> None:
        """All of it is requested."""
        self._write(())

    def _write(self, found: Sequence[FoundDrift]) -> None:
        self._cursors.set_cursor_values({self._key: _STORED.dump_json(tuple(found)).decode() if found else ""})
