"""Insert-only tables, written through Thrift one transaction after another."""

from __future__ import annotations

from hive_metastore import ttypes as t

from hive_replication.acid.write_ids import WriteIds
from hive_replication.connect import Connection
from hive_replication.metastore.types import PrincipalType
from tests.fixtures.record import Recorder
from tests.warehouse import Warehouse
from tests.writers import Writer, create


class Ledger(Warehouse):
    """A source database with the insert-only tables a, b and, partitioned by ds, p."""

    def begin(self) -> Writer:
        source = self.connection.source
        return Writer.begin(source.metastore, source.storage, self.database)

    def write(self, table: str, *rows: str) -> None:
        """One transaction a row."""
        for row in rows:
            writer = self.begin()
            writer.insert(table, f"{row}\n")
            writer.commit()

    def rename(self, old: str, new: str) -> None:
        metastore = self.connection.source.metastore
        table = metastore.table(self.database, old)
        assert table is not None
        table.tableName = new
        metastore.alter_table(self.database, old, table)

    def files(self, *, source: bool, table: str = "a") -> dict[str, bytes]:
        side = self.connection.source if source else self.connection.target
        found = side.metastore.table(self.database, table)
        assert found is not None
        return self._files(side.storage, str(found.sd.location))

    def write_ids(self, *, source: bool, table: str = "a") -> WriteIds:
        side = self.connection.source if source else self.connection.target
        return side.metastore.write_ids(self.database, [table])[table]

    def highest(self, *, source: bool, table: str = "a") -> int:
        side = self.connection.source if source else self.connection.target
        return side.metastore.max_write_id(self.database, table)


def make(connection: Connection, database: str) -> Ledger:
    source = connection.source
    source.metastore.create_database(
        t.Database(name=database, ownerName="hive", ownerType=PrincipalType.USER, parameters={"repl.source.for": "test"})
    )
    for name in "ab":
        create(source.metastore, source.storage, database, name)
    create(source.metastore, source.storage, database, "p", ("ds",))
    return Ledger(connection, None, database)  # type: ignore[arg-type]


def partition_of(ledger: Ledger, day: str) -> t.Partition:
    source = ledger.connection.source
    table = source.metastore.table(ledger.database, "p")
    assert table is not None
    return Recorder(source.metastore, source.storage, ledger.database)._partition(table, [day])
