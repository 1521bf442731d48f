"""Calls about tables and views."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.server import Calls
from hive_replication.metastore.spark_tables import at_its_data
from hive_replication.metastore.types import Partition, Table

_AT_ONCE = 200_000  # descriptions of columns in memory: each partition, and each of its statistics, has its own
_NOTED = ("repl.", "hive.repl.", "hive_replication.")
D = TypeVar("D", Table, Partition)
T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most ``size`` items."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def at_once(columns: Collection[object] | None, most: int = 500) -> int:
    """How many partitions with such columns are read or written at once: fewer than ``most`` where they are many."""
    return max(1, min(most, _AT_ONCE // max(1, len(columns or ()))))


def carries(actual: D, wanted: D) -> bool:
    """Whether a table or partition is the wanted one: same location where one was given, and all wanted parameters.

    The metastore adds parameters of its own, so more of them are no difference.
    """
    return _same_place(actual, wanted) and (wanted.parameters or {}).items() <= actual.parameters.items()


def stands(actual: D, wanted: D) -> bool:
    """Whether a table or partition has been changed into the wanted one: by its place, and by all that replication notes in it.

    Of other parameters the metastore changes some itself, such as statistics.
    """
    return _same_place(actual, wanted) and noted(actual) == noted(wanted)


def noted(thing: Table | Partition) -> dict[str, str]:
    """The parameters that replication sets, which no metastore changes."""
    return {key: value for key, value in (thing.parameters or {}).items() if key.startswith(_NOTED)}


def _same_place(actual: D, wanted: D) -> bool:
    location = wanted.sd.location
    return not location or (actual.sd.location or "").rstrip("/") == location.rstrip("/")


class Tables(Calls):
    """Tables and views."""

    def table_names(self, db: str, pattern: str = "*") -> list[str]:
        """Names of tables and views; ``*`` stands for any text and ``|`` joins patterns, as in Hive's SHOW TABLES."""
        return self.call(f"get_tables {db}.{pattern}", lambda client: client.get_tables(db, pattern))

    def table(self, db: str, name: str) -> Table | None:
        """A table or view, or None if there is none of that name."""
        try:
            return at_its_data(self.call(f"get_table {db}.{name}", lambda client: self._dialect.table(client, db, name)))
        except NotFound:
            return None

    def tables(self, db: str, names: Iterable[str]) -> Iterator[Table]:
        """Those of the named tables that exist, a batch a call; in no certain order within a batch."""
        for batch in batches(names, self._batch):
            yield from self._tables_named(db, batch)

    def create_table(self, table: Table) -> None:
        """Creates a table or view; the metastore makes its directory.

        A Hive 4 metastore makes a managed table that is not transactional an external one (``TRANSLATED_TO_EXTERNAL``).

        Raises:
            AlreadyExists: there is a table of that name.
            NotFound: there is no such database.
        """

        def done() -> bool:
            made = self.table(table.dbName, table.tableName)
            return made is not None and carries(made, table)

        self.write(
            f"create_table {table.dbName}.{table.tableName}",
            lambda client: self._dialect.create_table(client, table),
            done=done,
            made=lambda: self.table(table.dbName, table.tableName) is not None,
        )

    def alter_table(self, db: str, name: str, table: Table) -> None:
        """Replaces a table's description; with another name or database in ``table`` it is renamed.

        Statistics stay as described, and partitions keep their own columns (no CASCADE). Renaming a managed table at its
        default place moves its data.
        """
        moves = (db.lower(), name.lower()) != (table.dbName.lower(), table.tableName.lower())

        def altered() -> bool:
            made = self.table(table.dbName, table.tableName)
            if moves:  # the metastore chooses the place
                return made is not None and self.table(db, name) is None
            return made is not None and stands(made, table)

        self.write(f"alter_table {db}.{name}", lambda client: self._dialect.alter_table(client, db, name, table), done=altered)

    def drop_table(self, db: str, name: str, *, delete_data: bool = False) -> bool:
        """Drops a table or view; False if there was none.

        Args:
            db: its database.
            name: its name.
            delete_data: also delete its directory, to the trash or cmroot where these are on.
        """
        try:
            self.write(
                f"drop_table {db}.{name}",
                lambda client: client.drop_table_with_environment_context(db, name, delete_data, None),
                done=lambda: self.table(db, name) is None,
            )
        except NotFound:
            return False
        return True

    def materialized_views_over(self, db: str) -> dict[str, list[str]]:
        """Materialized views of all databases by the tables of one that they read; Hive 4 drops no table that one reads."""
        found = defaultdict[str, list[str]](list)
        for name in self.databases():
            views = self.call(
                f"get_tables_by_type {name}", lambda client, name=name: self._dialect.materialized_views(client, name)
            )
            for view in self.tables(name, views):
                used = view.creationMetadata.tablesUsed if view.creationMetadata else None
                for one in sorted(used or ()):
                    if one.lower().split(".")[-2:-1] == [db.lower()]:
                        found[one.lower().rpartition(".")[2]].append(f"{name}.{view.tableName}")
        return dict(found)

    def _tables_named(self, db: str, names: list[str]) -> list[Table]:
        found = self.call(f"get_tables {db}", lambda client: self._dialect.tables(client, db, names))
        return [at_its_data(table) for table in found]
