"""A repair among other loads: windows that pass its dump, and tables that its lane joins and that are further behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import dagster as dg
import pytest

from hive_replication.connect import Connection
from hive_replication.dump.format.record_types import Scope
from hive_replication.errors import BadRequest, Outdated
from hive_replication.events import event_records as r
from hive_replication.load import window
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.load.report import Held
from hive_replication.load.session import Session
from hive_replication.load.source_history import require_not_passed_by
from hive_replication.metastore.types import Database, NotificationEvent, Table
from hive_replication.repair import DUMPS, Repair, bring_up, repair
from hive_replication.statements import ReplDump
from repl_assets.steps.engine import Engine
from tests import model
from tests.bootstraps import SOURCE, header, loaded, record, replica
from tests.messages import row

MODULE = import_module("hive_replication.repair")  # the package has a function of this name
STATE = ReplicaState("uuid/db", 1600, at={"v": 1300, "w": 900}, held={"v": "event 1310 failed", "w": "event 910 failed"})
LANE = LanePlan(("t", "v"), 1300, (op.DropTable(1650, "x"),))


class _Replicas:
    """What a repair calls: dumps end at the events given, loads answer what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ends: list[int], load: Callable[[Any, bool], Any]) -> None:
        self.dumps: list[tuple[int | None, int | None]] = []
        self.parts: list[tuple[str, ...] | None] = []
        self.dumped: tuple[str, ...] | None = None
        self.purged = 0
        self.state = STATE
        self.ends, self.load = ends, load
        monkeypatch.setattr(MODULE, "repl_dump", self._dump)
        monkeypatch.setattr("repl_assets.steps.engine.repl_dump", self._dump)
        monkeypatch.setattr(MODULE, "repl_load", self._load)
        self.scope, self.kind = Scope("db", "t"), "bootstrap"
        store: Any = SimpleNamespace(header=self._header)
        policy = SimpleNamespace(target_of=str)
        metastore = SimpleNamespace(database=lambda _: database_with_state(Database("db", parameters={}), self.state))
        source: Any = SimpleNamespace(require_included=lambda *_: None, policy=SimpleNamespace(max_message_bytes=1 << 20))
        self.log: list[NotificationEvent] = []
        self.there = Table(tableName="t", parameters={})
        source.metastore = SimpleNamespace(
            event=lambda evid: evid if evid > self.purged else None,
            table=lambda *_: self.there,
            current_event_id=lambda: 1700,
            events=lambda after, _until: [one for one in self.log if one.eventId > after],
            views_of_materialized=False,
        )
        target: Any = SimpleNamespace(metastore=metastore, policy=policy)
        self.connection = Connection(source, target, store, cast("Any", None))

    def _header(self, directory: str) -> Any:
        return SimpleNamespace(kind=self.kind, scope=replace(self.scope, partitions=self.dumped), to_evid=int(directory))

    def _dump(self, _source: object, statement: Any, *_: object, partitions: tuple[str, ...] | None = None, **__: object) -> Any:
        self.parts.append(partitions)
        self.dumps.append((statement.from_evid, statement.to_evid))
        if statement.from_evid is None:
            self.dumped = partitions
        end = statement.to_evid if statement.from_evid is not None else self.ends.pop(0)
        return SimpleNamespace(directory=f"{end}", last_evid=end)

    def _load(self, _target: object, statement: Any, *_: object, repair: bool = False, **__: object) -> Any:
        return self.load(statement, repair)

    def repair(self, table: str | None = "t", partitions: tuple[str, ...] | None = None) -> Repair:
        self.scope = Scope("db", table)
        return repair(self.connection, "db", table, partitions)

    def materialize(self) -> Repair:
        """The same in a run of Dagster, which makes the dumps itself."""
        engine = Engine(self.connection, cast("Any", None), cast("Any", None))

        def dump() -> str:
            return engine.dump(ReplDump("db", "t")).directory

        return engine.repair("db", "t", dump(), dump, self.state)

    def bring_up(self, evid: int) -> Any:
        return bring_up(self.connection, "db", "t", evid, self.state)


