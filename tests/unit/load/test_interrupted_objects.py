"""A load of objects that was killed: before which loads it is done, and what follows where it cannot be done."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.dump.format.record_types import DumpHeader, Scope
from hive_replication.errors import BadRequest, LockLost, MetastoreError, Outdated, Refused, ReplicationError, Unreachable
from hive_replication.load import command, interrupted_objects
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.interrupted_objects import as_repair, given_up, interrupted
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.source_history import without_mark
from hive_replication.metastore.types import FieldSchema
from hive_replication.statements import ReplLoad
from tests.bootstraps import SOURCE, header, loading, record
from tests.bootstraps import replica as table_at
from tests.moving import POLICY

KILLED = "hdfs://dst/dumps/db/killed"
STATE = ReplicaState(SOURCE, 40, checkpoint=KILLED, policy=POLICY.name)
WINDOW = replace(header(60), kind="incremental")
TABLE = header(50, "e")
PARTITIONS = replace(header(60), scope=Scope("db", "e", ("p=1",)))


def replica(state: ReplicaState = STATE) -> Any:
    found = SimpleNamespace(name="db", location="hdfs://dst/db", state=state, target=SimpleNamespace(policy=POLICY, storage=None))
    found.write_state = lambda written: setattr(found, "state", written)
    return found


class Gone(dict[str, Any]):
    """Dumps that are there no longer."""

    def __missing__(self, directory: str) -> Any:
        raise BadRequest(f"there is no dump {directory}")


def dump(of: DumpHeader, directory: str = KILLED) -> Any:
    return SimpleNamespace(directory=directory, header=of)


@pytest.fixture(autouse=True)
def storage(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The dumps by directory; the killed load had changed objects up to event 50."""
    dumps = {KILLED: dump(TABLE)}
    monkeypatch.setattr(interrupted_objects, "opened", lambda dumps, directory: dumps[directory])
    monkeypatch.setattr(interrupted_objects, "interrupted_until", lambda *arguments: 50 if arguments[-1] < 50 else 0)
    return dumps


@pytest.mark.parametrize(
    ("loaded", "killed", "first"),
    [
        (WINDOW, header(50), True),
        (WINDOW, TABLE, True),
        (header(60, "f"), TABLE, True),
        (header(60, "e"), TABLE, False),
        (header(50, "e"), TABLE, True),
        (PARTITIONS, TABLE, True),
        (header(60, "e"), header(50), True),
        (header(60), header(50), False),
        (header(60), TABLE, False),
        (header(45), header(50), True),
        (replace(header(60), recovery="token"), header(50), False),
    ],
    ids=[
        "a window",
        "a window after a table",
        "another table",
        "the same table",
        "the same table at the same event",
        "partitions of it",
        "one table of the database",
        "a newer dump of the database",
        "the database after a table",
        "an older dump of the database",
        "a recovery",
    ],
)
def test_it_is_done_before_what_does_not_bring_all_of_it(
    storage: dict[str, Any], loaded: DumpHeader, killed: DumpHeader, *, first: bool
) -> None:
    storage[KILLED] = dump(killed)
    found = interrupted(replica(), storage, dump(loaded, "hdfs://dst/dumps/db/other"))  # type: ignore[arg-type]
    assert found == (storage[KILLED] if first else None)


@pytest.mark.parametrize(
    ("loaded", "first"), [(TABLE, False), (header(60, "e"), False), (header(49, "e"), True), (header(50, "f"), True)]
)
def test_a_repair_of_the_same_table_does_its_work(storage: dict[str, Any], loaded: DumpHeader, *, first: bool) -> None:
    """A transactional table was made anew twice: by what was killed, and by the repair that was asked for again."""
    found = interrupted(replica(), storage, dump(loaded, "hdfs://dst/dumps/db/other"), repair=True)  # type: ignore[arg-type]
    assert found == (storage[KILLED] if first else None)


