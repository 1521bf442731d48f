"""``metrics``: addresses that cannot be listened at."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.cli.main import run
from tests.unit.policy.test_addresses import TEXT


@pytest.mark.parametrize("address", ["a..b", "a" * 70])
def test_a_name_that_is_no_host_is_told(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was a traceback."""
    (tmp_path / "policy.yaml").write_text(TEXT, encoding="utf-8")
    assert run(["--config", str(tmp_path / "policy.yaml"), "metrics", "--address", address, "--port", "0"]) == 2
    assert f"cannot listen at {address}:0" in capsys.readouterr().err
