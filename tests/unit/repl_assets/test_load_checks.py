"""The checks that each load answers by itself."""

from __future__ import annotations

import pytest

from hive_replication.copy.tasks import CopyFailure, CopyTask
from hive_replication.events.files import FileRef
from hive_replication.load.copied_files import Copies
from hive_replication.load.report import Held, LoadReport
from hive_replication.policy.checks import Checks
from repl_assets.catalog.keys import Names
from repl_assets.checks.load_checks import check_results, load_checks, window_checks

NAMES = Names("p")
KEY = NAMES.database("db", "load")


def test_the_policy_chooses_which_checks_there_are_and_which_block() -> None:
    specs = load_checks(Checks(run=("nothing_held", "replica_equal"), blocking=("nothing_held",)), KEY)
    assert [(spec.name, spec.asset_key, spec.blocking) for spec in specs] == [("nothing_held", KEY, True)]


def test_the_run_of_a_window_answers_freshness_too() -> None:
    keys = window_checks(Checks(run=("files_proven",), blocking=()), KEY)
    assert [key.name for key in keys] == ["files_proven", "up_to_date"]
    assert [key.name for key in window_checks(Checks(run=("same_objects",)), KEY)] == ["up_to_date", "same_objects"]


@pytest.mark.parametrize("held", [False, True])
def test_a_held_lane_fails_its_check_only(held: bool) -> None:
    lanes = (Held(("orders",), 5, 6, "no space left"),) if held else ()
    found = {result.check_name: result for result in check_results(LoadReport("dir", "db_dr", 1, 9, held=lanes), NAMES, "db")}
    assert {name: result.passed for name, result in found.items()} == {"files_proven": True, "nothing_held": not held}
    metadata = found["nothing_held"].metadata or {}
    assert ("held" in metadata, "what to do" in metadata) == (held, held)
    if held:
        advice = str(metadata["what to do"].value)
        assert "| make room on the target" in advice
        assert "[repair](/assets/p/db/orders)" in advice


def test_a_file_that_could_not_be_copied_is_not_proven() -> None:
    """Unless the table is not held for it: a later event of the window made the file needless."""
    copies = Copies()
    for table in ("orders", "other"):
        task = CopyTask(FileRef("hdfs://s/f", "", "", ""), f"hdfs://t/{table}/f", 6, f"db.{table}/ds=1")
        copies.fail(CopyFailure(task, "it is gone", "gone"))
    report = LoadReport("dir", "db", 1, 9, copies=copies, held=(Held(("orders",), 5, 6, "it is gone"),))
    found = {result.check_name: result for result in check_results(report, NAMES, "db")}["files_proven"]
    assert not found.passed
    assert "| hdfs://t/orders/f | it is gone |" in str((found.metadata or {})["unproven"].value)
    assert (found.metadata or {})["not proven"].value == 1
    assert "[repair](/assets/p/db/orders)" in str((found.metadata or {})["what to do"].value)
