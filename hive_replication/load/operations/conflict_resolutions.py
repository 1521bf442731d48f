"""What is done with a foreign object on the target: operations of a plan that carry themselves out (see ``conflicts``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hive_replication.errors import Refused
from hive_replication.load.layout.live_locations import entangled, live_locations, place_of
from hive_replication.load.layout.move_to_retired import retire_unused
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.drops import drop_table, vacate
from hive_replication.load.replica.name_mapping import object_name, point_at
from hive_replication.load.replica.parameters import number_of
from hive_replication.load.replica.state import LAST_ID, PREFIX, SOURCE, TARGET_FOR, object_id
from hive_replication.load.replica.target import Target
from hive_replication.load.report import UnexpectedObject
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import table_directory
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of
from hive_replication.storage import paths
from hive_replication.storage.boundary import is_reserved

#: Event id at which a foreign table was taken over; its properties follow in the same lane.
_ADOPTED = PREFIX + "adopted"


def owner_of(parameters: Mapping[str, str] | None) -> str:
    """Whose replica an object is by its parameters, "" where it is nobody's."""
    found = parameters or {}
    if SOURCE in found:
        return found[SOURCE]
    return "Hive's own replication" if LAST_ID in found or TARGET_FOR in found else ""


def adopted_at(table: Table) -> int:
    """Event id at which a replica was adopted whose properties have not followed yet; 0 for all others."""
    return number_of((table.parameters or {}).get(_ADOPTED) or "") or 0 if object_id(table) == 0 else 0


class Resolution(op.CustomOperation):
    """An operation that settles a conflict."""

    __slots__ = ()

    @property
    def outcome(self) -> str:
        """What became of the foreign object."""
        raise NotImplementedError

    @property
    def foreign_partitions(self) -> tuple[str, ...]:
        """The partitions that it is about; none for a table. They are no objects of the replica, as ``partitions`` are."""
        return ()


@dataclass(frozen=True, slots=True)
class Adopt(Resolution):
    """Marks a foreign table as a replica that stands at event 0; what comes after makes it equal."""

    kind = "Adopt"
    source: str

    @property
    def outcome(self) -> str:
        """See :class:`Resolution`."""
        return "adopted"

    def carry_out(self, target: Target, database: str) -> None:
        """See :class:`hive_replication.load.operations.kinds.CustomOperation`."""
        table = _foreign_table(target, database, self.table)
        if table is not None:
            table.parameters = {**(table.parameters or {}), SOURCE: self.source, LAST_ID: "0", _ADOPTED: str(self.evid)}
            target.metastore.alter_table(database, self.table, table)


@dataclass(frozen=True, slots=True)
class DropForeignTable(Resolution):
    """Drops a foreign table; its directory goes to retention, unless another table or partition lies at, above or below it."""

    kind = "DropStranger"

    @property
    def outcome(self) -> str:
        """See :class:`Resolution`."""
        return "replaced; its files are kept in retention"

    def carry_out(self, target: Target, database: str) -> None:
        """See :class:`hive_replication.load.operations.kinds.CustomOperation`."""
        table = _foreign_table(target, database, self.table)
        if table is not None:
            drop_table(target.metastore, table)
            home, place = _location(target, database), paths.collapsed(directory_of(table))
            if _is_ours(place, home) and target.storage.exists(place):
                retire_unused(target.storage, home, place, self.evid, live_locations(target.metastore, database))


@dataclass(frozen=True, slots=True)
class KeepAside(Resolution):
    """Gives a foreign table another name; the metastore moves the data of a managed one."""

    kind = "KeepAside"
    kept: str

    @property
    def outcome(self) -> str:
        """See :class:`Resolution`."""
        return f"kept aside as {self.kept}"

    def carry_out(self, target: Target, database: str) -> None:
        """See :class:`hive_replication.load.operations.kinds.CustomOperation`."""
        table = _foreign_table(target, database, self.table)
        if table is not None:
            table.tableName = self.kept
            vacate(target.metastore, table)
            target.metastore.alter_table(database, self.table, table)
            kept = copy_of(moved) if (moved := target.metastore.table(database, self.kept)) else table
            point_at(kept.sd, kept.sd.location)  # the parameter path follows the data
            if kept != moved:
                target.metastore.alter_table(database, self.kept, kept)


