"""Planned windows as files, and what the sensor makes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hive_replication.errors import BadRequest
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.policy import Root
from hive_replication.signing import SigningKey
from hive_replication.storage import Denied, Storage
from repl_assets.catalog.keys import Window
from sensors.notification_log.approval import pending, with_approval, without_catch_ups
from sensors.notification_log.decision import RETRY_DELAY, Replica, decide
from sensors.notification_log.runs import Decision, PastRun, Start

PLANNED = PlannedWindow("100-200", "hdfs://d/1", "incremental", 7, 50.0, "1 operation", ("sales.orders: event 150",))
NOW = 1_000.0
WINDOW = Start("window", Window(100, 220), 1, ("a",))


def test_an_approval_is_of_one_plan_only(tmp_path: Path) -> None:
    root = f"file://{tmp_path}/dumps"
    approvals = Approvals(Storage((Root(uri=root),)), root)
    assert approvals.waiting("sales") is None
    with pytest.raises(BadRequest, match="'100-200' of 'sales' does not wait for approval: no window waits"):
        approvals.approve("sales", "100-200", "jo")
    approvals.wait("sales", PLANNED)
    assert approvals.waiting("sales") == PLANNED
    with pytest.raises(BadRequest, match="the window 100-200 waits"):
        approvals.approve("sales", "100-201", "jo")
    approvals.approve("sales", "100-200", "jo")
    (mark,) = tmp_path.rglob("*.approved")
    kept = mark.read_text(encoding="utf-8")
    assert kept.endswith(" UTC by jo")
    assert approvals.waiting("sales") == replace(PLANNED, approved=kept)
    approvals.withdraw("sales", "100-200")
    assert approvals.waiting("sales") is None
    again = replace(PLANNED, planned=60.0)
    approvals.wait("sales", again)
    mark.write_text(kept, encoding="utf-8")  # somebody approved the plan before at this very moment
    assert approvals.waiting("sales") == again


def test_an_approval_that_may_not_be_read_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As of another account with a narrow umask: it ended the sensor's tick, and with it the runs of all databases."""
    root = f"file://{tmp_path}/dumps"
    approvals = Approvals(Storage((Root(uri=root),)), root)
    approvals.wait("sales", PLANNED)
    approvals.approve("sales", "100-200", "jo")
    read = Storage.read

    def denied(storage: Storage, uri: str, **limits: int) -> bytes:
        if uri.endswith(".approved"):
            raise Denied("permission denied")
        return read(storage, uri, **limits)

    monkeypatch.setattr(Storage, "read", denied)
    assert approvals.waiting("sales") == PLANNED
    assert "the approval of 100-200 cannot be read, and does not count: permission denied" in caplog.text


def test_only_the_key_approves(tmp_path: Path) -> None:
    """A planted file, or a plan exchanged after it was approved, approves nothing."""
    root, key = f"file://{tmp_path}/dumps", SigningKey(b"a key of the policy")
    storage = Storage((Root(uri=root),))
    approvals = Approvals(storage, root, key)
    approvals.wait("sales", PLANNED)
    (file,) = tmp_path.rglob("*.json")
    uri = f"file://{file}"
    mark = f"file://{file.parent}/{PLANNED.window}.{PLANNED.planned:.3f}.approved"
    for planted in (
        "now by jo",
        "now by jo\n" + "0" * 64,
        f"now by jo\n{SigningKey(b'somebody else has one').sign('approval', b'')}",
    ):
        storage.write(mark, planted.encode())
        assert approvals.waiting("sales") == PLANNED
    Approvals(storage, root).approve("sales", PLANNED.window, "jo")  # without the key
    assert approvals.waiting("sales") == PLANNED
    approvals.approve("sales", PLANNED.window, "jo")
    found = approvals.waiting("sales")
    assert found is not None
    assert found.approved.endswith(" UTC by jo")
    storage.write(uri, storage.read(uri).replace(b"sales.orders", b"sales.others"))
    exchanged = approvals.waiting("sales")
    assert exchanged is not None
    assert (exchanged.steps != PLANNED.steps, exchanged.approved) == (True, "")


def test_plans_and_approvals_are_of_one_source_and_target(tmp_path: Path) -> None:
    """Policies to two targets with one dump root, and the two directions of a failback."""
    root, key = f"file://{tmp_path}/dumps", SigningKey(b"a key of the policy")
    storage = Storage((Root(uri=root),))
    approvals = Approvals(storage, root, key, ("thrift://s", "thrift://t1"))
    approvals.wait("sales", PLANNED)
    approvals.approve("sales", PLANNED.window, "jo")
    (directory,) = (tmp_path / "dumps" / ".plans").iterdir()
    files = {file.name: file.read_bytes() for file in directory.iterdir()}
    for pair in (("thrift://s", "thrift://t2"), ("thrift://t1", "thrift://s")):
        other = Approvals(storage, root, key, pair)
        assert other.waiting("sales") is None
        other.wait("sales", PLANNED)
        assert other.waiting("sales") == replace(PLANNED, source=pair[0], target=pair[1])
        (its,) = (file.parent for file in directory.parent.rglob("*.json") if pair[1] in file.read_text().partition("target")[2])
        for name, data in files.items():  # somebody copies them there
            (its / name).write_bytes(data)
        assert other.waiting("sales") is None
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == files
    found = approvals.waiting("sales")
    assert found is not None
    assert found.approved


