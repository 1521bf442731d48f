"""Failover and failback of a database: planned and unplanned, killed anywhere, with writes on both sides."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hive_replication import failover, history
from hive_replication.acid.directories import read_by
from hive_replication.acid.write_ids import WriteIds
from hive_replication.cli.main import run
from hive_replication.connect import Reachable, connect
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.dump.command import repl_dump
from hive_replication.errors import BadRequest, Refused, Unreachable
from hive_replication.failover.sides import set_parameters
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.recover import find_gap
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster, Side
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy, save_policy
from tests.faults import Killed
from tests.ledger import Ledger, make
from tests.pair import AWAY, Direction, both_ways, killed_after

pytestmark = pytest.mark.servers

READABLE = "readable\n" * 100


@pytest.fixture
def pair(cluster: Cluster, source: Side, target: Side, unique: str) -> tuple[Direction, Direction]:
    """A replica of a database with three tables, and the way back."""
    there, back = both_ways(cluster, unique)
    origin = there.origin
    origin.create_database()
    for name in ("plain", "doomed", "still"):
        origin.create(name)
        origin.insert(name, READABLE)
    origin.create("parts", "1", "2")
    for day in ("1", "2"):
        origin.insert("parts", READABLE, day)
    there.replicate()
    origin.insert("still", READABLE, overwrite=True)
    there.replicate()  # the replica's data lies below .repl then
    return there, back


def test_there_and_back_and_there_again(pair: tuple[Direction, Direction]) -> None:
    there, back = pair
    name = there.database
    there.origin.insert("plain", "waits\n")
    planned = failover.plan(there.connection, name, failover_reach())
    assert [(one.type, one.tables) for one in planned.status.not_replicated] == [("INSERT", ("plain",))]
    assert (planned.status.phase, planned.bytes_waiting, planned.writers) == ("replicating", 6, ())
    started = failover.start(there.connection, name)
    assert (started.status.phase, len(started.loads), there.differences()) == ("ready", 1, {})
    assert {"readonly": "true", "repl.failover.endpoint": "SOURCE"}.items() <= there.parameters(source=True).items()
    assert there.parameters(source=False)["repl.failover.endpoint"] == "TARGET"
    assert "readonly" not in there.parameters(source=False)

    assert failover.rollback(there.connection, name).phase == "replicating"
    assert not {"readonly", "repl.failover.endpoint"} & there.parameters(source=True).keys()
    there.origin.insert("plain", "goes on\n")
    there.replicate()
    assert there.differences() == {}

    failover.start(there.connection, name)
    there.origin.insert("plain", "by a writer that nothing refuses\n")
    with pytest.raises(Refused, match="was written since"):
        failover.finish(there.connection, name)
    finished = there.fail_over()
    assert (finished.phase, finished.kind, finished.not_replicated) == ("finished", "PLANNED", ())
    opened = there.parameters(source=False)
    assert (
        opened.items()
        >= {
            "repl.failover.endpoint": "TARGET",
            "repl.background.enable": "true",
            "repl.source.for": "default",
            "repl.metrics.failover.count": "1",
            "repl.metrics.last.failover.type": "PLANNED",
        }.items()
    )
    assert not opened.keys() & {"repl.target.for", "repl.last.id", "readonly", "hive.repl.first.inc.pending"}
    _assert_direction_has_ended(there)

    _change_all(back)
    with pytest.raises(Refused, match="was the source before a failover"):
        back.replicate()
    looked = failover.reverse(back.connection, name, dry_run=True)
    assert {one.table: one.state for one in looked.different} == {
        "plain": "differs",
        "parts": "differs",
        "new": "missing",
        "doomed": "surplus",
    }
    assert (looked.conflicts, looked.dropped) == ((), ("doomed", "parts/ds=2"))
    with pytest.raises(Refused, match=r"has doomed, parts/ds=2: hive-repl failover reverse \w+ --drop"):
        failover.reverse(back.connection, name)
    assert there.parameters(source=True)["readonly"] == "true"
    done = failover.reverse(back.connection, name, drop=True)
    assert (done.held, done.bytes_copied, back.differences()) == ((), len("changed\n") * 3, {})
    assert failover.reverse(back.connection, name).done
    assert there.status().phase == "failed back"
    assert back.parameters(source=False)["repl.metrics.failback.count"] == "1"
    for table in ("new", "still"):
        back.origin.insert(table, "a window\n")
    done = back.replicate()
    assert (done.held, done.bytes_copied) == ((), 2 * len("a window\n"))
    assert back.differences() == {}
    with pytest.raises(Refused, match="a loop"):
        there.replicate()

    assert back.fail_over().phase == "finished"
    there.origin.insert("still", "there again\n")
    done = failover.reverse(there.connection, name)
    assert (done.held, done.bytes_copied, there.differences()) == ((), len("there again\n"), {})
    there.origin.insert("plain", "as before\n")
    there.replicate()
    assert there.differences() == {}
    assert there.parameters(source=False)["repl.metrics.failover.count"] == "2"


def failover_reach() -> Reachable:
    return Reachable()


def _change_all(back: Direction) -> None:
    """On the opened database: an insert, a new table and partition, drops of a table and of a partition."""
    origin, metastore = back.origin, back.connection.source.metastore
    origin.insert("plain", "changed\n")
    origin.create("new")
    origin.insert("new", "changed\n")
    origin.add("parts", "3")
    origin.insert("parts", "changed\n", "3")
    metastore.drop_table(back.database, "doomed", delete_data=True)
    metastore.drop_partitions(back.database, "parts", ["ds=2"], delete_data=True)


def _assert_direction_has_ended(there: Direction) -> None:
    """Neither a window nor a bootstrap of the old direction is loaded."""
    sides, name = there.connection, there.database
    for applied in (None, sides.source.metastore.current_event_id()):
        dump = repl_dump(sides.source, ReplDump(name, None, applied), sides.store)
        with pytest.raises(Refused, match="was opened by a failover"):
            repl_load(sides.target, ReplLoad(dump.directory, name), sides.store, sides.copier)


@pytest.mark.parametrize("conflicts", ["replace", pytest.param("keep-aside", marks=pytest.mark.long)])
def test_unplanned(pair: tuple[Direction, Direction], conflicts: str) -> None:
    there, back = pair
    name = there.database
    there.origin.insert("plain", "lost\n")
    with pytest.raises(Refused, match="the source answers"):
        failover.start_unplanned(there.connection, name, failover_reach())
    opened = failover.start_unplanned(there.connection, name, AWAY)
    assert (opened.phase, opened.kind, opened.problem) == ("opened", "UNPLANNED", "the source's metastore does not answer")
    back.origin.insert("still", "new\n")
    back.origin.insert("plain", "on the other side\n")
    there.origin.insert("plain", "lost, too\n")
    old = there.connection.source.metastore.database(name)
    assert old is not None
    old.parameters = {**old.parameters, "colour": "red"}
    there.connection.source.metastore.alter_database(name, old)

    found = there.status()
    assert (found.phase, found.tables, len(found.not_replicated)) == ("opened", ("plain",), 3)
    with pytest.raises(Refused, match="was the source before a failover"):
        back.with_policy(conflicts="replace").replicate()
    assert failover.finish(there.connection, name).phase == "finished"
    assert there.status().tables == ("plain",)
    with pytest.raises(Refused, match=r"never got, in plain \(from event"):
        failover.reverse(back.connection, name)
    assert replica_state(there.connection.source.metastore.database(name)).source == ""

    done = failover.reverse(back.with_policy(conflicts=conflicts).connection, name)
    assert done.conflicting == ("plain",)
    assert done.held == ()
    assert "colour" not in there.parameters(source=True)
    kept = [one for one in there.connection.source.metastore.table_names(name) if one.startswith("plain_kept")]
    assert len(kept) == (conflicts == "keep-aside")
    assert back.differences() == dict.fromkeys(kept, ("the table is on the target, not on the source",))
    if conflicts == "replace":  # of a directory with files that only the old source has, all are copied
        assert done.bytes_copied == len("new\n") + len(READABLE) + len("on the other side\n")


@pytest.mark.parametrize(
    ("times", "before"),
    [(1, False), pytest.param(3, False, marks=pytest.mark.long), pytest.param(3, True, marks=pytest.mark.long)],
)
def test_killed_at_every_step(
    pair: tuple[Direction, Direction], monkeypatch: pytest.MonkeyPatch, times: int, *, before: bool
) -> None:
    """Failover, writes on both sides and failback, each change of a metastore the last one before a kill, or not made at all."""
    there, back = pair
    name = there.database
    for one, other in [(there, back), (back, there), (there, back)][:times]:
        one.origin.insert("plain", "the last window\n")
        one.origin.insert("parts", "the last window\n", "1")
        kills = _repeated(monkeypatch, lambda one=one: failover.start(one.connection, name), before=before)
        assert one.differences() == {}
        kills += _repeated(monkeypatch, lambda one=one: failover.finish(one.connection, name), before=before)
        assert one.status().phase == "finished"
        other.origin.insert("still", "changed\n")
        kills += _repeated(monkeypatch, lambda other=other: failover.reverse(other.connection, name), before=before)
        assert kills > 10
        assert other.differences() == {}
        assert one.status().phase == "failed back"
        other.origin.insert("plain", "goes on\n")
        other.replicate()
        assert other.differences() == {}


def _repeated(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], *, before: bool) -> int:
    """Repeats the work, killed a little later each fourth time, until it comes to its end; answers how often it was killed."""
    for kills in range(400):
        try:
            with killed_after(monkeypatch, kills // 4, before=before):
                work()
        except Unreachable:
            continue
        except Refused as error:
            if "are held" not in str(error):  # a lane that was killed is held: the next call tries it again
                raise
            continue
        return kills
    raise AssertionError("it does not come to its end")


def test_both_directions_at_once_and_one_dump_for_two_targets(cluster: Cluster, source: Side, target: Side, unique: str) -> None:
    """Different databases of one pair in both directions; a dump is loaded on both sides, under another name on its own."""
    first, second = both_ways(cluster, f"{unique}a")[0], both_ways(cluster, f"{unique}b")[1]
    for one in (first, second):
        one.origin.create_database()
        one.origin.create("t")
        one.origin.insert("t", READABLE)
    sides, name, copy = first.connection, first.database, f"{first.database}_copy"
    own = connect(policy(cluster, {name: copy}, source.name, source.name))
    for _ in range(2):
        stands = replica_state(sides.target.metastore.database(name)).applied
        dump = repl_dump(sides.source, ReplDump(name, None, stands), sides.store)
        for to, under in ((sides, name), (own, copy)):
            report = repl_load(to.target, ReplLoad(dump.directory, under), sides.store, to.copier)
            assert (report.held, report.to_evid) == ((), dump.last_evid)
        second.replicate()
        assert (first.differences(), second.differences()) == ({}, {})
        assert not any(one.differences for one in compare_database(own.source, own.target, name))
        first.origin.insert("t", "more\n")
        second.origin.insert("t", "more\n")
    again = repl_dump(own.source, ReplDump(copy), own.store)
    with pytest.raises(Refused, match="a loop"):
        repl_load(own.target, ReplLoad(again.directory, name), own.store, own.copier)


def test_read_only_databases_and_a_failback_without_changes(
    pair: tuple[Direction, Direction], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The property is each side's own; a rollback sets it back to what it was. A source that is gone is made anew first."""
    there, back = pair
    metastore, name = there.connection.source.metastore, there.database
    database = metastore.database(name)
    assert database is not None
    database.parameters = {**database.parameters, "readonly": "true", "colour": "red"}
    metastore.alter_database(name, database)
    there.replicate()
    assert there.parameters(source=False)["colour"] == "red"
    assert "readonly" not in there.parameters(source=False)
    failover.start(there.connection, name)
    failover.rollback(there.connection, name)
    assert there.parameters(source=True)["readonly"] == "true"
    there.origin.insert("plain", "more\n")
    there.with_policy(read_only=True).replicate()
    assert there.parameters(source=False)["readonly"] == "true"

    shell = Shell(tmp_path, there, capsys)
    assert [step["name"] for step in shell("plan")["steps"]][:2] == ["mark the source", "end transactions"]
    assert shell("start", "--wait", "0", "--no-abort")["phase"] == "ready"
    assert shell("rollback")["phase"] == "replicating"
    shell("start", "--unplanned", code=3)
    shell("start", "--unplanned", "--wait", "3", code=2)
    shell("finish", code=3)
    shell("start")
    assert shell("finish")["phase"] == shell("status")["phase"] == "finished"
    shell("rollback", code=3)
    assert "readonly" not in there.parameters(source=False)
    shell = Shell(tmp_path, back, capsys)
    assert {one["state"] for one in shell("reverse", "--dry-run")["tables"]} == {"equal"}
    done = shell("reverse")
    assert (done["changed"], done["conflicting"], [load["bytes_copied"] for load in done["loads"]]) == ([], [], [0])
    assert {one["state"] for one in done["tables"]} == {"equal"}
    assert back.differences() == {}
    actions = [one.record.action for one in history(there.connection, name) if one.record.action.startswith("failover")]
    assert actions[::-1] == ["failover start", "failover rollback", "failover start", "failover finish"]
    assert back.parameters(source=False)["readonly"] == "true"
    back.fail_over()
    old = back.connection.source.metastore
    set_parameters(old, name, lambda found: {**found, "repl.source.for": ""})  # else Hive refuses the drop
    old.drop_database(name, cascade=True)
    with pytest.raises(BadRequest, match="has no database"):
        failover.reverse(there.connection, name)
    there.replicate()  # a bootstrap
    assert failover.reverse(there.connection, name).done
    there.origin.insert("plain", "a window\n")
    there.replicate()
    assert (there.differences(), back.status().phase) == ({}, "failed back")


