"""A shop's database and its Dagster, for tests of the console."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.replica.state import ReplicaState, replica_state
from repl_assets.catalog.keys import KIND_TAG
from tests.counting import CountingProxy
from tests.dagster_dev import Dagster, wait_for
from tests.warehouse import Warehouse

PARTITION = "dagster/partition"

_SENSOR = """query($name: String!) { sensorOrError(sensorSelector: {
  repositoryLocationName: "hive_replication", repositoryName: "__repository__", sensorName: $name }) { ... on Sensor {
    id sensorState { ticks(limit: 1) { tickId status skipReason } } } } }"""
_JOBS = "{ repositoriesOrError { ... on RepositoryConnection { nodes { jobs { name } } } } }"
_STOP = "mutation($id: String!) { stopSensor(id: $id) { __typename } }"
_START = """mutation($name: String!) { startSensor(sensorSelector: {
  repositoryLocationName: "hive_replication", repositoryName: "__repository__", sensorName: $name }) { __typename } }"""


@dataclass(frozen=True)
class Shop:
    """A replicated database and its Dagster.

    Args:
        warehouse: both sides of the database.
        dagster: which reaches the source's metastore through the proxy only.
        proxy: to be taken down for an outage.
    """

    warehouse: Warehouse
    dagster: Dagster
    proxy: CountingProxy

    @property
    def database(self) -> str:
        return self.warehouse.database

    def file(self, day: str) -> str:
        """Place of the only file of a partition of orders in the replica."""
        target = self.warehouse.connection.target
        (part,) = target.metastore.partitions(self.database, "orders", [day])
        (file,) = target.storage.files(part.sd.location or "")
        return file.uri

    def read(self, day: str) -> bytes:
        return self.warehouse.connection.target.storage.read(self.file(day))

    def dumps(self) -> list[str]:
        """Directories of all dumps."""
        target = self.warehouse.connection.target
        return [status.uri for status in target.storage.ls(f"{target.policy.dump_root}/{self.database}")]

    def statuses(self, window: str) -> list[str]:
        """How the runs of a window ended, the newest first."""
        return [run["status"] for run in self.dagster.runs() if run["tags"].get(PARTITION) == window]

    def jobs(self) -> set[str]:
        """Names of all jobs that Dagster offers."""
        (repository,) = self.dagster.query(_JOBS)["repositoriesOrError"]["nodes"]
        return {job["name"] for job in repository["jobs"] if not job["name"].startswith("__")}

    def runs_of(self, job: str) -> list[str]:
        """How the runs of a job stand, the newest first."""
        return [run["status"] for run in self.dagster.runs() if run["jobName"] == job]

    def state(self) -> ReplicaState:
        return replica_state(self.warehouse.connection.target.metastore.database(self.database))

    def insert_and_lose(self, table: str, rows: str) -> tuple[str, bytes]:
        """Loads a file into a table and deletes it, as ``hdfs dfs -rm`` does; returns the file."""
        source = self.warehouse.connection.source
        found = source.metastore.table(self.database, table)
        assert found is not None
        place = str(found.sd.location)
        before = {file.uri for file in source.storage.files(place)}
        self.warehouse.load_data(table, rows)
        (new,) = {file.uri for file in source.storage.files(place)} - before
        content = source.storage.read(new)
        source.storage.delete(new)
        return new, content

    def last_tick(self, name: str) -> str:
        """Why a sensor's last tick asked for nothing."""
        ticks = self.dagster.query(_SENSOR, name=name)["sensorOrError"]["sensorState"]["ticks"]
        return str(ticks[0]["skipReason"] if ticks else "")

    def start_sensor(self, name: str) -> None:
        self.dagster.query(_START, name=name)

    def stop_sensor(self, name: str) -> None:
        """Stops a sensor, and waits until it asks for no run any more: a tick under way still does."""
        sensor = self.dagster.query(_SENSOR, name=name)["sensorOrError"]
        self.dagster.query(_STOP, id=sensor["id"])
        seen: list[object] = []

        def at_rest() -> bool:
            seen.append(self.dagster.query(_SENSOR, name=name)["sensorOrError"]["sensorState"]["ticks"])
            return len(seen) > 3 and seen[-1] == seen[-4] and seen[-1][0]["status"] != "STARTED"

        wait_for("the sensor is at rest", at_rest)

    def newest_window(self) -> str:
        return next(run["tags"][PARTITION] for run in self.dagster.runs() if run["tags"].get(KIND_TAG) == "window")


def fill(warehouse: Warehouse) -> None:
    """Tables and a view of the shop at the source."""
    warehouse.sql(
        "CREATE TABLE orders (id BIGINT COMMENT 'number of the order', customer_id BIGINT, amount DECIMAL(10,2)) "
        "COMMENT 'One row for each order' PARTITIONED BY (ds STRING COMMENT 'day of the order')",
        "CREATE TABLE customers (id BIGINT, name STRING COMMENT 'as on the invoice') COMMENT 'All customers'",
        "CREATE VIEW turnover COMMENT 'Turnover by customer' AS SELECT c.name, SUM(o.amount) AS total "
        "FROM {db}.orders o JOIN {db}.customers c ON o.customer_id = c.id GROUP BY c.name",
    )
    warehouse.load_data("customers", "1\x01Ann\n2\x01Ben\n")
    for day in range(1, 5):
        warehouse.load_data(f"orders PARTITION (ds='2026-01-0{day}')", f"{day}\x011\x01{day}.50\n")