@pytest.mark.parametrize(
    "state",
    [
        replace(STATE, checkpoint=""),
        replace(STATE, applied=None),
        replace(STATE, undone=30),
        replace(STATE, failed_over="primary"),
        replace(STATE, policy="another"),
    ],
    ids=["none", "a first bootstrap", "undone", "failed over", "of another policy"],
)
def test_others_than_a_killed_load_over_a_replica_of_the_policy_are_left(storage: dict[str, Any], state: ReplicaState) -> None:
    assert interrupted(replica(state), storage, dump(WINDOW, "other")) is None  # type: ignore[arg-type]


def test_the_token_of_a_recovery_that_died_hides_it_from_no_window(storage: dict[str, Any]) -> None:
    """The window ended that recovery, and took the mark away."""
    assert interrupted(replica(replace(STATE, recovery="token")), storage, dump(WINDOW, "other")) is not None  # type: ignore[arg-type]


def test_that_load_itself_goes_on(storage: dict[str, Any]) -> None:
    assert interrupted(replica(), storage, dump(TABLE)) is None  # type: ignore[arg-type]


def test_a_dump_that_is_gone_asks_for_a_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise BadRequest("there is no dump")

    monkeypatch.setattr(interrupted_objects, "opened", gone)
    with pytest.raises(
        Refused, match="has to be done first, which fails: there is no dump; hive-repl recover db does without it"
    ):
        interrupted(replica(), None, dump(WINDOW, "other"))  # type: ignore[arg-type]


def test_where_it_cannot_be_done_its_table_is_lost_and_others_go_on() -> None:
    """One table that somebody has replaced stops no other."""
    one = replica()
    given_up(one, dump(TABLE), Refused("it is not our replica"))
    assert one.state.lost == ["e"]
    assert "interrupted, and cannot be done again: it is not our replica" in one.state.held["e"]
    with pytest.raises(Refused, match="hive-repl recover db"):
        given_up(replica(), dump(header(50)), Refused("a foreign table is in the way"))


def test_what_the_replica_has_passed_is_left() -> None:
    one = replica()
    given_up(one, dump(TABLE), Outdated("it stands later"))
    assert one.state == STATE
    assert without_mark(STATE, KILLED).checkpoint == ""
    assert without_mark(STATE, "another") == STATE


def test_a_dump_that_is_gone_is_noted_for_all_who_look() -> None:
    """Windows failed one after another, and nothing but the text of their runs told what to do."""
    one = replica()
    with pytest.raises(Refused):
        interrupted(one, Gone(), dump(WINDOW, "other"))  # type: ignore[arg-type]
    assert (one.state.obstacle, one.state.checkpoint) == (f"there is no dump {KILLED}", KILLED)


@pytest.mark.parametrize(
    ("error", "noted"),
    [(Refused("a foreign table is in the way"), True), (BadRequest("no such file"), True), (MetastoreError("denied"), False)],
)
def test_of_the_database_only_what_does_not_pass_is_noted(error: ReplicationError, *, noted: bool) -> None:
    """It is recovered from as from any gap, which a metastore that is out of order for a moment is not."""
    one = replica()
    with pytest.raises(ReplicationError, match=f"which fails: {error}; hive-repl recover db does without it") as caught:
        given_up(one, dump(header(50)), error)
    assert isinstance(caught.value, Refused) == noted
    assert (one.state.obstacle, one.state.checkpoint) == (str(error) if noted else "", KILLED)


@pytest.mark.parametrize(
    ("error", "passes"),
    [(MetastoreError("denied"), False), (Unreachable("the target"), True), (LockLost("the lock"), True)],
)
def test_a_metastore_that_refuses_what_a_table_needs_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, error: ReplicationError, *, passes: bool
) -> None:
    """Every window of the database ended with it until somebody ran a recovery; what passes is waited for."""
    one = replica()
    monkeypatch.setattr(command, "TargetDatabase", lambda *_, **__: one)
    monkeypatch.setattr(command._Load, "recorded", Mock(side_effect=error))
    monkeypatch.setattr(command, "interrupted", lambda *_, **__: dump(TABLE))
    nothing: Any = None
    statement = ReplLoad("other", "db")
    work = command._Load(nothing, statement, nothing, nothing, nothing, nothing, "db", None, nothing)
    if passes:
        with pytest.raises(type(error)):
            work.after_interrupted(Mock(), None)
        assert one.state == STATE
    else:
        work.after_interrupted(Mock(), None)
        assert (one.state.unfinished, one.state.checkpoint) == (["e"], "")


