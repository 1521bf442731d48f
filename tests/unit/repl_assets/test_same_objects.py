"""The check ``same_objects`` over several rounds: what one that cannot decide leaves to the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.verify.witness import Difference, Remembered, Round
from repl_assets.catalog.keys import SAME_OBJECTS, Names
from repl_assets.checks import same_objects
from repl_assets.checks.findings import EvaluationKey, Finding
from tests.lags import POLICY

NAMES = Names.of(POLICY)
KEY = EvaluationKey.of_database(NAMES, "sales", SAME_OBJECTS)
WRONG = Remembered(Difference("orders", "ds=1", "file a is on the source only", "0a"), 90, wrong=True)
ENGINE: Any = SimpleNamespace(connection=SimpleNamespace(source=None, target=None), log=logging.getLogger(__name__))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def test_a_round_that_cannot_decide_forgets_nothing(instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was wrong was looked at no more, unless the sample happened to have it."""
    answers: list[Round | Exception] = [
        Round(100, 100, differences=(WRONG,)), Unreachable("nobody answers"), ValueError("odd"), Round(100, 100)
    ]  # fmt: skip
    known: list[Sequence[Remembered]] = []

    def witness(*_: object, earlier: Sequence[Remembered]) -> Round:
        known.append(earlier)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def look() -> Finding:
        found = same_objects.look(instance, ENGINE, NAMES, "sales")
        instance.report_runless_asset_event(found.evaluation(KEY))
        return found

    monkeypatch.setattr(same_objects, "witness", witness)
    assert not look().passed
    assert look().undecided == "nobody answers"
    assert look().undecided.endswith("ValueError: odd"), "it ended the job, and no other database was looked at"
    assert look().passed
    assert known == [[], [WRONG], [WRONG], [WRONG]]
