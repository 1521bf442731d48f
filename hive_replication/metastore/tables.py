"""Calls about tables and views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

from hive_replication.metastore.calls import Calls
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.types import Partition, Table

D = TypeVar("D", Table, Partition)
T = TypeVar("T")


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of at most ``size`` items."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def carries(actual: D, wanted: D) -> bool:
    """Whether a table or partition is the wanted one: same location where one was given, and all wanted parameters.

    The metastore adds parameters of its own, so more of them are no difference.
    """
    location = wanted.sd.location
    same_place = not location or (actual.sd.location or "").rstrip("/") == location.rstrip("/")
    return same_place and (wanted.parameters or {}).items() <= actual.parameters.items()


class Tables(Calls):
    """Tables and views."""

    def table_names(self, db: str, pattern: str = "*") -> list[str]:
        """Names of tables and views; ``*`` stands for any text and ``|`` joins patterns, as in Hive's SHOW TABLES."""
        return self.call(f"get_tables {db}.{pattern}", lambda client: client.get_tables(db, pattern))

    def table(self, db: str, name: str) -> Table | None:
        """A table or view, or None if there is none of that name."""
        try:
            return self.call(f"get_table {db}.{name}", lambda client: self._dialect.table(client, db, name))
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

        what = f"create_table {table.dbName}.{table.tableName}"
        self.write(what, lambda client: self._dialect.create_table(client, table), done=done)

    def alter_table(self, db: str, name: str, table: Table) -> None:
        """Replaces a table's description; with another name or database in ``table`` it is renamed.

        Statistics stay as described, and partitions keep their own columns (no CASCADE). Renaming a managed table at its
        default place moves its data.
        """

        def renamed() -> bool:
            return self.table(db, name) is None and self.table(table.dbName, table.tableName) is not None

        self.write(f"alter_table {db}.{name}", lambda client: self._dialect.alter_table(client, db, name, table), done=renamed)

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

    def _tables_named(self, db: str, names: list[str]) -> list[Table]:
        return self.call(f"get_tables {db}", lambda client: self._dialect.tables(client, db, names))
