"""The model of the source against the real one, and replicas loaded in collapsed windows against both.

Random sequences run on real Hive, each with tables of its own, all in one database, so that few dumps and loads carry them all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from hive_replication.events import event_records as r
from hive_replication.load.report import LoadReport
from tests.model import OUTSIDE, Source
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

KINDS = (
    *("create",) * 5,
    *("insert",) * 7,
    *("overwrite",) * 4,
    *("truncate", "alter", "alter part", "alter many", "drop", "rename", "rename", "rename part", "exchange", "exchange"),
    *("add many", "drop part", "drop many"),
)


@dataclass
class Sequence:
    """One random sequence: the model, and how its changes are said in Hive's SQL.

    Args:
        number: ends the names of its tables.
        uploads: directory for files that LOAD DATA takes.
        kinds: of changes.
    """

    number: int
    uploads: str
    kinds: tuple[str, ...] = KINDS
    model: Source = field(default_factory=lambda: Source(empty=True))
    files: dict[str, bytes] = field(default_factory=dict)

    def statements(self, ids: random.Random, count: int) -> Iterator[str]:
        """So many changes."""
        for _ in range(count):
            before = len(self.model.events)
            while all(isinstance(event, r.OtherEvent) for event in self.model.events[before:]):  # what fits nothing is none
                before = len(self.model.events)
                self.model.act(ids.choice(self.kinds), ids.randrange(2), ids.randrange(3), ids.randrange(3))
            events = self.model.events[before:]
            if len(events) == 2:
                added, dropped = events
                assert isinstance(dropped, r.DropPartition)
                yield f"ALTER TABLE {self.name(added)} EXCHANGE {_parts(dropped.partitions)} WITH TABLE {self.name(dropped)}"
            else:
                yield from self._said(events[0])

    def name(self, event: r.Event | str) -> str:
        return f"{event if isinstance(event, str) else event.table}{self.number}"

    def _said(self, event: r.Event) -> Iterator[str]:
        table = self.name(event)
        match event:
            case r.CreateTable():
                yield f"CREATE TABLE {table} (x STRING)" + " PARTITIONED BY (p STRING)" * bool(event.after.partitionKeys)
            case r.DropTable():
                yield f"DROP TABLE {table}"
            case r.AlterTable(rename=True):
                yield from self._unseen(event) if event.table == OUTSIDE else ()
                yield f"ALTER TABLE {table} RENAME TO {self.name(event.names[1])}"
            case r.AlterTable(truncate=True):
                yield f"TRUNCATE TABLE {table}"
            case r.AlterTable():
                yield f"ALTER TABLE {table} SET TBLPROPERTIES ('version'='{event.evid}')"
            case r.AddPartition():
                yield f"ALTER TABLE {table} ADD {' '.join(_parts([added.name]) for added in event.partitions)}"
            case r.DropPartition():
                yield f"ALTER TABLE {table} DROP {', '.join(_parts([name]) for name in event.partitions)}"
            case r.AlterPartition():
                yield from (self._changed(event, change) for change in event.changes)
            case r.Insert():
                path = f"{self.uploads}/{self.number}/{event.evid}/000000_0"
                self.files[path] = f"c{event.evid}".encode()
                into = f"{table} {_parts([event.partition_name])}" if event.partition_name else table
                yield f"LOAD DATA INPATH '{path}' {'OVERWRITE ' * event.replace}INTO TABLE {into}"
            case _:
                pass

    def _unseen(self, event: r.AlterTable) -> Iterator[str]:
        """What is done to a table outside the policy, before it comes back."""
        table = self.model.tables[event.names[1]]
        for number, key in enumerate(table.parts or [""]):
            if key or not table.partitioned:
                path = f"{self.uploads}/{self.number}/{event.evid}/{number}/unseen{event.evid}"
                self.files[path] = f"u{event.evid}".encode()
                yield f"LOAD DATA INPATH '{path}' INTO TABLE {self.name(event)}" + (f" {_parts([key])}" if key else "")

    def _changed(self, event: r.AlterPartition, change: r.ChangedPartition) -> str:
        table, part = self.name(event), _parts([change.before_name])
        if change.rename:
            return f"ALTER TABLE {table} {part} RENAME TO {_parts([change.after_name])}"
        if event.truncate:
            return f"TRUNCATE TABLE {table} {part}"
        return f"ALTER TABLE {table} {part} SET SERDEPROPERTIES ('version'='{event.evid}')"

    def state(self) -> dict[str, dict[str, dict[str, bytes]]]:
        """The model's tables, their partitions ("" for unpartitioned tables) and files."""

        def read(files: dict[str, str]) -> dict[str, bytes]:
            return {name: checksum.encode() for name, checksum in files.items()}

        return {
            self.name(name): {key: read(part) for key, (_, part) in parts.items()} if partitioned else {"": read(files)}
            for name, (_, partitioned, files, parts) in self.model.state().items()
        }


