"""Measures how long Dagster's pages take with 1,000 tables and a table of 20,000 partitions: ``python -m bench.pages``.

Prints the Markdown tables of docs/performance.md. ``dagster dev`` and Chromium run on this machine.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import psutil

from bench import many_tables
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import asset_url
from repl_assets.recording.recorder import Recorder
from tests.dagster_dev import ROOT, running
from tests.ui.console import Console, browser, lineage_path

_RECORDED = 500  # partitions of the big table that have a materialization
_SLOW = 300_000  # milliseconds that a page may take

Row = tuple[str, float]


@dataclass(frozen=True)
class Page:
    """A page, and what it shows once it is usable."""

    title: str
    path: str
    ready: Callable[[Console], None]


def main() -> None:
    """Reads the command line and measures."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--visits", type=int, default=3, help="visits of each page, of which the median is printed (%(default)s)")
    parser.add_argument("--pictures", type=Path, help="keep a picture of each page in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        before = time.monotonic()
        with running(folder, "-m", "bench.many_tables", PYTHONPATH=str(ROOT)) as dagster:
            _print("step", [("`dagster dev` up", time.monotonic() - before), *_definitions(), *_fill(dagster.home)])
            with browser(dagster.url, options.pictures or folder, slow=_SLOW) as console:
                _print("page", ((page.title, _seconds(console, page, options.visits)) for page in _pages()))
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    memory = psutil.virtual_memory().total / 2**30
    print(f"{os.cpu_count()} cores, {memory:.0f} GiB, load average {load}, Dagster {dg.__version__}")


def _definitions() -> Iterator[Row]:
    before = time.monotonic()
    made = many_tables.build_defs(many_tables.policy(), many_tables.catalog())
    made.get_repository_def()
    yield f"definitions of {many_tables.TABLES:,} tables, as each run makes them", time.monotonic() - before


def _fill(home: Path) -> Iterator[Row]:
    """Records what loads would: partitions, and materializations of a database and of some partitions."""
    names = Names.of(many_tables.policy())
    os.environ["DAGSTER_HOME"] = str(home)
    with dg.DagsterInstance.get() as instance, dg.build_op_context(instance=instance) as context:
        recorder = Recorder(context, names, many_tables.DATABASES[0], {many_tables.BIG})
        before = time.monotonic()
        recorder.register(many_tables.BIG, many_tables.partitions())
        yield f"register the newest of {many_tables.PARTITIONS:,} partitions", time.monotonic() - before
        before = time.monotonic()
        for event in _events(names):
            instance.report_runless_asset_event(event)
        yield f"record {_RECORDED:,} partitions and the tables of a database", time.monotonic() - before


def _events(names: Names) -> Iterable[dg.AssetMaterialization]:
    for stage in ("dump", "load"):
        database = many_tables.catalog().databases[0]
        for table in database.tables:
            yield dg.AssetMaterialization(names.table(database.name, table.name, stage))
        big = names.table(database.name, many_tables.BIG, stage)
        for partition in many_tables.partitions()[-_RECORDED:]:
            yield dg.AssetMaterialization(big, partition=partition)


def _pages() -> Iterator[Page]:
    names, database, newest = Names.of(many_tables.policy()), many_tables.DATABASES[0], many_tables.partitions()[-1]
    big = names.table(database, many_tables.BIG, "load")
    url, partition = asset_url(big), asset_url(big, newest)
    yield Page("catalog", "/assets", lambda it: it.sees("t0001__dump"))
    yield Page("lineage, groups closed", lineage_path(), lambda it: it.shows(names.policy))
    yield Page("lineage, a database of 250 tables open", lineage_path(names.policy, names.group(database)), _nodes)
    yield Page("asset, overview", url, lambda it: it.sees("Latest materialization"))
    yield Page("asset, lineage", f"{url}?view=lineage", lambda it: it.shows(f"{many_tables.BIG}__dump"))
    yield Page("asset, partitions", f"{url}?view=partitions", lambda it: it.sees("10,000 Partitions"))
    yield Page("asset, one partition", partition, lambda it: it.sees("Latest materialization"))
    yield Page("asset, dialog to materialize a partition", partition, _dialog)
    yield Page("asset, checks", f"{url}?view=checks", lambda it: it.sees("replica_equal"))
    yield Page("runs", "/runs", lambda it: it.sees("Runs"))
    yield Page("automation", "/automation", lambda it: it.sees("notification_log"))


def _nodes(console: Console) -> None:
    """Some of the graph's nodes: it opens at its middle."""
    console.sees(re.compile(r"^t\d{4}__dump$"))


def _dialog(console: Console) -> None:
    console.click("Materialize")
    console.sees("Launch 1 run")


def _seconds(console: Console, page: Page, number: int) -> float:
    """Median of a number of visits, each a load of the whole page."""
    visits: list[float] = []
    for _ in range(number):
        console.page.goto("about:blank")
        before = time.monotonic()
        console.open(page.path)
        page.ready(console)
        visits.append(time.monotonic() - before)
    console.picture(page.title.replace(" ", "-").replace(",", ""))
    return statistics.median(visits)


def _print(what: str, rows: Iterable[Row]) -> None:
    """Prints a row as soon as it is measured."""
    print(f"| {what} | seconds |\n|---|---:|")
    for title, seconds in rows:
        print(f"| {title} | {seconds:.1f} |", flush=True)
    print()


if __name__ == "__main__":
    main()
