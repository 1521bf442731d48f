"""Conditions of replicas, advice on held tables, and histories, without servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.connect import Reachable
from hive_replication.connect.databases import PatternMatches
from hive_replication.doctor.examine import _lags
from hive_replication.errors import MetastoreError
from hive_replication.health import advice_on
from hive_replication.health.alarms import conditions, open_alarms
from hive_replication.health.history import merged
from hive_replication.health.policy_status import condition_by_lag, condition_of, held_by_lag, held_status, policy_status
from hive_replication.lag import Lag
from hive_replication.lag.compute_lag import stopped
from hive_replication.load.journal.journal import Entry, Status
from hive_replication.load.records import Record
from hive_replication.load.replica.held_retries import Quarantine
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database
from hive_replication.parallel import Threads
from hive_replication.storage import Storage
from hive_replication.storage.boundary import Boundary
from tests.lags import POLICY, WELL

APPLIED, EVENT = "hive_replication.applied.id", "hive_replication.failover.event"
LEVEL = ReplicaState(source="s/sales", applied=100)


@pytest.mark.parametrize(
    ("state", "lag", "expected"),
    [
        (LEVEL, WELL, "up to date"),
        (ReplicaState(), WELL, "no replica"),
        (replace(LEVEL, applied=None), WELL, "bootstrap unfinished"),
        (LEVEL, replace(WELL, seconds_behind=901.0), "behind"),
        (LEVEL, replace(WELL, seconds_behind=899.0), "up to date"),
        (LEVEL, replace(WELL, gap="events are missing"), "gap"),
        (LEVEL, replace(WELL, seconds_behind=None, problem="the source's metastore does not answer"), "unknown"),
        (LEVEL.quarantine("t", 90, "no space"), WELL, "tables held"),
        (replace(LEVEL.quarantine("t", 90, "no space"), paused="since"), WELL, "paused"),
        (replace(LEVEL, paused="since", undone=90), WELL, "undone"),
        (ReplicaState(failed_over="opened"), WELL, "failed over"),
        (ReplicaState(), replace(WELL, in_source=False), "not at the source"),
        (replace(LEVEL, applied=None), replace(WELL, in_source=False), "not at the source"),
        (ReplicaState(failed_over="opened"), replace(WELL, in_source=False), "failed over"),
    ],
)
def test_the_gravest_condition_is_told(state: ReplicaState, lag: Lag, expected: str) -> None:
    assert condition_of(state, lag, 900) == expected
    assert condition_of(state, lag, 900, known=False) == "unknown"


@pytest.mark.parametrize(
    "state",
    [
        LEVEL,
        ReplicaState(),
        replace(LEVEL, applied=None, checkpoint="hdfs://d/1"),
        LEVEL.quarantine("t", 90, "no space"),
        replace(LEVEL.quarantine("t", 90, "no space"), paused="since 10:00 by jo"),
        replace(LEVEL, undone=90),
        replace(LEVEL, undone=90, paused="since 10:00 by jo"),
        replace(LEVEL, failed_over="opened"),
        ReplicaState(failed_over="opened"),
    ],
)
@pytest.mark.parametrize(
    "lag",
    [
        WELL,
        replace(WELL, seconds_behind=901.0),
        replace(WELL, gap="events are missing"),
        replace(WELL, seconds_behind=None, gap="the account may not read it", hidden="source"),
    ],
)
def test_a_lag_alone_tells_the_same_condition(state: ReplicaState, lag: Lag) -> None:
    """As Dagster's page of a policy has it, for which nothing is asked."""
    held = tuple(sorted(state.held.items()))
    read = replace(lag, applied=state.last_id, stopped=stopped(state), held=held, loading=state.checkpoint)
    assert condition_by_lag(read, 900) == condition_of(state, lag, 900)
    assert [(one.table, one.reason, one.advice) for one in held_by_lag(read)] == [
        (one.table, one.reason, one.advice) for one in held_status(state, lag)
    ]


