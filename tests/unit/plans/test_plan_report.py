"""Reports on plans: what they say, and that nothing in a dump's names becomes markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hive_metastore.ttypes import Partition, Table

from hive_replication.cli.main import run
from hive_replication.cli.result_fields import plan_data
from hive_replication.events.files import FileRef
from hive_replication.load.copy_rate import Rates, rates_of, remember
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import DropForeignTable
from hive_replication.load.plan.load_plan import LanePlan, LoadPlan, SegmentPlan, Stop
from hive_replication.load.report import Collapsed, LoadReport, Skipped
from hive_replication.plans import PlanReport, as_html, as_markdown
from hive_replication.plans.estimate import Estimate, estimate
from hive_replication.plans.plan_report import Elsewhere
from hive_replication.plans.plan_rows import plan_rows
from hive_replication.plans.planned_files import FoundFile, Place, find_files
from hive_replication.policy import Root
from hive_replication.progress import Silent
from hive_replication.storage import Denied, Late, NoChecksum, Storage
from hive_replication.units import count, duration

EVIL = "<script>alert(1)</script>|`x` [a](http://b)"
FILE = FileRef("hdfs://s/w/orders/part-0", "abc", "hdfs://s/cm")


def plan() -> LoadPlan:
    content = op.Content((FILE,), "9-0")
    lanes = (
        LanePlan(
            ("orders",), 5, (DropForeignTable(9, "orders"), op.CreateTable(9, "orders", Table(tableName="orders"), content, ""))
        ),
        LanePlan(("items",), 5, (op.DropTable(7, "items"),), Stop(8, "both gone", refused=True)),
    )
    return LoadPlan("hdfs://d/1", "sales", 5, 9, (SegmentPlan(lanes),), (Skipped(6, EVIL, f"dropped at 8 {EVIL}"),))


def report(made: LoadPlan) -> PlanReport:
    found = {FILE: FoundFile(2048, "cmroot")}
    rows = tuple(plan_rows(made, {file: one.size for file, one in found.items()}))
    collapsed = Collapsed(events=4, operations=1, files=3, bytes=2048)
    elsewhere = (Elsewhere("sales.orders", FILE.name, 2048, "cmroot"),)
    return PlanReport(
        made, 0.0, rows, {"CreateTable": 1, "DropStranger": 1}, {"cmroot": 1}, 2048, collapsed, Estimate(90, "assumed"), elsewhere
    )


def test_markdown_says_all_of_it() -> None:
    text = as_markdown(report(plan()), window="5-9")
    for line in (
        "## Plan of sales: window 5-9",
        "- **Operations**: 2: 1 CreateTable, 1 DropStranger",
        "- **Files to copy**: 1 file, 2.0 KiB",
        "- **Of them from cmroot**: 1 file",
        "- **Time**: about 1 min 30 s; assumed",
        "- **Collapsed**: 4 events applied by 1 operation; not copied: 3 files (2.0 KiB) that later events replace or drop",
        "- **Conflicts**: 2",
        "| sales.orders | replaced; its files are kept in retention |",
        "| 8 | sales.items | both gone |",
        "| lane | event | operation | object | files | size |",
        "| 1 | 9 | CreateTable | sales.orders | 1 | 2.0\u00a0KiB |",
        "|---|---|---|---|---:|---:|",
        "| sales.orders | part-0 | 2.0\u00a0KiB | cmroot: the source has deleted or replaced it |",
    ):
        assert f"\n{line}\n" in f"\n{text}"
    assert r"| 6 | \<script\>alert(1)\</script\>\|\`x\` \[a\](http://b) |" in text
    assert "… and 1 more" in as_markdown(report(plan()), most_rows=1)


def test_a_bootstrap_says_where_it_stands_and_what_it_creates() -> None:
    parts = tuple(op.NewPartition(f"ds={day}", Partition(), op.Content((), "9-0")) for day in (3, 1, 2))
    lane = LanePlan(("orders",), 0, (op.AddPartitions(9, "orders", parts),))
    text = as_markdown(report(LoadPlan("d", "sales", 5, 9, (SegmentPlan((lane,)),), (), kind="bootstrap", creates=True)))
    assert text.startswith("## Plan of sales: bootstrap at 9\n")
    assert "\n| database | 9 | CreateDatabase | sales |  |  |\n" in text
    assert "| AddPartitions | sales.orders (3 partitions: ds=1 … ds=3) |" in text


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href"} & {name for name, _ in attrs}  # needs nothing else
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_is_one_escaped_file() -> None:
    page = Seen()
    page.feed(as_html(report(plan())))
    assert "script" not in page.tags
    assert page.tags.count("table") == 5
    assert EVIL in page.text
    assert "about 1 min 30 s" in page.text
    assert "None" not in page.text


def test_an_estimate_says_what_it_rests_on() -> None:
    assumed = estimate(200, 0, 40, None, None)
    assert (assumed.seconds, assumed.basis[:28]) == (4.0, "assumed: 100 files/s or 50.0")
    rates = Rates(100, 1 << 20, 10.0, 50, 5.0, 0.0)
    measured = estimate(200, 4 << 20, 10, rates, None)
    assert measured.seconds == 10.0 * 4 + 1.0
    assert measured.basis == (
        "measured: the load of 1970-01-01 00:00:00 UTC copied 100 files (1.0 MiB) in 10 s, 50 operations in 5.0 s"
    )
    limited = estimate(200, 4 << 20, 10, rates, 1 << 10)
    assert limited.seconds == 4096 + 1.0
    assert limited.basis.endswith("; limited to 1.0 KiB/s")


def test_rates_are_remembered_by_what_was_copied(tmp_path: Path) -> None:
    storage, place = Storage((Root(uri=f"file://{tmp_path}/"),)), f"file://{tmp_path}/sales.db"
    assert rates_of(storage, place) is None
    remember(storage, place, LoadReport("d", "sales", 1, 2, seconds={"copy": 60.0}))
    assert rates_of(storage, place) is None
    far = b'{"files":1,"bytes":1,"copy_seconds":1,"operations":1,"apply_seconds":1,"measured":1e20}'
    endless = far.replace(b"1e20", b"1") + b" " * 5_000
    for damaged in (b"{", far, endless):
        storage.write(f"{place}/.repl/rates.json", damaged)
        assert rates_of(storage, place) is None


def test_files_are_looked_for_where_a_load_would_take_them(tmp_path: Path) -> None:
    storage = Storage((Root(uri=f"file://{tmp_path}/"),))
    refs = [FileRef(f"file://{tmp_path}/{name}", "abc", f"file://{tmp_path}/cm") for name in ("there", "kept", "gone")]
    storage.write(refs[0].uri, b"12")
    storage.write(refs[1].cm_uri, b"123")
    content = op.Content(tuple(refs), "9-0")
    lane = LanePlan(("t",), 5, (op.CreateTable(9, "t", Table(tableName="t"), content, ""),))
    found = find_files(storage, LoadPlan("d", "sales", 5, 9, (SegmentPlan((lane,)),), ()), Silent())
    assert list(found.values()) == [FoundFile(2, "source"), FoundFile(3, "cmroot"), FoundFile(-1, "gone")]


@pytest.mark.parametrize(
    ("error", "place"),
    [
        (NoChecksum("No active nodes contain this block"), "gone"),
        (Denied("lacks r-x on /private"), "unreadable"),
        (Late("no answer within 60 s"), "unreadable"),
    ],
)
def test_a_file_that_cannot_be_read_ends_no_plan(
    error: Exception, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: str) -> None:
        raise error

    storage = Storage((Root(uri=f"file://{tmp_path}/"),))
    monkeypatch.setattr(storage, "has_checksums", lambda _: True)
    monkeypatch.setattr(storage, "checksum", lost)
    ref = FileRef(f"file://{tmp_path}/lost", "abc")
    storage.write(ref.uri, b"12")
    lane = LanePlan(("t",), 5, (op.CreateTable(9, "t", Table(tableName="t"), op.Content((ref,), "9-0"), ""),))
    found = find_files(storage, LoadPlan("d", "sales", 5, 9, (SegmentPlan((lane,)),), ()), Silent())
    assert found == {ref: FoundFile(-1, place)}


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0.0 s"),
        (1.26, "1.3 s"),
        (59.6, "1 min"),
        (90, "1 min 30 s"),
        (11_400, "3 h 10 min"),
        (86_400 + 59, "1 d"),
        (1e6, "11 d 13 h"),
    ],
)
def test_durations(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_counts() -> None:
    assert (count(1, "file"), count(1200, "file"), count(0, "file")) == ("1 file", "1,200 files", "0 files")


def test_programs_find_it_under_the_names_of_0_1_0_too() -> None:
    """The command line's JSON alone has them."""
    made = report(plan())
    assert plan_data(made) == made.data() | {"from-evid": 5, "to-evid": 9}
    assert (made.data()["from_evid"], made.data()["to_evid"]) == (5, 9)
    assert not [key for key in made.data() if "-" in key]


def test_a_file_of_an_unknown_format_is_a_bad_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["plan", "FROM", "x", "--output", str(tmp_path / "plan.txt"), "--json"]) == 2
    assert "end its name with .html, .md or .json" in json.loads(capsys.readouterr().out)["error"]
    assert not list(tmp_path.iterdir())
