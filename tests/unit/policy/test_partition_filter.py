"""Partition filters: their grammar, which partitions are inside, and which tables they fit."""

from __future__ import annotations

import pytest

from hive_replication.policy.partition_conditions import DEFAULT_PARTITION
from hive_replication.policy.partition_filter import PartitionFilter

_DAYS = ("2025-12-31", "2026-01-01", "2026-01-02", DEFAULT_PARTITION)
_NUMBERS = ("-1", "02", "2", "10", "x", DEFAULT_PARTITION)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("dt = '2026-01-01'", {1}),
        ('DT == "2026-01-01"', {1}),
        ("`dt` = DATE '2026-01-01'", {1}),
        ("dt >= 2026-01-01", {1, 2}),
        ("dt != '2026-01-01'", {0, 2}),
        ("dt <> '2026-01-01'", {0, 2}),
        ("'2026-01-01' < dt", {2}),
        ("'2026-01-01' >= (dt)", {0, 1}),
        ("dt LIKE '2026%'", {1, 2}),
        ("dt like '2026-01-0_'", {1, 2}),
        ("dt LIKE '2026.01-01'", set()),
        ("dt LIKE '%0%-%1'", {0, 1}),
        ("dt LIKE '%-%-%2%' AND dt LIKE '" + "%0" * 3_000 + "'", set()),
        ("dt BETWEEN '2026-01-01' AND '2026-01-02'", {1, 2}),
        ("dt not between '2026-01-01' and '2026-01-02'", {0}),
        ("dt IN ('2025-12-31', '2026-01-02')", {0, 2}),
        ("(dt) NOT IN ('2025-12-31')", {1, 2}),
        ("dt < '2026' OR dt > '2026-01-01' AND dt <> '2026-01-02'", {0}),
        ("(dt < '2026' OR dt > '2026-01-01') AND dt <> '2026-01-02'", {0}),
        ("(dt < '2026' OR dt > '2026-01-01') AND dt <> '2025-12-31'", {2}),
        (f"dt = '{DEFAULT_PARTITION}' OR dt = '2026-01-01'", {1, 3}),
        ("other = '1'", set()),
    ],
)
def test_texts_compare_as_texts(text: str, inside: set[int]) -> None:
    found = PartitionFilter.parse(text)
    assert {number for number, day in enumerate(_DAYS) if found.includes({"dt": day})} == inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("n = 2", {"02", "2"}),
        ("n > 2", {"10"}),
        ("n >= -1", {"-1", "02", "2", "10"}),
        ("n <> 2", {"-1", "10"}),
        ("10 <= n", {"10"}),
    ],
)
def test_numbers_compare_as_numbers(text: str, inside: set[str]) -> None:
    found = PartitionFilter.parse(text)
    assert {one for one in _NUMBERS if found.includes({"n": one})} == inside


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "dt",
            "dt =",
            "'a' = 'b'",
            "dt = other",
            "NOT (dt = 'a')",
            "NOT dt = 'a'",
            "dt NOT LIKE 'a'",
            "'a' LIKE dt",
            "dt IS NULL",
        ),
        *(
            "dt <=> 'a'",
            "dt = 1.5",
            "dt = 5 - 3",
            "dt = DATE 'a'",
            "dt = 2026-13-01",
            "t.dt = 'a'",
            "dt IN ()",
            "dt IN (SELECT 1)",
        ),
        *(
            "dt = 'a'; n = 1",
            "dt RLIKE 'a'",
            "year(dt) = 2026",
            r"dt = 'it\'s'",
            "(" * 3_000 + "dt = 'a'",
            "dt = 'a' OR " * 2_000,
        ),
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no partition filter .*Hive's metastore takes"):
        PartitionFilter.parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("dt >= '2026' AND n IN (1, 2) AND day > '2026-01-01' AND v LIKE 'a%'", ""),
        (f"day = '{DEFAULT_PARTITION}' OR n = '{DEFAULT_PARTITION}'", ""),
        ("dt = 'a' OR year = 1", "year is none of its partition columns"),
        ("dt = 20260101", "dt of type string is not compared by = with 20260101"),
        ("n > '2'", "n of type int is not compared by > with '2'"),
        ("n LIKE '2%'", "n of type int is not compared by LIKE with '2%'"),
        ("day >= '2026'", "day of type date is not compared by >= with '2026'"),
        ("day LIKE '2026-01-01'", "day of type date is not compared by LIKE with '2026-01-01'"),
        ("d = 1", "d of type decimal is not compared by = with 1"),
    ],
)
def test_which_tables_it_fits(text: str, why: str) -> None:
    types = {"dt": "string", "n": "int", "day": "date", "v": "varchar(10)", "d": "decimal(10,2)"}
    assert PartitionFilter.parse(text).why_unfit(types) == why
