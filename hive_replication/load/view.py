"""What the target has of the objects that a dump touches, read in batches before planning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hive_replication.load.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Partition, Table


@dataclass(frozen=True)
class TargetView:
    """The target's objects of the names asked for; absent ones are not in the maps.

    Args:
        state: the database's replication state.
        tables: by target name.
        partitions: by target table name and partition name.
    """

    state: ReplicaState
    tables: Mapping[str, Table] = field(default_factory=dict[str, Table])
    partitions: Mapping[tuple[str, str], Partition] = field(default_factory=dict[tuple[str, str], Partition])


def read_view(
    metastore: Metastore,
    database: str,
    state: ReplicaState,
    tables: Iterable[str],
    partitions: Mapping[str, Iterable[str] | None],
) -> TargetView:
    """Reads tables and partitions of the target.

    Args:
        metastore: the target's.
        database: target database.
        state: its replication state.
        tables: names to look for.
        partitions: for each table the partitions to look for; None for all.
    """
    found = {table.tableName.lower(): table for table in metastore.tables(database, sorted(set(tables)))}
    parts: dict[tuple[str, str], Partition] = {}
    for name, table in found.items():
        wanted = partitions.get(name, ())
        if not table.partitionKeys or (wanted is not None and not wanted):
            continue
        names = None if wanted is None else sorted(set(wanted))
        parts |= {(name, part): found for part, found in by_name(table, metastore.partitions(database, name, names)).items()}
    return TargetView(state, found, parts)
