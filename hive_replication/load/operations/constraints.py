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
        wanted = {constraint.described() for constraint in self.constraints}
        names = {constraint.name for constraint in self.constraints}
        present: set[str] = set()
        for constraint in target.metastore.constraints(database, self.table):
            if constraint.described() in wanted:
                present.add(constraint.described())
            elif constraint.kind in self.whole or constraint.name in names:
                target.metastore.drop_constraint(database, self.table, constraint.name)
        for constraint in self.constraints:
            if constraint.described() not in present:
                target.metastore.add_constraint(database, constraint)


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
