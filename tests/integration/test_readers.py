"""Readers who query the target all the time see whole generations of data: never nothing, never a mixture, never an error."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hive_replication.connect import connect
from hive_replication.errors import ReplicationError
from resources.embedded.cluster import Cluster
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

# Every row holds the number of its generation, and every generation has as many rows; a query has to see exactly one.
_ROWS = 3
_GENERATIONS = 3

_SPARK = """
import json, pathlib, sys
from resources.embedded.cluster import Cluster
from demo.spark import Spark, end_java
folder, database, log, begun, stop, rows = sys.argv[1:]
spark = Spark(Cluster(pathlib.Path(folder)).side("target"), pathlib.Path(log))
session, reads, wrong = spark.session, 0, []
while not (pathlib.Path(stop).exists() and reads):
    for table, key in [("plain", "1"), ("outside", "1"), ("parts", "ds")]:
        session.catalog.refreshTable(f"{database}.{table}")
        query = f"SELECT {key} AS k, count(*) AS n, min(g) AS low, max(g) AS high FROM {database}.{table} GROUP BY {key}"
        try:
            found = session.sql(query).collect()
        except Exception as error:
            wrong.append(f"{table}: {str(error)[:300]}")
            continue
        reads += 1
        wrong += [f"{table}: {row}" for row in found if row["n"] != int(rows) or row["low"] != row["high"]]
        wrong += [] if found else [f"{table} is empty"]
    pathlib.Path(begun).touch()
print(json.dumps([reads, wrong[:5]]))
end_java()
"""


@dataclass
class Lister:
    """Looks locations up in the target's metastore, then lists them and reads what is there."""

    warehouse: Warehouse
    stop: threading.Event = field(default_factory=threading.Event)
    reads: int = 0
    wrong: list[str] = field(default_factory=list)

    def run(self) -> None:
        target = connect(self.warehouse.connection.target.policy).target
        names = ("plain", "outside", "parts", "named", "renamed", "keyed", "grown")
        while not self.stop.is_set():
            for table in target.metastore.tables(self.warehouse.database, names):
                parts = target.metastore.partitions(self.warehouse.database, table.tableName) if table.partitionKeys else [table]
                for thing in parts:
                    time.sleep(0.002)  # a planner takes its time too
                    self._look(target.storage, table.tableName, str(thing.sd.location))
        target.metastore.close()

    def _look(self, storage: object, table: str, location: str) -> None:
        self.reads += 1
        try:
            files = storage.files(location)  # type: ignore[attr-defined]
            rows = Counter(row for file in files for row in storage.read(file.uri).decode().split())  # type: ignore[attr-defined]
        except (OSError, ReplicationError) as error:
            self.wrong.append(f"{table} at {location}: {error}")
            return
        whole = set(rows.values()) == {2 * _ROWS} if table == "grown" else list(rows.values()) == [_ROWS]
        if not whole:
            self.wrong.append(f"{table} at {location}: {rows}")


def _staged(warehouse: Warehouse, name: str, number: int, files: int = 1) -> str:
    storage, root = warehouse.connection.source.storage, warehouse.connection.source.policy.source.roots[0].uri
    folder = f"{root}tmp/{warehouse.database}/{name}-{number}"
    for file in range(files):
        storage.write(f"{folder}/{name}-{number}-{file}", f"{number}\n".encode() * _ROWS)
    return folder


def _generation(warehouse: Warehouse, number: int) -> list[str]:
    def load(into: str, name: str, how: str = "OVERWRITE ", files: int = 1) -> str:
        return f"LOAD DATA INPATH '{_staged(warehouse, name, number, files)}' {how}INTO TABLE {into}"

    return [
        load("plain", "plain"),
        load("outside", "outside"),
        load("parts PARTITION (ds='1')", "parts1"),
        load("grown", "grown", "", 2),
        *(["ALTER TABLE parts DROP PARTITION (ds='2')"] if number else []),
        load("parts PARTITION (ds='2')", "parts2"),
    ]


_RENAMES = [
    "ALTER TABLE named RENAME TO renamed",
    "ALTER TABLE keyed PARTITION (ds='1') RENAME TO PARTITION (ds='2')",
    "ALTER TABLE renamed RENAME TO named",
    "ALTER TABLE keyed PARTITION (ds='2') RENAME TO PARTITION (ds='1')",
]


@pytest.mark.long
def test_readers_see_whole_generations(warehouse: Warehouse, cluster: Cluster, tmp_path: Path) -> None:
    """Overwrites, partitions that go and come again, appends at once, renames there and back, under Spark SQL and a lister."""
    connection = warehouse.connection
    policy = connection.target.policy.model_copy(update={"append": "atomic", "collapse": False})
    warehouse = replace(warehouse, connection=replace(connection, target=replace(connection.target, policy=policy)))
    warehouse.sql(
        *(f"CREATE TABLE {name} (g INT)" for name in ("plain", "named", "grown")),
        *(f"CREATE TABLE {name} (g INT) PARTITIONED BY (ds STRING)" for name in ("parts", "keyed")),
        "CREATE EXTERNAL TABLE outside (g INT)",
        *_generation(warehouse, 0),
        f"LOAD DATA INPATH '{_staged(warehouse, 'named', 7)}' INTO TABLE named",
        f"LOAD DATA INPATH '{_staged(warehouse, 'keyed', 7)}' INTO TABLE keyed PARTITION (ds='1')",
    )
    warehouse.replicate()
    begun, stop, log = tmp_path / "begun", tmp_path / "stop", tmp_path / "spark.log"
    words = [str(cluster.directory), warehouse.database, str(log), str(begun), str(stop), str(_ROWS)]
    lister = Lister(warehouse)
    thread = threading.Thread(target=lister.run)
    with subprocess.Popen([sys.executable, "-c", _SPARK, *words], stdout=subprocess.PIPE, text=True) as spark:
        try:
            dumps, evid = [], warehouse.applied()
            for first in (1, 1 + _GENERATIONS):
                numbers = range(first, first + _GENERATIONS)
                warehouse.sql(*(line for number in numbers for line in (*_generation(warehouse, number), *_RENAMES)))
                dumps.append(warehouse.dump(evid))
                evid = dumps[-1].last_evid
            while not begun.exists():
                assert spark.poll() is None, log.read_text()
                time.sleep(0.1)
            thread.start()
            for dump in dumps:
                assert warehouse.load(dump.directory).held == ()
                time.sleep(0.5)
        finally:
            lister.stop.set()
            stop.touch()
        thread.join()
        reads, wrong = json.loads(spark.communicate()[0])
    print(f"{lister.reads} reads of locations, {reads} Spark queries during {2 * _GENERATIONS} generations")
    assert (lister.wrong, wrong) == ([], [])
    assert lister.reads > 20
    assert reads > 3
    warehouse.assert_equal()
