"""What the demo says of files that need not be copied, before its last window and after it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from demo.changes import Round
from demo.following import Load, _summary


def test_the_last_act_ends_as_it_is_announced() -> None:
    """It said "only cmroot has its files", and then "files: none"."""
    source: Any = None
    act = Round(source, 1, "order_date=2026-01-01", 1).waves()[-1]
    ((announced, _),) = act.steps
    assert (act.title, "need not be copied" in announced, "cmroot" in announced) == ("Gone before it is copied", True, False)
    assert _summary(Load("1-9", "run", Counter(), 2, 0.0)) == "2 operations, 0.0 MB, files: none to copy"


def test_what_was_copied_is_told_by_executor_and_origin() -> None:
    copied = Counter({"files by threads": 3, "files from source": 2, "files from cmroot": 1})
    assert (
        _summary(Load("1-9", "run", copied, 1, 1.25)) == "1 operation, 1.2 MB, files: 3 by threads, 2 from source, 1 from cmroot"
    )
