"""What the doctor tries on the target's storage is gone after it."""

from __future__ import annotations

from pathlib import Path

from hive_replication.doctor.preserved import preserved
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.lags import POLICY


def test_a_warehouse_that_was_absent_is_absent_after_the_trial(tmp_path: Path) -> None:
    """It was left with the mode of the trial's directory, so that nobody else could read the replicas in it."""
    warehouse = f"{tmp_path.as_uri()}/user/hive/warehouse"
    (finding,) = preserved(Storage((Root(uri=tmp_path.as_uri()),)), POLICY, warehouse)
    assert finding.verdict == "ok"
    assert list(tmp_path.iterdir()) == []
