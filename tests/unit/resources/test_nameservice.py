"""What the embedded servers with high availability are not started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.errors import BadRequest
from resources.embedded.cluster import Cluster


def test_a_side_with_one_namenode_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"source": {"namenode": 1}}')
    with pytest.raises(BadRequest, match=r"source in .* has no high availability"):
        Cluster(tmp_path, ha=True).up(["source.hdfs"])
