"""Names of embedded servers: sides, or parts of them, for ``up`` as for ``down``."""

from __future__ import annotations

import pytest

from hive_replication.errors import BadRequest
from resources.embedded.cluster import _parts


def test_sides_and_parts() -> None:
    assert _parts(["source.metastore"]) == (["source"], ["source"])
    assert _parts(["source.hdfs", "target"]) == (["source", "target"], ["target"])
    assert _parts(["source.hdfs", "source.metastore"]) == (["source"], ["source"])
    for wrong in ("source.what", "Source", "no_side.hdfs"):
        with pytest.raises(BadRequest):
            _parts([wrong])
