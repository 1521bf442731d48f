"""Replicas of tables that are not in the dump of a whole database: most of them go, some were promised to stay."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock
from urllib.parse import urlsplit

import pytest

from hive_replication.dump.format.record_types import TableRecord
from hive_replication.dump.source import message_hash
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.errors import MetastoreError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load import newly_included_tables
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.load_boundary import LoadBoundary
from hive_replication.load.operations.kinds import DropTable
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON, is_hidden
from hive_replication.load.replica.state import LEFT_MARK, ReplicaState
from hive_replication.metastore.types import NotificationEvent, Table
from hive_replication.policy import PolicyScope
from hive_replication.storage.boundary import EVERYWHERE, Boundary
from hive_replication.storage.failures import account
from tests import model
from tests.bootstraps import SOURCE, Loading, header, loaded, loading, record, replica
from tests.replica import MAPPING

ICEBERG = "tables of storage handlers hold no files to replicate"
REASON = f"the source table cannot be followed any more: {ICEBERG}"
EVERY, NO_ACID = PolicyScope().text, PolicyScope(acid=False).text
#: Of a recovery and of what repairs, rebuilds or loads over it.
KINDS = pytest.mark.parametrize("recovery", ["token", ""], ids=["recovery", "repair"])


def dump(recovery: str, state: ReplicaState, *, skipped: dict[str, str], taken: str = EVERY, **tables: int) -> Loading:
    """A load of a dump at event 60 into a target with some tables and the equal ``e``, of which the dump has ``e`` alone."""
    equal = {"equal": ("e",), "recovery": recovery} if recovery else {}
    found = [replica(name, evid) for name, evid in (tables | {"e": 30}).items()]
    head = header(60, skipped=skipped, taken=taken, **equal)
    state = ReplicaState(**{**vars(state), "recovery": recovery})
    return loaded(state, head, found, () if recovery else [record("e")])


@KINDS
@pytest.mark.parametrize("held", [False, True])
def test_a_replica_stays_whose_table_is_left_out_by_now(recovery: str, held: bool) -> None:
    """Nobody dropped it at the source: it is held there, whether a window has seen that or not."""
    state = ReplicaState(SOURCE, 50, scope=EVERY)
    state = state.quarantine("t", 40, REASON) if held else state
    load = dump(recovery, state, skipped={"t": ICEBERG}, t=40, gone=41)
    assert load.dropped == {"gone"}
    assert (load.state.applied, dict(load.state.held), dict(load.state.at)) == (60, {"t": REASON}, {"t": 60})
    assert (load.state.lost, load.state.tried, load.state.last_id) == ([], [], 60)
    assert [(one.tables, one.after, one.refused) for one in load.held] == [(("t",), 60, True)]


@KINDS
def test_a_table_that_was_made_anew_and_left_out_later_is_not_held(recovery: str) -> None:
    """The dump says what was before."""
    load = dump(recovery, ReplicaState(SOURCE, 50, at={"t": 70}, scope=EVERY), skipped={"t": ICEBERG}, t=70)
    assert load.dropped == set()
    assert ("t" in load.state.held) == bool(recovery)  # whose state ids say nothing


@KINDS
def test_replicas_that_have_left_the_policy_stay_as_the_policy_says(recovery: str) -> None:
    """Whether a window has seen before that transactional tables are in it no more, or not."""
    reason = "transactional (ACID) tables need Hive 4 at the source, a policy with data and acid.replicate"
    left = ReplicaState(SOURCE, 50, scope=NO_ACID, left={"t": 45})
    load = dump(recovery, left, skipped={"t": reason}, taken=NO_ACID, t=40, gone=41)
    assert (load.dropped, load.held, dict(load.state.left), dict(load.state.held)) == ({"gone"}, [], {"t": 45}, {})

    found = [replica("t", 40, transactional="true"), replica("e", 30), replica("gone", 41)]
    more = {"equal": ("e",), "recovery": recovery} if recovery else {}
    head = header(60, skipped={"t": reason}, taken=NO_ACID, **more)
    state = ReplicaState(SOURCE, 50, scope=EVERY, recovery=recovery)
    load = loaded(state, head, found, () if recovery else [record("e")])
    assert (load.dropped, load.held, dict(load.state.left), load.state.scope) == ({"gone"}, [], {"t": 50}, NO_ACID)


@KINDS
def test_a_replica_that_left_and_was_made_anew_goes_as_any_other(recovery: str) -> None:
    load = dump(recovery, ReplicaState(SOURCE, 50, scope=EVERY, left={"t": 30, "e": 20}), skipped={}, t=40)
    assert load.dropped == {"t"}
    assert "e" not in load.state.left


@pytest.mark.parametrize("partitioned", [False, True])
def test_a_replica_is_held_whose_table_the_metastore_does_not_show(partitioned: bool) -> None:
    """Its partitions, of which the dump has none, stay."""
    shown = model.table_image("t", model.Tab(7, f"{model.ROOT}/t", partitioned=partitioned))
    unshown = TableRecord(shown, (FileRef.unshown_table(f"{model.ROOT}/t"),))
    load = loaded(ReplicaState(SOURCE, 50), header(60), [MAPPING.new_table(shown, 40), replica("e", 30)], [unshown, record("e")])
    (held,) = load.held
    assert (held.tables, held.refused, load.dropped, load.lanes["t"].operations) == (("t",), True, set(), ())
    assert "the source's metastore did not show t to the account" in held.reason
    assert f"-m user:{account()}:r-x {urlsplit(model.ROOT).path}/t)" in held.reason


def test_a_bootstrap_that_goes_on_keeps_nothing_of_what_the_source_leaves_out() -> None:
    """What an interrupted one has made may be half of a table."""
    state = ReplicaState(SOURCE, None, checkpoint="hdfs://dst/dumps/db/1")
    load = loaded(state, header(60, skipped={"t": ICEBERG}), [replica("t", 40)], [record("e")], repair=False)
    assert (load.dropped, load.held, load.state.applied) == ({"t"}, [], 60)


def test_no_grant_is_advised_on_a_table_that_the_policy_does_not_let_in() -> None:
    """Who can name a location in the source's metastore chose what the account would be let read."""
    private = "hdfs://src/user/hr/private"
    table = record("t").table
    table.sd.location = private
    load = loading(ReplicaState(SOURCE, 50), header(60), [], [TableRecord(table, (FileRef.unshown_table(private),))])
    warehouse = SourceBoundary(Boundary("source.paths", ("hdfs://src/warehouse/db.db",)), EVERYWHERE)
    load.boundary = LoadBoundary(warehouse)
    load_objects(load, repair=True)
    (held,) = load.held
    assert "add its directory to source.paths of the policy" in held.reason
    assert "setfacl" not in held.reason


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("applied", [None, 50])
def test_a_table_of_which_the_metastore_shows_nothing_is_held_until_it_does(applied: int | None, there: bool) -> None:
    """Such as a view. A bootstrap that went on dropped its replica, the first one passed it over, and others held it for ever."""
    state = ReplicaState(SOURCE, applied, checkpoint="hdfs://dst/dumps/db/1" if applied is None else "")
    found = [replica("v", 40)] if there else []
    load = loaded(state, header(60, unshown={"v": "Permission denied"}), found, [record("e")], repair=False)
    reason = "the source's metastore did not show it to the account of the dump: Permission denied"
    assert (load.dropped, [(one.tables, one.reason, one.refused) for one in load.held]) == (set(), [(("v",), reason, True)])
    assert (load.state.applied, dict(load.state.held), dict(load.state.at)) == (60, {"v": reason}, {"v": 0})
    assert is_hidden(reason)


