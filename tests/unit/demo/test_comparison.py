"""The demo's verdict: each thing that must not be is told, and only then."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from demo.comparison import Outcome
from demo.following import Load
from demo.spark import Rows
from hive_replication.lag import Lag
from hive_replication.verify import TableComparison

TABLE = TableComparison("orders", 31, 31, 63, 63, 63)
ROWS = {"orders": Rows(3960, "ab")}
BOOTSTRAP = Load("bootstrap-23", "1", Counter({"files by spark": 75, "files from source": 75}), 17, 1)
WINDOW = Load("23-49", "2", Counter({"files by threads": 3, "files from source": 2, "files from cmroot": 1}), 12, 1)
GOOD = Outcome([TABLE], ROWS, ROWS, Lag("sales", "sales", 49, 49, 0, 0.0), [BOOTSTRAP, WINDOW], [])


def test_nothing_to_say_of_an_equal_replica() -> None:
    assert list(GOOD.problems()) == []


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (replace(GOOD, tables=[replace(TABLE, differences=("columns differ",))]), "orders: columns differ"),
        (replace(GOOD, tables=[replace(TABLE, files_proven=62)]), "orders: 1 files are not proven"),
        (replace(GOOD, target={"orders": Rows(3960, "ac")}), "orders: rows differ"),
        (replace(GOOD, target={}), "orders: rows differ"),
        (replace(GOOD, target={**ROWS, "left": Rows(0, "0")}), "left: rows differ"),
        (replace(GOOD, lag=replace(GOOD.lag, waiting=2)), "2 events wait"),
        (replace(GOOD, lag=replace(GOOD.lag, held=(("orders", "no space"),))), "no space"),
        (replace(GOOD, foreign=["orders on the target names hdfs://source"]), "names hdfs://source"),
        (replace(GOOD, loads=[replace(BOOTSTRAP, counts=Counter({"files by threads": 75})), WINDOW]), "by Spark executors"),
        (replace(GOOD, loads=[BOOTSTRAP]), "by driver threads"),
        (replace(GOOD, loads=[BOOTSTRAP, replace(WINDOW, counts=Counter({"files by threads": 3}))]), "no file came from cmroot"),
    ],
)
def test_each_problem_is_told(outcome: Outcome, told: str) -> None:
    problems = list(outcome.problems())
    assert any(told in problem for problem in problems), problems
