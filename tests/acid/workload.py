"""``python -m tests.acid``: random transactions on the source, replicated in windows, each compared by real Hive."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random

from hive_replication.load.report import LoadReport
from resources.embedded.hive import HiveDriver
from tests.acid.readers import Reader
from tests.acid.servers import Servers, compactions, wait_for_compactions
from tests.acid.transactions import FULL_ACID, Transactions
from tests.warehouse import Warehouse
from tests.writers import Writer, create


@dataclass
class Own:
    """A database of the target's own, with transactions of its own."""

    metastore: object
    storage: object
    database: str
    expected: list[str] = field(default_factory=list[str])
    _open: Writer | None = None

    def create(self, hive: HiveDriver) -> None:
        hive.execute(f"CREATE DATABASE {self.database}")
        create(self.metastore, self.storage, self.database, "own")  # type: ignore[arg-type]

    def work(self) -> None:
        """One that is open since the last time is committed, one is aborted, one begins."""
        if self._open is not None:
            self._open.commit()
        for keep in (False, True):
            writer = Writer.begin(self.metastore, self.storage, self.database)  # type: ignore[arg-type]
            writer.lock("own")
            number = writer.write_id("own")
            assert number == len(self.expected) * 2 + 1 + keep, f"write id {number} of a database that is not replicated"
            writer.insert("own", f"{number}\n")
            if not keep:
                writer.abort()
        self._open, self.expected = writer, [*self.expected, str(number)]

    def visible(self) -> list[str]:
        return sorted(self.expected[:-1])


@dataclass
class Workload:
    """The work, and what was found.

    Args:
        servers: what it runs on.
        seed: decides the transactions.
        log: gets a line for each step.
    """

    servers: Servers
    seed: int
    log: Callable[[str], None] = print
    done: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        name = f"acid{secrets.token_hex(3)}"
        connection, hive = self.servers.connection, self.servers.source
        databases = (name, f"{name}_second")
        self.transactions = Transactions(connection, hive, databases, Random(self.seed))
        self.replicas = [Warehouse(connection, hive, database) for database in databases]
        self.own = Own(connection.target.metastore, connection.target.storage, f"{name}_own")

    def run(self, transactions: int, windows: int) -> list[str]:
        """Answers what is wrong, after the first window in which something is."""
        self.transactions.create()
        self.own.create(self.servers.target)
        for number in range(windows):
            began = time.monotonic()
            self._work(transactions * (number + 1) // windows)
            worked = time.monotonic()
            self._window(number)
            self._compare()
            self.log(
                f"window {number + 1}: {self.transactions.number} transactions, worked {worked - began:.0f} s, "
                f"replicated and compared {time.monotonic() - worked:.0f} s: {'; '.join(self.wrong) or 'equal'}"
            )
            if self.wrong:
                break
        return self.wrong

    @property
    def figures(self) -> str:
        """One line of what was done."""
        work, done = self.transactions.done, self.done
        sides = self.servers.connection.source, self.servers.connection.target
        names = self.transactions.databases
        made = [sum(one.state == "succeeded" for one in compactions(side.metastore, names)) for side in sides]
        aborted = work["raw aborted"] + work["failed in Hive"] + work["aborted by a bootstrap"]
        return (
            f"seed {self.seed}: {self.transactions.number} transactions ({work['by Hive']} by Hive, {work['raw']} raw), "
            f"{aborted} aborted, {done['windows']} windows, {done['rows']} rows compared, "
            f"{made[0]} compactions on the source and {made[1]} on the target, "
            f"{done['files']} files copied, {done['cmroot']} from cmroot, {done['reads']} reads of the target during loads"
        )

    def _work(self, until: int) -> None:
        while self.transactions.number < until:
            self.transactions.one()

    def _window(self, number: int) -> None:
        """Dumps both, compacts and cleans what the dumps name, and loads; the target's own work goes on meanwhile."""
        first, random = number == 0, self.transactions.random
        dumps = [one.dump(one.applied()) for one in self.replicas]
        if first:
            self.transactions.forget()
        for _ in range(random.randint(1, 3)):
            self.transactions.compact()
        wait_for_compactions(self.servers.connection.source.metastore, self.transactions.databases, 6)
        self.own.work()
        with Reader(self.servers.reader, self.transactions.databases[0], first) as reader:
            for one, dump in zip(self.replicas, dumps, strict=True):
                self._loaded(one.load(dump.directory))
        self.done["windows"] += 1
        self.done["reads"] += reader.reads
        self.wrong += reader.wrong[:3]

    def _loaded(self, report: LoadReport) -> None:
        self.wrong += [f"held: {held}" for held in report.held]
        self.done["files"] += len(report.copies)
        self.done["cmroot"] += report.files_by_origin.get("cmroot", 0)

    def _compare(self) -> None:
        sides = self.servers.connection.source, self.servers.connection.target
        for database in self.transactions.databases:
            names = sorted({name for side in sides for name in side.metastore.table_names(database)})
            with ThreadPoolExecutor(2) as pool:
                drivers = (self.servers.source, self.servers.target)
                ours, theirs = pool.map(lambda hive, d=database, n=names: _rows(hive, d, n), drivers)
            for name in names:
                self.done["rows"] += len(ours[name])
                if ours[name] != theirs[name]:
                    self.wrong.append(self._difference(database, name, ours[name], theirs[name]))
                ids = [side.metastore.max_write_id(database, name) for side in sides]
                if ids[0] != ids[1]:
                    self.wrong.append(f"{database}.{name}: write ids up to {ids[0]} on the source, {ids[1]} on the target")
        (own,) = self.servers.target.run([f"SELECT * FROM {self.own.database}.own"])
        if sorted(own.rows) != self.own.visible():
            self.wrong.append(f"the target's own table: {own.rows} instead of {self.own.visible()}")

    def _difference(self, database: str, table: str, ours: list[str], theirs: list[str]) -> str:
        found = (sorted(set(ours) - set(theirs))[:3], sorted(set(theirs) - set(ours))[:3])
        lie = [self.transactions.directories(side, database, table) for side in ("source", "target")]
        return (
            f"{database}.{table}: {len(ours)} rows on the source, {len(theirs)} on the target; only on the source {found[0]}, "
            f"only on the target {found[1]}; files of the source {lie[0]}, of the target {lie[1]}"
        )


def _rows(hive: HiveDriver, database: str, tables: list[str]) -> dict[str, list[str]]:
    """All rows, with row ids where the table has them. What neither side can read is not equal for that."""
    found: dict[str, list[str]] = {}
    for name in tables:
        (read,) = hive.run([f"SELECT {'ROW__ID, ' if name in FULL_ACID else ''}* FROM {database}.{name}"])
        assert not read.error, f"{read.statement}: {read.error}"
        found[name] = sorted(read.rows)
    return found
