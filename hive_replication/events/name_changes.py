"""What an event, or an operation of a load, does to the names of tables and partitions (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

#: Table and partition ("" for the table itself).
ObjectName = tuple[str, str]


@dataclass(frozen=True, slots=True)
class NameChange:
    """What becomes of one name: an object is created (no ``before``), dropped (no ``after``) or renamed.

    A table takes its partitions along.

    Args:
        before: the object's name before, or None.
        after: its name after, or None.
    """

    before: ObjectName | None
    after: ObjectName | None

    @property
    def renames(self) -> bool:
        """Whether the object stays, under another name."""
        return self.before is not None and self.after is not None

    @property
    def tables(self) -> tuple[str, str]:
        """Name of the table before and after where the change is a table's; "" where there is none."""
        before, after = self.before or ("", ""), self.after or ("", "")
        return "" if before[1] else before[0], "" if after[1] else after[0]

    @property
    def drops_table(self) -> bool:
        """Whether a table goes."""
        return self.after is None and bool(self.tables[0])

    @property
    def renames_table(self) -> bool:
        """Whether a table gets another name."""
        return self.renames and bool(self.tables[0])


def created(table: str, *partitions: str) -> tuple[NameChange, ...]:
    """A table is created, or some of its partitions."""
    return tuple(NameChange(None, (table, name)) for name in partitions or ("",))


def dropped(table: str, *partitions: str) -> tuple[NameChange, ...]:
    """A table is dropped, or some of its partitions."""
    return tuple(NameChange((table, name), None) for name in partitions or ("",))


def renamed(before: ObjectName, after: ObjectName) -> tuple[NameChange, ...]:
    """A table or partition gets another name."""
    return (NameChange(before, after),)


def name_after(name: ObjectName, changes: Iterable[NameChange]) -> ObjectName:
    """The name that an object has after changes, of which none drops it; a table's new name is its partitions', too."""
    table, partition = name
    for change in changes:
        if change.renames_table and change.tables[0] == table:
            table = change.tables[1]
        elif change.renames and change.before == (table, partition):
            table, partition = change.after or name
    return table, partition