@pytest.mark.parametrize(
    ("kind", "scope"),
    [("incremental", Scope("db")), ("bootstrap", Scope("db")), ("bootstrap", Scope("db", "u")), ("bootstrap", Scope("x", "t"))],
)
def test_a_table_is_repaired_by_a_dump_of_itself_only(kind: str, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a run of Dagster takes for it: events of a window were loaded for all tables, and none was repaired."""
    replicas = _Replicas(monkeypatch, [1700], lambda *_: pytest.fail("it was loaded"))
    replicas.kind, replicas.scope = kind, scope
    with pytest.raises(dg.Failure, match=r"the dump 1700 is none of db\.t as it was at the source"):
        replicas.materialize()
    assert replicas.dumps == [(None, None)]


DONE = SimpleNamespace(held=(), applied={})


@pytest.mark.parametrize("way", [_Replicas.repair, _Replicas.materialize])
def test_a_table_is_dumped_again_where_a_window_passed_its_dump(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[_Replicas], Repair]
) -> None:
    """What the events before the first dump changed is told, too: they are not loaded again."""
    answers = ["events to 1700", Outdated("t stands later"), "events to 1800", "repair"]

    def load(_: object, _repair: bool) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Outdated):
            raise answer
        return SimpleNamespace(held=(), done=answer)

    done: Any = way(_Replicas(monkeypatch, [1700, 1800], load))
    assert (done.directory, done.load.done) == ("1800", "repair")
    assert [one.done for one in done.events] == ["events to 1700", "events to 1800"]


@pytest.mark.parametrize(("way", "error"), [(_Replicas.repair, Outdated), (_Replicas.materialize, dg.Failure)])
def test_a_table_that_windows_pass_again_and_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[_Replicas], Repair], error: type[Exception]
) -> None:
    def load(_: object, repair: bool) -> Any:
        if repair:
            raise Outdated("t stands later")
        return DONE

    replicas = _Replicas(monkeypatch, [1500] * DUMPS, load)
    with pytest.raises(error, match="t stands later"):
        way(replicas)
    assert replicas.ends == []


def _lane(after: int, *, tried: bool) -> Any:
    return SimpleNamespace(held=(Held(("w",), 900, 901, "held"), Held(("t", "v"), after, after + 1, "held", tried=tried)))


def test_events_before_a_repair_begin_where_the_tables_that_join_its_lane_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of these alone: a table that has been held for long, and has nothing to do with the one, costs nothing."""
    answers = [_lane(1300, tried=False), _lane(1300, tried=True)]
    replicas = _Replicas(monkeypatch, [], lambda _statement, _repair: answers.pop(0))
    assert replicas.bring_up(1700) is not None
    assert replicas.dumps == [(1600, 1700), (1300, 1700)]


@pytest.mark.parametrize("after", [0, 1600])
def test_a_table_of_the_lane_that_no_events_bring_up_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """One that is lost, or that waits after an undo."""
    replicas = _Replicas(monkeypatch, [], lambda _statement, _repair: _lane(after, tried=False))
    assert replicas.bring_up(1700) is not None
    assert replicas.dumps == [(1600, 1700)]


@pytest.mark.parametrize("reason", ["event 51 failed", "undone to 50 by request"])
@pytest.mark.parametrize(("purged", "dumps", "parts"), [(50, [(None, None), (50, 1700)], ("ds=1",)), (51, [(None, None)], None)])
def test_a_table_whose_events_the_log_has_no_longer_is_repaired_whole(
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    purged: int,
    dumps: list[tuple[int | None, int | None]],
    parts: tuple[str, ...] | None,
) -> None:
    """It stood still for longer than the source keeps events; no partition alone brings it to where its database stands."""
    replicas = _Replicas(monkeypatch, [1700], lambda *_: DONE)
    replicas.state, replicas.purged = ReplicaState("uuid/db", 1600).quarantine("t", 50, reason), purged
    assert replicas.repair("t", ("ds=1",)).directory == "1700"
    assert (replicas.dumps, replicas.parts[0]) == (dumps, parts)


def _renamed(before: str, after: str, table: str = "t") -> NotificationEvent:
    of, part = model.Tab(1, "hdfs://src/t", partitioned=True), model.Part(1, "hdfs://src/t/p")
    images = (model.partition_image(table, name, part) for name in (before, after))
    change = r.ChangedPartition(before, after, *images)
    made = r.AlterPartition(1650, 1, "ALTER_PARTITION", "db", table, model.table_image(table, of), (change,), truncate=False)
    return row(made)


@pytest.mark.parametrize("reason", ["event 1301 failed", "undone to 1300 by request"])
@pytest.mark.parametrize(
    ("event", "transactional", "parts"),
    [
        (None, False, ("p=1",)),
        (_renamed("p=0", "p=2"), False, ("p=1",)),
        (_renamed("p=1", "p=2"), False, None),
        (_renamed("p=2", "p=1"), False, None),
        (_renamed("p=2", "p=1", "u"), False, ("p=1",)),
        (None, True, None),
    ],
    ids=["no rename", "of others", "from it", "to it", "of another table", "transactional"],
)
def test_a_partition_of_a_held_table_is_repaired_alone_only_where_it_may_stand_ahead(
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
    event: NotificationEvent | None,
    parts: tuple[str, ...] | None,
    *,
    transactional: bool,
) -> None:
    """What a rename that is held brings to its name later was there twice, with nothing held."""
    replicas = _Replicas(monkeypatch, [1700], lambda *_: DONE)
    replicas.state = ReplicaState("uuid/db", 1600).quarantine("t", 1300, reason)
    replicas.log = [event] if event else []
    replicas.there.parameters = {"transactional": str(transactional).lower()}
    replicas.repair("t", ("p=1",))
    assert replicas.parts[0] == parts


def test_all_of_a_table_is_dumped_where_its_events_are_held_only_when_they_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: object, repair: bool) -> Any:
        if not repair and not replicas.state.held:
            replicas.state = replicas.state.quarantine("t", 1600, "event 1650 failed")
            return _lane(1600, tried=True)
        return DONE

    replicas = _Replicas(monkeypatch, [1700, 1700], load)
    replicas.state, replicas.log = ReplicaState("uuid/db", 1600), [_renamed("p=2", "p=1")]
    replicas.repair("t", ("p=1",))
    assert [some for some, (after, _) in zip(replicas.parts, replicas.dumps, strict=True) if after is None] == [("p=1",), None]


