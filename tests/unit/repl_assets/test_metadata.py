"""Reports as Dagster metadata: figures are numbers, details are short tables."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from hive_replication.copy.tasks import CopyResult, CopyTask, Proof
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.events.files import FileRef
from hive_replication.lag import Lag
from hive_replication.load.copied_files import Copies
from hive_replication.load.report import Collapsed, Commit, Held, LoadReport, SlowOperation, Touched
from hive_replication.recover import Gap, Recovery, TableFinding
from repl_assets.catalog.keys import Names
from repl_assets.recording.metadata import (
    asset_url,
    commits_metadata,
    dump_metadata,
    lag_figures,
    lag_metadata,
    load_metadata,
    markdown_table,
    recovery_metadata,
    text_of,
)
from tests.bootstraps import header
from tests.lags import LATE, WELL

NAMES = Names("p")


def text(value: object) -> str:
    assert isinstance(value, dg.MarkdownMetadataValue)
    return value.value or ""


def test_a_table_shows_fifty_rows_and_counts_the_others() -> None:
    shown = text(markdown_table(("n",), ([n] for n in range(60)), 60)).splitlines()
    assert shown[:3] == ["| n |", "|---|", "| 0 |"]
    assert (len([line for line in shown if line.startswith("| ")]), shown[-1]) == (51, "… and 10 more")


def test_a_cell_cannot_break_out_of_its_table() -> None:
    assert text(markdown_table(("a", "b"), [("x|y", "1\n2")], 1)).splitlines()[2] == "| x\\|y | 1 2 |"


def test_a_dump_shows_what_the_metastore_did_not_show_beside_what_it_leaves_out() -> None:
    head = header(9, skipped={"i": "it is an Iceberg table"}, unshown={"v": "Permission denied"})
    shown = text(dump_metadata(DumpResult("hdfs://d/1", 9, head, 1, 0, 0, 0))["left out"]).splitlines()
    assert shown[2:] == ["| i | it is an Iceberg table |", "| v | the metastore did not show it: Permission denied |"]


def test_figures_of_a_load_are_numbers() -> None:
    applied, slowest = {"AddPartitions": 3, "DropTable": 1}, (SlowOperation("AddPartitions", "t", 9, 3, 0.75),)
    report = LoadReport("dir", "db", 5, 9, applied=applied, seconds={"plan": 0.5, "apply": 1.25}, slowest=slowest)
    found = load_metadata(report, NAMES, "db")
    expected = {"from_evid": 5, "to_evid": 9, "operations": 4, "files": 0, "copied (MB)": 0.0, "duration (s)": 1.75}
    assert {name: found[name] for name in expected} == expected
    assert (found["plan (s)"], found["apply (s)"]) == (0.5, 1.25)
    assert text(found["operations by kind"]).splitlines()[2:] == ["| AddPartitions | 3 |", "| DropTable | 1 |"]
    assert text(found["slowest operations"]).splitlines()[2:] == ["| AddPartitions | t | 9 | 3 | 0.75 |"]
    assert not found.keys() & {"held", "skipped", "changed", "events collapsed"}


def test_files_are_counted_by_where_they_came_from() -> None:
    origins = ("present", "present", "cmroot")
    copies = Copies([replace(copied(f"db.t/ds={n}", 7), origin=origin) for n, origin in enumerate(origins)])
    found = load_metadata(LoadReport("dir", "db", 1, 9, copies=copies), NAMES, "db")
    assert {name: found[name] for name in found if name.startswith("files")} == {
        "files": 3,
        "files present already": 2,
        "files from cmroot": 1,
        "files by threads": 3,
    }


def test_grants_are_counted_by_what_was_done() -> None:
    done = {"roles created": 1, "privileges granted": 7, "privileges revoked": 2}
    found = load_metadata(LoadReport("dir", "db", 5, 9, privileges=done), NAMES, "db")
    assert {name: found.get(name) for name in done} == done


def copied(name: str, evid: int) -> CopyResult:
    file = FileRef(f"hdfs://s/{name}", "aa")
    return CopyResult(CopyTask(file, f"hdfs://t/{name}", evid, name), "source", 5, Proof("CRC32C", "1234abcd", True), 1)


def test_a_lag_says_where_its_figures_are_too_low() -> None:
    assert "so far" not in lag_metadata(WELL)
    assert "at least" in lag_metadata(replace(LATE, complete=False))["so far"]
    assert "so far" not in lag_metadata(replace(LATE, complete=False, waiting=None, seconds_behind=None))


def test_a_held_table_has_no_file_among_the_proofs() -> None:
    held = (Held(("bad",), 5, 7, "no space"),)
    report = LoadReport(
        "dir", "db", 1, 9, copies=Copies([copied("db.bad", 7), copied("db.good", 7), copied("db.bad", 4)]), held=held
    )
    shown = text(load_metadata(report, NAMES, "db")["proofs"])
    assert [line.split(" | ")[0] for line in shown.splitlines()[2:]] == ["| db.good", "| db.bad"]  # event 4 was applied


def test_proofs_are_few_and_narrow_enough_for_an_assets_page() -> None:
    name = "part-00000-3c8f2a1e-5b7d-4e60-9c1a-7d2f8b4e6a90-c000.snappy.parquet"
    task = CopyTask(FileRef(f"hdfs://s/{name}", "aa"), f"hdfs://t/{name}", 7, "db.orders/region=europe/ds=2026-01-02")
    file = CopyResult(task, "cmroot", 5, Proof("CRC32C", "00001234abcd", True), 2)
    lines = text(load_metadata(LoadReport("dir", "db", 1, 9, copies=Copies([file] * 12)), NAMES, "db")["proofs"]).splitlines()
    assert (len([line for line in lines if line.startswith("| ")]), lines[-1]) == (11, "… and 2 more")
    assert (
        lines[2]
        == "| db.orders/regi…ds=2026-01-02 | part-00000-3c8…nappy.parquet | 5\u00a0B | …1234abcd, from cmroot, 2 attempts |"
    )


@pytest.mark.parametrize(("size", "expected"), [(2_000_000, 2.0), (-1, None)])
def test_what_collapsing_spared_is_counted_where_it_is_known(size: int, expected: float | None) -> None:
    found = load_metadata(LoadReport("dir", "db", 1, 9, collapsed=Collapsed(7, 2, 5, size)), NAMES, "db")
    assert (found["events collapsed"], found["operations of collapsed events"], found["files not copied"]) == (7, 2, 5)
    assert found.get("not copied (MB)") == expected


@pytest.mark.parametrize(
    ("touched", "row"),
    [
        (Touched("t", "s", 7), "| [t](/assets/p/db/s) | 7 | table |"),
        (Touched("t", "s", 7, dropped=True), "| [t](/assets/p/db/s) | 7 | dropped |"),
        (
            Touched("t", "s", 7, partitions=("ds=1/h=2",)),
            "| [t](/assets/p/db/s?view=partitions&partition=ds%3D1%2Fh%3D2) | 7 | 1 partition |",
        ),
        (
            Touched("t", "s", 7, partitions=("ds=1", "ds=2"), dropped_partitions=("ds=3",)),
            "| [t](/assets/p/db/s) | 7 | 2 partitions, 1 partition dropped |",
        ),
    ],
)
def test_a_touched_table_links_to_its_asset_by_the_name_at_the_source(touched: Touched, row: str) -> None:
    found = load_metadata(LoadReport("dir", "db", 1, 9, touched=(touched,)), NAMES, "db")
    assert text(found["changed"]).splitlines()[2] == row


def test_a_table_of_a_database_in_overflow_links_to_its_partition() -> None:
    report = LoadReport("dir", "db", 1, 9, touched=(Touched("t", "s", 7, partitions=("ds=1",)),))
    found = load_metadata(report, Names("p", frozenset({"db"})), "db")
    assert "(/assets/p/db__tables?view=partitions&partition=s)" in text(found["changed"])


def test_commits_are_shown_newest_first() -> None:
    found = commits_metadata([Commit("", 1, 11, 111), Commit("", 2, 12, 112)])
    assert found["write id"] == 2
    assert text(found["transactions"]).splitlines()[2:] == ["| 2 | 12 | 112 |", "| 1 | 11 | 111 |"]
    assert commits_metadata([]) == {}


def test_a_lag_shows_only_what_is_known() -> None:
    unknown = Lag("db", "db", None, 9, None, None)
    assert lag_figures(unknown) == {}
    known = Lag("db", "db", 7, 9, 2, 1.23456, bytes_waiting=1_500_000)
    expected = {"behind (s)": 1.235, "events waiting": 2, "waiting (MB)": 1.5, "applied event id": 7}
    assert lag_figures(known) == expected
    assert lag_metadata(known) == expected | {"source event id": 9, "tables held": 0}


def test_a_lag_names_held_tables_and_a_gap() -> None:
    found = lag_metadata(Lag("db", "db", 7, 9, None, None, held=(("orders", "disk full"),), gap="events 8 to 9 are missing"))
    assert (found["tables held"], found["gap"]) == (1, "events 8 to 9 are missing")
    assert text(found["held"]).splitlines()[2] == "| orders | disk full |"


def test_of_tables_that_left_a_policy_a_lag_names_the_first() -> None:
    """All of it is stored with each observation of a lag, and with each answer."""
    names = tuple(f"dim_{number:05}" for number in range(10_000))
    key = "not replicated any more"
    assert lag_metadata(Lag("db", "db", 7, 9, 2, 5.0, left=("a", "b")))[key] == "a, b"
    found = lag_metadata(Lag("db", "db", 7, 9, 2, 5.0, left=names))
    assert found[key] == ", ".join(names[:50]) + " … and 9,950 more"
    assert len(str(found)) < 5_000


def test_a_recovery_lists_the_tables_that_differ() -> None:
    tables = (TableFinding("same", "equal"), TableFinding("orders", "differs", ("a", "b")))
    found = recovery_metadata(Recovery("db", Gap("missing events", 7, "event 8 is missing"), tables))
    assert (found["gap"], found["tables equal"]) == ("missing events: event 8 is missing", 1)
    assert text(found["tables not equal"]).splitlines()[2:] == ["| orders | differs | a; b |"]


def test_urls_of_assets_are_quoted() -> None:
    assert asset_url(dg.AssetKey(["p", "a/b", "c"]), "ds=1&x") == "/assets/p/a%2Fb/c?view=partitions&partition=ds%3D1%26x"
    assert asset_url(dg.AssetKey(["p"])) == "/assets/p"


def test_a_text_of_stored_metadata() -> None:
    assert text_of({"directory": dg.PathMetadataValue("/d")}, "directory") == "/d"
    assert text_of({}, "directory") == ""


def test_a_paused_database_says_so_on_its_page() -> None:
    found = lag_metadata(Lag("db", "db", 7, 9, 2, 5.0, stopped="paused by jo: stock-taking"))
    assert found["stopped by an operator"] == "paused by jo: stock-taking"