def test_foreign_tables_are_left_alone() -> None:
    found = replica("t", 40, **{"hive_replication.source": "other/db", LEFT_MARK: "4"})
    load = loaded(ReplicaState(SOURCE, 50), header(60, skipped={"t": ICEBERG}), [found])
    assert (load.lanes, load.held) == ({}, [])


def test_what_goes_is_dropped_at_the_event_of_the_dump() -> None:
    load = loaded(ReplicaState(SOURCE, 50), header(60), [replica("gone", 41)])
    assert load.lanes["gone"].operations == (DropTable(60, "gone"),)


LOG = {50: NotificationEvent(50, 5, "ALTER_TABLE", message="new")}
DENIED = MetastoreError("get_table db.secret at thrift://src: Permission denied: user [repl]")


def source(answer: object, listed: tuple[str, ...] = ()) -> Any:
    """The source's metastore, which answers so when it is asked for a table, and lists these."""

    def table(_: str, name: str) -> object:
        if name != "secret":
            return None
        if isinstance(answer, Exception):
            raise answer
        return answer

    return SimpleNamespace(table=table, table_names=lambda *_: list(listed), event=LOG.get)


@KINDS
@pytest.mark.parametrize("answer", [DENIED, record("secret").table], ids=["denied", "left out of lists alone"])
def test_a_replica_stays_whose_table_the_source_hides(recovery: str, answer: object) -> None:
    """A metastore with a filter leaves it out of its lists without an error, and so the dump does: nobody dropped it."""
    more: dict[str, Any] = {"equal": ("e",), "recovery": recovery} if recovery else {}
    found = [replica("secret", 40), replica("gone", 41), replica("e", 30)]
    state = ReplicaState(SOURCE, 50, recovery=recovery)
    load = loaded(state, header(60, **more), found, () if recovery else [record("e")], source=source(answer))
    assert load.dropped == {"gone"}
    assert [(one.tables, one.refused) for one in load.held] == [(("secret",), True)]
    assert load.state.held["secret"].startswith("the source hides the table from replication: ")
    assert (load.state.applied, load.state.lost) == (60, ["secret"])


AT_50 = ReplicaState(SOURCE, 50, 5, message_hash("new"), scope=EVERY)