@pytest.mark.parametrize(
    "state", [ReplicaState(), ReplicaState(source="s/sales", checkpoint="hdfs://d/1"), ReplicaState(paused="now")]
)
def test_a_lag_alone_tells_of_a_database_that_the_source_no_longer_has(state: ReplicaState) -> None:
    gone = replace(WELL, applied=None, seconds_behind=None, in_source=False, stopped=stopped(state), loading=state.checkpoint)
    assert condition_by_lag(gone, 900) == condition_of(state, gone, 900) == ("paused" if state.paused else "not at the source")


def test_a_raw_message_of_an_earlier_version_is_shown_in_words() -> None:
    raw = 'hdfs://t/x: RPCError("org.apache.hadoop.fs.ParentNotDirectoryException", "/x (is not a directory)\\n\\tat Foo")'
    state = replace(LEVEL.quarantine("t", 90, raw), quarantines={"t": Quarantine(91, 5, 2, 6)})
    (held,) = held_status(state, WELL)
    assert held.reason == "hdfs://t/x: a file lies where a directory is needed (/x (is not a directory))"
    assert (held.after, held.evid, held.since, held.attempts, held.next_attempt) == (90, 91, 5, 2, 126)
    assert held.advice.startswith("a file lies on the target where a directory belongs")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("undone to 52 by request", "hive-repl undo d.t --release"),
        ("hdfs://s/f is absent and hdfs://cm/f is absent", "hive-repl repair s.t"),
        ("alter_table: types incompatible with the existing columns", "drop the table on the target"),
        ("the source table cannot be followed any more: transactional (ACID) tables need Hive 4", "exclude the table"),
        ("the source hides the table from replication: Permission denied: user [repl]", "see the table at the source"),
        ("the source's metastore did not show it to the account of the dump: Permission denied", "see the table at the source"),
        (Boundary("", ()).why_outside("har://hdfs-s:8020/t/data.har"), "UNARCHIVE PARTITION at the source"),
        ("somebody wrote something else", "remove the cause"),
    ],
)
def test_there_is_advice_on_each_reason(reason: str, expected: str) -> None:
    assert expected in advice_on(reason, "s.t", "d.t")


@pytest.mark.parametrize(
    ("name", "reason", "expected"),
    [
        ("quota_usage", "alter_table: quota_usage has a lock", "remove the cause"),
        ("quota", "the target table d.quota has a lock", "remove the cause"),
        ("transactions", "the target table d.transactions has other content than event 7", "somebody else changes the replica"),
        ("transactions", "Table transactions has a lock", "remove the cause"),
        ("allows", "hdfs://t/allows/No space/x: the lease is lost", "remove the cause"),
        ("what_may_not_be", "hdfs://t/aborted: column what_may_not_be has a lock", "remove the cause"),
        ("quota", "hdfs://t/quota/f: the quota is used up (The DiskSpace quota of /t is exceeded)", "make room"),
        ("t", "hdfs://t/t: the account me lacks w on /t (hdfs:hdfs drwxr-xr-x); grant it, for instance", "give the account"),
        ("t", "hdfs://t/t: the account me may not: permission denied", "give the account"),
        ("t", "hdfs://t/t lies outside the directories that the policy allows for its database", "add the path to the policy"),
    ],
)
def test_advice_goes_by_what_happened_not_by_what_things_are_called(name: str, reason: str, expected: str) -> None:
    (alarm,) = conditions([replace(WELL, target_database="d", held=((name, reason),))], (), POLICY)
    assert alarm.advice.startswith(expected)


def test_advice_names_a_table_as_the_command_takes_it() -> None:
    (alarm,) = conditions([replace(WELL, held=(("a-b", "somebody wrote something else"),))], (), POLICY)
    (held,) = held_status(LEVEL.quarantine("a-b", 90, "somebody wrote something else"), WELL)
    assert alarm.title.startswith("sales.a-b is held")
    for advice in (alarm.advice, held.advice):
        assert "hive-repl repair 'sales.`a-b`', which" in advice


