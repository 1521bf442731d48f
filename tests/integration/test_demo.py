"""The demo as a user starts it: from nothing to the last comparison, a second run, Ctrl-C, the reset."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from demo.dagster_dev import PROJECT

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1500)]


class Demo:
    """A demo with folders and ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folders = ("--servers", str(folder / "embedded"), "--dagster-home", str(folder / "home"))
        self.command = [sys.executable, "-u", "-m", "demo", *folders, "--port", "0"]

    def run(self, option: str) -> str:
        """Runs it to its end, which must be a good one; what it prints."""
        done = subprocess.run([*self.command, option], cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
        return done.stdout

    def processes(self) -> list[str]:
        """Processes that run in its folders, or have them in arguments or environment."""
        found: list[str] = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                texts = (*process.cmdline(), process.cwd(), *process.environ().values())
                if process.pid != os.getpid() and any(f"{self.folder}/" in f"{text}/" for text in texts):
                    found.append(" ".join(process.cmdline())[:200])
        return found


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A demo; what a failed one leaves is stopped and deleted."""
    it = Demo(tmp_path / "demo")
    try:
        yield it
    finally:
        it.run("--reset")
    assert not (it.folder / "embedded").exists()
    assert it.processes() == []


def rows(printed: str) -> dict[str, list[str]]:
    """The rows of the comparison by table: partitions, rows, files (source | target each), proven, equality, seconds behind."""
    found = (re.split(r"\s*│\s*", line.strip("│ ")) for line in printed.splitlines() if line.startswith("│"))
    return {name: cells for name, *cells in found}


def files(printed: str, copied_by: str) -> str:
    """What the last lines say of copied files."""
    match = re.search(rf"Files copied by the {copied_by}: (.*)", printed)
    assert match, printed[-3000:]
    return match[1]


@pytest.mark.long
def test_the_replica_is_equal_with_the_source_stopped(demo: Demo) -> None:
    printed = demo.run("--headless")
    assert re.fullmatch(r"(\d+) by spark, \1 from source", files(printed, "bootstrap"))
    assert re.fullmatch(r"\d+ by threads, [1-9]\d* from cmroot, \d+ from source", files(printed, "windows"))
    compared = rows(printed)
    assert compared["orders"] == ["31 | 31", "3960 | 3960", "63 | 63", "63", "equal", "0"]
    assert compared["clicks"] == ["0 | 0", "0 | 0", "0 | 0", "0", "equal", "0"], "truncated"
    assert {"campaigns_2", "prices", "prices_old", "stock", "returns", "suppliers", "web_logs", "big_orders"} <= compared.keys()
    assert not {"campaigns_1", "prices_new", "flash_sale"} & compared.keys()
    assert demo.processes() == []


@pytest.mark.long
def test_ctrl_c_stops_it_and_the_next_run_goes_on(demo: Demo) -> None:
    with subprocess.Popen(demo.command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, start_new_session=True) as playing:
        assert playing.stdout is not None
        try:
            line = next((line for line in playing.stdout if "All stays up" in line), "")
            with urllib.request.urlopen(line.split()[-1] + "/server_info", timeout=30) as answer:
                assert answer.status == 200
        finally:
            os.killpg(playing.pid, signal.SIGINT)  # as a terminal does: to all in it
        playing.communicate(timeout=120)
    assert playing.returncode == 0
    assert demo.processes() == []

    printed = demo.run("--headless")
    assert "filled by an earlier demo" in printed
    compared = rows(printed)
    assert compared["orders"][0] == "32 | 32"
    assert "campaigns_3" in compared
