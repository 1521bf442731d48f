"""Estimates of a load's time: by the last measured load, else by assumed rates; never faster than the bandwidth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.load.copy_rate import Rates
from hive_replication.plans.estimate import estimate

RATES = Rates(files=100, bytes=1_000_000, copy_seconds=10.0, operations=20, apply_seconds=4.0, measured=0.0)


@pytest.mark.parametrize(
    ("files", "size", "seconds"),
    [(100, 0, 10.0), (50, 1_000_000, 10.0), (10, 3_000_000, 30.0), (0, 0, 0.0)],
)
def test_the_slower_of_files_and_bytes_counts(files: int, size: int, seconds: float) -> None:
    found = estimate(files, size, 0, RATES, None)
    assert found.seconds == pytest.approx(seconds)
    assert found.basis.startswith("measured: the load of 1970-01-01 00:00:00 UTC copied 100 files")


def test_operations_come_after_the_copies() -> None:
    assert estimate(100, 0, 10, RATES, None).seconds == pytest.approx(10.0 + 2.0)


def test_without_a_measured_load_the_rates_are_assumed_and_the_basis_says_so() -> None:
    for rates in (None, replace(RATES, files=0), replace(RATES, copy_seconds=0.0)):
        found = estimate(1000, 0, 20, rates, None)
        assert found.seconds == pytest.approx(1000 / 100 + 20 / 20)
        assert found.basis.startswith("assumed: 100 files/s")


def test_the_bandwidth_is_a_limit() -> None:
    limited = estimate(1, 1_000_000, 0, RATES, 10_000)
    assert limited.seconds == pytest.approx(100.0)
    assert "; limited to " in limited.basis
    assert "limited" not in estimate(1, 1_000_000, 0, RATES, 10_000_000).basis
