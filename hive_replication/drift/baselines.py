"""Baselines: digests of the source's directories when their replicas were last known to be equal, one small file a table.

The files lie in ``.repl/listing`` of the target database's directory, so they are deleted with the replica. All of it can be
computed again by comparing both sides.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from hive_replication.bounded_json import value_of
from hive_replication.load.layout.directories import Layout
from hive_replication.logs import about
from hive_replication.metastore.names import escape
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)


class Baseline(NamedTuple):
    """The state in which an object and its replica were equal.

    Args:
        digest: of the source's listing.
        evid: state id of the replica; after a later load the baseline no longer counts.
        mark: of the snapshot since which it holds, see :mod:`hive_replication.drift.snapshots`; "" where there is none.
        listed: when the source was listed, seconds since the epoch; 0 without a mark.
    """

    digest: str
    evid: int
    mark: str = ""
    listed: int = 0


class Memory:
    """The baselines of one target database.

    Args:
        storage: the target's.
        location: the database's directory.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage, self._root = storage, Layout(location).listing

    def read(self, table: str) -> dict[str, Baseline]:
        """By partition name, "" for the table itself; empty if there is no readable file."""
        try:
            found = value_of(self._storage.read(f"{self._root}/{escape(table)}.json").decode())
            return {name: _baseline(*values) for name, values in found.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, AttributeError, TypeError, OverflowError) as error:
            _LOG.warning("the baseline is unreadable and is computed again: %s", error, extra=about(table=table))
            return {}

    def write(self, table: str, known: Mapping[str, Baseline]) -> None:
        """Replaces the baselines of a table."""
        text = json.dumps({name: base if base.mark else base[:2] for name, base in known.items()}, ensure_ascii=False)
        self._storage.write(f"{self._root}/{escape(table)}.json", text.encode())


def _baseline(digest: object, evid: Any, mark: object = "", listed: Any = 0) -> Baseline:
    return Baseline(str(digest), int(evid), str(mark), int(listed))
