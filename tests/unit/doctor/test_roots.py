"""Which roots of a side do not answer, and what lies under them."""

from __future__ import annotations

import pytest

from hive_replication.doctor.finding import error, ok
from hive_replication.doctor.roots import down


@pytest.mark.parametrize(
    ("root", "uri", "expected"),
    [
        ("hdfs://nn1:8020/", "hdfs://nn1:8020/x", True),
        ("hdfs://nn1:8020/", "hdfs://nn1:8020", True),
        ("hdfs://NN1:8020/", "HDFS://nn1:8020/x", True),
        ("hdfs://nn1:8020/data/", "hdfs://NN1:8020/data/", True),
        ("file:///data/", "file:/data/x", True),
        ("hdfs://nn1/", "hdfs://nn10/x", False),
        ("file:///data/s/", "file:///data/s2/x", False),
        ("hdfs://nn1/", "no URI", False),
        ("hdfs://nn1/", "hdfs://nn1/a/../b", False),
    ],
)
def test_what_lies_under_a_root_that_does_not_answer(root: str, uri: str, expected: bool) -> None:
    """Stores are the same whatever the case of their names, and URIs whatever the number of slashes after the scheme."""
    assert down([error("source", f"storage {root}", "no answer", "start it")])(uri) is expected
    assert not down([ok("source", f"storage {root}", "answers")])(uri)