def test_an_opened_database_whose_metastore_is_restored_is_opened_again(pair: tuple[Direction, Direction]) -> None:
    there, back = pair
    name, metastore = there.database, there.connection.target.metastore
    backup = there.parameters(source=False)
    there.fail_over()
    set_parameters(metastore, name, lambda _: backup)
    for work in (there.replicate, lambda: find_gap(there.connection.source, there.connection.target, name)):
        with pytest.raises(Refused, match=f"hive-repl failover start {name} --unplanned --force opens it again"):
            work()
    with pytest.raises(Refused, match="says it is a replica"):
        failover.reverse(back.connection, name)
    assert failover.start_unplanned(there.connection, name, failover_reach(), force=True).phase == "finished"
    back.origin.insert("plain", "changed\n")
    assert failover.reverse(back.connection, name).held == ()
    assert (back.differences(), there.status().phase) == ({}, "failed back")


@dataclass
class Shell:
    """``hive-repl failover`` with the policy of a direction."""

    folder: Path
    direction: Direction
    capsys: pytest.CaptureFixture[str]

    def __call__(self, step: str, *options: str, code: int = 0) -> dict[str, Any]:
        save_policy(self.direction.connection.source.policy, self.folder / "policy.yaml")
        self.capsys.readouterr()
        name = self.direction.database
        assert run(["--config", str(self.folder / "policy.yaml"), "--json", "failover", step, name, *options]) == code
        return json.loads(self.capsys.readouterr().out)


