"""Random transactions: statements of real Hive, and raw ones of several statements that stay open while others begin and end."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

import pyarrow as pa
import pyarrow.orc

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError
from resources.embedded.hive import HiveDriver
from tests.acid.servers import request_compaction
from tests.writers import Writer

_FULL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
_INSERT_ONLY = "STORED AS TEXTFILE TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
_COLUMNS = "(k INT, v STRING)"
_TABLES = {
    "whole": f"{_COLUMNS} {_FULL}",
    "parts": f"{_COLUMNS} PARTITIONED BY (d STRING) {_FULL}",
    "buckets": f"{_COLUMNS} CLUSTERED BY (k) INTO 2 BUCKETS {_FULL}",
    "lines": f"{_COLUMNS} {_INSERT_ONLY}",
    "days": f"{_COLUMNS} PARTITIONED BY (d STRING) {_INSERT_ONLY}",
    "plain": f"{_COLUMNS} STORED AS TEXTFILE",
    "accounts": f"(k INT, v INT) {_FULL}",
    "debit": f"(k INT, v INT) {_INSERT_ONLY}",
    "credit": f"(k INT, v INT) {_INSERT_ONLY}",
}
FULL_ACID = ("whole", "parts", "buckets", "accounts")
_KEYED = ("whole", "parts", "buckets")
_ACCOUNTS, _EACH = 4, 100
#: What the accounts hold together, whatever is moved between them.
TOTAL = _ACCOUNTS * _EACH
_UNEXPECTED = 5  # failures of Hive's own, at most
_OPEN = 3  # raw transactions at a time, at most
_DAYS = ("1", "2", "3")


@dataclass
class Raw:
    """A raw transaction under way.

    Args:
        writer: of the first database.
        places: where it will write: database, table and partition.
    """

    writer: Writer
    places: list[tuple[str, str, str]]
    number: Iterator[int] = field(default_factory=itertools.count)


@dataclass
class Transactions:
    """Source databases that are worked on.

    Args:
        connection: to the source.
        hive: Hive there.
        databases: two names.
        random: decides all.
        done: what was done.
    """

    connection: Connection
    hive: HiveDriver
    databases: tuple[str, str]
    random: Random
    done: Counter[str] = field(default_factory=Counter[str])
    open: list[Raw] = field(default_factory=list[Raw])
    _keys: Iterator[int] = field(default_factory=itertools.count)

    def create(self) -> None:
        """The databases with their tables, and some rows."""
        first, second = self.databases
        for database in self.databases:
            self.hive.execute(f"CREATE DATABASE {database} WITH DBPROPERTIES ('repl.source.for'='test')")
        self.hive.execute(*(f"CREATE TABLE {first}.{name} {what}" for name, what in _TABLES.items()))
        self.hive.execute(*(f"CREATE TABLE {second}.{name} {_TABLES[name]}" for name in ("whole", "lines")))
        accounts = ", ".join(f"({k}, {_EACH})" for k in range(_ACCOUNTS))
        self.hive.execute(f"INSERT INTO {first}.accounts VALUES {accounts}")
        days = ", ".join(f"(-1, 'first', '{day}')" for day in _DAYS)  # raw transactions write into these partitions
        self.hive.execute(*(f"INSERT INTO {first}.{name} PARTITION (d) VALUES {days}" for name in ("parts", "days")))

    def one(self) -> None:
        """One transaction, or a part of some."""
        choices: dict[Callable[[], None], int] = {
            self._hive: 10,
            self._begin: 4 if len(self.open) < _OPEN else 0,
            self._go_on: 4 if self.open else 0,
            self._end: 3 if self.open else 0,
            self._moved: 2,
        }
        (step,) = self.random.choices(list(choices), list(choices.values()))
        step()

    @property
    def number(self) -> int:
        """Transactions begun."""
        return self.done["by Hive"] + self.done["failed in Hive"] + self.done["raw"]

    def compact(self) -> None:
        """Asks for a compaction of a table or partition."""
        table = self.random.choice(FULL_ACID)
        partition = f"d={self.random.choice(_DAYS)}" if table == "parts" else None
        database = self.databases[0]
        request_compaction(self.connection.source.metastore, database, table, partition, major=self.random.random() < 0.5)

    def forget(self) -> None:
        """The raw transactions under way were aborted by somebody else."""
        self.done["aborted by a bootstrap"] += len(self.open)
        self.open.clear()

    def _hive(self) -> None:
        """A statement of Hive, or one that fails when it has written already."""
        statements = (self._insert, self._update, self._delete, self._merge, self._several, self._overwrite, self._fails)
        (make,) = self.random.choices(statements, (6, 4, 2, 3, 3, 1, 2))
        (result,) = self.hive.run([make()])
        if bool(result.error) != (make == self._fails):
            # A job of Hive's that fails by itself is one more aborted transaction, unless that is the rule.
            self.done["unexpected"] += 1
            print(f"{result.statement}: {result.error}; Hive says {self.hive.log.read_text(errors='replace')[-3000:]}")
            if not result.error or self.done["unexpected"] > _UNEXPECTED:
                raise ReplicationError(f"{result.statement}: {result.error or 'it did not fail'}")
        self.done["failed in Hive" if result.error else "by Hive"] += 1

    def _insert(self) -> str:
        table = self.random.choice(["whole", "parts", "buckets", "lines", "days", "plain"])
        into = f"{table} PARTITION (d)" if table in ("parts", "days") else table
        day = f", '{self.random.choice(_DAYS)}'" if table in ("parts", "days") else ""
        rows = ", ".join(f"({next(self._keys)}, 'inserted'{day})" for _ in range(self.random.randint(1, 5)))
        return f"INSERT INTO {self.databases[0]}.{into} VALUES {rows}"

    def _update(self) -> str:
        if self.random.random() < 0.5:
            one, other = self.random.sample(range(_ACCOUNTS), 2)
            by = self.random.randint(1, 9)
            change = f"CASE k WHEN {one} THEN -{by} WHEN {other} THEN {by} ELSE 0 END"
            return f"UPDATE {self.databases[0]}.accounts SET v = v + {change} WHERE k IN ({one}, {other})"
        return (
            f"UPDATE {self.databases[0]}.{self.random.choice(_KEYED)} SET v = 'updated {next(self._keys)}' WHERE {self._some()}"
        )

    def _delete(self) -> str:
        return f"DELETE FROM {self.databases[0]}.{self.random.choice(_KEYED)} WHERE {self._some()}"

    def _merge(self) -> str:
        table, new = self.random.choice(("whole", "buckets")), next(self._keys)
        rows = f"SELECT k, 'merged' AS v FROM {self.databases[0]}.{table} WHERE {self._some()} UNION ALL SELECT {new}, 'new'"
        return (
            f"MERGE INTO {self.databases[0]}.{table} t USING ({rows}) s ON t.k = s.k WHEN MATCHED AND s.k % 2 = 0 THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)"
        )

    def _several(self) -> str:
        """Several tables, of both databases."""
        first, second = self.databases
        return (
            f"FROM {first}.whole INSERT INTO {first}.lines SELECT k, 'several' WHERE {self._some()} "
            f"INSERT INTO {first}.parts PARTITION (d) SELECT k, 'several', '{self.random.choice(_DAYS)}' WHERE {self._some()} "
            f"INSERT INTO {second}.{self.random.choice(('whole', 'lines'))} SELECT k, v WHERE {self._some()}"
        )

    def _overwrite(self) -> str:
        into = self.random.choice(("lines", f"days PARTITION (d = '{self.random.choice(_DAYS)}')", "whole"))
        return f"INSERT OVERWRITE TABLE {self.databases[0]}.{into} SELECT k, 'overwritten' FROM {self.databases[0]}.buckets"

    def _fails(self) -> str:
        table = f"{self.databases[0]}.{self.random.choice(('whole', 'buckets'))}"
        return f"INSERT INTO {table} SELECT k, CAST(ASSERT_TRUE(k > 1000000) AS STRING) FROM {self.databases[0]}.accounts"

    def _some(self) -> str:
        divisor = self.random.randint(2, 5)
        return f"k % {divisor} = {self.random.randrange(divisor)}"

    def _begin(self) -> None:
        """Has locks and write ids of all tables that it will write to, as Hive's statements take them before they write.

        Where one took them later than younger transactions, Hive's Cleaner was seen to delete what was committed.
        """
        source = self.connection.source
        writer = Writer.begin(source.metastore, source.storage, self.databases[0])
        places = [self._place() for _ in range(self.random.randint(1, 4))]
        for database, table, partition in places:
            there = replace(writer, database=database)
            there.lock(table, partition)
            there.write_id(table)
        self.open.append(Raw(writer, places))
        self.done["raw"] += 1
        self._go_on(self.open[-1])

    def _place(self) -> tuple[str, str, str]:
        second = self.random.random() < 0.25
        table = self.random.choice(("whole", "lines") if second else ("whole", "lines", "days", "parts"))
        return self.databases[second], table, f"d={self.random.choice(_DAYS)}" if table in ("days", "parts") else ""

    def _go_on(self, raw: Raw | None = None) -> None:
        """Another statement of a raw transaction, if it has any."""
        raw = raw or self.random.choice(self.open)
        if raw.places:
            database, table, partition = raw.places.pop()
            writer = replace(raw.writer, database=database)
            rows = [(next(self._keys), "raw") for _ in range(self.random.randint(1, 3))]
            writer.insert(table, _orc(rows) if table in FULL_ACID else _text(rows), partition, next(raw.number))

    def _end(self) -> None:
        """A raw transaction is committed or aborted; not in the order in which they began."""
        raw = self.open.pop(self.random.randrange(len(self.open)))
        if self.random.random() < 0.35:
            raw.writer.abort()
            self.done["raw aborted"] += 1
        else:
            raw.writer.commit()

    def _moved(self) -> None:
        """What is added to one table is taken from another, in a raw transaction."""
        source, amount = self.connection.source, self.random.randint(1, 9)
        writer = Writer.begin(source.metastore, source.storage, self.databases[0])
        for table, change in (("debit", -amount), ("credit", amount)):
            writer.lock(table)
            writer.insert(table, _text([(next(self._keys), change)]))
        if self.random.random() < 0.2:
            writer.abort()
            self.done["raw aborted"] += 1
        else:
            writer.commit()
        self.done["raw"] += 1

    def directories(self, side: str, database: str, table: str) -> list[str]:
        """What lies below a table, for a report."""
        one = self.connection.source if side == "source" else self.connection.target
        found = one.metastore.table(database, table)
        location = str(found.sd.location) if found else ""
        return sorted(file.uri.removeprefix(f"{location}/") for file in one.storage.files(location)) if location else []


def _text(rows: list[tuple[int, object]]) -> bytes:
    return "".join(f"{k}\x01{v}\n" for k, v in rows).encode()


def _orc(rows: list[tuple[int, object]]) -> bytes:
    """Rows without the columns of ACID, as LOAD DATA leaves them in a delta directory; Hive numbers them as it reads."""
    sink = pa.BufferOutputStream()
    keys, values = zip(*rows, strict=True)
    pa.orc.write_table(pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.string())}), sink)
    return sink.getvalue().to_pybytes()
