"""Writing the journal of a running load; :mod:`hive_replication.load.journal.journal` reads it."""

from __future__ import annotations

import itertools
import json
from threading import Lock
from typing import Literal

from hive_replication.load.journal.lane_record import PART, LaneRecord, record_texts
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database
from hive_replication.storage import Storage

#: The file with the directories that an undo of a load may need, which its lanes say, too; written after all of them.
KEPT = "kept"
#: The file that says that a load made a restored target good: before it is none to undo to.
RESTORED = "restored"
#: The file that says that a load repaired what it changed: what was there before may be damaged. Its text is a :data:`Repairs`.
REPAIR = "repair"

#: What a load repairs: nothing, what no event tells (of tables that had all events by then), or also what events would bring.
Repairs = Literal["", "level", "behind"]


class JournalWriter:
    """Writes the journal of a running load.

    Attributes:
        token: names the load's journal; sorts after those of earlier loads.
    """

    def __init__(self, storage: Storage, root: str, from_evid: int, to_evid: int, token: str, *, repairs: Repairs) -> None:
        self._storage, self._root, self._from, self._to, self.token = storage, root, from_evid, to_evid, token
        self._unsaid = repairs
        self._numbers = itertools.count()
        self._kept: set[str] = set()
        self._lock = Lock()

    @property
    def directory(self) -> str:
        """Where it is written, until it is marked as done."""
        return f"{self._root}/{self._from}-{self._to}-{self.token}"

    def lane(self, record: LaneRecord) -> None:
        """Writes what a lane is about to change, much in several files. Threads may share the journal.

        Raises:
            TooLarge: it cannot be split into files that can be read again.
        """
        with self._lock:
            if self._unsaid:  # before the first change
                self._storage.write_once(f"{self.directory}/{REPAIR}", self._unsaid.encode())
                self._unsaid = ""
            self._kept |= record.kept
        for text in record_texts(record):
            self._storage.write_once(f"{self.directory}/{next(self._numbers)}.json", text)

    def kept(self) -> list[str]:
        """Directories of its lanes so far that an undo may need."""
        with self._lock:
            return sorted(self._kept)

    def database(self, image: Database) -> None:
        """Writes the database's properties, the first time only."""
        uri = f"{self.directory}/database"
        if not self._storage.exists(uri):
            self._storage.write_once(uri, tjson.dumps(image).encode())

    def state(self, state: ReplicaState) -> None:
        """Writes the state that the load is about to write into the metastore, and what later loads ask of its lanes."""
        places = json.dumps(self.kept()).encode()
        if self._storage.exists(self.directory) and len(places) < PART:
            self._storage.write_once(f"{self.directory}/{KEPT}", places)
        self._storage.write_once(f"{self.directory}/state", json.dumps(state.parameters()).encode())

    def makes_good(self) -> None:
        """Writes that the load makes a restored target good, before it says so itself: see :func:`.restored.without_lost`."""
        self._storage.write_once(f"{self.directory}/{RESTORED}", b"")

    def done(self, applied: int | None) -> None:
        """Marks the load as done.

        Args:
            applied: applied id of the database now; None after a load of some of its tables.
        """
        if self._storage.exists(self.directory):
            end, suffix = (self._to, "part") if applied is None else (applied, "done")
            self._storage.rename(self.directory, f"{self._root}/{self._from}-{end}-{self.token}.{suffix}")
