"""The lines of Python in README, run as they are printed, against real servers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from resources.embedded.cluster import Cluster
from resources.embedded.policy import write_policy
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

README = Path(__file__).parents[2] / "README.md"


def test_the_lines_of_readme(warehouse: Warehouse, cluster: Cluster, tmp_path: Path) -> None:
    """Twice: a bootstrap, then the events since."""
    (code,) = re.findall(r"^```python\n(.*?)^```", README.read_text(), re.DOTALL | re.MULTILINE)
    assert len([line for line in code.splitlines() if line]) <= 10
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE empty (a INT)")
    write_policy(cluster, tmp_path / "policy.yaml", {warehouse.database: warehouse.database})
    for rows in ("1\n", "22\n"):
        warehouse.load_data("plain", rows)
        done = subprocess.run(
            [sys.executable, "-c", code.replace("sales", warehouse.database)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert f"{len(rows)} bytes, held: ()" in done.stdout
        assert {"plain equal", "empty equal"} <= set(done.stdout.splitlines())
        warehouse.assert_equal()
