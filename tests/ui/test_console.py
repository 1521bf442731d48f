"""The console in a browser: lineage, a damaged partition, a failed window, the lag. One ``dagster dev`` for all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from hive_replication.connect import Connection, connect
from repl_assets.catalog.keys import KIND_TAG, Names
from resources.embedded.hive import HiveDriver
from tests.dagster_dev import Dagster, dagster_dev, wait_for
from tests.ui.console import Console, browser, lineage_path
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.ui, pytest.mark.servers, pytest.mark.hive, pytest.mark.timeout(900)]

NAMES = Names("default")
PARTITION = "dagster/partition"
ENDED = ("SUCCESS", "FAILURE")
DAY = "ds=2026-01-02"

_STALE = """query($key: AssetKeyInput!, $partition: String) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { staleStatus(partition: $partition) } } }"""
_SENSOR = """query($name: String!) { sensorOrError(sensorSelector: {
  repositoryLocationName: "hive_replication", repositoryName: "__repository__", sensorName: $name }) { ... on Sensor {
    id sensorState { ticks(limit: 1) { tickId status } } } } }"""
_STOP = "mutation($id: String!) { stopSensor(id: $id) { __typename } }"
_START = """mutation($name: String!) { startSensor(sensorSelector: {
  repositoryLocationName: "hive_replication", repositoryName: "__repository__", sensorName: $name }) { __typename } }"""


@dataclass(frozen=True)
class Shop:
    """A replicated database and its Dagster."""

    warehouse: Warehouse
    dagster: Dagster

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


@pytest.fixture(scope="module")
def shop(connection: Connection, hive3: HiveDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop's database, bootstrapped by the sensor."""
    folder, database = tmp_path_factory.mktemp("console"), f"shop_{uuid.uuid4().hex[:4]}"
    policy = connection.source.policy.model_copy(update={"databases": {database: database}})
    assert not hive3.run([f"CREATE DATABASE {database} COMMENT 'Orders and customers of the shop'"])[0].error
    warehouse = Warehouse(connect(policy), hive3, database)
    _fill(warehouse)
    with dagster_dev(policy, folder) as running:
        wait_for("the sensor bootstraps", lambda: warehouse.applied() is not None)
        shop = Shop(warehouse, running)
        wait_for("the bootstrap ends", lambda: shop.statuses(shop.newest_window()) == ["SUCCESS"])
        yield shop


def _fill(warehouse: Warehouse) -> None:
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


@pytest.fixture(scope="module")
def console(shop: Shop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with browser(shop.dagster.url, tmp_path_factory.mktemp("pictures")) as it:
        yield it


def test_lineage_shows_source_dump_and_replica(console: Console, shop: Shop) -> None:
    console.open(lineage_path(NAMES.group(shop.database)))
    nodes = [f"{shop.database}__source", f"{shop.database}__dump", f"{shop.database}__load"]
    nodes += ["orders__source", "orders__dump", "orders", "customers", "turnover"]
    for node in nodes:
        console.shows(node)
    expect(console.page.get_by_text("Loading")).to_have_count(0)
    console.picture("lineage")


def test_a_check_finds_damage_and_two_clicks_repair_it(console: Console, shop: Shop) -> None:
    key, good = NAMES.table(shop.database, "orders", "load"), shop.read(DAY)
    shop.warehouse.connection.target.storage.write(shop.file(DAY), b"damaged\n")

    console.execute_check(key, "replica_equal")
    console.sees(re.compile("^Failed$"))
    console.sees(re.compile(re.escape(DAY)))
    console.picture("check-failed")

    console.partition(key, DAY)
    run = console.materialize()
    wait_for("the repair ends", lambda: shop.dagster.status(run) in ENDED)
    assert shop.dagster.status(run) == "SUCCESS"
    assert shop.read(DAY) == good
    console.partition(key, DAY)
    console.sees(run)
    console.picture("partition")
    found = shop.dagster.query(_STALE, key={"path": list(key.path)}, partition=DAY)
    assert found["assetNodeOrError"]["staleStatus"] == "FRESH"

    console.execute_check(key, "replica_equal")
    console.sees(re.compile("^Passed$"))
    console.picture("check-passed")


def test_several_partitions_are_repaired_at_once(console: Console, shop: Shop) -> None:
    days = ["ds=2026-01-03", "ds=2026-01-04"]
    good = [shop.read(day) for day in days]
    for day in days:
        shop.warehouse.connection.target.storage.write(shop.file(day), b"damaged\n")
    console.backfill(NAMES.table(shop.database, "orders", "load"), *days)
    wait_for("both are repaired", lambda: [shop.read(day) for day in days] == good)


def test_a_failed_window_is_retried_in_two_clicks(console: Console, shop: Shop) -> None:
    target = shop.warehouse.connection.target
    found = target.metastore.database(shop.database)
    assert found is not None
    storage, journal = target.storage, f"{found.locationUri}/.repl/journal"
    storage.rename(journal, f"{journal}.away")
    storage.write(journal, b"a file in the way")  # the dump can be made, the load fails
    before = shop.newest_window()
    shop.warehouse.load_data("orders PARTITION (ds='2026-01-05')", "5\x012\x015.50\n")
    wait_for("the sensor asks for a window", lambda: shop.newest_window() != before)
    window = shop.newest_window()
    shop.stop_sensor("notification_log")
    wait_for("the window fails", lambda: set(shop.statuses(window)) == {"FAILURE"})
    attempts, dumps = len(shop.statuses(window)), shop.dumps()
    console.open(f"/runs/{shop.dagster.runs()[0]['runId']}")
    console.sees("Failure")
    console.picture("window-failed")

    storage.delete(journal)
    storage.rename(f"{journal}.away", journal)
    console.reexecute_from_failure()
    wait_for(
        "the retry ends", lambda: len(shop.statuses(window)) > attempts and shop.statuses(window)[0] in ("SUCCESS", "FAILURE")
    )
    assert shop.statuses(window)[0] == "SUCCESS"
    assert shop.dumps() == dumps  # the one that is there is loaded
    shop.warehouse.assert_equal()
    console.partition(NAMES.database(shop.database, "load"), window)
    console.sees("operations by kind")
    console.picture("window")
    shop.dagster.query(_START, name="notification_log")


def test_the_lag_is_plotted(console: Console, shop: Shop) -> None:
    console.open(f"/assets/{'/'.join(NAMES.database(shop.database, 'load').path)}")
    console.click("Plots")
    console.click("Events$")  # by time, not by window
    console.sees(re.compile(r"behind \(s\)"))
    expect(console.page.locator("canvas").first).to_be_visible()
    console.page.get_by_text(re.compile(r"behind \(s\)")).first.scroll_into_view_if_needed()
    console.picture("lag")