@pytest.mark.long
@pytest.mark.hive
def test_hives_hook_refuses_writers_of_the_closed_side(
    cluster: Cluster, source4: Side, target4: Side, hive4: HiveDriver, hive4_target: HiveDriver, unique: str
) -> None:
    """Hive 4 with its hook for read-only databases: writers are refused from the start on, and of the opened side no more."""
    there, back = both_ways(cluster, unique, source4.name, target4.name)
    hook = "set hive.exec.pre.hooks=org.apache.hadoop.hive.ql.hooks.EnforceReadOnlyDatabaseHook"

    def refused(hive: HiveDriver) -> bool:
        _, done, _ = hive.run([hook, f"CREATE TABLE {unique}.by_hive (a INT)", "set hive.exec.pre.hooks="])
        if not done.error:
            hive.execute(f"DROP TABLE {unique}.by_hive")
        assert not done.error or "read-only" in done.error.lower().replace("read only", "read-only")
        return bool(done.error)

    there.origin.create_database()
    there.with_policy(read_only=True).replicate()
    assert (refused(hive4), refused(hive4_target)) == (False, True)
    failover.start(there.connection, unique)
    assert refused(hive4)
    failover.rollback(there.connection, unique)
    assert not refused(hive4)
    there.fail_over()
    assert (refused(hive4), refused(hive4_target)) == (True, False)
    failover.reverse(back.connection, unique)
    assert (refused(hive4), refused(hive4_target)) == (True, False)