@pytest.mark.parametrize("outage", [False, True])
def test_partitions_that_the_metastore_does_not_show_hold_their_table_alone(
    monkeypatch: pytest.MonkeyPatch, *, outage: bool
) -> None:
    """The load ended with it, and so did whatever was loaded next, since it was done first."""
    names = ("e", "f")
    load = loading(ReplicaState(SOURCE, 40), header(50), [table_at(name, 30) for name in names], [record(name) for name in names])
    metastore: Any = load.target.metastore
    metastore.kept["e"].partitionKeys = [FieldSchema("p", "string")]
    metastore.partition_names = Mock(side_effect=MetastoreError("get_partition_names db.e: Permission denied"))
    metastore.database = Mock(side_effect=MetastoreError("no connection") if outage else None)
    if outage:
        with pytest.raises(MetastoreError, match="no connection"):
            load_objects(load, repair=False)
        return
    load_objects(load, repair=False)
    assert [(one.tables, one.reason) for one in load.held] == [(("e",), "get_partition_names db.e: Permission denied")]
    assert (load.state.unfinished, load.state.applied, "f" in load.lanes) == (["e"], 50, True)


def test_a_table_whose_plan_fails_in_a_way_that_nobody_foresaw_is_held_alone() -> None:
    names = ("e", "f")
    load = loading(ReplicaState(SOURCE, 40), header(50), [table_at(name, 30) for name in names], [record(name) for name in names])
    metastore: Any = load.target.metastore
    metastore.kept["e"].partitionKeys = [FieldSchema("p", "string")]
    metastore.partition_names = Mock(side_effect=TypeError("odd"))
    load_objects(load, repair=False)
    ((held,), applied) = (load.held, load.state.applied)
    assert (held.tables, held.reason.endswith("TypeError: odd"), applied, "f" in load.lanes) == (("e",), True, 50, True)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize(
    ("loaded", "refused"),
    [(header(49), True), (header(50), False), (header(60), False), (WINDOW, False), (header(45, "e"), False)],
    ids=["older", "of the same event", "newer", "a window, which is refused anyway", "a table"],
)
def test_a_first_bootstrap_begins_again_with_no_older_dump(
    storage: dict[str, Any], loaded: DumpHeader, *, refused: bool, gone: bool
) -> None:
    """Tables of the first dump whose keys were not made yet went without them: windows took their events for applied."""
    storage[KILLED] = dump(header(50))
    store: Any = Gone() if gone else storage
    one = replica(replace(STATE, applied=None))
    tables = [table_at("t", 50), table_at("other", 70, **{"hive_replication.source": "another"})]
    one.target.metastore = Mock(tables=Mock(return_value=tables))
    if refused:
        with pytest.raises(Outdated, match=f"with {KILLED}, up to event 50, was interrupted, and other is older: load that one"):
            interrupted(one, store, dump(loaded, "other"))
    else:
        assert interrupted(one, store, dump(loaded, "other")) is None
    assert interrupted(one, store, dump(header(40))) is None, "its own dump"
    one.target.metastore.tables.return_value = tables[1:]
    assert interrupted(one, store, dump(loaded, "other")) is None, "nothing of it stands"


@pytest.mark.parametrize(("of", "repair"), [(TABLE, True), (header(50), False), (header(40), True)])
def test_it_compares_what_it_compared(of: DumpHeader, *, repair: bool) -> None:
    """A replica that stands at the dump's event was being repaired: else nothing would have been loaded."""
    assert as_repair(replica(), dump(of)) == repair
