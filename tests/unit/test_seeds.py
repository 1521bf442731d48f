"""Seeds are named at the end of pytest's output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def test_seeds_are_named_also_where_tests_pass_in_workers(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_chance(seed): assert seed == 7\ndef test_none(): pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-n", "1", "-p", "tests.seeds", "test_it.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(_ROOT), "HIVE_REPL_TEST_SEED": "7", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    named = [line for line in done.stdout.splitlines() if line.startswith("seed of")]
    assert named == ["seed of test_it.py::test_chance: HIVE_REPL_TEST_SEED=7"]