def test_a_repair_of_a_level_table_does_not_hide_a_gap_of_its_database(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = _Replicas(monkeypatch, [1700], lambda *_: DONE)
    replicas.purged = 1650
    replicas.repair("t", ("ds=1",))
    assert (replicas.dumps, replicas.parts[0]) == ([(None, None), (1600, 1700)], ("ds=1",))  # which the dump of events tells


def test_a_table_of_the_lane_whose_events_are_purged_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    replicas = _Replicas(monkeypatch, [], lambda _statement, _repair: _lane(1300, tried=False))
    replicas.purged = 1301
    assert replicas.bring_up(1700) is not None
    assert replicas.dumps == [(1600, 1700)]


def _session(state: ReplicaState, from_evid: int = 1600, to_evid: int = 1700, table: str | None = "t", **header: object) -> Any:
    scope = SimpleNamespace(table=table, partitions=None)
    head = SimpleNamespace(from_evid=from_evid, to_evid=to_evid, to_time=0, to_hash="", scope=scope, recovery="", **header)
    mapping = SimpleNamespace(table=lambda name: name)  # pyright: ignore[reportUnknownLambdaType]
    return SimpleNamespace(held=[], state=state, table=None, reader=SimpleNamespace(header=head), mapping=mapping, database="db")


left: Callable[..., bool] = window._left  # pyright: ignore[reportPrivateUsage]


def test_a_repair_does_not_pass_over_events_of_a_table_that_its_lane_joins() -> None:
    session = _session(STATE)
    assert left(session, LANE, "t", None)
    assert [(held.after, held.reason, held.tried) for held in session.held] == [(1300, "event 1310 failed", False)]
    assert left(_session(STATE), LANE, "u", None)
    assert not left(_session(STATE, 1300), LANE, "t", None)


def test_a_repair_ends_the_undo_of_its_table_alone_and_of_those_undone_with_it() -> None:
    waits = dict.fromkeys("tv", "undone to 1600 by request")
    lane = LanePlan(("t", "v"), 1600, LANE.operations)
    assert not left(_session(ReplicaState("uuid/db", 1600, at=dict.fromkeys("tv", 1600), held=waits)), lane, "t", None)
    assert left(_session(ReplicaState("uuid/db", 1600, at={"v": 1600}, held={"v": waits["v"]})), lane, "t", None)


@pytest.mark.parametrize("before", [40, 0], ids=["held", "lost"])
def test_a_table_whose_repair_windows_passed_is_caught_up_at_once(before: int) -> None:
    """It is dumped at event 50, and a window to event 60 left it alone: the events between are due."""
    state = ReplicaState(SOURCE, 60).quarantine("t", before, "no space").failed("t", 41, 1_000)
    load = loaded(state, header(50, "t"), [replica("t", 40)], [record("t")])
    assert (dict(load.state.at), load.state.tried, load.state.due_names()) == ({"t": 50}, ["t"], ["t"])
    assert (load.state.lost, dict(load.state.quarantines)) == ([], {})
    assert load.state.held["t"].startswith("passed by a window: it stands at event 50")
    for evid in (60, 70):
        load = loaded(state, header(evid, "t"), [replica("t", 40)], [record("t")])
        assert (dict(load.state.at), dict(load.state.held)) == ({} if evid == 60 else {"t": 70}, {})


def _passed(state: ReplicaState, evid: int, *, repair: bool, stands: int | None = 30) -> None:
    session = _session(state, evid, evid)
    table = None if stands is None else Table("t", "db", parameters={"repl.last.id": str(stands)})
    session.target = SimpleNamespace(metastore=SimpleNamespace(table=lambda *_: table))  # pyright: ignore[reportUnknownLambdaType]
    require_not_passed_by(cast("Session", session), None, repair=repair)


@pytest.mark.parametrize("repair", [False, True])
@pytest.mark.parametrize("stands", [30, None], ids=["table", "no table"])
def test_a_dump_that_windows_have_passed_is_not_loaded(repair: bool, stands: int | None) -> None:
    """Its table's own id is lower: partitions were dropped, or transactions committed, or it was dropped itself."""
    with pytest.raises(Outdated, match=r"the target's db\.t stands at event 60, later than the dump's 50: dump it again"):
        _passed(ReplicaState("uuid/db", 60), 50, repair=repair, stands=stands)


@pytest.mark.parametrize("current", [60, 75, None])
def test_a_dump_of_a_database_that_windows_have_passed_is_not_loaded(current: int | None) -> None:
    """Its tables may have been rebuilt since, ahead of the window: what is between would be lost."""
    session = _session(ReplicaState("uuid/db", 60, at={"t": 70}), 50, 50, None)
    source: Any = None if current is None else SimpleNamespace(current_event_id=lambda: current)
    with pytest.raises(Outdated, match=r"the target's 'db' stands at event 60, later than the dump's 50: dump it again"):
        require_not_passed_by(session, source, repair=True)
    require_not_passed_by(session, source, repair=False)  # the load says that the target stands there already
    for stands in (ReplicaState("uuid/db", 50, at={"t": 70}), ReplicaState("uuid/db")):
        require_not_passed_by(_session(stands, 50, 50, None), source, repair=True)


def test_a_database_is_taken_back_where_the_source_has_another_history() -> None:
    """Its log ends before what was applied: nothing of what stands later says anything."""
    state = ReplicaState(SOURCE, 60, at={"t": 70})
    restored: Any = SimpleNamespace(current_event_id=lambda: 55)
    require_not_passed_by(_session(state, 50, 50, None), restored, repair=True)
    load = loaded(state, header(50), [replica("t", 70)], [record("t")])
    assert load.lanes["t"].operations != ()
    assert (load.state.applied, dict(load.state.at), dict(load.state.held)) == (50, {}, {})


@pytest.mark.parametrize(("table", "repair", "altered"), [(None, True, ["by day"]), (None, False, []), ("t", True, [])])
def test_a_repair_of_a_database_brings_its_own_properties(table: str | None, altered: list[str], *, repair: bool) -> None:
    """Somebody changed them on the target: no event brings them again."""
    head = header(60, table)
    head.source_database.description = "by day"
    load = loaded(ReplicaState(SOURCE, 60), head, [replica("t", 60)], [record("t")], repair=repair)
    assert [one.image.description for plan in load.planned for one in plan.alters] == altered


def test_a_database_is_dumped_again_where_a_window_passed_its_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [Outdated("db stands later"), None]

    def load(_: object, repair: bool) -> Any:
        if repair and (error := refusals.pop(0)):
            raise error
        return DONE

    monkeypatch.setattr(MODULE, "release", lambda *_, **__: False)
    assert _Replicas(monkeypatch, [1600, 1700], load).repair(None).directory == "1700"


def test_an_undo_of_a_database_is_released_once_there_is_a_dump_to_repair_it_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump was refused, and windows brought the database on from where it had been undone to."""
    replicas, calls, dump = _Replicas(monkeypatch, [1600], lambda *_: calls.append("load") or DONE), list[str](), Mock()
    monkeypatch.setattr(MODULE, "repl_dump", dump)
    monkeypatch.setattr(MODULE, "release", lambda *_, **__: calls.append("release"))
    dump.side_effect = BadRequest("the account may not list it")
    with pytest.raises(BadRequest):
        replicas.repair(None)
    assert calls == []
    dump.side_effect = lambda *_, **__: calls.append("dump") or SimpleNamespace(directory="1600", last_evid=1600)
    replicas.repair(None)
    assert calls == ["dump", "release", "load"]


def test_dumps_that_are_not_passed_are_loaded() -> None:
    """Those of a table that is behind, or lost, or whose database is no finished replica; one that stands later is skipped."""
    level = ReplicaState("uuid/db", 60)
    _passed(level, 60, repair=True)
    _passed(level.quarantine("t", 40, "event 41 failed"), 50, repair=True)
    _passed(level.quarantine("t", 0, "lost"), 50, repair=True)
    _passed(ReplicaState("uuid/db"), 50, repair=True)
    _passed(level, 50, repair=False, stands=55)
    with pytest.raises(Outdated):
        _passed(level.at_position("t", 70), 60, repair=True)
