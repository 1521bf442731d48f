"""Every listed scenario is a test or has its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.catalogue import ELSEWHERE, LISTED, NOT_APPLICABLE


def numbers() -> Iterator[int]:
    """Numbers of the scenarios that are tests."""
    for path in Path(__file__).parent.glob("test_*.py"):
        yield from map(int, re.findall(r"^def test_s(\d{3})_", path.read_text(), re.MULTILINE))


def test_every_scenario_is_a_test_or_has_its_reason() -> None:
    shown = set(numbers())
    others = NOT_APPLICABLE.keys() | ELSEWHERE.keys()
    assert sorted(LISTED - shown - others) == []
    assert sorted(shown & others) == []
    assert shown <= LISTED


@pytest.mark.parametrize(("number", "place"), ELSEWHERE.items())
def test_what_is_tested_elsewhere_is_there(number: int, place: str) -> None:
    path, _, name = place.partition("::")
    assert re.search(rf"^def {name}\(", (Path(__file__).parents[1] / path).read_text(), re.MULTILINE), number


def test_few_scenarios_are_not_applicable() -> None:
    assert len(NOT_APPLICABLE) <= 18
    assert len(NOT_APPLICABLE) + len(ELSEWHERE) == len({*NOT_APPLICABLE, *ELSEWHERE} & LISTED)
