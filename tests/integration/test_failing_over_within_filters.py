"""Failover and failback of a database with a partition filter: what lies outside was never replicated, and stays where it is."""

from __future__ import annotations

from itertools import count
from typing import Literal

import pytest

from hive_replication import failover
from hive_replication.connect import connect
from hive_replication.policy.swap import swapped
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin
from tests.pair import Direction

pytestmark = pytest.mark.servers

OLD, FIRST, SECOND = "2025-12-31", "2026-01-01", "2026-01-02"


@pytest.mark.parametrize("excluded", ["keep", "drop"])
def test_partitions_outside_stay_on_the_side_that_has_them(
    cluster: Cluster, unique: str, excluded: Literal["keep", "drop"]
) -> None:
    filters = {unique: {"orders": "ds >= '2026-01-01'"}}
    whole = policy(cluster, {unique: unique})
    made = whole.model_copy(update={"partition_filters": filters, "excluded": excluded})
    there, back = Direction(connect(made), unique), Direction(connect(swapped(made)), unique)
    origin, opened = Origin(connect(whole), unique), Origin(connect(swapped(whole)), unique, count(1_000))
    origin.create_database()
    origin.create("orders", OLD, FIRST)
    for day in (OLD, FIRST):
        origin.insert("orders", f"{day}\n", day)
    there.replicate()
    assert there.fail_over().phase == "finished"
    assert (days(origin), days(opened), there.differences()) == ([OLD, FIRST], [FIRST], {})

    opened.add("orders", "2025-12-30", SECOND)
    for day in ("2025-12-30", FIRST, SECOND):
        opened.insert("orders", "more\n", day)
    done = failover.reverse(back.connection, unique)
    assert (done.held, done.dropped, done.bytes_copied) == ((), (), 2 * len("more\n"))
    assert (days(origin), days(opened), back.differences()) == ([OLD, FIRST, SECOND], ["2025-12-30", FIRST, SECOND], {})

    opened.insert("orders", "again\n", SECOND)
    opened.connection.source.metastore.drop_partitions(unique, "orders", ["ds=2025-12-30", f"ds={FIRST}"])
    back.replicate()
    assert (days(origin), days(opened), back.differences()) == ([OLD, SECOND], [SECOND], {})
    storage, place = origin.connection.source.storage, origin.location("orders", OLD)
    assert [storage.read(file.uri) for file in storage.files(place)] == [f"{OLD}\n".encode()]


def days(origin: Origin) -> list[str]:
    """Days of orders, those outside among them."""
    names = origin.connection.source.metastore.partition_names(origin.database, "orders")
    return [name.partition("=")[2] for name in names]
