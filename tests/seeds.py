"""Seeds of tests that choose at random: another one in each run, which the end of pytest's output names, also where all passed.

``HIVE_REPL_TEST_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable

import pytest

_NAME = "HIVE_REPL_TEST_SEED"


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    """The seed of a test."""
    found = int(os.environ.get(_NAME) or secrets.randbelow(10**6))
    record_property(_NAME, found)
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the seed of each test that had one; what a worker of ``pytest -n`` prints itself is not shown."""
    reports = [one for found in terminalreporter.stats.values() for one in found if isinstance(one, pytest.TestReport)]
    for report in reports:
        for name, value in report.user_properties if report.when == "call" else ():
            if name == _NAME:
                terminalreporter.write_line(f"seed of {report.nodeid}: {name}={value}")