def test_transactions(cluster: Cluster, source4: Side, target4: Side, unique: str) -> None:
    """Open ones are aborted or refused; what stands for those of a source that is gone is aborted; both sides write on."""
    there, back = both_ways(cluster, unique, source4.name, target4.name)
    ours = make(there.connection, unique)
    theirs = Ledger(back.connection, None, unique)  # type: ignore[arg-type]
    ours.write("a", "1")
    assert ours.replicate().held == ()
    writer = ours.begin()
    writer.insert("a", "never\n")
    writer.lock("a")  # else the metastore forgets that it was aborted
    with pytest.raises(Refused, match=rf"open after 0 s \({writer.transaction}\)"):
        failover.start(there.connection, unique, wait=0, abort=False)
    started = failover.start(there.connection, unique, wait=0, abort=True)
    assert (started.aborted, started.status.phase) == ((writer.transaction,), "ready")
    assert failover.finish(there.connection, unique).phase == "finished"
    theirs.write("a", "2")
    theirs.write("b", "1")
    done = failover.reverse(back.connection, unique)
    assert (done.held, back.differences()) == ((), {})
    theirs.write("a", "3")
    assert theirs.replicate().held == ()
    assert back.differences() == {}

    writer = theirs.begin()
    writer.insert("a", "lost\n")
    assert theirs.replicate().held == ()
    assert theirs.write_ids(source=False).open
    assert failover.start_unplanned(back.connection, unique, AWAY).phase == "opened"
    assert not theirs.write_ids(source=False).open
    writer.commit()
    ours.write("a", "4")
    assert (failover.finish(back.connection, unique).phase, back.status().tables) == ("finished", ("a",))
    done = failover.reverse(there.with_policy(conflicts="replace").connection, unique)
    assert (done.held, there.differences()) == ((), {})
    ours.write("a", "5")
    assert ours.replicate().held == ()
    assert there.differences() == {}


