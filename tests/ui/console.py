"""Dagster's pages in headless Chromium, as an operator uses them, with a picture of each."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from repl_assets.recording.metadata import asset_url

PICTURES = "HIVE_REPL_UI_PICTURES"  # names the folder that keeps the pictures
_SLOW = 90_000  # milliseconds that a page may take on a busy machine


@contextmanager
def browser(url: str, folder: Path, slow: int = _SLOW) -> Generator[Console]:
    """Chromium on a Dagster.

    Args:
        url: of Dagster.
        folder: for pictures, where the environment names none.
        slow: milliseconds that a page may take.
    """
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None and not os.environ.get("CI"):
        pytest.skip("no Chromium here: install the package chromium")
    assert program, "CI has no Chromium: install the package chromium"
    pictures = Path(os.environ.get(PICTURES) or folder)
    pictures.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=slow)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program)
        page = chromium.new_page(viewport={"width": 1800, "height": 1100})
        page.set_default_timeout(slow)
        page.goto(url)
        page.get_by_text("Hide navigation").click()  # for good: more room for all pages
        try:
            yield Console(page, url, pictures)
        finally:
            page.screenshot(path=pictures / "last.png")
            chromium.close()


def lineage_path(*groups: str) -> str:
    """Path of the global lineage with these groups opened."""
    opened = ",".join(f"global@global:{group}" for group in groups)
    return f"/asset-groups?expanded={quote(opened, safe='')}" if groups else "/asset-groups"


@dataclass(frozen=True)
class Console:
    """One page of the browser.

    Args:
        page: Playwright's page.
        url: of Dagster.
        pictures: where pictures go.
    """

    page: Page
    url: str
    pictures: Path

    def open(self, path: str) -> None:
        """Opens a page by its path."""
        self.page.goto(self.url + path)

    def picture(self, name: str) -> None:
        """Keeps what the page shows now."""
        self.page.wait_for_timeout(700)  # milliseconds, for what moves and fades
        self.page.screenshot(path=self.pictures / f"{name}.png")

    def click(self, name: str) -> None:
        """Presses a button by what is written on it."""
        self.page.get_by_role("button").filter(has_text=re.compile(f"^{name}")).first.click()

    def sees(self, text: str | re.Pattern[str]) -> None:
        """Waits until a text is visible."""
        expect(self.page.get_by_text(text).filter(visible=True).first).to_be_visible()

    def shows(self, node: str) -> None:
        """Waits until a graph shows a node or a group of this name, as a card or, from afar, as a box."""
        expect(self.page.get_by_text(node, exact=True).filter(visible=True).last).to_be_visible()

    def partition(self, key: dg.AssetKey, partition: str) -> None:
        """Opens an asset's partition."""
        self.open(asset_url(key, partition))
        self.sees("Latest materialization")

    def materialize(self) -> str:
        """Two clicks on an asset's page; the run's id, its first eight characters."""
        self.click("Materialize")
        self.click("Launch 1 run")
        return self.launched()

    def backfill(self, key: dg.AssetKey, *partitions: str) -> None:
        """Materializes chosen partitions of an asset."""
        self.open(f"{asset_url(key)}?view=partitions")
        self.sees(partitions[0])
        self.click("Materialize")
        self.page.get_by_role("dialog").get_by_text("Select a partition").filter(visible=True).click()
        for partition in partitions:
            self.page.get_by_role("menuitem").filter(has_text=partition).click()
        self.page.get_by_text("Launch runs to materialize").click()  # closes the list
        self.picture("partitions-chosen")
        self.click("Launch backfill")
        self.sees(re.compile("Created backfill"))

    def reexecute_from_failure(self) -> None:
        """Repeats the run whose page is open from the step on that failed."""
        self.page.get_by_role("button").filter(has_text=re.compile("^Re-execute")).locator("xpath=following::button[1]").click()
        self.page.get_by_role("menuitem").filter(has_text=re.compile("From failure")).click()

    def launch(self, job: str, config: str = "") -> None:
        """Starts a job from its Launchpad, as that offers it or with another configuration (YAML)."""
        chosen = f"/setup?config={quote(config, safe='')}" if config else ""
        self.open(f"/locations/hive_replication/jobs/{job}/playground{chosen}")
        self.sees("No errors")
        self.picture("launchpad")
        self.click("Launch Run")

    def launched(self) -> str:
        """Reads the message that a run is launched."""
        message = self.page.get_by_text(re.compile("Launched run [0-9a-f]{8}")).first
        return message.inner_text().split()[2][:8]

    def execute_check(self, key: dg.AssetKey, check: str) -> None:
        """Executes an asset's check by its button."""
        self.open(f"{asset_url(key)}?view=checks&checkDetail={check}")
        self.click("Execute$")