def test_a_plan_counts_until_its_window_is_loaded() -> None:
    assert pending(Replica("a", 100), 220, PLANNED) == PLANNED
    assert pending(Replica("a", 200), 220, PLANNED) is None
    assert pending(Replica("a", None), 220, PLANNED) is None
    bootstrap = replace(PLANNED, window="bootstrap-90")
    assert pending(Replica("a", None), 220, bootstrap) == bootstrap
    assert pending(Replica("a", 100), 220, bootstrap) is None
    assert pending(Replica("a", 100), 199, PLANNED) is None  # the source's log was longer
    assert pending(Replica("a", None), 89, bootstrap) is None


def test_a_change_of_the_policy_without_events_is_planned_approved_and_loaded() -> None:
    changed = Replica("a", 500, first_event=500, scanned=500, changed=True)
    plan = replace(PLANNED, window="500-500")
    asked = decide(NOW, 500, [changed], 1000)
    assert [(start.kind, start.window) for start in with_approval(NOW, asked, {}, {}, {}).starts] == [("plan", Window(500, 500))]
    assert pending(changed, 500, plan) == plan
    assert pending(replace(changed, changed=False), 500, plan) is None
    assert pending(changed, 500, replace(plan, window="400-500")) is None  # it was loaded before the change
    for current in (500, 510):  # what came since waits
        asked = decide(NOW, current, [changed], 1000)
        assert with_approval(NOW, asked, {"a": pending(changed, current, plan)}, {}, {}).starts == ()
        approved = replace(plan, approved="yes")
        (start,) = with_approval(NOW, asked, {"a": pending(changed, current, approved)}, {}, {}).starts
        assert (start.kind, start.window) == ("window", Window(500, 500))


def test_a_catch_up_does_not_bring_a_change_of_the_policy() -> None:
    held = Replica("a", 500, held=400, first_event=500, scanned=500)
    assert [start.kind for start in decide(NOW, 500, without_catch_ups([held]), 1000).starts] == ["catch-up"]
    (start,) = decide(NOW, 500, without_catch_ups([replace(held, changed=True)]), 1000).starts
    assert (start.kind, start.window) == ("window", Window(500, 500))


def test_a_catch_up_that_may_bring_more_than_was_approved_is_planned_approved_and_loaded() -> None:
    """As that of a table which the bootstrap could not do: its dump is of the whole database as it is now."""
    lost = Replica("a", 500, held=0, first_event=503, scanned=510, to_approve=True)
    plan = replace(PLANNED, window="0-500", kind="bootstrap")
    asked = decide(NOW, 510, [lost], 1000)
    assert [(start.kind, start.window) for start in with_approval(NOW, asked, {}, {}, {}).starts] == [("plan", Window(0, 500))]
    assert pending(lost, 510, plan) == plan
    assert pending(replace(lost, to_approve=False), 510, plan) is None  # somebody has repaired it
    assert pending(replace(lost, held=400), 510, plan) is None
    waits = with_approval(NOW, asked, {"a": pending(lost, 510, plan)}, {}, {})
    assert (waits.starts, "a: the window 0-500 waits for approval" in waits.waiting[0]) == ((), True)
    approved = {"a": replace(plan, approved="yes")}
    (start,) = with_approval(NOW, asked, approved, {}, {}).starts
    assert (start.kind, start.window, start.attempt) == ("window", Window(0, 500), 1)
    # A load that failed is retried with a delay, and no other window comes before.
    failed = replace(lost, last=PastRun("run-1", "window", Window(0, 500), 1, NOW))
    asked = decide(NOW + 1, 510, [failed], 1000)
    assert with_approval(NOW + 1, asked, approved, {}, {}) == asked
    assert (asked.starts, asked.waiting) == ((), ("a: attempt 2 of window 0-500 in 9 s",))
    (start,) = with_approval(NOW, decide(NOW + RETRY_DELAY[0], 510, [failed], 1000), approved, {}, {}).starts
    assert (start.kind, start.window, start.attempt) == ("window", Window(0, 500), 2)
    # Once it is done as far as it can be, windows go on until the next attempt is due.
    tried = replace(failed, to_approve=False, next_attempt=NOW + 60)
    assert [(one.kind, one.window) for one in decide(NOW + 20, 510, [tried], 1000).starts] == [("window", Window(500, 510))]