@pytest.mark.parametrize("unshown", [False, True])
@pytest.mark.parametrize(
    "state",
    [
        AT_50.quarantine("secret", 50, f"{TAKEN_IN_REASON}its dump failed"),
        AT_50.quarantine("secret", 0, "its bootstrap failed"),
        AT_50.quarantine("secret", 50, REASON),
        AT_50.at_position("secret", 70),
        replace(AT_50, scope=NO_ACID),
        replace(AT_50, applied=80),
        replace(AT_50, applied_hash=message_hash("old")),
        replace(AT_50, applied_time=4),
        replace(AT_50, applied_hash=""),
        replace(AT_50, applied=49),
    ],
    ids=["not taken in", "lost", "left out", "ahead", "other tables", "beyond", "old event", "old time", "not known", "purged"],
)
def test_a_hidden_table_goes_on_with_events_only_where_nothing_can_be_missing(state: ReplicaState, *, unshown: bool) -> None:
    """Events of a restored source that its replica did not get were passed over, and nobody noticed."""
    head = header(60, taken=EVERY, unshown={"secret": "Permission denied"} if unshown else {})
    load = loaded(state, head, [replica("secret", 40)], source=source(DENIED))
    assert (load.dropped, [one.tables for one in load.held]) == (set(), [("secret",)])
    assert (load.state.lost, load.state.tried, load.state.applied) == (["secret"], ["secret"], 60)


@pytest.mark.parametrize("unshown", [False, True])
def test_a_replica_whose_table_is_hidden_from_a_repair_goes_on_by_its_events(*, unshown: bool) -> None:
    """The log is not hidden with it: windows kept it current. One that stood at the dump's event was held without an end."""
    for evid, due in ((60, ["secret"]), (50, list[str]())):
        head = header(evid, taken=EVERY, unshown={"secret": "Permission denied"} if unshown else {})
        load = loaded(AT_50, head, [replica("secret", 40), replica("e", 30)], [record("e")], source=source(DENIED))
        assert (load.dropped, [one.tables for one in load.held]) == (set(), [("secret",)]), "the load tells of it"
        assert (load.state.lost, load.state.due_names(), [*load.state.held]) == ([], due, due)
        assert (load.state.position("secret"), dict(load.state.quarantines)) == (50, {})


def test_a_hidden_table_goes_on_by_no_events_of_a_source_that_cannot_be_asked_or_since_it_left() -> None:
    head = header(60, taken=EVERY, unshown={"secret": "Permission denied"})
    for answer in (None, SimpleNamespace(event=Mock(side_effect=Unreachable("no answer")))):
        assert loaded(AT_50, head, [replica("secret", 40)], source=answer).state.lost == ["secret"]
    left = replace(AT_50, left={"secret": 45})
    assert loaded(left, head, [replica("secret", 40)], source=source(DENIED)).state.lost == ["secret"]


def secret(created: int) -> Table:
    """The source's table, made at a time."""
    table = record("secret").table
    table.createTime = created
    return table


@pytest.mark.parametrize(("created", "kept"), [(6, False), (5, True), (0, True)])
def test_of_tables_that_the_source_shows_by_now_those_made_after_the_dump_are_not_its(created: int, kept: bool) -> None:
    """The account may see the others only since then: the dump, which does not have them, says nothing of them."""
    shown = source(secret(created), ("secret",))
    load = loaded(ReplicaState(SOURCE, 50), header(60), [replica("secret", 40)], source=shown)
    assert (load.dropped, load.state.lost) == (set[str](), ["secret"]) if kept else ({"secret"}, [])
    assert [one.tables for one in load.held] == [("secret",)] * kept


def test_nothing_is_dropped_while_the_source_does_not_answer() -> None:
    with pytest.raises(Unreachable):
        loaded(ReplicaState(SOURCE, 50), header(60), [replica("secret", 40)], source=source(Unreachable("no answer")))


@pytest.mark.parametrize(("answer", "dropped"), [(None, {"secret"}), (DENIED, set[str]())])
def test_a_replica_that_left_and_is_taken_in_again_stays_where_the_source_hides_its_table(
    answer: object, dropped: set[str]
) -> None:
    state = ReplicaState(SOURCE, 60, scope=EVERY, left={"secret": 45})
    load = loading(state, header(60, taken=EVERY, joined={}), [replica("secret", 40)], source=source(answer))
    newly_included_tables.with_joined_tables(load, cast("Any", None))
    assert load.dropped == dropped
    assert dict(load.state.left) == ({} if dropped else {"secret": 45})


def test_a_replica_that_left_and_is_taken_in_again_is_awaited_once_the_source_shows_its_table() -> None:
    """It was dropped, and nothing brought it back."""
    state = ReplicaState(SOURCE, 60, scope=EVERY, left={"secret": 45})
    shown = source(record("secret").table, ("secret",))
    load = loading(state, header(60, taken=EVERY, joined={}), [replica("secret", 40)], source=shown)
    newly_included_tables.with_joined_tables(load, cast("Any", None))
    assert (load.dropped, load.state.coming, dict(load.state.at)) == (set(), {"secret"}, {"secret": 60})
    assert (dict(load.state.left), [one.tables for one in load.held]) == ({"secret": 45}, [("secret",)])
    newly_included_tables.with_joined_tables(load, cast("Any", None))  # the next window, whose dump could not be made in time
    assert (load.dropped, load.state.coming) == (set(), {"secret"})
