"""The policy as runs and ticks get it."""

from __future__ import annotations

from hive_replication.connect.databases import with_databases
from hive_replication.policy import Policy
from resources.connection import ReplicationConnection

SIDES = {
    side: {"metastore": f"thrift://{side}:9083", "roots": [{"uri": f"hdfs://{side}:8020/"}]} for side in ("source", "target")
}


def test_a_dropped_database_of_a_pattern_ends_no_other() -> None:
    """It is none of the databases that definitions are made of, and the policy may name it in other settings all the same."""
    written = {
        "databases": {"*": "dr_*"},
        "dump_root": "hdfs://target:8020/dumps",
        "priorities": {"Sales": 5, "hr": 1, "s*": 2},
        "locations": {"dr_sales": "hdfs://target:8020/sales", "dr_hr": "hdfs://target:8020/hr"},
        "partition_filters": {"sales": {"*": "ds > '2026'"}, "hr": {"*": "ds > '2025'"}, "*": {"*": "ds > '2024'"}},
    }
    policy = with_databases(Policy.model_validate({**SIDES, **written}), ["hr"])
    there = ReplicationConnection.of(policy).settings()
    assert there == policy
    assert there.databases == {"hr": "dr_hr"}
    assert (there.priorities, list(there.locations)) == ({"hr": 1, "s*": 2}, ["dr_hr"])
    assert list(there.partition_filters) == ["hr", "*"]