def test_a_table_that_is_released_or_joined_to_an_undone_one_is_no_alarm() -> None:
    undone = LEVEL.quarantine("t", 90, "undone to 90 by request")
    failed = replace(undone, quarantines={"t": Quarantine(91, 5, 9, 6)})
    released = failed.released("t")
    assert released.released_names() == ["t"]
    assert released.quarantines == {}  # else it would wait for the delay of failures before the undo
    passed = LEVEL.quarantine("t", 80, "no space").at_position("t", 90)
    assert (passed.due_names(), passed.released_names()) == (["t"], [])
    assert list(conditions([replace(WELL, held=tuple(passed.held.items()))], (), POLICY)) == []
    held = replace(WELL, held=tuple(released.held.items()))
    assert list(conditions([held], (), POLICY)) == []
    joined = replace(WELL, held=(("t", "undone to 90 by request"), ("u", "held with t: undone to 90 by request")))
    assert list(conditions([joined], (), POLICY)) == []
    assert [one.about for one in conditions([replace(WELL, held=(("t", "no space"),))], (), POLICY)] == ["sales.t"]


def token(name: str, seconds: float = 1.0) -> str:
    """Of a load that began so long after the epoch."""
    return f"{int(seconds * 1000):013d}{name:0>8}"


def test_loads_without_a_record_are_told_from_the_journal() -> None:
    def entry(name: str, end: int, time: float, status: str = "done") -> Entry:
        return Entry(f"j/{name}", 1, end, token(name, time), status, time)  # type: ignore[arg-type]

    record = Record("2" * 21, "window", "sales", "ann@gate", 20.0, window="1-9", journal=token("b", 19.0))
    found = merged([record], [entry("a", 5, 10.0), entry("b", 9, 19.0, "undone"), entry("c", 9, 19.5)], "sales")
    assert [(one.record.window, one.record.by, one.undone) for one in found] == [("1-9", "ann@gate", True), ("1-5", "", False)]
    killed = merged([record], [entry("d", 12, 30.0, "open")], "sales")
    assert [(one.record.window, one.record.outcome) for one in killed] == [("1-12", "failed"), ("1-9", "done")]
    assert merged([], [Entry("j/e", 0, 0, token("e"), "part", 40.0)], "sales") == []  # left by the undo of a table


@pytest.mark.parametrize("status", ["undone", "done"])
def test_what_an_undo_took_back_stands_where_it_was_loaded(status: Status) -> None:
    """The undo is the last that wrote its journal: of few entries the oldest loads stood in place of the newest, by nobody.

    The undo of a table leaves the journals done.
    """
    records = [
        Record(token("f", end), "window", "sales", "ann@gate", end + 5, window=f"{end - 10}-{end}", journal=token("f", end))
        for end in range(10, 110, 10)
    ]
    entries = [Entry("j", end - 10, end, token("f", end), status, 500.0) for end in range(10, 110, 10)]
    undo = Record(token("f", 500), "undo", "sales", "ann@gate", 510.0, to_evid=0)
    found = merged([undo, *records[-4:]], entries, "sales")
    assert [(one.record.window, one.record.by) for one in found[:5]] == [
        ("", "ann@gate"),
        *((window, "ann@gate") for window in ("90-100", "80-90", "70-80", "60-70")),
    ]


@pytest.mark.parametrize(("undone", "seen"), [((), False), (("c",), False), (("a", "b", "c"), True)])
def test_a_load_in_parts_is_one_entry_and_undone_where_all_of_it_is(undone: tuple[str, ...], seen: bool) -> None:
    spans = {"0": (90, 100), "a": (100, 103), "b": (103, 106), "c": (106, 107), "d": (107, 109)}
    entries = [Entry(f"j/{t}", *span, token(t), "undone" if t in undone else "done", 1.0) for t, span in spans.items()]
    records = [
        Record("1" * 21, "window", "sales", "ann@gate", 5.0, window="90-100", journal=token("0")),
        Record("2" * 21, "window", "sales", "ann@gate", 20.0, window="100-107", journal=token("c")),
        Record("3" * 21, "window", "sales", "ann@gate", 30.0, window="107-109", journal=token("d")),
    ]
    found = merged(records, entries, "sales")
    assert [(one.record.window, one.undone) for one in found] == [("107-109", False), ("100-107", seen), ("90-100", False)]


