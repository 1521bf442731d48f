"""A repair that was asked for before an undo ends nothing of it, however long it waited, compared or dumped since."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication import operate
from hive_replication.dump.format.record_types import Scope
from hive_replication.errors import Refused
from hive_replication.load import command
from hive_replication.load.command import repl_load
from hive_replication.load.replica.ownership import refuse_undone_since
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.load.undo import undo as undoing
from hive_replication.metastore.types import Database
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from repl_assets.steps.engine import Engine
from tests.unit.load.undo.test_undo import _NoLock

MODULE = import_module("hive_replication.repair")  # the package has a function of this name
LEVEL = ReplicaState("uuid/db", 1600)
UNDONE = LEVEL.quarantine("t", 1400, "undone to 1400 by request")
FURTHER = LEVEL.quarantine("t", 1300, "undone to 1300 by request")
JOINED = UNDONE.quarantine("s", 1500, "held with t: undone to 1400 by request")
ALL = replace(LEVEL, applied=1400, undone=1400)
SINCE = "was undone since its repair was asked for"


@pytest.mark.parametrize(
    ("stood", "state", "table", "ends"),
    [
        (LEVEL, UNDONE, "t", True),
        (LEVEL, UNDONE, None, True),
        (LEVEL, UNDONE, "u", False),
        (LEVEL, ALL, "t", True),
        (LEVEL, ALL, None, True),
        (LEVEL, JOINED, "s", True),
        (LEVEL.quarantine("t", 1400, "event 1401 failed"), UNDONE, "t", True),
        (UNDONE, UNDONE, "t", False),
        (UNDONE, FURTHER, "t", True),
        (UNDONE, UNDONE.released(), "t", False),
        (UNDONE.released(), UNDONE, "t", True),
        (UNDONE, JOINED, "s", False),  # a window has joined it to what was undone before
        (ALL, ALL, None, False),
        (ALL, replace(ALL, undone=1300), None, True),
        (ALL.released(), ALL, None, True),
    ],
)
def test_an_undo_that_the_repair_did_not_know_of_is_not_ended(
    stood: ReplicaState, state: ReplicaState, table: str | None, *, ends: bool
) -> None:
    if not ends:
        refuse_undone_since(state, stood, "db", table)
        return
    with pytest.raises(Refused, match=SINCE):
        refuse_undone_since(state, stood, "db", table)


class _Replica:
    """A target that somebody undoes while the source is dumped, or compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, undone: ReplicaState) -> None:
        self.state, self.undone, self.dies = LEVEL, undone, False
        self.metastore = SimpleNamespace(database=lambda _: self.home, alter_database=self._alter)
        policy = SimpleNamespace(target_of=str, name="", read_only=False, target=SimpleNamespace(lock_timeout=0))
        self.target: Any = SimpleNamespace(metastore=self.metastore, policy=policy, source_identity="")
        source_metastore = SimpleNamespace(event=lambda evid: evid)
        source = SimpleNamespace(require_included=lambda *_: None, metastore=source_metastore)
        store = SimpleNamespace(header=lambda _: self._header)
        self.connection: Any = SimpleNamespace(source=source, target=self.target, store=store, copier=None)
        monkeypatch.setattr(MODULE, "repl_dump", self._dump)
        monkeypatch.setattr(MODULE, "repl_load", self.load)
        monkeypatch.setattr(undoing, "MetastoreLock", _NoLock)
        monkeypatch.setattr(undoing, "parameter_lock", _NoLock)

    @property
    def _header(self) -> Any:
        return SimpleNamespace(kind="bootstrap", scope=self.scope, to_evid=self.state.applied)

    @property
    def home(self) -> Database:
        return database_with_state(Database("db", parameters={}), self.state)

    def _alter(self, _: str, image: Database, _before: Database) -> None:
        self.state = undoing.replica_state(image)

    def _dump(self, _: object, statement: ReplDump, *__: object, **___: object) -> Any:
        self.state = self.undone
        self.scope = Scope("db", statement.table)
        return SimpleNamespace(directory="d", last_evid=self.state.applied)

    def load(self, _: object, statement: Any, *__: object, stood: ReplicaState | None = None, **more: object) -> Any:
        if stood:
            refuse_undone_since(self.state, stood, "db", statement.table or more.get("only") or "t")
        self.state = LEVEL  # as a repair leaves it
        return SimpleNamespace(held=(), applied={})

    def repair(self, table: str | None, stood: ReplicaState | None = None) -> None:
        repair(self.connection, "db", table, stood=stood)


