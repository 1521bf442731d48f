"""``dagster dev`` as users start it: the sensor replicates by itself, the API repairs a partition, a killed run comes again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import Partition, copy_of
from repl_assets.catalog.keys import Names, partition_key
from resources.heartbeat import PROCESS_TAG
from tests.dagster_dev import Dagster, dagster_dev, equal, wait_for
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

PARTITIONS = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { partitionStats { numMaterialized numPartitions } } } }"""


@pytest.fixture
def dagster(warehouse: Warehouse, tmp_path: Path) -> Iterator[Dagster]:
    """``dagster dev`` for a database with two partitions, on a free port."""
    warehouse.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    policy = warehouse.connection.source.policy.model_copy(update={"databases": {warehouse.database: warehouse.database}})
    with dagster_dev(policy, tmp_path) as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_replicates_repairs_and_survives_a_kill(dagster: Dagster, warehouse: Warehouse) -> None:
    wait_for("the sensor bootstraps", lambda: warehouse.applied() is not None and equal(warehouse))

    warehouse.load_data("parts PARTITION (ds='3')", "3\n")
    wait_for("the sensor replicates an insert", lambda: equal(warehouse))

    _repair(dagster, warehouse)
    _kill(dagster, warehouse)
    _recorded(dagster, warehouse)


def _repair(dagster: Dagster, warehouse: Warehouse) -> None:
    target = warehouse.connection.target
    (part,) = target.metastore.partitions(warehouse.database, "parts", ["ds=2"])
    (file,) = target.storage.files(part.sd.location)
    target.storage.write(file.uri, b"damaged\n")
    key = Names("default").table(warehouse.database, "parts", "load")
    run = dagster.materialize(list(key.path), partition_key("ds=2"))
    wait_for("the repair ends", lambda: dagster.run(run)["status"] in ("SUCCESS", "FAILURE"))
    assert dagster.run(run)["status"] == "SUCCESS"
    warehouse.assert_equal()


def _kill(dagster: Dagster, warehouse: Warehouse) -> None:
    """SIGKILL for the run's process while it copies; the next attempt of the same window ends equal."""
    target, seen = warehouse.connection.target, {run["runId"] for run in dagster.runs()}
    location = target.metastore.database(warehouse.database).locationUri
    before = len(target.storage.files(location, hidden=True))
    _add_partitions(warehouse, 220)
    run, process = _new_run(dagster, seen)

    def copying() -> bool:
        return len(target.storage.files(location, hidden=True)) > before

    wait_for("the load begins", copying, every=0.05)
    process.kill()
    assert not equal(warehouse)
    wait_for("the killed run is seen", lambda: dagster.run(run["runId"])["status"] == "FAILURE")

    def attempts() -> dict[str, str]:
        window = run["tags"]["dagster/partition"]
        found = [one for one in dagster.runs() if one["tags"].get("dagster/partition") == window]
        return {one["tags"]["hive_replication/attempt"]: one["status"] for one in found}

    wait_for("the next attempt", lambda: attempts() == {"1": "FAILURE", "2": "SUCCESS"})
    warehouse.assert_equal()


def _new_run(dagster: Dagster, seen: Collection[str]) -> tuple[dict[str, Any], psutil.Process]:
    """The first run that was not seen before, and its process."""
    found: list[tuple[dict[str, Any], psutil.Process]] = []
    with dg.DagsterInstance.from_config(str(dagster.home)) as instance:  # Dagster's API leaves hidden tags out

        def works() -> bool:
            for run in dagster.runs():
                known = None if run["runId"] in seen else instance.get_run_by_id(run["runId"])
                if known and PROCESS_TAG in known.tags:
                    found.append((run, psutil.Process(int(known.tags[PROCESS_TAG].split()[1]))))
            return bool(found)

        wait_for("a run begins", works, every=0.1)
    return found[0]


def _recorded(dagster: Dagster, warehouse: Warehouse) -> None:
    """The load logged 200 of its partitions; a job logs the others, and one what the killed run left, so that all are green."""
    key = list(Names("default").table(warehouse.database, "parts", "load").path)

    def green() -> bool:
        found = dagster.query(PARTITIONS, key={"path": key})["assetNodeOrError"]["partitionStats"]
        return bool(found["numMaterialized"] == found["numPartitions"] > 200)

    wait_for("all partitions are recorded", green)
    wait_for("the job ends", lambda: {run["status"] for run in dagster.runs() if run["jobName"] == "record"} == {"SUCCESS"})


def _add_partitions(warehouse: Warehouse, number: int) -> None:
    """Adds partitions with a file each, in one call and so with one event."""
    source = warehouse.connection.source
    table = source.metastore.table(warehouse.database, "parts")
    assert table is not None
    parts: list[Partition] = []
    for n in range(number):
        values = [f"k{n:03d}"]
        sd = copy_of(table.sd)
        sd.location = f"{table.sd.location}/{partition_name(['ds'], values)}"
        parts.append(Partition(values=values, dbName=warehouse.database, tableName="parts", sd=sd, parameters={}))
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(lambda part: source.storage.write(f"{part.sd.location}/data", f"{part.values[0]}\n".encode()), parts))
    source.metastore.add_partitions(warehouse.database, "parts", parts)
