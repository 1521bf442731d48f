"""Bootstrap and every event of the seeds' table, made by real Hive 3.1.3, replicated and compared."""

from __future__ import annotations

import pytest

from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_bootstrap_brings_all_tables(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE plain (a INT, b STRING)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE empty (a INT)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    warehouse.load_data("plain", "1\n2\n")
    warehouse.load_data("parts PARTITION (ds='2024-01-01')", "1\n")
    warehouse.load_data("parts PARTITION (ds='a b%/ü')", "2\n")
    dump = warehouse.dump()
    report = warehouse.load(dump.directory)
    assert report.held == ()
    assert len(report.copies) == 3
    assert all(result.proof.recorded for result in report.copies)
    assert warehouse.status() == dump.last_evid
    warehouse.assert_equal()