@pytest.mark.parametrize("table", ["t", None])
@pytest.mark.parametrize("undone", [UNDONE, ALL])
def test_an_undo_while_a_repair_dumps_stays(monkeypatch: pytest.MonkeyPatch, undone: ReplicaState, table: str | None) -> None:
    """The repair ended it: of a database it released it first, and of a table its load, or that of the events before."""
    replica = _Replica(monkeypatch, undone)
    with pytest.raises(Refused, match=SINCE):
        replica.repair(table)
    assert replica.state == undone


@pytest.mark.parametrize(("table", "undone"), [("t", UNDONE), (None, UNDONE), (None, ALL)])
def test_a_repair_ends_an_undo_from_before(monkeypatch: pytest.MonkeyPatch, table: str | None, undone: ReplicaState) -> None:
    replica = _Replica(monkeypatch, undone)
    replica.state = undone
    replica.repair(table)
    assert replica.state == LEVEL


def test_an_undo_after_the_comparison_that_a_repair_goes_by_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answered for an hour whether to repair."""
    replica = _Replica(monkeypatch, UNDONE)
    monkeypatch.setattr(operate, "_different", lambda *_: ())
    connection = replica.connection
    found = operate.repair(connection, "db.t", dry_run=True)
    replica.state = UNDONE
    with pytest.raises(Refused, match=SINCE):
        operate.repair(connection, "db.t", force=True, found=found)
    assert replica.state == UNDONE
    operate.repair(connection, "db.t", force=True)
    assert replica.state == LEVEL


@pytest.mark.parametrize("only", [None, "t"])
def test_it_is_looked_at_under_the_lock(monkeypatch: pytest.MonkeyPatch, only: str | None) -> None:
    state = [LEVEL]
    header = SimpleNamespace(kind="bootstrap", scope=SimpleNamespace(database="db", table=None if only else "t"))
    reader = SimpleNamespace(header=header, directory="d")
    metastore = SimpleNamespace(database=lambda _: database_with_state(Database("db", parameters={}), state[0]))
    monkeypatch.setattr(command, "opened", lambda *_: reader)
    monkeypatch.setattr(command, "prefix_of", lambda *_: reader)
    monkeypatch.setattr(command.RecordStore, "of", lambda *_: Mock())
    lock = Mock()
    lock.acquire = lambda: state.insert(0, UNDONE)
    monkeypatch.setattr(command, "MetastoreLock", lambda *_: lock)
    loads = Mock()
    monkeypatch.setattr(command._Load, "after_interrupted", loads)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(command._Load, "recorded", loads)  # pyright: ignore[reportPrivateUsage]
    target: Any = SimpleNamespace(policy=None, metastore=metastore)
    given = target, ReplLoad("d", "db"), cast("Any", None), cast("Any", None)
    with pytest.raises(Refused, match=SINCE) as caught:
        repl_load(*given, repair=only is None, only=only, stood=LEVEL)
    assert (caught.value.unchanged, loads.called, lock.release.called) == (True, False, True)
    repl_load(*given, repair=only is None, only=only, stood=UNDONE)
    repl_load(*given)  # no repair: windows look at undone tables themselves
    assert loads.call_count == 4


def test_a_run_that_repairs_says_where_the_target_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[object]()
    for name in ("bring_up", "repl_load"):
        monkeypatch.setattr(MODULE, name, lambda *given, stood=None, **_: seen.append(stood or given[-1]))
    header = SimpleNamespace(kind="bootstrap", scope=Scope("db", "t"), to_evid=5)
    store = SimpleNamespace(header=lambda _: header)
    sides = SimpleNamespace(metastore=None, policy=SimpleNamespace(target_of=str))
    connection = SimpleNamespace(source=sides, target=sides, store=store, copier=None)
    Engine(cast("Any", connection), cast("Any", None), Mock()).repair("db", "t", "d", str, UNDONE)
    assert seen == [UNDONE, UNDONE]
