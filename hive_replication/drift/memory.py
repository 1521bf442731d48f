"""What the source's directories were like when their replicas were last known to be equal: one small file a table.

It lies in ``.repl/listing`` of the target database's directory, so it is lost with the replica and never without it. All of it
can be found again by comparing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from hive_replication.storage import Storage


class Baseline(NamedTuple):
    """What is known of an object.

    Args:
        digest: of the source's listing.
        evid: state id of the replica then: what a load has changed since is not known any more.
    """

    digest: str
    evid: int


class Memory:
    """The files of one target database.

    Args:
        storage: the target's.
        location: the database's directory.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage, self._root = storage, f"{location.rstrip('/')}/.repl/listing"

    def read(self, table: str) -> dict[str, Baseline]:
        """By partition name, "" for the table itself; nothing where nothing readable is there."""
        try:
            found = json.loads(self._storage.read(f"{self._root}/{table}.json"))
            return {name: Baseline(str(digest), int(evid)) for name, (digest, evid) in found.items()}
        except (FileNotFoundError, ValueError, AttributeError, TypeError):
            return {}

    def write(self, table: str, known: Mapping[str, Baseline]) -> None:
        """Replaces what is known of a table."""
        self._storage.write(f"{self._root}/{table}.json", json.dumps(known, ensure_ascii=False).encode())
