"""What the doctor says of quotas."""

from __future__ import annotations

import pytest

from hive_replication.doctor.quotas import judged
from hive_replication.storage.hdfs_facts import Quota


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (Quota(None, 5, None, 5), []),
        (Quota(100, 89, None, 5), [("ok", "")]),
        (Quota(100, 90, 1000, 5), [("warning", "-setQuota <number> /w/x"), ("ok", "")]),
        (Quota(None, 5, 1000, 1000), [("error", "-setSpaceQuota <number> /w/x")]),
    ],
)
def test_what_is_nearly_used_up_is_told(quota: Quota, expected: list[tuple[str, str]]) -> None:
    found = list(judged("target", "hdfs://nn/w/x", quota))
    assert [(one.verdict, one.advice.partition("dfsadmin ")[2]) for one in found] == expected
