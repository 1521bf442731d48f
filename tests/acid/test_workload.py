"""The short form of ``make test-acid``, one of the long tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver, StatementResult
from tests.acid.servers import servers
from tests.acid.workload import Workload, _rows

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


def test_a_table_that_cannot_be_read_is_equal_to_none() -> None:
    """Where both sides answered with the same error, the table counted as compared."""

    def run(statements: list[str]) -> list[StatementResult]:
        return [StatementResult(0.0, statement, (), "no room") for statement in statements]

    with pytest.raises(AssertionError, match="no room"):
        _rows(cast("HiveDriver", SimpleNamespace(run=run)), "db", ["t"])
