"""Operations on constraints. They have no state id, so each compares with what is there: repeating it does no harm."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hive_replication.load.operations.kinds import CustomOperation
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.target import Target
from hive_replication.metastore.constraints import KINDS, Constraint

FOREIGN = frozenset({"fks"})
OWN = frozenset(KINDS) - FOREIGN


@dataclass(frozen=True, slots=True)
class SetConstraints(CustomOperation):
    """Adds constraints to a table.

    Args:
        constraints: under the target's names.
        whole: kinds of which these are all that the table has, so that others go.
    """

    kind = "SetConstraints"
    constraints: tuple[Constraint, ...]
    whole: frozenset[str] = frozenset()

    def carry_out(self, target: Target, database: str) -> None:
        """Drops what is in the way, adds what is missing."""
        wanted = set(map(self._described, self.constraints))
        names = {constraint.name for constraint in self.constraints}
        present: set[object] = set()
        for constraint in target.metastore.constraints(database, self.table):
            if self._described(constraint) in wanted:
                present.add(self._described(constraint))
            elif constraint.kind in self.whole or constraint.name in names:
                target.metastore.drop_constraint(database, self.table, constraint.name)
        for constraint in self.constraints:
            if self._described(constraint) not in present:
                target.metastore.add_constraint(database, constraint)

    def _described(self, constraint: Constraint) -> object:
        """What has to be equal: of an event that is repeated, the parent of a foreign key may have another name by now."""
        return constraint.described(), constraint.parent if constraint.kind in self.whole else None


@dataclass(frozen=True, slots=True)
class DropConstraint(CustomOperation):
    """Drops a constraint of a table by its name."""

    kind = "DropConstraint"
    constraint: str

    def carry_out(self, target: Target, database: str) -> None:
        """Drops it; none is fine."""
        target.metastore.drop_constraint(database, self.table, self.constraint)


def on_target(
    constraints: Iterable[Constraint], mapping: NameMapping, table: str, includes: Callable[[str], bool]
) -> tuple[tuple[Constraint, ...], tuple[str, ...]]:
    """Constraints under the target's names, and why others are left out (pure).

    Args:
        constraints: of one table of the source.
        mapping: names.
        table: the table's name on the target.
        includes: whether a source table is replicated.
    """
    kept: list[Constraint] = []
    left: list[str] = []
    for one in constraints:
        database, parent = one.parent or (mapping.source_database, "")
        if database == mapping.source_database and (not parent or includes(parent)):
            kept.append(one.on(mapping.target_database, table, mapping.table(parent)))
        else:
            left.append(f"the foreign key {one.name} points at {database}.{parent}, which is not replicated with it")
    return tuple(kept), tuple(left)
