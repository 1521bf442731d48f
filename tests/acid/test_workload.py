"""The short form of ``make test-acid``, one of the long tests."""

from __future__ import annotations

import pytest

from resources.embedded.cluster import Cluster
from tests.acid.servers import servers
from tests.acid.workload import Workload

SEED = 3


@pytest.mark.servers
@pytest.mark.hive
@pytest.mark.long
def test_twelve_transactions_in_two_windows_are_the_same_on_both_sides(cluster: Cluster) -> None:
    with servers(cluster) as running:
        work = Workload(running, SEED)
        assert work.run(transactions=12, windows=2) == []
        print(work.figures)
    assert work.done["reads"] > 2