def test_windows_go_on_while_a_catch_up_cannot_be_planned() -> None:
    """A transaction of its one table stays open, say: nothing of the others was even planned."""
    failed = PastRun("run-1", "plan", Window(0, 500), 1, NOW)
    lost = Replica("a", 500, held=0, first_event=503, scanned=510, to_approve=True, last_catch_up=failed)

    def planned(now: float) -> list[tuple[str, Window]]:
        starts = with_approval(now, decide(now, 510, [lost], 1000), {}, {"a": failed}, {"a": 500}).starts
        return [(start.kind, start.window) for start in starts]

    assert planned(NOW + 1) == [("plan", Window(500, 510))]
    assert planned(NOW + 61) == [("plan", Window(0, 500))]


def test_a_planned_window_comes_before_a_catch_up_that_needs_another_plan() -> None:
    asked = decide(NOW, 220, [Replica("a", 100, held=0, first_event=150, scanned=220, to_approve=True)], 1000)
    assert with_approval(NOW, asked, {"a": PLANNED}, {}, {}).starts == ()
    (start,) = with_approval(NOW, asked, {"a": replace(PLANNED, approved="yes")}, {}, {}).starts
    assert (start.kind, start.window) == ("window", Window(100, 200))


def test_no_catch_up_changes_what_a_recovery_has_compared_that_waits() -> None:
    asked = Decision((Start("catch-up", Window(50, 100), 1, ("a",)),), (), settled=False)
    recovery = replace(PLANNED, kind="bootstrap")
    waits = with_approval(NOW, asked, {"a": recovery}, {}, {})
    assert (waits.starts, "a: the window 100-200 waits for approval" in waits.waiting[0]) == ((), True)
    (start,) = with_approval(NOW, asked, {"a": replace(recovery, approved="yes")}, {}, {}).starts
    assert (start.kind, start.window) == ("window", Window(100, 200))


def test_planned_then_waited_for_then_loaded() -> None:
    asked = Decision((WINDOW, Start("catch-up", Window(50, 100), 1, ("b",))), (), settled=False)
    planning = with_approval(NOW, asked, {}, {}, {})
    assert [(start.kind, start.window) for start in planning.starts] == [
        ("plan", Window(100, 220)),
        ("catch-up", Window(50, 100)),
    ]
    waits = with_approval(NOW, asked, {"a": PLANNED}, {}, {})
    assert [start.kind for start in waits.starts] == ["catch-up"]
    assert "a: the window 100-200 waits for approval" in waits.waiting[0]
    loads = with_approval(NOW, asked, {"a": replace(PLANNED, approved="yes")}, {}, {})
    assert (loads.starts[0].kind, loads.starts[0].window) == ("window", Window(100, 200))  # not what came since


def test_a_plan_that_failed_comes_again_with_a_delay() -> None:
    last = {"a": PastRun("run-1", "plan", Window(100, 210), 2, NOW - 1)}
    asked = Decision((WINDOW,), (), settled=False)
    assert "the next attempt to plan a window in 19 s" in with_approval(NOW, asked, {}, last, {}).waiting[0]
    (start,) = with_approval(NOW + 2 * RETRY_DELAY[0], asked, {}, last, {}).starts
    assert (start.kind, start.attempt, start.after) == ("plan", 3, "run-1")


def test_what_waits_for_its_approval_delays_no_plan_of_another_database() -> None:
    """Windows that are shared begin where a stands: each window of b was taken for another attempt to plan the one before."""
    waits, b = Replica("a", 100, first_event=101, scanned=300), Replica("b", 200, first_event=201, scanned=300)
    loaded, failed = PastRun("run-1", "plan", Window(100, 200), 7, NOW), PastRun("run-1", "plan", Window(90, 220), 7, NOW)
    asked, stand = decide(NOW, 300, [waits, b], 1000), {"a": 100, "b": 200}
    (start,) = with_approval(NOW, asked, {"a": PLANNED}, {"b": loaded}, stand).starts
    assert (start.kind, start.window, start.attempt) == ("plan", Window(100, 300), 1)
    # One that did fail has its delay, though the window of its next attempt begins elsewhere.
    delayed = with_approval(NOW, asked, {"a": PLANNED}, {"b": failed}, stand)
    assert (delayed.starts, delayed.waiting[-1]) == ((), "b: the next attempt to plan a window in 600 s")


def test_a_dump_that_kills_its_process_keeps_no_other_database_from_its_plan() -> None:
    replicas = [Replica(name, 100, first_event=101, scanned=220) for name in ("a", "b", "c")]
    shared: list[tuple[int, tuple[str, ...]]] = []
    last, now = dict[str, PastRun](), NOW
    for _ in range(3):
        starts = with_approval(now, decide(now, 220, replicas, 1000), {}, last, {one.database: 100 for one in replicas}).starts
        shared += [(start.attempt, start.databases) for start in starts]
        last = {name: PastRun("run", "plan", one.window, one.attempt, now) for one in starts for name in one.databases}
        now += RETRY_DELAY[1]
    assert shared == [(1, ("a", "b", "c")), (2, ("a", "b", "c")), (3, ("a",)), (3, ("b",)), (3, ("c",))]
