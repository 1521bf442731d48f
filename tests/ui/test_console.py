"""The console in a browser: what goes wrong is seen, and mended by clicks. One ``dagster dev`` for all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from hive_replication.connect import Connection, connect
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import asset_url
from resources.embedded.hive import HiveDriver
from tests.counting import CountingProxy
from tests.dagster_dev import dagster_dev, equal, wait_for
from tests.ui.console import Console, browser, lineage_path
from tests.ui.shop import Shop, fill
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.ui, pytest.mark.servers, pytest.mark.hive, pytest.mark.timeout(900)]

NAMES = Names("default")
ENDED = ("SUCCESS", "FAILURE")
DAY = "ds=2026-01-02"

_STALE = """query($key: AssetKeyInput!, $partition: String) { assetNodeOrError(assetKey: $key) {
  ... on AssetNode { staleStatus(partition: $partition) } } }"""


@pytest.fixture(scope="module")
def shop(connection: Connection, hive3: HiveDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A shop's database, bootstrapped by the sensor."""
    folder, database = tmp_path_factory.mktemp("console"), f"shop_{uuid.uuid4().hex[:4]}"
    policy = connection.source.policy.model_copy(update={"databases": {database: database}})
    assert not hive3.run([f"CREATE DATABASE {database} COMMENT 'Orders and customers of the shop'"])[0].error
    warehouse = Warehouse(connect(policy), hive3, database)
    fill(warehouse)
    with CountingProxy(policy.source.metastore) as proxy:
        through = policy.source.model_copy(update={"metastore": proxy.uri})
        yield from _shop(warehouse, policy.model_copy(update={"source": through}), proxy, folder)


def _shop(warehouse: Warehouse, policy: Policy, proxy: CountingProxy, folder: Path) -> Iterator[Shop]:
    with dagster_dev(policy, folder) as running:
        wait_for("the sensor bootstraps", lambda: warehouse.applied() is not None)
        shop = Shop(warehouse, running, proxy)
        wait_for("the bootstrap ends", lambda: shop.statuses(shop.newest_window()) == ["SUCCESS"])
        yield shop


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


@pytest.mark.long
def test_several_partitions_are_repaired_at_once(console: Console, shop: Shop) -> None:
    days = ["ds=2026-01-03", "ds=2026-01-04"]
    good = [shop.read(day) for day in days]
    for day in days:
        shop.warehouse.connection.target.storage.write(shop.file(day), b"damaged\n")
    console.backfill(NAMES.table(shop.database, "orders", "load"), *days)
    wait_for("both are repaired", lambda: [shop.read(day) for day in days] == good)


@pytest.mark.long
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
    shop.start_sensor("notification_log")


def test_the_lag_is_plotted(console: Console, shop: Shop) -> None:
    console.open(f"/assets/{'/'.join(NAMES.database(shop.database, 'load').path)}")
    console.click("Plots")
    console.click("Events$")  # by time, not by window
    console.sees(re.compile(r"behind \(s\)"))
    expect(console.page.locator("canvas").first).to_be_visible()
    console.page.get_by_text(re.compile(r"behind \(s\)")).first.scroll_into_view_if_needed()
    console.picture("lag")


@pytest.mark.long
def test_each_job_starts_by_its_default_launch(console: Console, shop: Shop) -> None:
    database = shop.database
    jobs = {
        "checks",
        "record",
        "retention",
        "same_objects",
        *(f"{kind}_{database}" for kind in ("failover", "plan", "rebuild", "repair")),
    }
    assert shop.jobs() == jobs | {f"pause_{database}", f"resume_{database}"}  # those two: below
    before = {job: len(shop.runs_of(job)) for job in jobs}
    for job in sorted(jobs):
        console.launch(job)
        wait_for(f"{job} is launched", lambda job=job: len(shop.runs_of(job)) > before[job])
    wait_for("all jobs end", lambda: all(status in ENDED for job in jobs for status in shop.runs_of(job)))
    assert {job: shop.runs_of(job)[0] for job in jobs} == dict.fromkeys(jobs, "SUCCESS")