@dataclass
class _LosesOne:
    """Copies all files but those of a name, then the process ends."""

    copier: Copier
    lost: str

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        yield from self.copier.copy([one for one in tasks if not one.target.endswith(f"/{self.lost}")])
        raise Killed


def _seen(ledger: Ledger) -> set[str]:
    """The rows of the target's table a that a reader sees."""
    files, ids = ledger.files(source=False), ledger.write_ids(source=False)
    read = read_by({one.partition("/")[0] for one in files}, ids)
    return {row for one, data in files.items() if one.partition("/")[0] in read for row in data.decode().split()}


def test_a_transaction_of_which_a_part_has_arrived_is_never_seen(
    cluster: Cluster, source4: Side, target4: Side, unique: str
) -> None:
    """Hive forgot that it was aborted, and showed its part; one that had no write id yet came with the next own write."""
    there, back = both_ways(cluster, unique, source4.name, target4.name)
    ours, theirs = make(there.connection, unique), Ledger(back.connection, None, unique)  # type: ignore[arg-type]
    ours.write("a", "1")
    assert ours.replicate().held == ()
    writer = ours.begin()
    writer.insert("a", "half\n")
    writer.insert("a", "lost\n", name="000001_0")
    writer.commit()
    metastore = there.connection.source.metastore
    table = metastore.table(unique, "a")
    assert table is not None
    table.parameters = {**table.parameters, "colour": "red"}
    metastore.alter_table(unique, "a", table)
    writer = ours.begin()
    writer.insert("a", "early\n", name="000007_0")
    writer.commit()
    sides, dump = there.connection, ours.dump(ours.applied())
    with pytest.raises(Killed):
        repl_load(sides.target, ReplLoad(dump.directory, unique), sides.store, _LosesOne(sides.copier, "000001_0"))
    there_now = ours.files(source=False).values()
    assert (set(there_now), ours.highest(source=False), _seen(ours)) == ({b"1\n", b"half\n", b"early\n"}, 2, {"1"})

    failover.plan(sides, unique, AWAY)
    assert len(ours.files(source=False)) == 3, "a plan changes nothing"
    assert failover.start_unplanned(sides, unique, AWAY).phase == "opened"
    assert _seen(ours) == {"1"}
    theirs.write("a", "own")
    until = time.monotonic() + 60
    while ours.write_ids(source=False).aborted and time.monotonic() < until:
        time.sleep(0.5)
    assert ours.write_ids(source=False) == WriteIds(3), "Hive does not forget it any more"
    assert _seen(ours) == {"1", "own"}