@pytest.mark.parametrize(("begin", "trace"), [(100, "done"), (0, "part")])
def test_a_load_of_objects_has_no_parts(begin: int, trace: Status) -> None:
    """A window without a record that ended where a repair's dump began, or what the undo of a table left, was taken for one."""
    earlier = Entry("j/a", max(begin - 10, 0), begin, token("a"), trace, 1.0)
    entries = [earlier, Entry("j/b", begin, 107, token("b"), "undone", 20.0)]
    found = merged(
        [Record("2" * 21, "repair", "sales", "ann@gate", 20.0, window="repair-107", journal=token("b"))], entries, "sales"
    )
    windows = [("90-100", False)] if begin else []
    assert [(one.record.window, one.undone) for one in found] == [("repair-107", True), *windows]


@pytest.mark.parametrize("down", [False, True])
def test_a_parameter_that_was_edited_by_hand_hides_no_other_database(down: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the status nor in the alarms, with a source that answers or without it."""
    good, bad = ReplicaState("u/hr", 100).parameters(), {**ReplicaState("u/sales", 100).parameters(), APPLIED: "abc"}
    theirs = {"hr": Database(name="hr", parameters=good), "sales": Database(name="sales", parameters=bad)}
    marked = {"hr": Database(name="hr", parameters={EVENT: "abc"}), "sales": Database(name="sales", parameters={})}
    log = SimpleNamespace(
        current_event_id=lambda: 100,
        events=lambda *_, **__: iter(()),
        database=marked.get,
        config_value=lambda _, default: default,
    )
    policy = POLICY.model_copy(update={"databases": {"sales": "sales", "hr": "hr"}})
    monkeypatch.setattr("hive_replication.lag.reader.history_gap", lambda *_: None)
    connection: Any = SimpleNamespace(
        source=SimpleNamespace(
            metastore=log, policy=policy, identity="u", storage=SimpleNamespace(threads=None), threads=Threads(2, "table")
        ),
        target=SimpleNamespace(metastore=SimpleNamespace(database=theirs.get), policy=policy, identity="t"),
        store=SimpleNamespace(storage=Storage(()), root="hdfs://target:8020/dumps"),
        patterns=PatternMatches(),
    )
    reach = Reachable(source="it is down" if down else "")
    sales, hr = policy_status(connection, reach).databases
    assert (sales.condition, hr.condition) == ("unknown", "unknown" if down else "up to date")
    assert f"the parameter {APPLIED} of the database 'sales' is 'abc'" in sales.advice
    roles = [one.role.role for one in (sales, hr) if one.role]
    assert roles == ["not known", "replica" if down else "not known"]
    alarms = open_alarms(connection, reach)
    assert [one.about for one in alarms] == (["source", "sales"] if down else ["sales"])
    assert "recover" not in alarms[-1].advice, "it refuses"
    assert alarms[-1].advice.startswith("set the parameter back to what it was")
    if not down:
        _, (finding,) = _lags(connection)
        assert (finding.verdict, finding.check, finding.advice) == ("error", "state of sales", alarms[-1].advice)


@pytest.mark.parametrize(("side", "down"), [("target", False), ("target", True), ("source", False)])
def test_nobody_is_told_to_drop_a_replica_that_its_metastore_does_not_show(
    side: str, down: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor that a window mends it: it is the account that has to see the database."""

    def denied(name: str) -> Database:
        raise MetastoreError(f"get_database {name}: Permission denied: user=repl, access=READ")

    log = SimpleNamespace(
        current_event_id=lambda: 100, events=lambda *_, **__: iter(()), database=denied, config_value=lambda _, default: default
    )
    shown: Callable[[str], Database | None] = denied if side == "target" else (lambda _: None)
    connection: Any = SimpleNamespace(
        source=SimpleNamespace(
            metastore=log, policy=POLICY, identity="u", storage=SimpleNamespace(threads=None), threads=Threads(2, "table")
        ),
        target=SimpleNamespace(metastore=SimpleNamespace(database=shown), policy=POLICY, identity="t"),
        store=SimpleNamespace(storage=Storage(()), root="hdfs://target:8020/dumps"),
        patterns=PatternMatches(),
    )
    alarm = open_alarms(connection, Reachable(source="it is down" if down else ""))[-1]
    assert (alarm.kind, alarm.about) == ("gap", "sales")
    assert "get_database sales: Permission denied" in alarm.title
    assert alarm.advice.startswith(f"let this account see the database on the {side}, ")
    assert "drop" not in alarm.advice
    assert "next window" not in alarm.advice
    (status,) = policy_status(connection, Reachable(source="it is down" if down else "")).databases
    assert status.advice == (
        alarm.advice if side == "source" else "get_database sales: Permission denied: user=repl, access=READ"
    )
    if not down:
        assert _lags(connection) == (0.0, []), "the doctor tells it once: where it examines the databases of that side"


def test_the_advice_on_a_function_repairs_its_database() -> None:
    (held,) = held_status(LEVEL.quarantine("f()", 90, "somebody wrote something else"), WELL)
    (alarm,) = conditions([replace(WELL, held=(("f()", "somebody wrote something else"),))], (), POLICY)
    for advice in (alarm.advice, held.advice):
        assert "hive-repl repair sales, which" in advice


def test_what_to_do_about_a_replica_that_is_marked_as_incompatible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its source is quiet, so that no load says it."""
    home = Database("sales", parameters={**ReplicaState("u/sales", 100).parameters(), "repl.incompatible": "true"})
    log = SimpleNamespace(
        current_event_id=lambda: 100,
        events=lambda *_, **__: iter(()),
        database=lambda name: Database(name, parameters={}),
        config_value=lambda _, default: default,
    )
    monkeypatch.setattr("hive_replication.lag.reader.history_gap", lambda *_: None)
    connection: Any = SimpleNamespace(
        source=SimpleNamespace(
            metastore=log, policy=POLICY, identity="u", storage=SimpleNamespace(threads=None), threads=Threads(2, "table")
        ),
        target=SimpleNamespace(metastore=SimpleNamespace(database=lambda _: home), policy=POLICY, identity="t"),
        store=SimpleNamespace(storage=Storage(()), root="hdfs://target:8020/dumps"),
        patterns=PatternMatches(),
    )
    (status,) = policy_status(connection, Reachable()).databases
    assert status.advice.startswith("the target database 'sales' has repl.incompatible=true")
    assert status.condition == "up to date"


@pytest.mark.parametrize(("down", "kinds"), [("", ["lag", "low retention"]), ("it is down", ["unreachable", "lag"])])
def test_the_page_has_the_alarms_that_there_are(down: str, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It said nothing of events that the source is about to purge."""
    for name in ("alarms", "policy_status"):
        module = import_module(f"hive_replication.health.{name}")
        monkeypatch.setattr(module, "lags_reachable", lambda *_: (replace(WELL, seconds_behind=1e9),))
    log = SimpleNamespace(config_value=lambda _, default: default, database=lambda name: Database(name, parameters={}))
    connection: Any = SimpleNamespace(
        source=SimpleNamespace(metastore=log, policy=POLICY, identity="u"),
        target=SimpleNamespace(metastore=log, policy=POLICY, identity="t"),
        store=SimpleNamespace(storage=Storage(()), root="hdfs://target:8020/dumps"),
        patterns=PatternMatches(),
    )
    found = open_alarms(connection, Reachable(source=down))
    assert [one.kind for one in found] == kinds
    assert policy_status(connection, Reachable(source=down)).alarms == found