@dataclass(frozen=True, slots=True)
class KeepPartitionsAside(Resolution):
    """Moves foreign partitions to a table of their own, with the directories that are the database's and theirs alone."""

    kind = "KeepPartitionsAside"
    names: tuple[str, ...]
    kept: str

    @property
    def outcome(self) -> str:
        """See :class:`Resolution`."""
        return f"kept aside in {self.kept}"

    @property
    def foreign_partitions(self) -> tuple[str, ...]:
        """See :class:`Resolution`."""
        return self.names

    def carry_out(self, target: Target, database: str) -> None:
        """See :class:`hive_replication.load.operations.kinds.CustomOperation`.

        Killed anywhere it can be done again: the partition is dropped last.
        """
        metastore, home = target.metastore, _location(target, database)
        base = f"{home}/{table_directory(self.kept)}"
        like = metastore.table(database, self.table)
        if like is None:
            return
        if metastore.table(database, self.kept) is None:
            metastore.create_table(_external_like(like, self.kept, base))
        present = by_name(like, metastore.partitions(database, self.kept, self.names))
        shared, moves = self._shared(target, database), ProtectedMoves(target.storage)
        for name, part in by_name(like, metastore.partitions(database, self.table, self.names)).items():
            if not owner_of(part.parameters):
                place, kept = paths.collapsed(directory_of(part)), copy_of(part)
                if _is_ours(place, home) and not shared(part):
                    kept.sd.location = f"{base}/{name}"
                    if target.storage.exists(place):
                        moves.move(place, kept.sd.location)
                self._keep(metastore, database, name, kept, exists=name in present)

    def _shared(self, target: Target, database: str) -> Callable[[Partition], bool]:
        """Tells whether another table or partition lies at, above or below a partition's directory."""
        metastore, own = target.metastore, (self.table.lower(), self.kept.lower())
        others = live_locations(metastore, database, but=own)
        both = (place_of(part) for name in own for part in metastore.partitions(database, name))
        together = entangled(filter(None, both))
        return lambda part: others.touches(paths.collapsed(directory_of(part))) or place_of(part) in together

    def _keep(self, metastore: Metastore, database: str, name: str, kept: Partition, *, exists: bool) -> None:
        kept.tableName = self.kept
        if not exists:
            metastore.add_partitions(database, self.kept, [kept])
        metastore.drop_partitions(database, self.table, [name], delete_data=False)


def resolved(operations: Iterable[op.Operation], database: str) -> tuple[UnexpectedObject, ...]:
    """What became of the foreign objects that a load met."""
    return tuple(
        UnexpectedObject(object_name(database, one.table, ",".join(one.foreign_partitions)), one.outcome)
        for one in operations
        if isinstance(one, Resolution)
    )


def _is_ours(place: str, home: str) -> bool:
    """Whether a foreign directory is the database's, and none of replication's own."""
    return place.startswith(f"{home}/") and not is_reserved(place)


def _external_like(table: Table, name: str, location: str) -> Table:
    kept = copy_of(table)
    kept.tableName, kept.tableType, kept.sd.location = name, "EXTERNAL_TABLE", location
    kept.parameters = {"EXTERNAL": "TRUE"}
    return kept


def _foreign_table(target: Target, database: str, name: str) -> Table | None:
    """A table as it is now; None where it went away, or is a replica by now."""
    table = target.metastore.table(database, name)
    return None if table is None or owner_of(table.parameters) else table


def _location(target: Target, database: str) -> str:
    found = target.metastore.database(database)
    if found is None or not found.locationUri:
        raise Refused(f"the target database {database!r} went away during the load")
    return found.locationUri.rstrip("/")
