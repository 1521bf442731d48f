"""The page of features: each row is shown by tests that exist, or says why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|\n ").split(" | "))
    for line in re.findall(r"^\| F\d.*", (ROOT / "docs/features.md").read_text(), re.MULTILINE)
]


def test_each_feature_has_one_row() -> None:
    assert [row[0] for row in ROWS] == [f"F{number:02}" for number in range(1, 78)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_feature_is_shown_by_tests_or_the_row_says_why_not(row: tuple[str, ...]) -> None:
    _, feature, here, shown = (*row, "")[:4]
    assert feature
    assert shown or re.match(r"(no|not yet|not tested|of no use)\b", here)
    for place in re.findall(r"`([^`]+)`", shown):
        path, _, name = place.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / path).read_text(), re.MULTILINE), place
