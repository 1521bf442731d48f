"""Replication between metastores of different versions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resources.embedded.cluster import Cluster
from tests.matrix.pairs import PAIRS, sides, tried

pytestmark = pytest.mark.servers


@contextmanager
def running(cluster: Cluster, pair: tuple[str, str]) -> Iterator[None]:
    """Runs the servers of a pair; what other tests do not use is stopped afterwards."""
    names = sides(pair)
    cluster.up(names)
    yield
    cluster.down([f"{name}.metastore" for name in names if not name.endswith(("source", "target", "source4", "target4"))])


#: From the oldest version to the newest; what other tests replicate to the same one is 3.1.3 and 4.2.0.
_OFTEN = ("2", "4")
_TRIED = [pytest.param(pair, id="-".join(sides(pair)), marks=() if pair == _OFTEN else pytest.mark.long) for pair in PAIRS]


@pytest.mark.parametrize("pair", _TRIED)
def test_everything_is_equal(cluster: Cluster, pair: tuple[str, str]) -> None:
    with running(cluster, pair):
        outcome = tried(cluster, pair)
    assert outcome.wrong == ()
    assert outcome.events > (30 if pair[0] == "2" else 40)  # Hive 2 writes none of constraints and transactions
    assert outcome.objects > 10
