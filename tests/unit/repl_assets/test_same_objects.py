"""The check ``same_objects`` over several rounds: what one that cannot decide leaves to the next."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import Unreachable
from hive_replication.verify import Stray
from hive_replication.verify.witness import Difference, Remembered, Round
from repl_assets.catalog.keys import SAME_OBJECTS, Names
from repl_assets.checks import no_strays, same_objects
from repl_assets.checks.findings import REPAIR_PAGE, WHAT_TO_DO, EvaluationKey, Finding
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


def test_what_differs_links_to_its_repair() -> None:
    """Not what may only wait for events, nor a function, which has no page."""
    waits = Remembered(Difference("items", "", "it is on the source only", "0b"), 90, wrong=False)
    function = Remembered(Difference("f()", "", "it is on the source only", "0c"), 90, wrong=True)
    itself = Remembered(Difference("", "", "owner is 'a' on the target, 'b' on the source", "0d"), 90, wrong=True)
    differences = (waits, WRONG, function, itself)
    finding = same_objects.round_finding(Round(100, 100, differences=differences), NAMES, "sales")
    assert finding.differences[-1] == "the database itself: owner is 'a' on the target, 'b' on the source"
    found = finding.evaluation(KEY)
    shown = str(found.metadata["differences"].value).splitlines()[2:]
    page = "[repair](/assets/default/sales/orders?view=partitions&partition=ds%3D1)"
    pages = ["[repair](/assets/default/sales__load) |", " |", f"{page} |", "may wait for events |"]
    assert [line.rsplit(" | ", 1)[1] for line in shown] == pages
    advice = "repair what differs: materialize it in Dagster, or hive-repl repair sales"
    forced = f"{advice} --force, which also brings the database's own comment, owner and properties"
    assert found.metadata[WHAT_TO_DO].value == forced
    others = same_objects.round_finding(Round(100, 100, differences=differences[:-1]), NAMES, "sales").evaluation(KEY)
    assert others.metadata[WHAT_TO_DO].value == advice
    passed = same_objects.round_finding(Round(100, 100, differences=(waits,)), NAMES, "sales").evaluation(KEY)
    assert WHAT_TO_DO not in passed.metadata


def test_strays_are_deleted_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Stray("table", "x", "hdfs://target/x")]
    monkeypatch.setattr(no_strays, "strays", lambda *_: found)
    examiner: Any = SimpleNamespace(connection=SimpleNamespace(source=None, target=None), database="sales")
    key = EvaluationKey.of_database(NAMES, "sales", "no_strays")
    metadata = no_strays.find_no_strays(examiner).evaluation(key).metadata
    assert ("delete the rest by hand" in str(metadata[WHAT_TO_DO].value), REPAIR_PAGE in metadata) == (True, False)
    found.clear()
    assert WHAT_TO_DO not in no_strays.find_no_strays(examiner).evaluation(key).metadata
