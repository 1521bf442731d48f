"""Baselines: digests of the source's directories when their replicas were last known to be equal, one small file a table.

The files lie in ``.repl/listing`` of the target database's directory, so they are deleted with the replica. All of it can be
computed again by comparing both sides.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import TypeAdapter

from hive_replication.bounded_json import MIB, Count, parsed, require_bounded
from hive_replication.load.layout.directories import Layout
from hive_replication.logs import about
from hive_replication.metastore.names import escape
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

# Bytes of a file, and values in it, five for each partition: 1,000,000 partitions with names of 180 characters, which take up to
# 1.1 GiB of memory and 7 s to read.
_MOST, _VALUES = 256 * MIB, 6_000_000


class Baseline(NamedTuple):
    """The state in which an object and its replica were equal.

    Args:
        digest: of the source's listing.
        evid: state id of the replica; after a later load the baseline no longer counts.
        mark: of the snapshot since which it holds, see :mod:`hive_replication.drift.snapshots`; "" where there is none.
        listed: when the source was listed, seconds since the epoch; 0 without a mark.
    """

    digest: str
    evid: Count
    mark: str = ""
    listed: Count = 0


_KNOWN = TypeAdapter(dict[str, Baseline])


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
            text = self._storage.read(f"{self._root}/{escape(table)}.json", most=_MOST)
            return _KNOWN.validate_python(parsed(text, most=_MOST, values=_VALUES), strict=True)
        except FileNotFoundError:
            return {}
        except ValueError as error:
            why = " ".join(str(error).split())[:300]
            _LOG.warning("the baseline is unreadable and is computed again: %s", why, extra=about(table=table))
            return {}

    def write(self, table: str, known: Mapping[str, Baseline]) -> None:
        """Replaces the baselines of a table; those that are more than is read stay as they were."""
        text = json.dumps({name: base if base.mark else base[:2] for name, base in known.items()}, ensure_ascii=False).encode()
        try:
            require_bounded(text, most=_MOST, values=_VALUES)
        except ValueError as error:
            _LOG.warning(
                "the baselines of %s objects are not kept: %s; each scan compares the objects that have none with their "
                "replicas, as long as the table has so many partitions",
                f"{len(known):,}",
                error,
                extra=about(table=table),
            )
            return
        self._storage.write(f"{self._root}/{escape(table)}.json", text)