def _parts(names: tuple[str, ...] | list[str]) -> str:
    (name,) = names
    key, _, value = name.partition("=")
    return f"PARTITION ({key}='{value}')"


def real_state(warehouse: Warehouse) -> dict[str, dict[str, object]]:
    """The same of the real source."""
    state: dict[str, dict[str, object]] = {}
    included = filter(warehouse.connection.source.policy.includes, content := warehouse.content(source=True))
    for table, shown in ((name, content[name]) for name in included):
        assert isinstance(shown, dict)
        parts = {f"p={key[len('partition ') + 2 : -2]}": value[0] for key, value in shown.items() if key.startswith("partition ")}
        state[table] = parts if shown["keys"] else {"": shown["files"]}
    return state


def run(warehouse: Warehouse, count: int, seed: int, windows: int, kinds: tuple[str, ...] = KINDS) -> list[LoadReport]:
    root = warehouse.connection.source.policy.source.roots[0].uri
    sequences = [Sequence(number, f"{root}tmp/{warehouse.database}", kinds) for number in range(count)]
    ids, reports = random.Random(seed), []
    warehouse.replicate()
    for _ in range(windows):
        statements = [said for one in sequences for said in one.statements(ids, ids.randint(3, 9))]
        files = {path: content for one in sequences for path, content in one.files.items()}
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(warehouse.connection.source.storage.write, files, files.values()))
        for one in sequences:
            one.files.clear()
        began = time.monotonic()
        warehouse.sql(*statements)
        spent = time.monotonic() - began
        dump = warehouse.dump(warehouse.applied())
        report = warehouse.load(dump.directory, source=warehouse.connection.source.metastore)
        print(f"seed {seed}: {len(statements)} statements in {spent:.0f} s, {dump.events} events, {report.collapsed}")
        assert report.held == ()
        modelled: dict[str, object] = {}
        for one in sequences:
            modelled |= one.state()
        assert real_state(warehouse) == modelled
        warehouse.assert_equal_in_policy()
        reports.append(report)
    return reports


@pytest.mark.long
def test_model_source_and_replica_agree(warehouse: Warehouse, seed: int) -> None:
    (report,) = run(warehouse, count=20, seed=seed, windows=1)
    assert report.collapsed.events > report.collapsed.operations > 0


@pytest.mark.long
def test_tables_that_leave_the_policy_and_come_back_under_any_name(warehouse: Warehouse, seed: int) -> None:
    kinds = (*KINDS, *("rename out",) * 8, *("rename in",) * 16)
    inside = warehouse.with_policy(exclude=(f"{OUTSIDE}*",))
    run(inside, count=6, seed=seed, windows=2, kinds=kinds)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(3))
def test_model_source_and_replica_agree_on_many(warehouse: Warehouse, seed: int) -> None:
    run(warehouse, count=100, seed=seed, windows=2)
