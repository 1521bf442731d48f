"""Conflicts: something stands on the target where a replica belongs, and is none (design: conflicts and gaps).

``refuse`` leaves it and holds the lane. ``adopt`` takes it over where it has the same schema: it is stamped, its files are
compared by proof, and only what differs is copied. ``replace`` drops it, its directory goes to retention. ``keep-aside`` renames
it to ``<name>_kept_<evid>``; partitions move to a table of that name. What another replication has written is always refused.

A further policy begins with ``ConflictPolicy`` in ``policy/model.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hive_replication.errors import Refused
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import (
    Adopt,
    DropForeignTable,
    KeepAside,
    KeepPartitionsAside,
    owner_of,
)
from hive_replication.load.operations.functions import EARLIER_ROOT
from hive_replication.load.replica.hive4_translation import is_managed
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import is_ours
from hive_replication.load.replica.view_text import without_backquotes
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy.model import ConflictPolicy

_KEPT = re.compile(r"_kept_\d+$")


def is_foreign(thing: Table | Partition, source: str) -> bool:
    """Whether an object of the target is not this source's replica."""
    return not is_ours(thing, source)


@dataclass(frozen=True, slots=True)
class Conflicts:
    """How one load settles its conflicts (pure).

    Args:
        policy: the policy's setting.
        source: identity of the load's source.
        database: target database.
    """

    policy: ConflictPolicy
    source: str
    database: str

    def table(self, evid: int, existing: Table, wanted: Table | None = None) -> op.Operation:
        """What is done with a table that is not our replica.

        Args:
            evid: event id of what is to have its name.
            existing: the target's table.
            wanted: the source's table that may adopt it, of a view with its replica's text; None for one that comes by a rename,
                and has its data already.

        Raises:
            Refused: it stays, and nothing takes its name.
        """
        name = existing.tableName.lower()
        shown = object_name(self.database, name)
        self._refuse_replicas(existing, f"the target table {shown}")
        match self.policy:
            case "refuse":
                raise Refused(_exists(f"the target table {shown}", "rename or drop it"))
            case "replace":
                return DropForeignTable(evid, name)
            case "keep-aside":
                return KeepAside(evid, name, f"{name}_kept_{evid}")
            case "adopt":
                difference = _difference(existing, wanted) if wanted else "a rename brings another table with its data"
                if difference:
                    raise Refused(f"the target table {shown} cannot be adopted: {difference}; rename or drop it there")
                return Adopt(evid, name, self.source)

    def surplus(self, evid: int, existing: Table) -> op.Operation | None:
        """What is done with a foreign table that the source does not have, when its database becomes a replica."""
        kept = self.policy == "keep-aside" and _KEPT.search(existing.tableName)  # by a load before that came to no end
        return None if self.policy in ("refuse", "adopt") or kept or owner_of(existing.parameters) else self.table(evid, existing)

    def partition(self, evid: int, table: str, name: str, existing: Partition, wanted: Partition | None) -> op.Operation | None:
        """What is done first with a partition that is not our replica; None where it is then replaced as one of ours.

        Args:
            evid: event id of what is to have its name.
            table: target table.
            name: partition name.
            existing: the target's partition.
            wanted: the source's partition, None where it is dropped.

        Raises:
            Refused: it stays.
        """
        shown = object_name(self.database, table, name)
        self._refuse_replicas(existing, f"the target partition {shown}")
        match self.policy:
            case "refuse":
                raise Refused(_exists(f"the target partition {shown}", "drop it"))
            case "keep-aside":
                return KeepPartitionsAside(evid, table, (name,), f"{table}_kept_{evid}")
            case "adopt" if wanted and (difference := _storage_difference(existing.sd, wanted.sd)):
                raise Refused(f"the target partition {shown} cannot be adopted: {difference}; drop it there")
            case "adopt" | "replace":
                return None

    def compares(self, existing: Table | Partition | None) -> bool:
        """Whether the files of what is there are compared first."""
        return self.policy == "adopt" and existing is not None and is_foreign(existing, self.source)

    def dropped_with(self, tables: Iterable[Table]) -> list[str]:
        """Foreign tables that stay when their database is dropped at the source, so that it stays, too.

        Raises:
            Refused: their database is not dropped.
        """
        existing = [table for table in tables if is_foreign(table, self.source)]
        for table in existing:
            if self.policy == "refuse" or owner_of(table.parameters):
                raise Refused(f"cannot drop the target database {self.database!r}: {table.tableName!r} is not our replica")
        return [] if self.policy == "replace" else [table.tableName for table in existing]

    def dropped_with_code(self, names: Sequence[str]) -> Sequence[str]:
        """Functions, stored procedures and packages that stay when their database is dropped, as :meth:`dropped_with`.

        Args:
            names: of those that are no replicas.

        Raises:
            Refused: their database is not dropped.
        """
        if names and self.policy == "refuse":
            raise Refused(
                f"cannot drop the target database {self.database!r}: {names[0]!r}, a function, stored procedure or package, "
                f"is not our replica; {EARLIER_ROOT}"
            )
        return () if self.policy == "replace" else names

    def _refuse_replicas(self, existing: Table | Partition, shown: str) -> None:
        owner = owner_of(existing.parameters)
        if owner and owner != self.source:
            raise Refused(f"{shown} is a replica of {owner}: two writers to one target would undo each other")


