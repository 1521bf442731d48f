"""How far the failovers are whose runs failed."""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.connect import Connection
from hive_replication.errors import OF_ONE_DATABASE
from hive_replication.failover import Phase
from hive_replication.failover.sides import Sides


def phases_of(connection: Connection, databases: Iterable[str]) -> dict[str, Phase]:
    """The phases of databases, by source name; without those that are not known, as where a mark was edited by hand.

    Args:
        connection: both sides; each is asked once for each database.
        databases: source names.

    Raises:
        Unreachable: a metastore does not answer.
    """
    found = dict[str, Phase]()
    for name in databases:
        try:
            found[name] = Sides.now(connection, name).phase
        except OF_ONE_DATABASE:  # the lag says so
            continue
    return found
