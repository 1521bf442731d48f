"""When all grants of a database are compared again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.load.privileges.pace import Compared, all_due, note
from hive_replication.policy import Root
from hive_replication.storage import Storage


@pytest.mark.parametrize(("now", "due"), [(1000, False), (1029, False), (1030, True), (999, True)])
def test_when_ten_times_as_long_has_passed(now: float, due: bool) -> None:
    assert Compared(ended=1000, seconds=3).due(now) is due


def test_what_is_quick_is_not_noted_and_what_is_damaged_is_due(tmp_path: Path) -> None:
    root = f"file://{tmp_path}"
    storage = Storage((Root(uri=root),))
    note(storage, root, Compared(1000, 0.9), "db")
    assert all_due(storage, root, 1001)
    note(storage, root, Compared(1000, 3), "db")
    assert not all_due(storage, root, 1001)
    (tmp_path / ".repl/privileges.json").write_text("{")
    assert all_due(storage, root, 1001)
    note(storage, root, Compared(1000, 3), "db")
    with (tmp_path / ".repl/privileges.json").open("a") as file:
        file.write(" " * 5_000)
    assert all_due(storage, root, 1001), "it is larger than any note is"