def refuse_other_writers(found: Database, tables: Iterable[Table], conflicts: Conflicts) -> None:
    """A database that is no replica yet, and its tables, may become ours.

    Raises:
        Refused: it is another's replica, or holds a foreign table and the policy refuses those.
    """
    owner = owner_of(found.parameters)
    if owner:
        raise Refused(f"the target database {found.name!r} is a replica of {owner}: load under another name")
    for table in tables:
        if not is_foreign(table, conflicts.source):
            continue
        owner = owner_of(table.parameters)
        if owner:
            raise Refused(
                f"the target database {found.name!r} holds {table.tableName!r}, a replica of {owner}: load under another name"
            )
        if conflicts.policy == "refuse":
            raise Refused(
                f"the target database {found.name!r} exists and is not a replica of this source (it holds {table.tableName!r}): "
                "load under another name, drop it there, or set conflicts in the policy"
            )


def _exists(shown: str, what: str) -> str:
    return f"{shown} exists and is not a replica of this source: {what} there, or set conflicts in the policy"


def _difference(existing: Table, wanted: Table) -> str:
    """Why a foreign table cannot become the replica of a table, "" where it can."""
    kinds = [is_managed(table) or table.tableType for table in (existing, wanted)]
    if kinds[0] != kinds[1]:
        return f"it is a {existing.tableType}, the source's a {wanted.tableType}"
    if _columns(existing.partitionKeys) != _columns(wanted.partitionKeys):
        return f"its partition keys are {_columns(existing.partitionKeys)}, the source's {_columns(wanted.partitionKeys)}"
    if without_backquotes(existing.viewOriginalText) != without_backquotes(wanted.viewOriginalText):
        return "its view text is another"
    return _storage_difference(existing.sd, wanted.sd)


def _storage_difference(existing: StorageDescriptor, wanted: StorageDescriptor) -> str:
    for what, theirs, ours in (
        ("columns are", _columns(existing.cols), _columns(wanted.cols)),
        ("input format is", existing.inputFormat, wanted.inputFormat),
        ("output format is", existing.outputFormat, wanted.outputFormat),
        ("serde is", _serde(existing), _serde(wanted)),
    ):
        if theirs != ours:
            return f"its {what} {theirs}, the source's {ours}"
    return ""


def _columns(columns: Iterable[FieldSchema] | None) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns or []) or "none"


def _serde(sd: StorageDescriptor) -> str:
    return (sd.serdeInfo.serializationLib if sd.serdeInfo else None) or ""
