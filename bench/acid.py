"""ACID: a window of transactions on transactional tables, by metastores 4.2.0."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa
import pyarrow.orc

from bench.source import SourceDatabase
from hive_replication.metastore.types import Table
from resources.embedded.hive import HiveDriver
from tests.writers import INSERT_ONLY, Writer

_DAYS = ("1", "2", "3")
_ABORTED = 10  # one transaction in so many


@dataclass
class Transactions:
    """Tables half full ACID (ORC), half insert-only (text), half of each partitioned; transactions write to one to three of them.

    Args:
        transactions: how many.
        tables: a multiple of four.
        rows: of each file, 64 characters each.
    """

    transactions: int = 300
    tables: int = 8
    rows: int = 1_000
    _tables: list[Table] = field(default_factory=list[Table])

    @property
    def title(self) -> str:
        """What it is."""
        return f"incremental: {self.transactions} transactions on {self.tables} full ACID and insert-only tables"

    def fill(self, database: SourceDatabase) -> None:
        """Empty tables, some with partitions."""
        for number in range(self.tables):
            orc, partitioned = number % 2 == 0, number % 4 < 2
            parameters = {"transactional": "true"} if orc else INSERT_ONLY
            made = database.table(f"t{number:02}", partitioned=partitioned, orc=orc, parameters=parameters)
            if partitioned:
                database.partitions(made, _DAYS)
            self._tables.append(made)

    def change(self, database: SourceDatabase) -> bool:
        """The transactions, one after another; one in ten is aborted."""
        random, rows = Random(0), [secrets.token_hex(32) for _ in range(self.rows)]
        text, orc = "".join(f"{row}\n" for row in rows).encode(), _orc(rows)
        source = database.connection.source
        for number in range(self.transactions):
            writer = Writer.begin(source.metastore, source.storage, database.name)
            for table in random.sample(self._tables, random.choice((1, 1, 2, 3))):
                partition = f"p={random.choice(_DAYS)}" if table.partitionKeys else ""
                writer.lock(table.tableName, partition)
                writer.insert(table.tableName, text if table.parameters == INSERT_ONLY else orc, partition)
            (writer.abort if number % _ABORTED == 1 else writer.commit)()
        return True


def _orc(rows: Sequence[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.orc.write_table(pa.table({"a": rows}), sink)
    return sink.getvalue().to_pybytes()


def require_same_rows(source: HiveDriver, target: HiveDriver, database: str, replicas: Sequence[str]) -> None:
    """Hive reads the same rows from all tables of a database and of its replicas, row ids included.

    Raises:
        RuntimeError: it does not.
    """

    def rows(hive: HiveDriver, name: str) -> dict[str, list[str]]:
        (tables,) = hive.execute(f"SHOW TABLES IN {name}")
        found: dict[str, list[str]] = {}
        for table in tables.rows:
            row_id = "ROW__ID, " if int(table[1:]) % 2 == 0 else ""
            (read,) = hive.execute(f"SELECT {row_id}* FROM {name}.{table}")
            found[table] = sorted(read.rows)
        return found

    wanted = rows(source, database)
    if not any(wanted.values()):
        raise RuntimeError(f"{database} has no rows")
    for replica in replicas:
        if rows(target, replica) != wanted:
            raise RuntimeError(f"Hive reads other rows from {replica} than from {database}")