@pytest.mark.long
def test_a_database_is_paused_and_resumed_by_click(console: Console, shop: Shop) -> None:
    pause, resume, before = f"pause_{shop.database}", f"resume_{shop.database}", shop.newest_window()
    console.launch(pause)
    wait_for("the database is paused", lambda: shop.runs_of(pause) == ["SUCCESS"])
    shop.warehouse.load_data("orders PARTITION (ds='2026-01-06')", "6\x012\x016.50\n")
    wait_for("the sensor says why it does nothing", lambda: "paused since" in shop.last_tick("notification_log"))
    console.open(f"{asset_url(NAMES.database(shop.database, 'load'))}?view=checks&checkDetail=up_to_date")
    console.sees(re.compile("paused since"))
    console.picture("paused")
    assert shop.newest_window() == before

    console.launch(resume)
    wait_for(
        "the window follows", lambda: shop.newest_window() != before and set(shop.statuses(shop.newest_window())) == {"SUCCESS"}
    )
    wait_for("the replica is equal", lambda: equal(shop.warehouse))  # a tick may see some of the events, and the next the others


@pytest.mark.long
def test_a_failover_is_begun_and_taken_back_by_click(console: Console, shop: Shop) -> None:
    job, page, before = f"failover_{shop.database}", asset_url(NAMES.database(shop.database, "load")), shop.newest_window()
    for step, said in ("start", "replica; it can be opened"), ("rollback", "says what a failover would take"):
        known = len(shop.runs_of(job))
        console.launch(job, f"ops:\n  {job}__step:\n    config:\n      step: {step}\n")
        wait_for(f"{step} ends", lambda known=known: len(found := shop.runs_of(job)) > known and found[0] in ENDED)
        assert shop.runs_of(job)[0] == "SUCCESS"
        console.open(f"{page}?view=events")
        console.sees(re.compile(f"^{shop.database} of thrift://.* to {shop.database} of thrift://"))
        console.sees(re.compile(said))
        console.picture(f"failover-{step}")
    shop.warehouse.load_data("orders PARTITION (ds='2026-01-07')", "7\x012\x017.50\n")
    wait_for(
        "the window follows", lambda: shop.newest_window() != before and set(shop.statuses(shop.newest_window())) == {"SUCCESS"}
    )
    wait_for("the replica is equal", lambda: equal(shop.warehouse))  # a tick may see some of the events, and the next the others


def test_a_held_table_is_found_in_two_clicks_from_the_first_page(console: Console, shop: Shop) -> None:
    key = NAMES.table(shop.database, "customers", "load")
    shop.stop_sensor("notification_log")
    lost, content = shop.insert_and_lose("customers", "3\x01Cid\n")
    shop.start_sensor("notification_log")
    wait_for("the table is held", lambda: "customers" in shop.state().held)
    wait_for("the window ends", lambda: "SUCCESS" in shop.statuses(shop.newest_window()))
    console.open("/")
    console.page.locator("a[href='/asset-groups']").first.click()
    console.page.locator(f"a[href*='{asset_url(key)}?'][href*='checks']").first.click()
    console.sees("not_held")
    console.sees(re.compile("customers is held: .*is missing"))
    console.picture("held")

    shop.warehouse.connection.source.storage.write(lost, content)
    console.open(asset_url(key))
    console.click("Materialize")
    run = console.launched()
    wait_for("the repair ends", lambda: shop.dagster.status(run) in ENDED)
    assert shop.dagster.status(run) == "SUCCESS"
    assert not shop.state().held
    shop.warehouse.assert_equal()


@pytest.mark.long
def test_an_outage_is_seen_on_the_page_of_the_database(console: Console, shop: Shop) -> None:
    page = asset_url(NAMES.database(shop.database, "load"))
    shop.proxy.down = True
    console.open(f"{page}?view=checks&checkDetail=up_to_date")
    console.sees(re.compile("the lag is not known: "))
    console.picture("outage")
    console.open(f"{page}?view=checks&checkDetail=no_alarms")
    console.sees(re.compile("the lag is not known"))
    console.picture("alarms")
    shop.proxy.down = False
